"""The detection of engine versions, devices and processor features on this machine."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from backends.contract import BACKENDS, LLAMACPP, StageError
from backends.llamacpp import binding
from backends.llamacpp.devices import Device, devices


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
    missing = _missing_backends()
    system = llama.llama_print_system_info().decode("utf-8", "replace").strip()
    return {
        "name": LLAMACPP,
        "version": binding.version(),
        "variant": binding.cpu_variant(),
        "system": system,
        "features": features(system),
        "supports_gpu": bool(llama.llama_supports_gpu_offload()),
        "missing_backends": missing,
        "devices": [_description(known) for known in devices()],
    }


def _description(known: Device) -> dict[str, Any]:
    return {field: value for field, value in asdict(known).items() if field != "address"}


def _missing_backends() -> dict[str, str]:
    """Load the back ends that the environment names. Return why some cannot be used, by path."""
    missing: dict[str, str] = {}
    for path in json.loads(os.environ.get(BACKENDS, "[]")):
        try:
            binding.load_backend(Path(path))
        except StageError as error:
            missing[str(path)] = str(error)
    return missing


ENGINES: dict[str, Callable[[], dict[str, Any]]] = {LLAMACPP: _llamacpp, "fake": _fake}
