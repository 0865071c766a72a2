"""Stages in one process, driven by the frames that a node sends its worker: the worker's own code, no pipe."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from backends import worker_orders
from backends.contract import GREEDY, NumberFormat, Segment, StageConfig
from backends.frames import Frame, FrameKind
from backends.hidden_state_codec import encode_ids
from backends.worker.service import Service, told
from tests.families.home import CONTEXT

Scores = NDArray[np.float32]


class StageRefused(Exception):
    """The worker did not open the stage, or gave it up; with its words."""


@dataclass
class Line:
    """The stages of a placement, in order."""

    configs: Sequence[StageConfig]
    _service: Service = field(default_factory=Service)
    _pipelines: list[bytes] = field(default_factory=list)
    _seq: int = 0

    def __enter__(self) -> Line:
        try:
            for config in self.configs:
                self._open(config)
        except StageRefused:
            self._service.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._service.close()

    def _open(self, config: StageConfig) -> None:
        pipeline = os.urandom(16)
        self._pipelines.append(pipeline)
        self._order(
            worker_orders.OpenStage(
                request=1, pipeline=pipeline.hex(), epoch=1, number=int(NumberFormat.F32),
                context=CONTEXT, memory_limit_bytes=0, config=config,
            )
        )  # fmt: skip

    def begin(self, slot: int, due_from: int) -> None:
        """The last run samples from this position on, and tells its logits."""
        last = self._pipelines[-1].hex()
        self._order(
            worker_orders.BeginSequence(
                request=1, pipeline=last, slot=slot, due_from=due_from, sampling=GREEDY, logits=True
            )
        )

    def step(self, segments: Sequence[Segment], ids: Sequence[int]) -> dict[int, Scores]:
        """One step through all stages; the scores of each slot that was due."""
        self._seq += 1
        payload: bytes | bytearray | memoryview = encode_ids(tuple(ids))
        number, scores = NumberFormat.IDS, {}
        for pipeline in self._pipelines:
            frame = Frame(FrameKind.STEP, pipeline, 1, self._seq, number, tuple(segments), payload)
            for answer in self._service.answer(frame):
                if answer.kind is FrameKind.LOGITS:
                    scores[answer.segments[0].slot] = np.frombuffer(answer.payload, np.float32)
                elif answer.kind is FrameKind.LOST:
                    raise StageRefused(bytes(answer.payload).decode())
                payload, number = answer.payload, answer.number
        return scores

    def forget(self, slot: int, keep: int) -> None:
        self._seq += 1
        for pipeline in self._pipelines:
            cut = (Segment(slot, 0, keep),)
            frame = Frame(FrameKind.FORGET, pipeline, 1, self._seq, segments=cut)
            for answer in self._service.answer(frame):
                if answer.kind is FrameKind.LOST:
                    raise StageRefused(bytes(answer.payload).decode())

    def read_slot(self, slot: int) -> list[tuple[int, bytes]]:
        """The state of a slot at each stage, with its positions."""
        return [self._read(pipeline.hex(), slot) for pipeline in self._pipelines]

    def _read(self, pipeline: str, slot: int) -> tuple[int, bytes]:
        state, positions = b"", 0
        while True:
            order = worker_orders.ReadSlot(
                request=1, pipeline=pipeline, epoch=1, slot=slot, offset=len(state), most_bytes=1 << 30
            )
            piece = self._order(order)
            assert isinstance(piece, worker_orders.SlotPiece)
            state, positions = state + piece.data, piece.positions
            if len(state) >= piece.total_bytes or not piece.data:
                return positions, state

    def write_slot(self, slot: int, states: Sequence[tuple[int, bytes]], piece_bytes: int = 100_000) -> list[int]:
        """Give each stage a state of a slot, in pieces. How many positions each holds then."""
        return [
            self._write(pipeline.hex(), slot, *state, piece_bytes, len(state[1]))
            for pipeline, state in zip(self._pipelines, states, strict=True)
        ]

    def _write(
        self, pipeline: str, slot: int, positions: int, state: bytes, piece_bytes: int, total_bytes: int, first: int = 0
    ) -> int:
        written = 0
        for offset in range(0, len(state), piece_bytes):
            order = worker_orders.WriteSlot(
                request=1, pipeline=pipeline, epoch=1, slot=slot, positions=positions,
                total_bytes=total_bytes, offset=first + offset, data=state[offset : offset + piece_bytes],
            )  # fmt: skip
            answer = self._order(order)
            assert isinstance(answer, worker_orders.SlotWritten)
            written = answer.positions
        return written

    def _order(self, order: worker_orders.WorkerOrder) -> worker_orders.WorkerAnswer | None:
        answer = None
        for frame in self._service.answer(told(order)):  # type: ignore[arg-type]
            answer = worker_orders.decode_answer(frame.payload)
            if isinstance(answer, worker_orders.Failed):
                raise StageRefused(answer.text)
        return answer
