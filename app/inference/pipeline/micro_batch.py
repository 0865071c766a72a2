"""A micro-batch with whose it is, as a lane carries it through the stages."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass

from app.inference.pipeline.sequence import Sequence
from app.inference.pipeline.speculative_tokens import Guess
from app.inference.pipeline.step import Step
from backends.contract import Segment


@dataclass(frozen=True, slots=True)
class Part:
    """A sequence's share of a micro-batch."""

    sequence: Sequence
    segment: Segment
    due: bool  # it gets a token


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """A micro-batch under way."""

    step: Step
    parts: tuple[Part, ...]
    guess: Guess | None = None  # its one token is not known yet

    @classmethod
    def of(cls, parts: SequenceOf[Part]) -> MicroBatch:
        """Positions whose tokens are known."""
        segments = [part.segment for part in parts]
        due = [part.segment for part in parts if part.due]
        ids = array("i")
        for part in parts:
            ids += part.sequence.tokens[part.segment.pos : part.segment.end]
        return cls(Step.of(segments, due, struct.pack(f"<{len(ids)}i", *ids)), tuple(parts))

    @classmethod
    def guessed(cls, sequence: Sequence, guess: Guess) -> MicroBatch:
        """A position whose token has not come."""
        segment = Segment(sequence.slot, 1, guess.pos)
        step = Step.of([segment], [segment], struct.pack("<i", guess.token))
        return cls(step, (Part(sequence, segment, True),), guess)

    def following(self) -> MicroBatch:
        """The next position of each, for the tokens that come of this one."""
        segments = [Segment(part.segment.slot, 1, part.segment.end) for part in self.parts]
        parts = [Part(part.sequence, segment, True) for part, segment in zip(self.parts, segments, strict=True)]
        return MicroBatch(Step.of(segments, segments, b""), tuple(parts))

    @property
    def goes_on(self) -> bool:
        """Whether none of its answers has ended."""
        return not any(part.sequence.leaving for part in self.parts)
