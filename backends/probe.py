"""The detection of engine versions, devices and processor features on this machine."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable, Sequence
from typing import Any

from backends.contract import LLAMACPP, StageError
from backends.llamacpp import binding

DEVICE_KINDS = ("cpu", "gpu", "igpu", "accelerator")  # ggml_backend_dev_type


def probe(engines: Sequence[str] = ()) -> dict[str, Any]:
    """Return a JSON-compatible report on the given engines, or on all engines by default."""
    results = [ENGINES[name]() for name in engines or ENGINES if name in ENGINES]
    return {"python": platform.python_version(), "engines": results}


def features(system: str) -> list[str]:
    """Return the processor features that llama.cpp uses.

    system: llama.cpp's system info, such as `CPU : AVX2 = 1 | FMA = 1 | … |`. It may also contain sections for other
    backends, each starting with a name and a colon.
    """
    names, section = [], ""
    for part in system.split("|"):
        before, colon, rest = part.rpartition(" : ")
        if colon:
            section = before.strip()
        name, _, value = (rest if colon else part).partition(" = ")
        if section == "CPU" and value.strip() == "1":
            names.append(name.strip())
    return names


def _fake() -> dict[str, Any]:
    return {"name": "fake", "version": "1", "devices": []}


def _llamacpp() -> dict[str, Any]:
    try:
        llama = binding.load()
    except StageError as error:
        return {"name": LLAMACPP, "missing": str(error)}
    system = llama.llama_print_system_info().decode("utf-8", "replace").strip()
    return {
        "name": LLAMACPP,
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
    devices: list[dict[str, Any]] = []
    for index in range(count()):
        device, free, total = get(index), ctypes.c_size_t(), ctypes.c_size_t()
        memory(device, ctypes.byref(free), ctypes.byref(total))
        number = kind(device)
        devices.append(
            {
                "name": name(device).decode("utf-8", "replace"),
                "description": described(device).decode("utf-8", "replace").strip(),
                "kind": DEVICE_KINDS[number] if number < len(DEVICE_KINDS) else "other",
                "api": api(registry(device)).decode("utf-8", "replace"),
                "free_bytes": free.value,
                "total_bytes": total.value,
            }
        )
    return devices


ENGINES: dict[str, Callable[[], dict[str, Any]]] = {LLAMACPP: _llamacpp, "fake": _fake}
