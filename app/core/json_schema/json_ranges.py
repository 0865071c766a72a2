"""Numbers between bounds, as a grammar writes them. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

MAX_INTEGER = 10**16 - 1  # no answer has a longer one
MAX_BOUND = 10**6  # of numbers with a fraction: with its nine digits a float still tells them apart
BOUNDS = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")

_FRACTION = '("." [0-9]{1,9})?'
_ZEROS = '("." "0"{1,9})?'
_MORE = '"." [0-9]{0,8} [1-9]'  # a fraction that is not zero


def integers(schema: Mapping[str, Any]) -> str:
    """The whole numbers between a schema's bounds. Raises ValueError, which says what is wrong."""
    given = _given(schema)
    low = max(
        math.ceil(given.get("minimum", -MAX_INTEGER)),
        math.floor(given.get("exclusiveMinimum", -MAX_INTEGER - 1)) + 1,
        -MAX_INTEGER,
    )
    high = min(
        math.floor(given.get("maximum", MAX_INTEGER)),
        math.ceil(given.get("exclusiveMaximum", MAX_INTEGER + 1)) - 1,
        MAX_INTEGER,
    )
    if low > high:
        raise ValueError("no number is between its bounds")
    options = []
    if low < 0:
        options.append(f'"-" ({_naturals(max(1, -high), -low)})')
    if high >= 0:
        options.append(_naturals(max(0, low), high))
    return " | ".join(options)


def numbers(schema: Mapping[str, Any]) -> str:
    """The numbers between a schema's bounds, which must be whole. Raises ValueError, which says what is wrong."""
    given = _given(schema)
    if any(one != math.floor(one) or abs(one) > MAX_BOUND for one in given.values()):
        raise ValueError(f"bounds of a number must be whole and at most {MAX_BOUND}")
    low, open_low = _stricter(given, "minimum", "exclusiveMinimum", max)
    high, open_high = _stricter(given, "maximum", "exclusiveMaximum", min)
    if low > high or (low == high and (open_low or open_high)):
        raise ValueError("no number is between its bounds")
    options = []
    if low < 0:
        least, is_open = (-high, open_high) if high <= 0 else (0, False)
        options.append(f'"-" ({_magnitudes(least, is_open, -low, open_low)})')
    if high > 0 or (high == 0 and not open_high):
        least, is_open = (low, open_low) if low >= 0 else (0, False)
        options.append(_magnitudes(least, is_open, high, open_high))
    return " | ".join(options)


def _given(schema: Mapping[str, Any]) -> dict[str, int | float]:
    given = {word: schema[word] for word in BOUNDS if schema.get(word) is not None}
    for word, bound in given.items():
        if type(bound) is not int and not (type(bound) is float and math.isfinite(bound)):
            raise ValueError(f"{word} must be a number")
    return given


def _stricter(given: Mapping[str, int | float], word: str, exclusive: str, pick: Any) -> tuple[int, bool]:
    """The bound that holds, and whether it is itself left out."""
    none = MAX_INTEGER if pick is min else -MAX_INTEGER
    closed, opened = int(given.get(word, none)), int(given.get(exclusive, none))
    if exclusive not in given:
        return closed, False
    bound = pick(closed, opened)
    return bound, bound == opened


def _magnitudes(low: int, open_low: bool, high: int, open_high: bool) -> str:
    """Numbers from low to high, both whole and not negative."""
    if low == high:
        return f'"{low}" {_ZEROS}'
    options = []
    if open_low:
        options.append(f'"{low}" {_MORE}')
    if (first := low + open_low) < high:
        options.append(f"({_naturals(first, high - 1)}) {_FRACTION}")
    if not open_high:
        options.append(f'"{high}" {_ZEROS}')
    return " | ".join(options)


def _naturals(low: int, high: int) -> str:
    """Whole numbers from low to high, both not negative."""
    if low == high:
        return f'"{low}"'
    options = []
    if low == 0:
        options, low = ['"0"'], 1
    first, last = str(low), str(high)
    if len(first) == len(last):
        return " | ".join([*options, _span(first, last)])
    options.append(_span(first, "9" * len(first)))
    if len(last) - len(first) > 1:
        options.append(f"[1-9] [0-9]{{{len(first)},{len(last) - 2}}}")
    options.append(_span("1" + "0" * (len(last) - 1), last))
    return " | ".join(options)


def _span(low: str, high: str) -> str:
    """Strings of digits, all as long as these two."""
    if low == high:
        return f'"{low}"'
    rest = len(low) - 1
    if low[0] == high[0]:
        return f'"{low[0]}" {_span(low[1:], high[1:])}'
    whole_low, whole_high = low[1:] == "0" * rest, high[1:] == "9" * rest
    first, last = int(low[0]) + (not whole_low), int(high[0]) - (not whole_high)
    options = []
    if not whole_low:
        options.append(f'"{low[0]}" {_span(low[1:], "9" * rest)}')
    if first <= last:
        options.append(f"[{first}-{last}]" + (f" [0-9]{{{rest}}}" if rest else ""))
    if not whole_high:
        options.append(f'"{high[0]}" {_span("0" * rest, high[1:])}')
    return f"({' | '.join(options)})"
