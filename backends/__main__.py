"""The worker process: frames from standard input, answers to standard output. `probe`, `walls`: what can run here."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import asdict

from backends.frames import HEADER, BadFrame, Frame, Kind, decode, head, read_head
from backends.worker import confine, fork_server, process
from backends.worker.frame_wait import Waiting

USAGE = "usage: python -m backends [probe [ENGINE ...] | walls]"
STEPS = (Kind.STEP, Kind.FOLLOW)
GARBLED = 3  # exit code: what came in was no frame, so nothing after it can be trusted


def main(arguments: list[str]) -> int:
    """Serve until standard input ends, or answer `probe`, of all engines or of those named after it.

    `walls`: what keeps a worker from files and from the network on this system, tried.
    """
    if arguments[:1] == ["probe"]:
        from backends.probe import probe

        out = os.dup(1)
        os.dup2(2, 1)  # native code may chat while it looks for devices
        with os.fdopen(out, "w", encoding="utf-8") as answer:
            answer.write(json.dumps(probe(arguments[1:])) + "\n")
        return 0
    if arguments == ["walls"]:
        sys.stdout.write(json.dumps(asdict(confine.confine([]))) + "\n")
        return 0
    if arguments:
        sys.stderr.write(f"{USAGE}\n")
        return 2
    process.use_huge_pages()
    frames_in, frames_out = process.take_pipes()
    process.end_with_parent()
    if process.FORMS in os.environ and hasattr(os, "fork"):
        fork_server.of_grammars()  # while this process may still start others
    confine.confine_as_told()
    if confine.READS in os.environ:
        confine.start_nothing()
    leave_signals_to_the_node()
    return serve(frames_in, frames_out)


def leave_signals_to_the_node() -> None:
    """Ignore Ctrl-C, a closed terminal and the end of a session, which reach all processes; the node ends us when it
    leaves."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if (number := getattr(signal, name, None)) is not None:
            signal.signal(number, signal.SIG_IGN)


def serve(frames_in: int, frames_out: int) -> int:
    """Answer each frame before the next is read: one thread, and nothing beside the engine in it."""
    from backends.worker.service import Service  # heavy: after the new start

    service = Service(alone=True)
    waiting = Waiting(frames_in, service.rehearse)
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
        return 0  # the node has gone
    finally:
        service.close()
    return 0


def frames(pipe: io.FileIO, waiting: Waiting) -> Iterator[Frame]:
    """Yield frame after frame until the pipe ends, each read once into memory of its own. Raises BadFrame."""
    start = bytearray(HEADER.size)
    while True:
        waiting.wait()
        if not read_whole(pipe, memoryview(start)):
            return
        data = bytearray(HEADER.size + read_head(start).n_rest)
        data[: HEADER.size] = start
        if not read_whole(pipe, memoryview(data)[HEADER.size :]):
            return
        yield decode(data)


def read_whole(pipe: io.FileIO, room: memoryview) -> bool:
    """Fill `room`; False when the pipe ends before."""
    while room:
        n_read = pipe.readinto(room)
        if not n_read:
            return False
        room = room[n_read:]
    return True


def write(fd: int, *frames: Frame) -> None:
    """Write frames without copying their payloads, all at once, or the reader would wake between two of them."""
    parts = [memoryview(part) for frame in frames for part in (head(frame), frame.payload)]
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
