"""Which frames a stage computes, answers from memory or refuses. Pure: SAFETY.md 5, idempotent steps."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from backends.contract import Segment
from backends.frames import Agreed, BadFrame, Frame, Kind, check_step

KEPT_OUTPUTS = 2  # as many frames as a stage has credit for (SAFETY.md 5)
KEPT_FORGETS = 16  # answers of a few bytes, also to beginnings

Answers = tuple[Frame, ...]


@dataclass(slots=True)
class Steps:
    """The positions of one stage's slots, and its last answers.

    A frame applies wholly or not at all: `admit` and `admit_forget` change nothing; `computed` and
    `forgotten` are called when the engine has done its part.
    """

    agreed: Agreed
    epoch: int
    next_pos: list[int] = field(init=False)
    _outputs: deque[tuple[int, Answers]] = field(init=False)
    _forgets: deque[tuple[int, Answers]] = field(init=False)

    def __post_init__(self) -> None:
        self.next_pos = [0] * self.agreed.slots
        self._outputs = deque(maxlen=KEPT_OUTPUTS)
        self._forgets = deque(maxlen=KEPT_FORGETS)

    def admit(self, step: Frame) -> Answers | None:
        """What to answer without computing; None: compute it now. Raises BadFrame."""
        check_step(step, self.agreed)
        early = self._stale(step) or _kept(self._outputs, step.seq)
        if early:
            return early
        if all(self.next_pos[s.slot] == s.pos for s in step.segments):
            return None
        expected = tuple(Segment(s.slot, s.n_tokens, self.next_pos[s.slot]) for s in step.segments)
        return (self._answer(Kind.NEED_FROM, step, expected),)

    def computed(self, step: Frame, outputs: Answers) -> None:
        """The engine has applied an admitted step."""
        for segment in step.segments:
            self.next_pos[segment.slot] = segment.end
        self._outputs.append((step.seq, outputs))

    def admit_forget(self, frame: Frame) -> Answers | None:
        """As `admit`, for a FORGET. Raises BadFrame."""
        if frame.pipeline != self.agreed.pipeline or frame.payload:
            raise BadFrame("a forget for another pipeline, or with a payload")
        if not 1 <= len(frame.segments) <= self.agreed.slots:
            raise BadFrame("a forget without slots, or with too many")
        if any(segment.slot >= self.agreed.slots for segment in frame.segments):
            raise BadFrame(f"a forget beyond {self.agreed.slots} slots")
        return self._stale(frame) or (_kept(self._forgets, frame.seq) if frame.seq else None)

    def admit_begin(self, frame: Frame) -> Answers | None:
        """As `admit`, for a BEGIN. Raises BadFrame."""
        if frame.pipeline != self.agreed.pipeline or len(frame.segments) != 1:
            raise BadFrame("a beginning for another pipeline, or not of one slot")
        if frame.segments[0].slot >= self.agreed.slots:
            raise BadFrame(f"a beginning beyond {self.agreed.slots} slots")
        return self._stale(frame) or _kept(self._forgets, frame.seq)

    def begun(self, frame: Frame) -> Answers:
        """The run has carried out an admitted BEGIN. Sent again, it is answered only: what was drawn
        meanwhile is not drawn again."""
        done = (self._answer(Kind.DONE, frame, frame.segments),)
        self._forgets.append((frame.seq, done))
        return done

    def kept(self, segment: Segment) -> int:
        """How many positions of the slot remain after an admitted FORGET."""
        return min(segment.pos, self.next_pos[segment.slot])

    def forgotten(self, frame: Frame) -> Answers:
        """The engine has applied an admitted FORGET: its answer tells what each slot now holds."""
        for segment in frame.segments:
            self.next_pos[segment.slot] = self.kept(segment)
        held = tuple(Segment(s.slot, 0, self.next_pos[s.slot]) for s in frame.segments)
        done = (self._answer(Kind.DONE, frame, held),)
        self._forgets.append((frame.seq, done))
        return done

    def _stale(self, frame: Frame) -> Answers | None:
        if frame.epoch > self.epoch:
            raise BadFrame(f"epoch {frame.epoch} was not opened, {self.epoch} is the current one")
        if (
            frame.epoch < self.epoch
        ):  # told by that epoch: of a newer one its number may mean another frame
            return (Frame(Kind.STALE, frame.pipeline, frame.epoch, frame.seq),)
        return None

    def _answer(self, kind: Kind, to: Frame, segments: tuple[Segment, ...] = ()) -> Frame:
        return Frame(kind, self.agreed.pipeline, self.epoch, to.seq, segments=segments)


def _kept(answers: deque[tuple[int, Answers]], seq: int) -> Answers | None:
    return next((given for known, given in answers if known == seq), None)
