"""What this machine's engines can do: their versions and devices."""

from __future__ import annotations

import ctypes
import platform
from importlib import metadata
from typing import Any

from backends.contract import StageError
from backends.llamacpp import binding

DEVICE_KINDS = ("cpu", "gpu", "igpu", "accelerator")  # ggml_backend_dev_type


def probe() -> dict[str, Any]:
    """Facts for the node, ready for JSON."""
    return {
        "python": platform.python_version(),
        "engines": [_llamacpp(), {"name": "fake", "version": "1", "devices": []}],
    }


def _llamacpp() -> dict[str, Any]:
    try:
        llama = binding.load()
    except StageError as error:
        return {"name": "llamacpp", "missing": str(error)}
    return {
        "name": "llamacpp",
        "version": metadata.version("llama-cpp-python"),
        "system": llama.llama_print_system_info().decode("utf-8", "replace").strip(),
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
    size = ctypes.POINTER(ctypes.c_size_t)
    memory = binding.ggml("ggml_backend_dev_memory", None, pointer, size, size)
    found = []
    for index in range(count()):
        device, free, total = get(index), ctypes.c_size_t(), ctypes.c_size_t()
        memory(device, ctypes.byref(free), ctypes.byref(total))
        number = kind(device)
        found.append({
            "name": name(device).decode("utf-8", "replace"),
            "description": described(device).decode("utf-8", "replace").strip(),
            "kind": DEVICE_KINDS[number] if number < len(DEVICE_KINDS) else "other",
            "free_bytes": free.value,
            "total_bytes": total.value,
        })  # fmt: skip
    return found
