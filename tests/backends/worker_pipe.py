"""A real worker process at the end of two pipes, spoken to frame by frame."""

from __future__ import annotations

import io
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from backends import worker_orders
from backends.contract import Layers, NumberFormat, Role, Sampling, Segment, StageConfig
from backends.frames import Frame, FrameDecoder, FrameKind, encode_frame

ROOT = Path(__file__).resolve().parents[2]
PIPELINE = bytes(range(16))
WIDTH = 16
ANSWER_SECONDS = 30.0


def command() -> list[str]:
    return [sys.executable, "-P", "-m", "backends"]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


class Pipe:
    """Frames to and from one worker."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        assert process.stdin is not None
        assert process.stdout is not None
        self._in: IO[bytes] = process.stdin
        self._out: IO[bytes] = process.stdout
        self._decoder = FrameDecoder()
        self._ready: list[Frame] = []
        self._request = 0

    def send(self, *frames: Frame) -> None:
        self.write(b"".join(encode_frame(frame) for frame in frames))

    def write(self, data: bytes) -> None:
        self._in.write(data)
        self._in.flush()

    def receive(self) -> Frame:
        """The next frame. Raises EOFError when the worker has ended, TimeoutError when it is silent."""
        until = time.monotonic() + ANSWER_SECONDS
        while not self._ready:
            left = until - time.monotonic()
            if left < 0 or not select.select([self._out], [], [], left)[0]:
                raise TimeoutError("the worker says nothing")
            data = os.read(self._out.fileno(), 1 << 20)
            if not data:
                raise EOFError("the worker has ended")
            self._ready += self._decoder.feed(data)
        return self._ready.pop(0)

    def tell(self, order: worker_orders.WorkerOrder) -> worker_orders.WorkerAnswer:
        """Give an order, return its (first) answer."""
        self.send(Frame(FrameKind.TEXT, payload=worker_orders.encode(order)))
        return self.hear()

    def hear(self) -> worker_orders.WorkerAnswer:
        frame = self.receive()
        assert frame.kind is FrameKind.TEXT, frame
        answer: worker_orders.WorkerAnswer = worker_orders.decode_answer(bytes(frame.payload))
        return answer

    def close(self) -> None:
        self._in.close()

    def words(self) -> str:
        """Return the stderr output of a worker that has ended."""
        assert isinstance(self.process.stderr, io.BufferedReader)
        return self.process.stderr.read().decode()


@contextmanager
def worker() -> Iterator[Pipe]:
    with subprocess.Popen(
        command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment(),
    ) as process:  # fmt: skip
        try:
            yield Pipe(process)
        finally:
            process.kill()
            with suppress(BrokenPipeError):  # what it did not read any more
                assert process.stdin is not None
                process.stdin.close()


def fake_config(role: Role, layers: Layers, options: str = "", slots: int = 4) -> StageConfig:
    path = "fake:" + options
    return StageConfig("fake", path, "", role, layers, WIDTH, slots, 1024, 256, 1)


def opened(
    config: StageConfig, pipeline: bytes = PIPELINE, *, epoch: int = 1, number: NumberFormat = NumberFormat.F32,
    limit: int = 0,
) -> worker_orders.OpenStage:  # fmt: skip
    return worker_orders.OpenStage(
        request=1, pipeline=pipeline.hex(), epoch=epoch, number=number, context=256,
        memory_limit_bytes=limit, config=config,
    )  # fmt: skip


def begun(slot: int, due_from: int, sampling: Sampling, pipeline: bytes = PIPELINE) -> worker_orders.BeginSequence:
    return worker_orders.BeginSequence(
        request=2, pipeline=pipeline.hex(), slot=slot, due_from=due_from, sampling=sampling
    )


def step(
    seq: int, segments: tuple[Segment, ...], payload: bytes | memoryview,
    number: NumberFormat = NumberFormat.IDS, *, pipeline: bytes = PIPELINE, epoch: int = 1,
) -> Frame:  # fmt: skip
    return Frame(FrameKind.STEP, pipeline, epoch, seq, number, segments, payload)
