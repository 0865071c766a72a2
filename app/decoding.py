"""JSON read into a type that one thread has prepared: msgspec ends the process where two prepare one at once.

It looks at a type when that is first used, and other threads see it half looked at (a segmentation fault in 0.22).
"""

from __future__ import annotations

import threading
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")
_DECODERS: dict[tuple[Any, bool], msgspec.json.Decoder[Any]] = {}
_PREPARING = threading.Lock()


def decode(data: bytes | bytearray | memoryview | str, kind: type[T], *, strict: bool = True) -> T:
    """The value in `data`, in whichever thread. Raises msgspec.DecodeError and its like, all ValueErrors.

    What is nested deeper than Python's stack is one of them: a stranger can send that in a few kilobytes.
    """
    found = _DECODERS.get((kind, strict))
    if found is None:
        with _PREPARING:
            found = _DECODERS.setdefault((kind, strict), msgspec.json.Decoder(kind, strict=strict))
    try:
        read: T = found.decode(data)
    except RecursionError:
        raise msgspec.DecodeError("nested too deeply") from None
    return read
