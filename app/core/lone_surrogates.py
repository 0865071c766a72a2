"""Halves of UTF-16 pairs in JSON text, which no Unicode text can hold. Pure.

Programs cut a text within an emoji, and JavaScript then writes the half that is left as `\\ud83d`. Readers of JSON
differ on it; to refuse a whole chat for one character helps nobody.
"""

from __future__ import annotations

import re

_MAY_BE = re.compile(rb"\\u[dD][89a-fA-F]")
# Two backslashes are one character of the text, so that a `u` behind them begins no escape.
_ESCAPE = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\u[dD][c-fC-F][0-9a-fA-F]{2})?|\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
_REPLACEMENT = rb"\ufffd"
_HALF_BYTES = len(_REPLACEMENT)


def replaced(data: bytes) -> bytes:
    """The same JSON with U+FFFD for each half of a pair that stands alone."""
    if not _MAY_BE.search(data):
        return data
    return _ESCAPE.sub(lambda found: _whole(found[0]), data)


def _whole(escape: bytes) -> bytes:
    return _REPLACEMENT if len(escape) == _HALF_BYTES else escape
