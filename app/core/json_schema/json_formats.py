"""Texts of a `format` of JSON schema, as GBNF: dates that there are, times, durations, UUIDs, addresses, names. Pure.

Years are those from 1000 to 9999, and a second is never the sixtieth, so that every reader takes them. No name of a
host is too long as a whole, and so none has many long parts.
"""

from __future__ import annotations

_ODD_MONTHS = (
    '("01" | "03" | "05" | "07" | "08" | "10" | "12") "-" ("0" [1-9] | [12] [0-9] | "3" [01])'
)
_EVEN_MONTHS = '("04" | "06" | "09" | "11") "-" ("0" [1-9] | [12] [0-9] | "30")'
_FEBRUARY = '"02-" ("0" [1-9] | "1" [0-9] | "2" [0-8])'
_BY_FOUR = '("0" [48] | [2468] [048] | [13579] [26])'  # two digits, and not both 0
_LEAP_YEAR = f'([1-9] [0-9] {_BY_FOUR} | ([2468] [048] | [13579] [26]) "00")'
DATE = (
    f'([1-9] [0-9]{{3}} "-" ({_ODD_MONTHS} | {_EVEN_MONTHS} | {_FEBRUARY}) | {_LEAP_YEAR} "-02-29")'
)
HOUR, MINUTE = '([01] [0-9] | "2" [0-3])', "[0-5] [0-9]"
SECOND = f'":" {MINUTE} ("." [0-9]{{1,6}})?'
_TIME = f'{HOUR} ":" {MINUTE} {SECOND} ("Z" | [+-] {HOUR} ":" {MINUTE})'
_BYTE = '("25" [0-5] | "2" [0-4] [0-9] | "1" [0-9] [0-9] | [1-9]? [0-9])'
_LETTERS = "[0-9a-fA-F]{1,4}"
_LAST = f'({_LETTERS} ":" {_LETTERS} | {_BYTE} ("." {_BYTE}){{3}})'  # 32 bits
_IPV6 = " | ".join(
    [f'({_LETTERS} ":"){{6}} {_LAST}', f'"::" ({_LETTERS} ":"){{5}} {_LAST}']
    + [f'({_LETTERS} (":" {_LETTERS}){{0,{n}}})? "::" ({_LETTERS} ":"){{{4 - n}}} {_LAST}' for n in range(4)]
    + [f'({_LETTERS} (":" {_LETTERS}){{0,4}})? "::" {_LAST}', f'({_LETTERS} (":" {_LETTERS}){{0,5}})? "::" {_LETTERS}',
       f'({_LETTERS} (":" {_LETTERS}){{0,6}})? "::"']
)  # fmt: skip
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
}  # fmt: skip
IPV6_ALONE = FORMATS["ipv6"][0].replace(_LAST, f'{_LETTERS} ":" {_LETTERS}')  # no ipv4 ends it
