"""GBNF for constrained strings and numbers: formats, known patterns, and bounds. Pure.

The patterns are the regular expressions that zod writes for its formats. They are recognized by their text and none is
ever run: the meaning of any other, and the time it takes to evaluate, are not known in advance.
"""

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
    bounds = _bounds_of(schema)
    low = max(
        math.ceil(bounds.get("minimum", -MAX_INTEGER)),
        math.floor(bounds.get("exclusiveMinimum", -MAX_INTEGER - 1)) + 1,
        -MAX_INTEGER,
    )
    high = min(
        math.floor(bounds.get("maximum", MAX_INTEGER)),
        math.ceil(bounds.get("exclusiveMaximum", MAX_INTEGER + 1)) - 1,
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
    bounds = _bounds_of(schema)
    if any(bound != math.floor(bound) or abs(bound) > MAX_BOUND for bound in bounds.values()):
        raise ValueError(f"bounds of a number must be whole and at most {MAX_BOUND}")
    low, open_low = _stricter(bounds, "minimum", "exclusiveMinimum", max)
    high, open_high = _stricter(bounds, "maximum", "exclusiveMaximum", min)
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


def _bounds_of(schema: Mapping[str, Any]) -> dict[str, int | float]:
    bounds = {word: schema[word] for word in BOUNDS if schema.get(word) is not None}
    for word, bound in bounds.items():
        if type(bound) is not int and not (type(bound) is float and math.isfinite(bound)):
            raise ValueError(f"{word} must be a number")
    return bounds


def _stricter(bounds: Mapping[str, int | float], word: str, exclusive: str, pick: Any) -> tuple[int, bool]:
    """The bound that holds, and whether it is itself left out."""
    none = MAX_INTEGER if pick is min else -MAX_INTEGER
    closed, opened = int(bounds.get(word, none)), int(bounds.get(exclusive, none))
    if exclusive not in bounds:
        return closed, False
    bound = pick(closed, opened)
    return bound, bound == opened


def _magnitudes(low: int, open_low: bool, high: int, open_high: bool) -> str:
    """Return the numbers from low to high, both whole and not negative."""
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
    """Return the whole numbers from low to high, both not negative."""
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
    """Return the strings of digits from low to high, all equally long."""
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


# The strings of JSON schema's `format`s: real dates, times, durations, UUIDs, addresses, names. Years are 1000 to 9999,
# and a second is never the sixtieth, so that every reader accepts them. No host name is too long as a whole, and so
# none has many long parts.

_ODD_MONTHS = '("01" | "03" | "05" | "07" | "08" | "10" | "12") "-" ("0" [1-9] | [12] [0-9] | "3" [01])'
_EVEN_MONTHS = '("04" | "06" | "09" | "11") "-" ("0" [1-9] | [12] [0-9] | "30")'
_FEBRUARY = '"02-" ("0" [1-9] | "1" [0-9] | "2" [0-8])'
_BY_FOUR = '("0" [48] | [2468] [048] | [13579] [26])'  # two digits, and not both 0
_LEAP_YEAR = f'([1-9] [0-9] {_BY_FOUR} | ([2468] [048] | [13579] [26]) "00")'
DATE = f'([1-9] [0-9]{{3}} "-" ({_ODD_MONTHS} | {_EVEN_MONTHS} | {_FEBRUARY}) | {_LEAP_YEAR} "-02-29")'
HOUR, MINUTE = '([01] [0-9] | "2" [0-3])', "[0-5] [0-9]"
SECOND = f'":" {MINUTE} ("." [0-9]{{1,6}})?'
_TIME = f'{HOUR} ":" {MINUTE} {SECOND} ("Z" | [+-] {HOUR} ":" {MINUTE})'
_BYTE = '("25" [0-5] | "2" [0-4] [0-9] | "1" [0-9] [0-9] | [1-9]? [0-9])'
_LETTERS = "[0-9a-fA-F]{1,4}"
_LAST = f'({_LETTERS} ":" {_LETTERS} | {_BYTE} ("." {_BYTE}){{3}})'  # 32 bits
_IPV6 = " | ".join(
    [f'({_LETTERS} ":"){{6}} {_LAST}', f'"::" ({_LETTERS} ":"){{5}} {_LAST}']
    + [f'({_LETTERS} (":" {_LETTERS}){{0,{n}}})? "::" ({_LETTERS} ":"){{{4 - n}}} {_LAST}' for n in range(4)]
    + [
        f'({_LETTERS} (":" {_LETTERS}){{0,4}})? "::" {_LAST}',
        f'({_LETTERS} (":" {_LETTERS}){{0,5}})? "::" {_LETTERS}',
        f'({_LETTERS} (":" {_LETTERS}){{0,6}})? "::"',
    ]
)
_CLOCK = '[0-9]{1,9} ("H" ([0-9]{1,9} "M" ([0-9]{1,9} "S")?)? | "M" ([0-9]{1,9} "S")? | "S")'
_DAYS = '("Y" ([0-9]{1,9} "M" ([0-9]{1,9} "D")?)? | "M" ([0-9]{1,9} "D")? | "D")'
_DURATION = f'"P" ([0-9]{{1,9}} ("W" | {_DAYS} ("T" {_CLOCK})?) | "T" {_CLOCK})'
_LONG, SHORT = (f"[a-zA-Z0-9] ([-a-zA-Z0-9]{{0,{n}}} [a-zA-Z0-9])?" for n in (60, 28))
_ATOM = "[-a-zA-Z0-9_+]"
MAILBOX = f'({_ATOM}{{1,31}} ("." {_ATOM}{{1,31}})? | {_ATOM}{{1,15}} ("." {_ATOM}{{1,15}}){{2,3}})'
FORMATS: dict[object, tuple[str, int, int]] = {  # the text, and how many characters it has at least and at most
    "date": (DATE, 10, 10),
    "time": (_TIME, 9, 21),
    "date-time": (f'{DATE} "T" {_TIME}', 20, 32),
    "uuid": ('[0-9a-f]{8} ("-" [0-9a-f]{4}){3} "-" [0-9a-f]{12}', 36, 36),
    "ipv4": (f'{_BYTE} ("." {_BYTE}){{3}}', 7, 15),
    "ipv6": (f"({_IPV6})", 2, 45),
    "duration": (_DURATION, 3, 62),
    "hostname": (f'({_LONG} ("." {_LONG}){{0,3}} | {SHORT} ("." {SHORT}){{4,7}})', 1, 251),
    "email": (f'{MAILBOX} "@" {SHORT} ("." {SHORT}){{1,5}}', 5, 249),
}
IPV6_ALONE = FORMATS["ipv6"][0].replace(_LAST, f'{_LETTERS} ":" {_LETTERS}')  # no ipv4 ends it


Known = tuple[str, int, int]  # the text, and how many characters it has at least and at most

_ON = (
    r"(?:(?:\d\d[2468][048]|\d\d[13579][26]|\d\d0[48]|[02468][048]00|[13579][26]00)-02-29|"
    r"\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|"
    r"(?:02)-(?:0[1-9]|1\d|2[0-8])))"
)
_TO_THE_MINUTE = r"(?:[01]\d|2[0-3]):[0-5]\d"
_AT = rf"{_TO_THE_MINUTE}(?::[0-5]\d(?:\.\d+)?)?"
_AT_A_SECOND = rf"{_TO_THE_MINUTE}:[0-5]\d(?:\.\d+)?"
_AWAY = r"([+-](?:[01]\d|2[0-3]):[0-5]\d)"
_UUID = "^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-%s[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}%s)$"
_NONE = "|00000000-0000-0000-0000-000000000000"
_ALL = "|ffffffff-ffff-ffff-ffff-ffffffffffff"
_BYTE_PATTERN = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9][0-9]|[0-9])"
_IPV6_PATTERN = (
    "^((H:){7}H|(H:){1,7}:|(H:){1,6}:H|(H:){1,5}(:H){1,2}|(H:){1,4}(:H){1,3}|(H:){1,3}(:H){1,4}|"
    "(H:){1,2}(:H){1,5}|H:((:H){1,6})|:((:H){1,7}|:))$"
)
_EMAIL = f'{MAILBOX} "@" ({SHORT} "."){{1,5}} [a-zA-Z]{{2,30}}', 6, 249


def _uuid(version: str) -> Known:
    begin = f'[0-9a-f]{{8}} "-" [0-9a-f]{{4}} "-" {version} [0-9a-f]{{3}}'
    return f'{begin} "-" [89ab] [0-9a-f]{{3}} "-" [0-9a-f]{{12}}', 36, 36


def _datetime_patterns() -> dict[str, Known]:
    """Return the patterns of date-times with and without zones, as the newest zod writes them and as earlier versions
    did."""
    to_a_second = f'{DATE} "T" {HOUR} ":" {MINUTE} {SECOND}'
    somewhere = FORMATS["date-time"]
    here = f'{to_a_second} "Z"?', 19, 27
    return {
        f"^{_ON}T(?:{_AT}(?:Z))$": (f'{to_a_second} "Z"', 20, 27),
        f"^{_ON}T(?:{_AT_A_SECOND}(?:Z))$": (f'{to_a_second} "Z"', 20, 27),
        f"^{_ON}T(?:{_AT}(?:Z|{_AWAY}))$": somewhere,
        f"^{_ON}T(?:{_AT_A_SECOND}(?:Z|{_AWAY}))$": somewhere,
        f"^{_ON}T(?:{_AT}(?:Z|))$": here,
        f"^{_ON}T(?:{_AT_A_SECOND}(?:Z)|{_AT})$": here,
    }


PATTERNS: dict[str, Known] = {
    **_datetime_patterns(),
    f"^{_ON}$": FORMATS["date"],
    f"^{_AT}$": (f'{HOUR} ":" {MINUTE} ({SECOND})?', 5, 15),
    r"^P(?:(\d+W)|(?!.*W)(?=\d|T\d)(\d+Y)?(\d+M)?(\d+D)?"
    r"(T(?=\d)(\d+H)?(\d+M)?(\d+([.,]\d+)?S)?)?)$": FORMATS["duration"],
    _UUID % ("[1-8]", _NONE): _uuid("[1-8]"),
    _UUID % ("[1-8]", _NONE + _ALL): _uuid("[1-8]"),
    **{_UUID % (n, ""): _uuid(f'"{n}"') for n in "12345678"},
    "^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12})$": FORMATS["uuid"],
    f"^(?:{_BYTE_PATTERN}\\.){{3}}{_BYTE_PATTERN}$": FORMATS["ipv4"],
    _IPV6_PATTERN.replace("H", "[0-9a-fA-F]{1,4}"): (IPV6_ALONE, 2, 39),
    r"^(?=.{1,253}\.?$)[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
    r"(?:\.[a-zA-Z0-9](?:[-0-9a-zA-Z]{0,61}[0-9a-zA-Z])?)*\.?$": FORMATS["hostname"],
    r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$": _EMAIL,
    r"^(?:[A-Za-z0-9_'+\-]+\.)*[A-Za-z0-9_'+\-]*[A-Za-z0-9_+-]@(?:[A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$": _EMAIL,
}


def string_expression(schema: Mapping[str, Any], least: int, most: int | None) -> str:
    """The expression for texts of a schema's pattern, or else of its format; empty where that is not kept to: an
    unknown one, or one whose texts need not be of so many characters."""
    known: Mapping[Any, Known] = PATTERNS if "pattern" in schema else FORMATS
    name = schema.get("pattern" if "pattern" in schema else "format")
    if not isinstance(name, str) or name not in known:
        return ""
    text, shortest, longest = known[name]
    return text if least <= shortest and (most is None or longest <= most) else ""
