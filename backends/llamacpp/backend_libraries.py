"""llama.cpp's back ends: shared libraries for one kind of device or processor each, loaded by their absolute path."""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

# The variants that give the same results on all common processors of a kind: x86 since 2013 (AVX2, FMA, F16C, BMI2),
# Apple's, and ARM since 2018 (DOTPROD).
COMMON = ("haswell", "apple_m1", "armv8.2_1")
CPU = "cpu-"
NAME = re.compile(r"(?:lib)?ggml-((?!base\b).+)")  # libggml-base is common to all
SUFFIXES = (".dll",) if sys.platform == "win32" else (".so", ".dylib")


def libraries(folder: Path) -> dict[str, Path]:
    """Return the back ends in a folder by name, such as `cpu-haswell` or `vulkan`."""
    named = [(NAME.fullmatch(path.stem), path) for path in sorted(folder.iterdir()) if path.suffix in SUFFIXES]
    return {match[1]: path for match, path in named if match}


def cpu_variants(folder: Path) -> dict[str, Path]:
    """Return the libraries for kinds of processors, by the name of the kind."""
    return {name.removeprefix(CPU): path for name, path in libraries(folder).items() if name.startswith(CPU)}


def score(library: Path) -> int:
    """Return how well a library suits this processor: 0 if it does not run here, and more for more instructions.

    libggml-base must be loaded already, because the library is linked to it by name only.
    """
    try:
        return int(ctypes.CDLL(str(library)).ggml_backend_score())
    except (OSError, AttributeError):
        return 0


def by_score(variants: Mapping[str, Path], rate: Callable[[Path], int] | None = None) -> list[str]:
    """Return the variants that run on this processor, the one that uses most of its instructions first."""
    scores = {name: (rate or score)(path) for name, path in variants.items()}
    return sorted((name for name in scores if scores[name]), key=lambda name: (-scores[name], name))


def in_order(variants: Mapping[str, Path], preferred: str = "") -> Iterator[str]:
    """Yield the variants to try: the preferred one if it exists, then the common one, then the others by score."""
    first = [name for name in (preferred, *COMMON) if name in variants]
    yield from first
    yield from (name for name in by_score(variants) if name not in first)
