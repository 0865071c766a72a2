"""Regular expressions that zod writes for its formats, each with GBNF that lets through only what it matches. Pure.

They are known by their letters and none is ever run: what another one means, and how long that takes to find out,
nobody knows before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.core.json_schema.json_formats import (
    DATE,
    FORMATS,
    HOUR,
    IPV6_ALONE,
    MAILBOX,
    MINUTE,
    SECOND,
    SHORT,
)

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
_UUID = (
    "^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-%s[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}%s)$"
)
_NONE = "|00000000-0000-0000-0000-000000000000"
_ALL = "|ffffffff-ffff-ffff-ffff-ffffffffffff"
_BYTE = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9][0-9]|[0-9])"
_IPV6 = (
    "^((H:){7}H|(H:){1,7}:|(H:){1,6}:H|(H:){1,5}(:H){1,2}|(H:){1,4}(:H){1,3}|(H:){1,3}(:H){1,4}|"
    "(H:){1,2}(:H){1,5}|H:((:H){1,6})|:((:H){1,7}|:))$"
)
_EMAIL = f'{MAILBOX} "@" ({SHORT} "."){{1,5}} [a-zA-Z]{{2,30}}', 6, 249


def _uuid(version: str) -> Known:
    begin = f'[0-9a-f]{{8}} "-" [0-9a-f]{{4}} "-" {version} [0-9a-f]{{3}}'
    return f'{begin} "-" [89ab] [0-9a-f]{{3}} "-" [0-9a-f]{{12}}', 36, 36


def _moments() -> dict[str, Known]:
    """With and without zones, as zod's newest has them and as those before it did."""
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
    **_moments(),
    f"^{_ON}$": FORMATS["date"],
    f"^{_AT}$": (f'{HOUR} ":" {MINUTE} ({SECOND})?', 5, 15),
    r"^P(?:(\d+W)|(?!.*W)(?=\d|T\d)(\d+Y)?(\d+M)?(\d+D)?"
    r"(T(?=\d)(\d+H)?(\d+M)?(\d+([.,]\d+)?S)?)?)$": FORMATS["duration"],
    _UUID % ("[1-8]", _NONE): _uuid("[1-8]"),
    _UUID % ("[1-8]", _NONE + _ALL): _uuid("[1-8]"),
    **{_UUID % (n, ""): _uuid(f'"{n}"') for n in "12345678"},
    "^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12})$": FORMATS[
        "uuid"
    ],
    f"^(?:{_BYTE}\\.){{3}}{_BYTE}$": FORMATS["ipv4"],
    _IPV6.replace("H", "[0-9a-fA-F]{1,4}"): (IPV6_ALONE, 2, 39),
    r"^(?=.{1,253}\.?$)[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
    r"(?:\.[a-zA-Z0-9](?:[-0-9a-zA-Z]{0,61}[0-9a-zA-Z])?)*\.?$": FORMATS["hostname"],
    r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$": _EMAIL,
    r"^(?:[A-Za-z0-9_'+\-]+\.)*[A-Za-z0-9_'+\-]*[A-Za-z0-9_+-]@(?:[A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$": _EMAIL,
}


def text_of(schema: Mapping[str, Any], least: int, most: int | None) -> str:
    """The expression for texts of a schema's pattern, or else of its format; empty where that is not kept to: an
    unknown one, or one whose texts need not be of so many characters."""
    known: Mapping[Any, Known] = PATTERNS if "pattern" in schema else FORMATS
    name = schema.get("pattern" if "pattern" in schema else "format")
    if not isinstance(name, str) or name not in known:
        return ""
    text, shortest, longest = known[name]
    return text if least <= shortest and (most is None or longest <= most) else ""
