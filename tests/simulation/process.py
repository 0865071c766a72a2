"""A worker's process without a process: the real Service behind pipes of lists, its time taken from the loop."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import psutil

from backends.frames import BadFrame, Frame, FrameDecoder, encode_frame
from backends.worker.service import Service
from tests.simulation.virtual_loop import VirtualLoop

KILLED, GARBLED = -9, 3


class Process:
    """A stand-in for asyncio's subprocess transport."""

    def __init__(
        self, loop: VirtualLoop, protocol: Any, pid: int, slept: list[float], open_s: Callable[[], float]
    ) -> None:
        self.pid = pid
        self.computed_at: list[float] = []
        self._loop, self._protocol, self._slept, self._open_s = loop, protocol, slept, open_s
        self._service = Service()
        self._decoder = FrameDecoder()
        self._frames: deque[Frame] = deque()
        self._held: list[Callable[[], None]] = []  # what waits for the end of a freeze
        self._busy = self._frozen = False
        self._pace = 1.0  # of its usual time: a hot processor takes longer
        self._code: int | None = None

    # the transport

    def get_pid(self) -> int:
        return self.pid

    def get_returncode(self) -> int | None:
        return self._code

    def get_pipe_transport(self, fd: int) -> Process | None:
        return self if fd == 0 else None

    def get_extra_info(self, name: str) -> None:
        return None

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, data: bytes) -> None:
        """Standard input."""
        try:
            self._frames += self._decoder.feed(data)
        except BadFrame:
            self._end(GARBLED)
        self._go_on()

    def close(self) -> None:
        """The end of standard input, or of the transport."""
        self._end(0)

    def kill(self) -> None:
        if self._code is not None:
            raise ProcessLookupError
        self._end(KILLED)

    # what the system says of it, as psutil does

    def status(self) -> str:
        return psutil.STATUS_STOPPED if self._frozen else psutil.STATUS_SLEEPING

    def nice(self, _value: int) -> None:
        pass

    def memory_info(self) -> SimpleNamespace:
        return SimpleNamespace(rss=1 << 20)

    # what a test does to it

    @property
    def is_gone(self) -> bool:
        return self._code is not None

    def freeze(self, seconds: float) -> None:
        """SIGSTOP, and SIGCONT so much later."""
        self._frozen = True
        self._loop.call_later(seconds, self._thaw)

    def heat(self, pace: float, seconds: float) -> None:
        """All it computes takes so many times as long, for so long."""
        self._pace = pace
        self._loop.call_later(seconds, self._cool)

    def _cool(self) -> None:
        self._pace = 1.0

    def _thaw(self) -> None:
        self._frozen = False
        held, self._held = self._held, []
        for deed in held:
            deed()
        self._go_on()

    # its work

    def _go_on(self) -> None:
        if self._busy or self._frozen or self.is_gone or not self._frames:
            return
        self._busy = True
        frame = self._frames.popleft()
        self._slept[0] = 0.0
        try:
            answers = b"".join(encode_frame(answer) for answer in self._service.answer(frame))
        except BadFrame:
            self._end(GARBLED)
            return
        seconds = self._pace * self._slept[0]
        if frame.kind.name == "TEXT":
            seconds += self._open_s()
        else:
            self.computed_at.append(self._loop.now)
        self._loop.call_later(seconds, self._tell, answers)

    def _tell(self, answers: bytes) -> None:
        if self._frozen:
            self._held.append(lambda: self._tell(answers))
            return
        if self.is_gone:
            return
        self._busy = False
        self._protocol.pipe_data_received(1, answers)
        self._go_on()

    def _end(self, code: int) -> None:
        if self._code is None:
            self._code = code
            self._service.close()
            self._loop.call_soon(self._ended)

    def _ended(self) -> None:
        for fd in (0, 1, 2):
            self._protocol.pipe_connection_lost(fd, None)
        self._protocol.process_exited()
        self._protocol.connection_lost(None)
