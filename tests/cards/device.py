"""The device that these tests compute on: Mesa's software Vulkan device, through the library of an engine pack."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from backends.contract import CPU_VARIANT, EXACT, StageConfig

PROJECT = Path(__file__).resolve().parent.parent.parent
LIBRARY = "POOLHOUSE_VULKAN"  # environment variable: the path of libggml-vulkan.so
CACHE = "POOLHOUSE_CARDS_CACHE"  # environment variable: a folder that keeps compiled shaders between runs
NAME = "libggml-vulkan.so"
VULKAN0, VULKAN1 = "Vulkan0", "Vulkan1"
# Mesa 22.3 (Debian 12) crashes inside its driver on some models if a step has more rows.
ROWS = 8


def library() -> Path | None:
    """Return the library from the environment or from the pack that `make engine` built last, or None."""
    if named := os.environ.get(LIBRARY, "").strip():
        return Path(named).resolve()
    built = sorted((PROJECT / "build" / "engines").rglob(NAME), key=lambda path: path.stat().st_mtime)
    return built[-1] if built else None


def kept_shaders() -> Path:
    """Return the folder that keeps compiled shaders between runs."""
    folder = Path(os.environ.get(CACHE) or PROJECT / "build" / "cards" / "shaders").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def environment(devices: str = "0", shaders: Path | None = None) -> dict[str, str]:
    """Return the variables with which a process sees only the software device. devices: `0,0` lists it twice."""
    return {
        **os.environ,
        CPU_VARIANT: EXACT,
        "GGML_VK_VISIBLE_DEVICES": devices,
        "MESA_SHADER_CACHE_DIR": str(shaders or kept_shaders()),
        "PYTHONPATH": str(PROJECT),
    }


def on_device(config: StageConfig, device: str = VULKAN0) -> StageConfig:
    """Return the stage with steps as short as the software device survives, on a device or, for "", the processor."""
    vulkan = library()
    assert vulkan is not None
    return replace(config, batch_rows=ROWS, device=device, library=str(vulkan) if device else "")


class CaseFailed(Exception):
    """A case whose process ended without a result; with the last line that it printed."""


def in_a_process(
    module: str, arguments: Sequence[str], variables: Mapping[str, str] | None = None, within_s: float = 240
) -> dict[str, Any]:
    """Run a case as `python -m MODULE` and return the JSON that it prints last. Raises CaseFailed.

    Each case has a process of its own, because the driver may crash.
    """
    command = [sys.executable, "-m", module, *arguments]
    try:
        done = subprocess.run(
            command, cwd=PROJECT, env={**environment(), **(variables or {})}, capture_output=True, text=True,
            timeout=within_s, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise CaseFailed(f"no end within {within_s:.0f} s") from None
    if done.returncode:
        words = done.stderr.strip().splitlines()[-1:] or [""]
        how = f"signal {-done.returncode}" if done.returncode < 0 else f"code {done.returncode}"
        raise CaseFailed(f"{how}: {words[0]}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def main() -> int:
    """Print the devices of the library, in a process of its own."""
    from backends.llamacpp import binding
    from backends.llamacpp.devices import devices

    vulkan = library()
    assert vulkan is not None
    binding.load_backend(vulkan)
    print(*(known.name for known in devices()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
