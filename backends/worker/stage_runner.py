"""A stage loaded in a worker, which receives frames and returns frames. Other modules handle pipes and orders."""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

import msgspec
import numpy as np

from backends.contract import (
    GRAMMAR_TOO_HEAVY,
    MAX_BATCH_TOKENS,
    MAX_TOP_LOGPROBS,
    NOT_SAMPLED,
    BadSlots,
    DeviceCheck,
    Hidden,
    Logits,
    NumberFormat,
    PictureGrid,
    Role,
    Segment,
    Stage,
    StageConfig,
    StageError,
    Tokens,
)
from backends.frames import BadFrame, Frame, FrameKind, PipelineParameters, check_step, guesses_of, row_bytes
from backends.grammar import GrammarTooHeavy, forget_all
from backends.hidden_state_codec import Rows, bytes_of, decode_hidden, decode_ids, encode_hidden, encode_ids
from backends.sampling import Greedy, Sampler, make_sampler
from backends.worker.shown_pictures import ShownPictures
from backends.worker.slot_copies import SlotCopies, SlotState
from backends.worker_orders import (
    BeginSequence,
    OpenStage,
    ReadSlot,
    ShowPicture,
    SlotPiece,
    SlotWritten,
    WriteSlot,
    decode_begin,
)

KEPT_OUTPUTS = 2  # as many as a stage has credit for (SAFETY.md 5)
KEPT_FORGETS = 16  # including answers to BEGIN; each takes only a few bytes

Answers = tuple[Frame, ...]

_PAIR = struct.Struct("<if")
MOST_GRIDS = 64  # pictures of one sequence with positions in two dimensions
Likely = tuple[tuple[int, float], ...]  # token ids and natural logs of their probabilities, the sampled token first


@dataclass(slots=True)
class StepLog:
    """The positions of a stage's slots, and its latest answers, which make steps idempotent (SAFETY.md 5).

    The log decides whether a frame is computed, answered from memory or rejected. A frame takes effect completely or
    not at all: `admit`, `admit_forget` and `admit_begin` change nothing, and `computed`, `forgotten` and `begun` are
    called only after the engine has succeeded.
    """

    agreed: PipelineParameters
    epoch: int
    next_pos: list[int] = field(init=False)
    _latest: int = -1  # the number of the latest computed step
    _outputs: deque[tuple[int, Answers]] = field(init=False)
    _forgets: deque[tuple[int, Answers]] = field(init=False)

    def __post_init__(self) -> None:
        self.next_pos = [0] * self.agreed.slots
        self._outputs = deque(maxlen=KEPT_OUTPUTS)
        self._forgets = deque(maxlen=KEPT_FORGETS)

    def admit(self, step: Frame) -> Answers | None:
        """Return the answer to a stale, repeated or premature step, or None if the step must be computed.

        Raises BadFrame.
        """
        check_step(step, self.agreed)
        early = self._stale(step) or _kept(self._outputs, step.seq)
        if early:
            return early
        cuts = step.cuts and step.seq > self._latest  # a late repeat must not cut
        if all(s.pos == end or (cuts and s.pos < end) for s, end in self._ends(step)):
            return None
        expected = tuple(Segment(s.slot, s.n_tokens, self.next_pos[s.slot]) for s in step.segments)
        return (self._answer(FrameKind.NEED_FROM, step, expected),)

    def cut(self, step: Frame) -> tuple[Segment, ...]:
        """Record that an admitted step forgets the positions after the beginnings of these segments. Return them."""
        segments = tuple(segment for segment, end in self._ends(step) if segment.pos < end)
        for segment in segments:
            self.next_pos[segment.slot] = segment.pos
        return segments

    def _ends(self, step: Frame) -> list[tuple[Segment, int]]:
        return [(segment, self.next_pos[segment.slot]) for segment in step.segments]

    def computed(self, step: Frame, outputs: Answers) -> None:
        """Record that the engine has computed an admitted step."""
        for segment in step.segments:
            self.next_pos[segment.slot] = segment.end
        self._latest = step.seq
        self._outputs.append((step.seq, outputs))

    def admit_forget(self, frame: Frame) -> Answers | None:
        """Check a FORGET as `admit` checks a STEP. Raises BadFrame."""
        if frame.pipeline != self.agreed.pipeline or frame.payload:
            raise BadFrame("a forget for another pipeline, or with a payload")
        if not 1 <= len(frame.segments) <= self.agreed.slots:
            raise BadFrame("a forget without slots, or with too many")
        if any(segment.slot >= self.agreed.slots for segment in frame.segments):
            raise BadFrame(f"a forget beyond {self.agreed.slots} slots")
        return self._stale(frame) or (_kept(self._forgets, frame.seq) if frame.seq else None)

    def admit_begin(self, frame: Frame) -> Answers | None:
        """Check a BEGIN as `admit` checks a STEP. Raises BadFrame."""
        if frame.pipeline != self.agreed.pipeline or len(frame.segments) != 1:
            raise BadFrame("a beginning for another pipeline, or not of one slot")
        if frame.segments[0].slot >= self.agreed.slots:
            raise BadFrame(f"a beginning beyond {self.agreed.slots} slots")
        return self._stale(frame) or _kept(self._forgets, frame.seq)

    def begun(self, frame: Frame) -> Answers:
        """Record that an admitted BEGIN was carried out. Return the answer.

        The answer is stored, so a repeated frame neither restarts the sequence nor samples a token twice.
        """
        done = (self._answer(FrameKind.DONE, frame, frame.segments),)
        self._forgets.append((frame.seq, done))
        return done

    def kept(self, segment: Segment) -> int:
        """Return how many positions of the slot remain after an admitted FORGET."""
        return min(segment.pos, self.next_pos[segment.slot])

    def forgotten(self, frame: Frame) -> Answers:
        """Record that an admitted FORGET was carried out.

        Return the answer, which contains the new length of each slot.
        """
        for segment in frame.segments:
            self.next_pos[segment.slot] = self.kept(segment)
        held = tuple(Segment(s.slot, 0, self.next_pos[s.slot]) for s in frame.segments)
        done = (self._answer(FrameKind.DONE, frame, held),)
        self._forgets.append((frame.seq, done))
        return done

    def _stale(self, frame: Frame) -> Answers | None:
        if frame.epoch > self.epoch:
            raise BadFrame(f"epoch {frame.epoch} was not opened, {self.epoch} is the current one")
        # the answer has the old epoch, because in a newer one its number may belong to another frame
        if frame.epoch < self.epoch:
            return (Frame(FrameKind.STALE, frame.pipeline, frame.epoch, frame.seq),)
        return None

    def _answer(self, kind: FrameKind, to: Frame, segments: tuple[Segment, ...] = ()) -> Frame:
        return Frame(kind, self.agreed.pipeline, self.epoch, to.seq, segments=segments)


def _kept(answers: deque[tuple[int, Answers]], seq: int) -> Answers | None:
    return next((answer for known, answer in answers if known == seq), None)


def likeliest(logits: Rows, token: int, n: int) -> Likely:
    """Return the sampled token and the `n` likeliest tokens, in that order, with their log probabilities.

    logits: the model's own scores [n_vocab], before temperature, biases, penalties and grammar.
    """
    scores = logits.astype(np.float64)
    scores -= scores.max()
    scores -= np.log(np.exp(scores).sum())
    n = min(n, MAX_TOP_LOGPROBS, len(scores))
    best = np.argpartition(-scores, n - 1)[:n] if n else np.empty(0, dtype=np.intp)
    best = best[np.lexsort((best, -scores[best]))]
    return tuple((int(token_id), float(scores[token_id])) for token_id in (token, *best))


def likely_to_wire(likely: Likely) -> bytes:
    return b"".join(_PAIR.pack(token, score) for token, score in likely)


def check_grids(grids: tuple[PictureGrid, ...], context: int) -> None:
    """Raise StageError unless the grids follow each other within `context` and each fits into one step.

    They may come from another machine. None is the first of its sequence, because a picture is announced by a token.
    """
    end = 1
    if len(grids) > MOST_GRIDS:
        raise StageError(f"{len(grids)} pictures in a sequence, {MOST_GRIDS} are allowed")
    for grid in grids:
        has_rows = min(grid.n_columns, grid.n_lines) >= 1 and grid.n_rows <= MAX_BATCH_TOKENS
        if not has_rows or grid.first < end or grid.end > context:
            raise StageError(f"{grid} does not fit into a sequence of {context}")
        end = grid.end


class Engine(Stage, SlotState, Protocol):
    """A Stage with additional operations that a worker needs."""

    def place(self, batch: Tokens | Hidden) -> int:
        """Write the rows of a step into the engine's input buffer without computing it. Return their number."""
        ...

    def share(self, most: int) -> int:
        """Use at most `most` threads from now on. Return the number in use."""
        ...

    @property
    def n_vocab(self) -> int: ...

    @property
    def device_bytes(self) -> int:
        """Return the memory that the stage takes on its device, or 0 if the processor computes."""
        ...

    @property
    def device_work(self) -> dict[str, int]:
        """Return, for each device, the memory that the stage takes besides weights and KV cache."""
        ...

    @property
    def check(self) -> DeviceCheck | None:
        """Return how far its device differs from the processor, or None if they were not compared."""
        ...

    @property
    def vocabulary(self) -> str:
        """Return the path of the file with the vocabulary for grammars, or "" if it is unknown."""
        ...


def open_engine(config: StageConfig) -> Engine:
    """Load a stage with the engine that its configuration names. Raises StageError."""
    match config.engine:
        case "llamacpp":
            from backends.llamacpp.device_check import open_stage

            return open_stage(config)
        case "pytorch":
            from backends.pytorch import library

            library.load(config.library)
            from backends.pytorch.stage import TorchStage

            return _compared(TorchStage(config), config)
        case "apple":
            from backends.apple import library as mlx_library

            mlx_library.load(config.library)
            from backends.apple.stage import MlxStage

            return _compared(MlxStage(config), config)
        case "fake":
            from backends.fake_engine import FakeStage

            return FakeStage(config)
    raise StageError(f"there is no engine called {config.engine}")


class ComparableEngine(Engine, Protocol):
    """An engine whose stages can be compared with llama.cpp's."""

    check: DeviceCheck | None


def _compared(stage: ComparableEngine, config: StageConfig) -> Engine:
    """Compare a stage with llama.cpp if its configuration requests it. Raises StageError."""
    if config.compared:
        from backends.engine_check import compare_stage

        try:
            stage.check = compare_stage(stage, config)
        except StageError:
            stage.close()
            raise
    return stage


@dataclass(slots=True)
class Sequence:
    """The state of the sequence in one slot of the last stage."""

    due_from: int
    sampler: Greedy | Sampler
    tells_logits: bool
    likely: int | None = None


class StageRunner:
    """A stage, the record of its steps and, if it is the last stage, the samplers of its sequences."""

    def __init__(self, order: OpenStage) -> None:
        """Load the stage. Raises StageError."""
        self.config = order.config
        self._number = NumberFormat(order.number)
        takes_ids = self.config.role in (Role.FIRST, Role.WHOLE)
        self._agreed = PipelineParameters(
            bytes.fromhex(order.pipeline),
            self.config.width,
            NumberFormat.IDS if takes_ids else self._number,
            self.config.slots,
            order.context,
            self.config.role.has_head,
        )
        self._engine = open_engine(self.config)
        self._copies = SlotCopies(self._engine)
        self.start(order.epoch)

    def start(self, epoch: int) -> None:
        """Start a new epoch, which clears all slots, stored answers and sequences."""
        self._steps = StepLog(self._agreed, epoch)
        self._sequences: dict[int, Sequence] = {}
        self._pictures = ShownPictures(self.config.width)
        self._copies.clear()
        for slot in range(self.config.slots):
            self._engine.forget(slot)
            self._engine.lay_out(slot, ())

    def serves(self, order: OpenStage) -> bool:
        """Return whether the order requests this stage with a newer epoch."""
        same = self.config == order.config and self._number == order.number
        return same and self._agreed.context == order.context and order.epoch > self._steps.epoch

    def begin(self, order: BeginSequence) -> None:
        """Start a sequence. Raises StageError, for example if the stage has no such slot.

        Only the last run samples. The others learn where the sequence has pictures.
        """
        if not 0 <= order.slot < self.config.slots:
            raise StageError(f"there is no slot {order.slot}")
        check_grids(order.grids, self._agreed.context)
        self._engine.lay_out(order.slot, order.grids)
        if not self.config.role.has_head:
            return
        sampler = make_sampler(
            order.sampling, self._engine.n_vocab, self._engine.vocabulary, order.history, order.drawn
        )
        self._sequences[order.slot] = Sequence(order.due_from, sampler, order.logits, order.sampling.likely)

    def show(self, order: ShowPicture) -> None:
        """Keep rows of a picture for a sequence. Raises StageError, for example if this is not the first stage."""
        if self._agreed.number is not NumberFormat.IDS:
            raise StageError("only the first run takes pictures")
        if not 0 <= order.slot < self.config.slots:
            raise StageError(f"there is no slot {order.slot}")
        self._pictures.keep(order.slot, order.first, order.rows, begins=order.begins)

    def read_slot(self, order: ReadSlot) -> SlotPiece:
        """Return a piece of the copy of a slot's state. Raises StageError."""
        self._require_slot(order)
        return self._copies.read(order, self._steps.next_pos[order.slot])

    def write_slot(self, order: WriteSlot) -> SlotWritten:
        """Take a piece of the state of a slot, which must be empty. Raises StageError."""
        self._require_slot(order)
        fits = 0 < order.positions <= self._agreed.context and order.total_bytes > 0
        if self._steps.next_pos[order.slot] or not fits:
            raise StageError(f"slot {order.slot} has no room for {order.positions} positions")
        written = self._copies.write(order)
        self._steps.next_pos[order.slot] = written.positions
        return written

    def _require_slot(self, order: ReadSlot | WriteSlot) -> None:
        if order.epoch != self._steps.epoch or not 0 <= order.slot < self.config.slots:
            raise StageError(f"there is no slot {order.slot} in epoch {order.epoch}")

    def begin_from(self, frame: Frame) -> Answers:
        """Answer a BEGIN. Raises the same errors as `step`."""
        known = self._steps.admit_begin(frame)
        if known is not None:
            return known
        try:
            order = decode_begin(frame.payload)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise BadFrame(f"no beginning of ours: {error}") from None
        if order.slot != frame.segments[0].slot or order.sampling.grammar or order.logits:
            raise BadFrame("a beginning for another slot, or with what stays with the host")
        self.begin(order)
        return self._steps.begun(frame)

    def step(self, frame: Frame) -> Answers:
        """Answer a STEP. Raises StageError, BadFrame or BadSlots. The last two leave the stage intact."""
        known = self._steps.admit(frame)
        if known is not None:
            return known
        for segment in frame.segments:
            self._copies.cancel(segment.slot)
        outputs = self._compute(frame)
        self._steps.computed(frame, outputs)
        if self._agreed.number is NumberFormat.IDS:
            self._forget_pictures(frame)
        return outputs

    def _forget_pictures(self, frame: Frame) -> None:
        """Drop the rows of pictures that a step has used up."""
        rows = memoryview(frame.payload)[: row_bytes(frame, self._agreed)]
        ids, first = decode_ids(rows).tolist(), 0
        if min(ids, default=0) >= 0:
            return
        for segment in frame.segments:
            self._pictures.computed(segment.slot, ids[first : first + segment.n_tokens])
            first += segment.n_tokens

    def rehearse(self, frame: Frame) -> None:
        """Repeat the part of `step` before the computation, using a step that was already answered."""
        self._steps.admit(frame)
        batch = self._batch(frame)
        if isinstance(batch, Hidden) or min(batch.ids, default=0) >= 0:  # prompts with pictures take long anyway
            self._engine.place(batch)

    def forget(self, frame: Frame) -> Answers:
        """Answer a FORGET. Raises the same errors as `step`."""
        known = self._steps.admit_forget(frame)
        if known is not None:
            return known
        for segment in frame.segments:
            self._copies.cancel(segment.slot)
            self._engine.forget(segment.slot, self._steps.kept(segment))
            self._pictures.drop(segment.slot)  # the sequence that begins there is shown its own
        return self._steps.forgotten(frame)

    @property
    def device_bytes(self) -> int:
        return self._engine.device_bytes

    @property
    def device_work(self) -> dict[str, int]:
        return self._engine.device_work

    @property
    def check(self) -> DeviceCheck | None:
        return self._engine.check

    def share(self, most: int) -> int:
        return self._engine.share(most)

    def close(self) -> None:
        self._sequences.clear()
        forget_all()
        self._engine.close()

    def _compute(self, frame: Frame) -> Answers:
        if frame.checks and self.config.traits.recurrent:
            raise BadFrame("guesses for a recurrent state, which could not forget wrong ones")
        batch, guesses = self._batch(frame), guesses_of(frame, self._agreed)
        due = [i for i, segment in enumerate(frame.segments) if self._is_due(segment)]
        if frame.cuts:
            self._cut(frame)
        guesses = tuple(guesses[i] for i in due)
        out = self._engine.forward(batch, due, [1 + len(some) for some in guesses] if any(guesses) else ())
        if isinstance(out, Logits):
            return self._sample(frame, out, guesses)
        rows = np.frombuffer(out.rows, np.float32).reshape(-1, self.config.width)
        payload = self._written(rows, frame.segments)
        return (self._frame(FrameKind.OUTPUT, frame, self._number, frame.segments, payload),)

    def _cut(self, frame: Frame) -> None:
        """Forget what was computed from wrong guesses. Raises BadFrame if the engine cannot do that."""
        if self.config.traits.recurrent:
            raise BadFrame("a step that cuts back a recurrent state")
        for segment in self._steps.cut(frame):
            self._engine.forget(segment.slot, segment.pos)

    def _batch(self, frame: Frame) -> Tokens | Hidden:
        payload = memoryview(frame.payload)[: row_bytes(frame, self._agreed)] if frame.checks else frame.payload
        if self._agreed.number is NumberFormat.IDS:
            ids = decode_ids(payload)
            return Tokens(frame.segments, ids, self._pictures, frame.sees_all)  # type: ignore[arg-type]
        try:
            rows = decode_hidden(payload, self.config.width, self._number)
        except StageError as error:  # the sender did not reject it
            slots = [segment.slot for segment in frame.segments]
            raise BadSlots("stage_input_odd", slots, str(error)) from None
        return Hidden(frame.segments, bytes_of(rows), frame.sees_all)

    def _written(self, rows: Rows, segments: tuple[Segment, ...]) -> memoryview:
        """Encode the rows for the wire. Raises BadSlots if the rows of some segments are not finite."""
        try:
            return encode_hidden(rows, self._number)
        except StageError as error:
            ends = np.cumsum([segment.n_tokens for segment in segments])[:-1]
            parts = zip(segments, np.split(rows, ends), strict=True)
            odd = [segment.slot for segment, part in parts if not np.isfinite(part).all()]
            if odd:
                raise BadSlots("numbers_not_finite", odd, str(error)) from None
            raise

    def _is_due(self, segment: Segment) -> bool:
        sequence = self._sequences.get(segment.slot)
        return sequence is not None and segment.end >= sequence.due_from

    def _sample(self, frame: Frame, out: Logits, guesses: tuple[tuple[int, ...], ...]) -> Answers:
        """Sample the tokens of a step.

        guesses: for each segment of `out`, the guessed tokens at its end. Each of them is compared with the token that
        is sampled before it. After the first wrong one nothing is sampled, so that exactly one random number is drawn
        for each token of the answer.
        """
        n_rows = len(out.segments) + sum(map(len, guesses))
        scores = iter(np.frombuffer(out.rows, np.float32).reshape(n_rows, -1) if n_rows else ())
        frames: list[Frame] = []
        ids: list[int] = []
        for segment, guessed in zip(out.segments, guesses, strict=True):
            rows = [next(scores) for _ in range(1 + len(guessed))]
            is_known = True
            for index, row in enumerate(rows):
                if not is_known:
                    ids.append(NOT_SAMPLED)
                    continue
                end = segment.end - len(guessed) + index
                ids.append(self._pick(frame, Segment(segment.slot, 1, end - 1), row, frames))
                is_known = index < len(guessed) and ids[-1] == guessed[index]
        frames.append(self._frame(FrameKind.SAMPLED, frame, NumberFormat.IDS, out.segments, encode_ids(ids)))
        return tuple(frames)

    def _pick(self, frame: Frame, segment: Segment, row: Rows, frames: list[Frame]) -> int:
        """Sample the token after a position, and append the frames that report its scores. Raises BadSlots."""
        sequence = self._sequences[segment.slot]
        try:
            token = sequence.sampler.pick(row)
        except GrammarTooHeavy:  # other answers are not affected
            return GRAMMAR_TOO_HEAVY
        except StageError as error:
            is_sound = bool(np.isfinite(row).all())
            code = "sampling_failed" if is_sound else "numbers_not_finite"
            raise BadSlots(code, [segment.slot], str(error)) from None
        if sequence.tells_logits:
            frames.append(self._frame(FrameKind.LOGITS, frame, NumberFormat.F32, (segment,), row.tobytes()))
        if sequence.likely is not None:
            likely = likely_to_wire(likeliest(row, token, sequence.likely))
            frames.append(self._frame(FrameKind.LIKELY, frame, NumberFormat.F32, (segment,), likely))
        return token

    def _frame(
        self,
        kind: FrameKind,
        to: Frame,
        number: NumberFormat,
        segments: tuple[Segment, ...],
        payload: bytes | memoryview,
    ) -> Frame:
        return Frame(kind, to.pipeline, to.epoch, to.seq, number, segments, payload)
