"""llama.cpp's back ends: a shared library for each kind of processor or device, loaded by its absolute path."""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from backends.contract import EXACT

# The variants that EXACT stands for: x86 since 2013 (AVX2, FMA, F16C, BMI2), Apple's, and ARM since 2018 (DOTPROD).
COMMON = ("haswell", "apple_m1", "armv8.2_1")
# Its code crashes on virtual machines that report AMX without providing it.
UNSAFE = ("sapphirerapids",)
CPU = "cpu-"
NAME = re.compile(r"(?:lib)?ggml-((?!base\b).+)")  # libggml-base is common to all
SUFFIXES = (".dll",) if sys.platform == "win32" else (".so", ".dylib")


def libraries(folder: Path) -> dict[str, Path]:
    """Return the back ends in a folder by name, such as `cpu-haswell` or `vulkan`."""
    named = [(NAME.fullmatch(path.stem), path) for path in sorted(folder.iterdir()) if path.suffix in SUFFIXES]
    return {match[1]: path for match, path in named if match}


def cpu_variants(folder: Path) -> dict[str, Path]:
    """Return the libraries for the processor by variant, such as `haswell`."""
    return {name.removeprefix(CPU): path for name, path in libraries(folder).items() if name.startswith(CPU)}


def score(library: Path) -> int:
    """Return llama.cpp's score of a variant, which is higher the more of this processor's instructions it uses.

    The score is 0 if the variant does not run here. libggml-base must be loaded already, because the library is linked
    to it by name only.
    """
    try:
        return int(ctypes.CDLL(str(library)).ggml_backend_score())
    except (OSError, AttributeError):
        return 0


def in_order(
    variants: Mapping[str, Path], preferred: str = "", rate: Callable[[Path], int] | None = None
) -> Iterator[str]:
    """Yield variants in the order in which to try them: the preferred ones, then by score. Omit those scored 0.

    preferred: the name of a variant, EXACT for the common variants, or "" for none. rate: replaces `score`.
    """
    first = [name for name in (COMMON if preferred == EXACT else (preferred,)) if name in variants]
    yield from first
    scores = {name: (rate or score)(path) for name, path in variants.items() if name not in (*first, *UNSAFE)}
    yield from sorted((name for name in scores if scores[name]), key=lambda name: (-scores[name], name))
