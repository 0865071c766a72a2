"""The service that answers each frame that a worker receives: an order, a step, a FORGET or a BEGIN.

This module does no I/O.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import assert_never

import msgspec
import numpy as np

from backends import worker_orders
from backends.contract import (
    BadSlots,
    ChatRejected,
    DeviceUnusable,
    FamilyUnfit,
    NotFinite,
    OutOfMemory,
    StageError,
    TemplateFailed,
    UnprovedEngine,
    tells_device_out_of_memory,
    tells_out_of_memory,
)
from backends.frames import BadFrame, Frame, FrameKind, decode_frame, encode_frame
from backends.grammar import GrammarRefused, GrammarTooHeavy
from backends.hidden_state_codec import bytes_of, decode_ids
from backends.llamacpp.draft_model import DraftModel
from backends.llamacpp.picture_encoder import PictureEncoder
from backends.llamacpp.text_embedder import LlamaEmbedder
from backends.templates.chat_template import ChatTemplate, RenderedChat
from backends.templates.template_calls import call_format
from backends.templates.template_reasoning import of_template
from backends.vocabulary import Vocabulary, open_vocabulary, pieces
from backends.worker import confine, process_resources
from backends.worker.stage_runner import StageRunner

SHORT_CHARS = 1 << 14  # up to this length, sending the tokens with the text causes no noticeable delay
PICTURE_PIECE_BYTES = 8 << 20  # rows in one answer, which base64 makes a third longer
REHEARSED_BYTES = 64 << 10  # enough for steps of a few answers; long prompts take long anyway


class Vectors:
    """A worker's embedding model or reranker. At most one model is loaded."""

    def __init__(self) -> None:
        self._model: LlamaEmbedder | None = None
        self._context = 0

    def open(self, order: worker_orders.OpenEmbedder) -> worker_orders.EmbedderOpened:
        """Load a model, replacing the previous one. Raises StageError."""
        self.close()
        most = order.memory_limit_bytes
        if most:
            with process_resources.limited_growth(int(most * process_resources.ROOM_TO_LOAD), mapped=False):
                self._model = LlamaEmbedder(order.path, order.context, order.threads)
        else:
            self._model = LlamaEmbedder(order.path, order.context, order.threads)
        self._context = order.context
        return worker_orders.EmbedderOpened(
            request=order.request, width=self._model.width, memory_bytes=process_resources.resident_bytes()
        )

    def embed(self, order: worker_orders.Embed) -> worker_orders.Embedded:
        """Embed a text. Raises StageError."""
        if self._model is None:
            raise StageError("no embedding model is loaded here")
        ids = list(order.ids) or self._model.tokenize(order.text)
        n_tokens = len(ids)
        if order.cut and n_tokens > self._context:
            # keep the last token, which many models expect at the end of a text
            ids, n_tokens = [*ids[: self._context - 1], ids[-1]], self._context
        vector = b"" if n_tokens > self._context else self._model.embed(ids).tobytes()
        return worker_orders.Embedded(request=order.request, vector=vector, n_tokens=n_tokens)

    def rank(self, order: worker_orders.Rank) -> worker_orders.Ranked:
        """Score how well a text answers a query. Raises StageError."""
        if self._model is None:
            raise StageError("no reranker is loaded here")
        ids = self._model.pair(order.query, order.text)
        n_tokens = len(ids)
        score = None if n_tokens > self._context else self._model.score(ids)
        return worker_orders.Ranked(request=order.request, score=score, n_tokens=n_tokens)

    def close(self) -> None:
        """Release the memory."""
        if self._model is not None:
            self._model.close()
        self._model = None


class Draft:
    """A worker's draft model, which writes ahead of a larger one. At most one is loaded."""

    def __init__(self) -> None:
        self._model: DraftModel | None = None

    def open(self, order: worker_orders.OpenDraft) -> worker_orders.DraftOpened:
        """Load a model, replacing the previous one. Raises StageError."""
        self.close()
        most = order.memory_limit_bytes
        limit = process_resources.limited_growth(int(most * process_resources.ROOM_TO_LOAD), mapped=False)
        with limit if most else nullcontext():
            self._model = DraftModel(order.path, order.target, order.context, order.slots, order.threads)
        return worker_orders.DraftOpened(request=order.request, memory_bytes=process_resources.resident_bytes())

    def write(self, order: worker_orders.WriteDraft) -> worker_orders.DraftWritten:
        """Read tokens and write more. Raises StageError."""
        if self._model is None:
            raise StageError("no draft model is loaded here")
        pairs = self._model.write(order.slot, order.keep, order.ids, order.n_tokens)
        ids, chances = tuple(token for token, _ in pairs), tuple(chance for _, chance in pairs)
        return worker_orders.DraftWritten(request=order.request, ids=ids, chances=chances)

    def close(self) -> None:
        """Release the memory."""
        if self._model is not None:
            self._model.close()
        self._model = None


class Eyes:
    """A worker's projector, which turns pictures into rows. At most one is loaded."""

    def __init__(self) -> None:
        self._encoder: PictureEncoder | None = None

    def open(self, order: worker_orders.OpenProjector) -> worker_orders.ProjectorOpened:
        """Load a projector, replacing the previous one. Raises StageError."""
        self.close()
        most = order.memory_limit_bytes
        if most:  # this limit also applies while it looks at pictures
            allowance = process_resources.memory_allowance(most, order.threads)
            process_resources.keep_below(process_resources.private_bytes() + allowance)
        limit = process_resources.limited_growth(int(most * process_resources.ROOM_TO_LOAD), mapped=False)
        with limit if most else nullcontext():
            encoder = self._encoder = PictureEncoder(order.path, order.projector, order.threads, order.most_rows)
        return worker_orders.ProjectorOpened(
            request=order.request,
            width=encoder.width,
            is_causal=encoder.is_causal,
            memory_bytes=process_resources.resident_bytes(),
        )

    def see(self, order: worker_orders.SeePicture) -> Iterator[worker_orders.PictureParts]:
        """Yield what represents a picture in a prompt, in pieces that fit into a frame. Raises StageError."""
        if self._encoder is None:
            raise StageError("no projector is loaded here")
        pieces = list[worker_orders.PictureParts]()
        for part in self._encoder.see(order.width, order.height, order.rgb):
            if part.rows is None:
                pieces.append(worker_orders.PictureParts(request=order.request, ids=part.ids, last=False))
                continue
            n_rows = max(1, PICTURE_PIECE_BYTES // (4 * self._encoder.width))
            for first in range(0, len(part.rows), n_rows):
                rows = part.rows[first : first + n_rows].tobytes()
                pieces.append(
                    worker_orders.PictureParts(
                        request=order.request, rows=rows, continues=first > 0, n_columns=part.n_columns, last=False
                    )
                )
        if not pieces:
            raise StageError("nothing stands for the picture")
        yield from pieces[:-1]
        yield msgspec.structs.replace(pieces[-1], last=True)

    def close(self) -> None:
        """Release the memory."""
        if self._encoder is not None:
            self._encoder.close()
        self._encoder = None


class Service:
    """All stages of a worker process, and its vocabulary.

    alone: whether this service is the only one in its process and may therefore limit the memory of the whole process.
    """

    def __init__(self, *, alone: bool = False) -> None:
        self._alone = alone
        self._runs: dict[bytes, StageRunner] = {}
        self._text: Vocabulary | None = None
        self._template = self._tools_template = ChatTemplate("")
        self._vectors, self._eyes, self._draft = Vectors(), Eyes(), Draft()
        self._last: Frame | None = None  # the last successful step, for rehearsal

    def answer(self, frame: Frame) -> Iterator[Frame]:
        """Yield the answers to a frame, in order. Raises BadFrame if the frame cannot come from a node of this app."""
        match frame.kind:
            case FrameKind.TEXT:
                yield from self._obey(frame)
            case FrameKind.STEP | FrameKind.FORGET | FrameKind.BEGIN:
                yield from self._move(frame)
            case FrameKind.FOLLOW:
                yield from self._follow(frame)
            case _:
                raise BadFrame(f"{frame.kind.name} is an answer")

    def rehearse(self) -> None:
        """Repeat the preparation of the last step.

        This keeps its code and data in the processor's caches until the next step. It has no other effect.
        """
        if self._last is None or len(self._last.payload) > REHEARSED_BYTES:
            return
        step = decode_frame(encode_frame(self._last))
        self._runs[step.pipeline].rehearse(step)

    def close(self) -> None:
        """Release all memory."""
        for pipeline in list(self._runs):
            self._runs.pop(pipeline).close()
        if self._text is not None:
            self._text.close()
        self._vectors.close()
        self._eyes.close()
        self._draft.close()

    def _move(self, frame: Frame) -> tuple[Frame, ...]:
        self._last = None
        run = self._runs.get(frame.pipeline)
        if run is None:
            return (lost(frame, "stage_missing", "these layers are not loaded here"),)
        try:
            if frame.kind is FrameKind.FORGET:
                return run.forget(frame)
            if frame.kind is FrameKind.BEGIN:
                return run.begin_from(frame)
            answers = run.step(frame)
            self._last = frame
            return answers
        except BadFrame as error:  # the stage is unchanged
            return (lost(frame, "stage_bad_step", str(error)),)
        except BadSlots as error:  # the stage is intact
            complain(error)
            return (lost(frame, error.code, str(error), error.slots),)
        except Exception as error:  # noqa: BLE001  the outer wall: an engine may raise anything
            complain(error)
            return self._give_up(frame, error)

    def _follow(self, frame: Frame) -> tuple[Frame, ...]:
        """Compute a step of the last stage, then a step of the first stage with the sampled tokens.

        Both answers are sent together, in a single round trip. The node can then process the tokens while this machine
        has nothing to compute.
        """
        before = decode_frame(frame.payload)
        if before.kind is not FrameKind.STEP:
            raise BadFrame(f"a {before.kind.name} frame to be followed")
        answers = self._move(before)
        if answers[-1].kind is not FrameKind.SAMPLED:
            return answers
        if [s.slot for s in answers[-1].segments] != [s.slot for s in frame.segments]:
            return (*answers, lost(frame, "stage_bad_step", "tokens of other slots were sampled"))
        # a negative id is not a token: that answer has ended
        tokens = np.maximum(decode_ids(answers[-1].payload), 0)
        step = replace(frame, kind=FrameKind.STEP, payload=bytes_of(tokens))
        after = self._move(step)
        self._last = self._last and before  # the next step will be one of the last stage again
        return (*answers, *after)

    def _give_up(self, frame: Frame, error: Exception) -> tuple[Frame, ...]:
        """Close a stage that failed, because its state may be inconsistent. Its host will open it again."""
        self._runs.pop(frame.pipeline).close()
        if isinstance(error, StageError) and tells_device_out_of_memory(str(error)):
            return (lost(frame, "worker_card_short", str(error)),)
        if _is_short(error):
            return (lost(frame, "worker_memory_short", str(error)),)
        return (lost(frame, "stage_failed", _cause(error)),)

    def _obey(self, frame: Frame) -> Iterator[Frame]:
        self._last = None
        try:
            order = worker_orders.decode_order(frame.payload)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            yield _refused(frame, error)
            return
        try:
            for answer in self._carry_out(order):
                yield told(answer)
        except (StageError, TemplateFailed) as error:
            complain(error)
            yield told(
                worker_orders.Failed(
                    request=order.request,
                    code=_code(order, error),
                    text=str(error),
                    cause=error.cause,
                    facts=error.facts,
                )
            )
        except Exception as error:  # noqa: BLE001  the outer wall, as above
            complain(error)
            words = f"{type(error).__name__}: {error}"
            yield told(worker_orders.Failed(request=order.request, code="worker_refused", text=words))

    def _carry_out(self, order: worker_orders.WorkerOrder) -> Iterator[worker_orders.WorkerAnswer]:
        match order:
            case worker_orders.OpenStage():
                yield self._open(order)
            case worker_orders.CloseStage():
                run = self._runs.pop(_pipeline(order.pipeline), None)
                if run is not None:
                    run.close()
                yield worker_orders.StageClosed(request=order.request)
            case worker_orders.BeginSequence():
                self._run(order.pipeline).begin(order)
                yield worker_orders.SequenceBegun(request=order.request)
            case worker_orders.LimitThreads():
                used = [run.share(order.most) for run in self._runs.values()]
                yield worker_orders.ThreadsLimited(request=order.request, used=max(used, default=0))
            case worker_orders.OpenVocabulary():
                yield from self._open_text(order)
            case worker_orders.Tokenize():
                ids = self._tokenize(order.text, special=order.special, bos=order.bos)
                yield worker_orders.Tokenized(request=order.request, ids=ids)
            case worker_orders.Render():
                rendered, number = self._render(order), order.request
                is_long = len(rendered.text) > SHORT_CHARS
                answer = worker_orders.Rendered(request=number, text=rendered.text, folded=rendered.folded)
                if is_long or not order.ids:
                    yield msgspec.structs.replace(answer, last=not order.ids)
                if order.ids:
                    ids = self._tokenize(rendered.text, special=True, bos=True)
                    yield (
                        worker_orders.Tokenized(request=number, ids=ids)
                        if is_long
                        else msgspec.structs.replace(answer, ids=ids)
                    )
            case worker_orders.OpenEmbedder():
                yield self._vectors.open(order)
            case worker_orders.Embed():
                yield self._vectors.embed(order)
            case worker_orders.Rank():
                yield self._vectors.rank(order)
            case worker_orders.OpenDraft():
                yield self._draft.open(order)
            case worker_orders.WriteDraft():
                yield self._draft.write(order)
            case worker_orders.OpenProjector():
                yield self._eyes.open(order)
            case worker_orders.SeePicture():
                yield from self._eyes.see(order)
            case worker_orders.ShowPicture():
                self._run(order.pipeline).show(order)
                yield worker_orders.PictureShown(request=order.request)
            case worker_orders.ReadSlot():
                yield self._run(order.pipeline).read_slot(order)
            case worker_orders.WriteSlot():
                yield self._run(order.pipeline).write_slot(order)
            case _:
                assert_never(order)

    def _open(self, order: worker_orders.OpenStage) -> worker_orders.StageOpened:
        started = time.monotonic()
        pipeline = _pipeline(order.pipeline)
        present = self._runs.get(pipeline)
        if present is not None and present.serves(order):
            present.start(order.epoch)
        else:
            if present is not None:
                self._runs.pop(pipeline).close()
            self._runs[pipeline] = _load(order, self._alone)
        seconds = time.monotonic() - started
        held = process_resources.resident_bytes()
        run = self._runs[pipeline]
        return worker_orders.StageOpened(
            request=order.request,
            memory_bytes=held,
            seconds=seconds,
            device_bytes=run.device_bytes,
            device_work=run.device_work,
            apart=run.check.apart if run.check else None,
        )

    def _run(self, pipeline: str) -> StageRunner:
        run = self._runs.get(_pipeline(pipeline))
        if run is None:
            raise StageError("these layers are not loaded here")
        return run

    def _open_text(self, order: worker_orders.OpenVocabulary) -> Iterator[worker_orders.WorkerAnswer]:
        if self._text is not None:
            self._text.close()
            self._text = None
        text = self._text = open_vocabulary(order.path)
        import backends.templates.jinja_sandbox  # noqa: F401  now, and not at the first question

        names = _names(text)
        reasoning = of_template(text.template, names)
        self._template = self._tools_template = ChatTemplate(text.template, names, reasoning)
        if text.tools_template != text.template:
            self._tools_template = ChatTemplate(text.tools_template, names, reasoning)
        yield worker_orders.VocabularyOpened(
            request=order.request,
            n_vocab=text.n_vocab,
            end_tokens=text.end_tokens,
            bos=text.bos,
            adds_bos=text.adds_bos,
            has_template=bool(text.template),
            calls=call_format(text.tools_template, names, [text.name(end) for end in text.end_tokens]),
            reasoning=reasoning,
            markers=text.markers(),
        )
        for first, some in pieces(text):
            last = first + len(some) == text.n_vocab
            yield worker_orders.Pieces(request=order.request, first=first, pieces=some, last=last)

    def _vocabulary(self) -> Vocabulary:
        if self._text is None:
            raise StageError("no vocabulary is loaded here")
        return self._text

    def _tokenize(self, text: str, *, special: bool, bos: bool) -> tuple[int, ...]:
        return tuple(self._vocabulary().tokenize(text, special=special, bos=bos))

    def _render(self, order: worker_orders.Render) -> RenderedChat:
        self._vocabulary()
        template = self._tools_template if order.tools else self._template
        return template.render(
            order.messages,
            tools=order.tools,
            now=order.now,
            options=order.options,
            add_generation_prompt=order.add_generation_prompt,
            continues=order.continues,
        )


def _names(text: Vocabulary) -> dict[str, str]:
    """Return the control tokens that templates insert through variables."""
    return {"bos_token": text.name(text.bos), "eos_token": text.name(text.eos)}


def _load(order: worker_orders.OpenStage, alone: bool) -> StageRunner:
    """Load a stage within its memory limit. Raises StageError."""
    if order.config.device and not confine.allows_devices():
        raise DeviceUnusable("this worker may not use a graphics card", "device_forbidden")
    if not order.memory_limit_bytes:
        return _run(order)
    if order.config.device:
        return _load_on_device(order)
    before, most = process_resources.resident_bytes(), order.memory_limit_bytes
    if alone:  # this limit also applies between the node's checks
        process_resources.keep_below(
            process_resources.private_bytes() + process_resources.memory_allowance(most, order.config.threads)
        )
    with process_resources.limited_growth(int(most * process_resources.ROOM_TO_LOAD), mapped=False):
        run = _run(order)
    grown = process_resources.resident_bytes() - before
    if grown > order.memory_limit_bytes:
        run.close()
        words = f"{grown} bytes are needed, {order.memory_limit_bytes} are allowed"
        raise OutOfMemory(words, "worker_over_limit", needed=grown, allowed=order.memory_limit_bytes)
    return run


def _load_on_device(order: worker_orders.OpenStage) -> StageRunner:
    """Load a stage on a device, whose driver decides how much main memory it takes. Raises StageError."""
    run = _run(order)
    used, allowed = run.device_bytes, int(order.memory_limit_bytes * process_resources.ROOM_TO_LOAD)
    if used > allowed:
        run.close()
        words = f"{used} bytes are needed, {allowed} are allowed"
        raise OutOfMemory(words, "worker_over_limit", needed=used, allowed=allowed)
    return run


def _run(order: worker_orders.OpenStage) -> StageRunner:
    try:
        return StageRunner(order)
    except MemoryError:
        raise OutOfMemory("there is not enough memory to load these layers", "layers_no_memory") from None
    except StageError as error:
        if _is_short(error):
            raise OutOfMemory(str(error), error.cause, **error.facts) from None
        raise


def _is_short(error: Exception) -> bool:
    """Return whether a lack of memory caused the error."""
    if isinstance(error, MemoryError | OutOfMemory):
        return True
    return isinstance(error, StageError) and tells_out_of_memory(str(error))


def _pipeline(text: str) -> bytes:
    try:
        pipeline = bytes.fromhex(text)
    except ValueError:
        pipeline = b""
    if len(pipeline) != 16:
        raise StageError("a pipeline is named by 32 hex digits")
    return pipeline


_OPENING = (
    worker_orders.OpenStage,
    worker_orders.OpenVocabulary,
    worker_orders.OpenEmbedder,
    worker_orders.OpenProjector,
    worker_orders.OpenDraft,
)


def _code(order: worker_orders.WorkerOrder, error: Exception) -> str:
    """Return the app's reason code for a failed order."""
    if isinstance(error, OutOfMemory):
        return "memory_short"
    if isinstance(error, FamilyUnfit):
        return "device_unfit"
    if isinstance(error, DeviceUnusable):
        return "device_unusable"
    if isinstance(error, NotFinite):
        return "numbers_not_finite"
    if isinstance(error, UnprovedEngine):
        return "engine_unproved"
    if isinstance(error, GrammarRefused):
        return "grammar_refused"
    if isinstance(error, GrammarTooHeavy):
        return "form_too_heavy"
    if isinstance(error, ChatRejected):
        return "template_objects"
    if isinstance(error, TemplateFailed):
        return "template_failed"
    if isinstance(order, _OPENING):
        return "model_not_loaded"
    return "worker_refused"


class _Numbered(msgspec.Struct):
    """The request number of an order, which a refusal needs even if the other fields are unreadable."""

    request: int


def _refused(frame: Frame, why: Exception) -> Frame:
    """Return the answer to an unreadable order. Raises BadFrame if its request number is also unreadable."""
    try:
        request = msgspec.json.decode(frame.payload, type=_Numbered).request
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise BadFrame(f"no order of ours: {why}") from None
    return told(worker_orders.Failed(request=request, code="worker_refused", text=str(why)))


def told(answer: worker_orders.WorkerAnswer) -> Frame:
    """Encode an answer as a frame."""
    return Frame(FrameKind.TEXT, payload=worker_orders.encode(answer))


def _cause(error: Exception) -> str | dict[str, object]:
    """Return the cause of an error as text, or as a reason code of the app with its facts."""
    if isinstance(error, StageError):
        return {"code": error.cause, "facts": error.facts} if error.cause else str(error)
    return f"{type(error).__name__}: {error}"


def lost(to: Frame, code: str, cause: str | dict[str, object], slots: Sequence[int] = ()) -> Frame:
    """Return the frame that reports a failed stage. slots: the slots that caused the failure, if known."""
    facts = {"cause": cause} | ({"slots": ",".join(map(str, slots))} if slots else {})
    payload = json.dumps({"code": code, "facts": facts}).encode()
    return Frame(FrameKind.LOST, to.pipeline, to.epoch, to.seq, payload=payload)


def complain(error: Exception) -> None:
    """Write the error to stderr. The node keeps the last lines of stderr."""
    sys.stderr.write(f"{type(error).__name__}: {error}\n")
    sys.stderr.flush()
