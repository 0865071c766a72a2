"""A micro-batch on its way between stages, and what was agreed about it. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from backends.contract import Number, Role, Segment
from backends.frames import SEGMENT


@dataclass(frozen=True, slots=True)
class Run:
    """The parameters that both ends agreed on when the run was opened."""

    pipeline: bytes  # 16 random bytes, another id for each run
    role: Role
    width: int
    number: Number = Number.F16  # of hidden states on the wire
    epoch: int = 0

    @property
    def takes(self) -> Number:
        return Number.IDS if self.role in (Role.FIRST, Role.WHOLE) else self.number

    @property
    def samples(self) -> bool:
        return self.role in (Role.LAST, Role.WHOLE)


@dataclass(frozen=True, slots=True)
class Step:
    """A micro-batch between two stages."""

    table: bytes  # its segments as in a frame
    due: bytes  # those of them that get a token from the last run
    n_segments: int
    n_rows: int
    prefill: bool
    rows: bytes | memoryview  # token ids, hidden states; in the end the tokens sampled for `due`
    number: int = 0  # among the steps of its pipeline, from the first run on

    @classmethod
    def of(cls, segments: Sequence[Segment], due: Sequence[Segment], ids: bytes) -> Step:
        n_rows = sum(segment.n_tokens for segment in segments)
        prefill = n_rows > len(segments)
        return cls(_table(segments), _table(due), len(segments), n_rows, prefill, ids)


def _table(segments: Sequence[Segment]) -> bytes:
    return b"".join([SEGMENT.pack(s.slot, s.n_tokens, s.pos) for s in segments])
