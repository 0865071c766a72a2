"""The worker process: frames from standard input, answers to standard output. `probe`, `walls`: what can run here."""

from __future__ import annotations

import ctypes
import io
import json
import os
import platform
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from backends.contract import StageError
from backends.frames import HEADER, BadFrame, Frame, Kind, decode, head, read_head
from backends.llamacpp import binding
from backends.worker import confine, fork_server, process
from backends.worker.frame_wait import Waiting

# What this machine's engines can do: their versions and devices.

DEVICE_KINDS = ("cpu", "gpu", "igpu", "accelerator")  # ggml_backend_dev_type


def probe(engines: Sequence[str] = ()) -> dict[str, Any]:
    """Facts for the node, ready for JSON: of these engines, or of all."""
    found = [ENGINES[name]() for name in engines or ENGINES if name in ENGINES]
    return {"python": platform.python_version(), "engines": found}


def features(system: str) -> list[str]:
    """What llama.cpp uses of the processor, from its line such as `CPU : AVX2 = 1 | FMA = 1 | … |`.

    Other backends of the build have sections of their own in it, each begun by its name and a colon.
    """
    found, section = [], ""
    for part in system.split("|"):
        before, colon, rest = part.rpartition(" : ")
        if colon:
            section = before.strip()
        name, _, value = (rest if colon else part).partition(" = ")
        if section == "CPU" and value.strip() == "1":
            found.append(name.strip())
    return found


def _fake() -> dict[str, Any]:
    return {"name": "fake", "version": "1", "devices": []}


def _llamacpp() -> dict[str, Any]:
    try:
        llama = binding.load()
    except StageError as error:
        return {"name": "llamacpp", "missing": str(error)}
    system = llama.llama_print_system_info().decode("utf-8", "replace").strip()
    return {
        "name": "llamacpp",
        "version": binding.version(),
        "system": system,
        "features": features(system),
        "supports_rpc": bool(llama.llama_supports_rpc()),
        "supports_gpu": bool(llama.llama_supports_gpu_offload()),
        "devices": _devices(),
    }


def _devices() -> list[dict[str, Any]]:
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    count = binding.ggml("ggml_backend_dev_count", ctypes.c_size_t)
    get = binding.ggml("ggml_backend_dev_get", pointer, ctypes.c_size_t)
    name = binding.ggml("ggml_backend_dev_name", text, pointer)
    described = binding.ggml("ggml_backend_dev_description", text, pointer)
    kind = binding.ggml("ggml_backend_dev_type", ctypes.c_int, pointer)
    registry = binding.ggml("ggml_backend_dev_backend_reg", pointer, pointer)
    api = binding.ggml("ggml_backend_reg_name", text, pointer)
    size = ctypes.POINTER(ctypes.c_size_t)
    memory = binding.ggml("ggml_backend_dev_memory", None, pointer, size, size)
    found: list[dict[str, Any]] = []
    for index in range(count()):
        device, free, total = get(index), ctypes.c_size_t(), ctypes.c_size_t()
        memory(device, ctypes.byref(free), ctypes.byref(total))
        number = kind(device)
        found.append({
            "name": name(device).decode("utf-8", "replace"),
            "description": described(device).decode("utf-8", "replace").strip(),
            "kind": DEVICE_KINDS[number] if number < len(DEVICE_KINDS) else "other",
            "api": api(registry(device)).decode("utf-8", "replace"),
            "free_bytes": free.value,
            "total_bytes": total.value,
        })  # fmt: skip
    return found


ENGINES: dict[str, Callable[[], dict[str, Any]]] = {"llamacpp": _llamacpp, "fake": _fake}


USAGE = "usage: python -m backends [probe [ENGINE ...] | walls]"
STEPS = (Kind.STEP, Kind.FOLLOW)
GARBLED = 3  # exit code: what came in was no frame, so nothing after it can be trusted


def main(arguments: list[str]) -> int:
    """Serve until standard input ends, or answer `probe`, of all engines or of those named after it.

    `walls`: what keeps a worker from files and from the network on this system, tried.
    """
    if arguments[:1] == ["probe"]:
        pass

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
    """A Ctrl-C, a closed terminal and a session that ends reach all processes; the node ends us once it has left."""
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
        return 0  # nobody listens any more
    finally:
        service.close()
    return 0


def frames(pipe: io.FileIO, waiting: Waiting) -> Iterator[Frame]:
    """Frame after frame until the pipe ends. Each is read into memory of its own, once. Raises BadFrame."""
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
    """Write frames without copying their payloads: at once, or whoever reads wakes between two of them."""
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
