"""The values of a tool call as the user reads them before allowing it: complete, without misleading characters."""

from __future__ import annotations

import json
import re
import unicodedata

# controls, signs without a shape or that reorder text, surrogates, and the ends of lines and paragraphs
_UNSEEN = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
_PLAIN_NAME = re.compile(r"[\w.-]+")


def visible(text: str) -> str:
    """Return foreign text on one line, with invisible and reordering characters written as in JSON, such as \\u202e."""
    return "".join(_written(sign) if unicodedata.category(sign) in _UNSEEN else sign for sign in text)


def shown_values(arguments: str) -> list[str]:
    """Return the arguments of a call as lines of names and values, or as one line if they are no JSON object.

    Nothing is left out. A text with line breaks or other characters that could look like another value is written as
    JSON.
    """
    try:
        values = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return [_shown(arguments)]
    if not isinstance(values, dict):
        return [visible(arguments)]
    return [f"{_name(name)}: {_shown(value)}" for name, value in values.items()]


def _name(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else _quoted(name)


def _shown(value: object) -> str:
    if not isinstance(value, str):
        return visible(json.dumps(value, ensure_ascii=False))
    # a text in quotes is always JSON, so that each text is shown in one way only
    return value if value == visible(value) and not value.startswith('"') else _quoted(value)


def _quoted(text: str) -> str:
    return visible(json.dumps(text, ensure_ascii=False))


def _written(sign: str) -> str:
    return json.dumps(sign)[1:-1] if sign != "\x7f" else "\\u007f"
