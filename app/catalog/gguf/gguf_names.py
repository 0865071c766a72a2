"""The facts in a GGUF file's name: its quantization, whether it is a part, and which file to recommend."""

from __future__ import annotations

import re
from collections.abc import Sequence

_QUANT = re.compile(
    r"(?<![A-Za-z0-9])((?:UD-)?(?:I?Q\d(?:_K)?(?:_(?:XXS|XS|XL|NL|S|M|L|0|1|4_4|4_8|8_8))?"
    r"|TQ[12]_0|MXFP4(?:_MOE)?|BF16|FP?16|FP?32))(?![A-Za-z0-9])",
    re.IGNORECASE,
)
MAX_PARTS = 1000  # as many as are read
_PART = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$", re.IGNORECASE)
# The best first: good answers for the room they take, and made for every processor.
_LIKED = ("Q4_K_M", "MXFP4", "MXFP4_MOE", "UD-Q4_K_XL", "Q4_K_S", "Q4_0", "IQ4_XS", "Q5_K_M", "Q8_0")
NOT_TEXT = ("mmproj", "imatrix", "mtp-")  # files beside a model that are not one


def quantisation_of(file: str) -> str | None:
    """Return `Q4_K_M` for `Qwen3-8B-Q4_K_M.gguf`; None where the name does not say."""
    matches = _QUANT.findall(file.rsplit("/", 1)[-1])
    if not matches:
        return None
    return str(matches[-1]).upper().replace("FP16", "F16").replace("FP32", "F32")


def parts_of(file: str) -> int | None:
    """Return the number of files that the model consists of, when this is one of several."""
    match = _PART.search(file)
    return int(match[2]) if match and 1 < int(match[2]) <= MAX_PARTS else None


def part_names(file: str) -> tuple[str, ...]:
    """Return all files of the model that this one belongs to, in order: itself alone, or its parts."""
    match, n = _PART.search(file), parts_of(file)
    if match is None or n is None:
        return (file,)
    stem, ending = file[: match.start()], file[-len(".gguf") :]
    return tuple(f"{stem}-{number:05}-of-{n:05}{ending}" for number in range(1, n + 1))


def is_model(file: str) -> bool:
    """Return whether a repository's file may be a model that one can chat with."""
    name = file.rsplit("/", 1)[-1].casefold()
    return name.endswith(".gguf") and not any(mark in name for mark in NOT_TEXT)


def recommended(files: Sequence[str]) -> str | None:
    """Return the file to begin with; of the same quantization, one file rather than several."""
    ranked = sorted(files, key=lambda file: parts_of(file) is not None)
    whole = {quantisation_of(file): file for file in reversed(ranked)}
    return next((whole[quant] for quant in _LIKED if quant in whole), None)
