"""The entry point of a worker process, which reads frames from standard input and writes answers to standard output.

With the argument `probe` or `walls`, it instead reports what this machine supports.
"""

from __future__ import annotations

import io
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from backends.contract import StageError
from backends.frames import HEADER, BadFrame, Frame, FrameKind, decode_frame, decode_header, encode_header
from backends.worker import confine, fork_server, process_resources

USAGE = "usage: python -m backends [probe [ENGINE ...] | walls | check MODEL DEVICE LIBRARY | try ENGINE FOLDER MODEL]"
STEPS = (FrameKind.STEP, FrameKind.FOLLOW)
GARBLED = 3  # exit code: the input was not a frame, so nothing after it can be trusted
# While an answer is being generated, the next step comes soon. A processor that has gone to sleep wakes late and slow:
# virtual machines lost 5 of the 50 ms per token (README). Polling for longer is not worth the power.
AWAKE_S = 0.1
READY_S = 0.001  # between rehearsals while polling
# The node needs this core for a moment after each step. A process that takes it more often or for longer is computing,
# and polling slows it down: with three workers of a household on two cores, each lost a third of its speed.
CONTESTED_SWITCHES, CONTESTED_S = 12, 0.002
ASLEEP_S = 1.0  # how long not to poll after that


def main(arguments: list[str]) -> int:
    """Serve frames until standard input ends, or run a subcommand. Return the exit code.

    `probe` reports on the engines named after it, or on all engines. `check` compares a device with the processor.
    `try` compares an engine that is installed apart with llama.cpp.
    `walls` confines this process and reports which restrictions took effect.
    """
    if arguments[:1] == ["probe"]:
        from backends.probe import probe

        return _print_json(lambda: probe(arguments[1:]))
    if arguments[:1] == ["check"] and len(arguments) == 4:
        from backends.known_answer import compare

        return _print_json(lambda: asdict(compare(*arguments[1:])))
    if arguments[:1] == ["try"] and len(arguments) == 4:
        from backends.engine_trial import try_engine

        return _print_json(lambda: asdict(try_engine(*arguments[1:])))
    if arguments == ["walls"]:
        sys.stdout.write(json.dumps(asdict(confine.confine([]))) + "\n")
        return 0
    if arguments:
        sys.stderr.write(f"{USAGE}\n")
        return 2
    process_resources.use_huge_pages()
    frames_in, frames_out = process_resources.take_pipes()
    process_resources.end_with_parent()
    if process_resources.GRAMMARS_VARIABLE in os.environ and hasattr(os, "fork"):
        fork_server.of_grammars()  # while this process may still start other processes
    confine.confine_as_told()
    if confine.READS in os.environ:
        confine.start_nothing()
    leave_signals_to_the_node()
    return serve(frames_in, frames_out)


def _print_json(result: Callable[[], dict[str, Any]]) -> int:
    """Write a result to standard output as JSON. Native code may print meanwhile, which goes to standard error.

    The last line there is the sentence of an error. Return the exit code.
    """
    out = os.dup(1)
    os.dup2(2, 1)
    try:
        text = json.dumps(result())
    except StageError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    with os.fdopen(out, "w", encoding="utf-8") as answer:
        answer.write(f"{text}\n")
    return 0


def leave_signals_to_the_node() -> None:
    """Ignore the signals that a terminal sends to all its processes on Ctrl-C, hangup or logout.

    The node ends this process when it exits.
    """
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if (number := getattr(signal, name, None)) is not None:
            signal.signal(number, signal.SIG_IGN)


if sys.platform == "win32":  # FrameWait never polls there

    def switches() -> int:
        """Return 0: Windows does not count involuntary context switches."""
        return 0

else:
    import resource

    def switches() -> int:
        """Return the number of this process's involuntary context switches."""
        return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


class FrameWait:
    """A wait for input on a pipe that polls for a short time after each step.

    It never polls on Windows, where poll() does not support pipes, or if a control group limits this process's CPU
    time, because polling would use up that time.
    """

    def __init__(self, fd: int, rehearse: Callable[[], None] = lambda: None) -> None:
        """Prepare to wait on the pipe `fd`.

        rehearse: runs the code that handles a frame as far as possible without one, which keeps it in the processor's
        caches. Otherwise, streaming the weights evicts it, and the next frame has to wait until it is loaded again.
        """
        self._rehearse = rehearse
        can = hasattr(select, "poll") and hasattr(os, "sched_yield") and process_resources.cpu_quota_cores() is None
        self._poll = select.poll() if can else None
        if self._poll is not None:
            self._poll.register(fd, select.POLLIN)
        self._awake_until = self._asleep_until = 0.0

    def computed(self) -> None:
        """Record that a step was just answered, so the next wait starts by polling."""
        self._awake_until = time.monotonic() + AWAKE_S

    def wait(self) -> None:
        """Poll until input arrives or polling is no longer worthwhile.

        If there is no input yet, the caller's read() blocks.
        """
        if self._poll is None:
            return
        ready_until, before, now = 0.0, switches(), time.monotonic()
        while self._asleep_until <= now < self._awake_until and not self._poll.poll(0):
            os.sched_yield()  # other work on this core goes first, such as the node handling the answer
            yielded_at, now = now, time.monotonic()
            taken = switches() - before
            if taken > CONTESTED_SWITCHES or (taken and now - yielded_at > CONTESTED_S):
                self._asleep_until = now + ASLEEP_S
                return
            if now >= ready_until and not self._poll.poll(0):
                self._rehearse()
                now = time.monotonic()
                ready_until = now + READY_S


def serve(frames_in: int, frames_out: int) -> int:
    """Answer frames one at a time until the input ends. Return the exit code.

    The process has only this thread, which also runs the engine.
    """
    from backends.worker.service import Service  # heavy, so only after the restart for huge pages

    service = Service(alone=True)
    waiting = FrameWait(frames_in, service.rehearse)
    try:
        with io.FileIO(frames_in) as pipe:
            for frame in frames(pipe, waiting):
                if frame.kind in STEPS:
                    write(frames_out, *service.answer(frame))
                    waiting.computed()
                    continue
                for answer in service.answer(frame):
                    write(frames_out, answer)
    except BadFrame as error:
        sys.stderr.write(f"the worker was sent no frame of ours: {error}\n")
        return GARBLED
    except BrokenPipeError:
        return 0  # the node has exited
    finally:
        service.close()
    return 0


def frames(pipe: io.FileIO, waiting: FrameWait) -> Iterator[Frame]:
    """Yield frames until the pipe ends. Each frame gets a new buffer. Raises BadFrame."""
    start = bytearray(HEADER.size)
    while True:
        waiting.wait()
        if not read_whole(pipe, memoryview(start)):
            return
        data = bytearray(HEADER.size + decode_header(start).n_rest)
        data[: HEADER.size] = start
        if not read_whole(pipe, memoryview(data)[HEADER.size :]):
            return
        yield decode_frame(data)


def read_whole(pipe: io.FileIO, room: memoryview) -> bool:
    """Fill `room` from the pipe. Return False if the pipe ends first."""
    while room:
        n_read = pipe.readinto(room)
        if not n_read:
            return False
        room = room[n_read:]
    return True


def write(fd: int, *frames: Frame) -> None:
    """Write frames without copying their payloads.

    A single call writes all of them, so the reader does not wake up between two frames.
    """
    parts = [memoryview(part) for frame in frames for part in (encode_header(frame), frame.payload)]
    while parts:
        if sys.platform == "win32":
            n_written = os.write(fd, parts[0])
        else:
            n_written = os.writev(fd, parts)
        while parts and n_written >= len(parts[0]):
            n_written -= len(parts.pop(0))
        if parts:
            parts[0] = parts[0][n_written:]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
