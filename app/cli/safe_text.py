"""Text from others, made harmless for a terminal."""

from __future__ import annotations

MAX_NAME = 64  # SAFETY.md 7: the maximum shown of a foreign name

_KEPT = "\n\t"
_BIDI = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_CONTROLS = (*range(0x20), *range(0x7F, 0xA0))
_LONE = range(0xD800, 0xE000)  # surrogates, which cannot be encoded
_TEXT = dict.fromkeys(code for code in (*_CONTROLS, *_BIDI, *_LONE) if chr(code) not in _KEPT)
_LINE = {**_TEXT, ord("\n"): " ", ord("\t"): " "}


def text(foreign: str) -> str:
    """Return a model's text without C0, C1 and bidirectional control characters, except newline and tab."""
    return foreign.translate(_TEXT)


def line(foreign: str) -> str:
    """Return foreign text as one line."""
    return foreign.translate(_LINE)


def name(foreign: str) -> str:
    """Return a foreign name as one line of at most 64 characters."""
    shown = line(foreign)
    return shown if len(shown) <= MAX_NAME else shown[: MAX_NAME - 1] + "…"
