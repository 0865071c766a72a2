"""Decodes JSON into a type that one thread has prepared: msgspec 0.22 crashes where two threads prepare one at once.

It inspects a type when that is first used, and another thread sees it half inspected (a segmentation fault).
"""

from __future__ import annotations

import threading
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")
_DECODERS: dict[tuple[Any, bool], msgspec.json.Decoder[Any]] = {}
_PREPARING = threading.Lock()


def decode(data: bytes | bytearray | memoryview | str, kind: type[T], *, strict: bool = True) -> T:
    """Return the value in `data`, in any thread. Raises msgspec.DecodeError and its kin, all of them ValueErrors.

    Nesting that is deeper than Python's stack is one of them: a stranger can send that in a few kilobytes.
    """
    try:
        value: T = _decoder(kind, strict).decode(data)
    except RecursionError:
        raise msgspec.DecodeError("nested too deeply") from None
    return value


def convert(value: object, kind: type[T]) -> T:
    """Return decoded JSON as `kind`, in any thread. Raises msgspec.ValidationError, a ValueError."""
    _decoder(kind, True)  # prepares the type
    return msgspec.convert(value, kind)


def _decoder(kind: Any, strict: bool) -> msgspec.json.Decoder[Any]:
    known = _DECODERS.get((kind, strict))
    if known is None:
        with _PREPARING:
            known = _DECODERS.setdefault((kind, strict), msgspec.json.Decoder(kind, strict=strict))
    return known
