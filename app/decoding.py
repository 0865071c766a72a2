"""Thread-safe JSON decoding, because msgspec 0.22 crashes if two threads use a new type at the same time.

msgspec inspects a type on first use. Another thread may see the incomplete result, which causes a segmentation fault.
"""

from __future__ import annotations

import threading
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")
_DECODERS: dict[tuple[Any, bool], msgspec.json.Decoder[Any]] = {}
_PREPARING = threading.Lock()


def decode(data: bytes | bytearray | memoryview | str, kind: type[T], *, strict: bool = True) -> T:
    """Decode `data` as a `kind`. Safe in any thread. Raises msgspec.DecodeError, a ValueError, or a subclass.

    The error is also raised for nesting deeper than Python's stack, which an attacker can send in a few kilobytes.
    """
    try:
        value: T = _decoder(kind, strict).decode(data)
    except RecursionError:
        raise msgspec.DecodeError("nested too deeply") from None
    return value


def convert(value: object, kind: type[T]) -> T:
    """Convert decoded JSON to a `kind`. Safe in any thread. Raises msgspec.ValidationError, which is a ValueError."""
    _decoder(kind, True)  # prepares the type
    return msgspec.convert(value, kind)


def _decoder(kind: Any, strict: bool) -> msgspec.json.Decoder[Any]:
    known = _DECODERS.get((kind, strict))
    if known is None:
        with _PREPARING:
            known = _DECODERS.setdefault((kind, strict), msgspec.json.Decoder(kind, strict=strict))
    return known
