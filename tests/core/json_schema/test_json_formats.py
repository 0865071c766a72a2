"""Formats of texts: what they let through is what Python's own readers take, and no more."""

from __future__ import annotations

import ipaddress
import json
import re
import uuid
from datetime import date, datetime, time
from typing import Any

import pytest

from app.core.json_schema.json_grammar import FORMATS, json_grammar, string_expression
from app.core.tools.call_grammar import calls_grammar
from tests.core.call_formats import FORMATS as CALL_FORMATS
from tests.core.json_schema.test_json_ranges import pattern

YEARS = (1000, 1900, 1996, 2000, 2023, 2024, 2100, 2400, 9998, 9999)


def allowed(name: str) -> re.Pattern[str]:
    return pattern(FORMATS[name][0])


def takes(read: Any, text: str) -> bool:
    try:
        read(text)
    except ValueError:
        return False
    return True


def test_dates_are_those_that_there_are() -> None:
    dates = allowed("date")
    for year in YEARS:
        for month in range(14):
            for day in range(33):
                text = f"{year:04}-{month:02}-{day:02}"
                assert bool(dates.fullmatch(text)) == takes(date.fromisoformat, text)
    for text in ("0000-01-01", "2024-1-1", "20240101", "2024-01-01T", "99-01-01", ""):
        assert not dates.fullmatch(text)


ODD_TIMES = ("24:00:00Z", "12:60:00Z", "12:00:60Z", "12:00Z", "12:00:00", "12:00:00.Z", "12:00:00+24:00",
             "12:00:00.1234567Z", "1:00:00Z", "12:00:00z", "12:00:00+01")  # fmt: skip


def test_times_have_a_zone() -> None:
    times, moments = allowed("time"), allowed("date-time")
    for text in ("00:00:00Z", "23:59:59.5Z", "12:30:00+05:30", "12:30:00.123456-11:00"):
        assert times.fullmatch(text)
        assert time.fromisoformat(text).tzinfo
        assert moments.fullmatch(f"2024-02-29T{text}")
        assert datetime.fromisoformat(f"2024-02-29T{text}").tzinfo
        assert not moments.fullmatch(f"2023-02-29T{text}")
        assert not moments.fullmatch(f"2024-02-29 {text}")
    assert not [text for text in ODD_TIMES if times.fullmatch(text)]


def test_addresses_and_ids() -> None:
    addresses, ids = allowed("ipv4"), allowed("uuid")
    for number in range(1000):
        for text in (f"{number}.0.0.1", f"10.0.0.{number}", f"10.{number:02}.0.1"):
            assert bool(addresses.fullmatch(text)) == takes(ipaddress.IPv4Address, text)
    value = str(uuid.UUID(int=7))
    assert ids.fullmatch(value)
    for text in (value[:-1], value + "0", value.replace("-", ""), value.replace("0", "g")):
        assert not ids.fullmatch(text)


LETTERS = ("0", "12ab", "FFFF", "12345", "g", "")


def test_ipv6() -> None:
    """Covers present and missing parts, with and without the abbreviation for zeros."""
    addresses = allowed("ipv6")
    texts = {"::", "::1", "1::", "1::2::3", ":::", ":", "::ffff:192.168.0.1", "::256.0.0.1", "1:2:3:4:5:6:1.2.3.4",
             "1:2:3:4:5:6:7:1.2.3.4", "1.2.3.4", "[::1]", "1:2:3:4:5:6:7::", "::1:2:3:4:5:6:7",
             "::1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8::", "1::3:4:5:6:7:8", "1:2::3.4.5.6:7"}  # fmt: skip
    for n in range(1, 10):
        texts |= {":".join([part] * n) for part in LETTERS}
        texts |= {":".join("1" * before) + "::" + ":".join("2" * (n - before)) for before in range(n + 1)}
        texts |= {":".join("1" * n) + "::1.2.3.4", "::" + "1:" * n + "1.2.3.4", "1:" * n + "1.2.3.4"}
    for text in texts:
        assert bool(addresses.fullmatch(text)) == takes(ipaddress.IPv6Address, text), text


DURATIONS = ("P1D", "P3W", "PT5S", "PT1H30M", "P1Y2M3DT4H5M6S", "P2M", "P1Y2M", "PT0M7S", "P10DT1H")
NO_DURATIONS = ("P", "PT", "P1", "1D", "P1DT", "PT1D", "P1W1D", "P1H", "PT1H30S", "P1Y3D", "P1S", "PT1.5S", "P-1D", "")
HOSTS = ("a", "a.b", "example.com", "xn--a.example", "3com.com", "a" * 62, ".".join(["a" * 30] * 8))
NO_HOSTS = ("", ".", "a.", ".a", "-a", "a-", "a..b", "a_b", "ä.de", "a" * 64, "a b", "a/b", ".".join(["a" * 62] * 5))
MAILBOXES = ("a@b.de", "jane.doe+lists@mail.example.com", "a_b@x-y.org", "a.b.c.d@e.f")
NO_MAILBOXES = ("", "a", "@b.de", "a@", "a@b", "a..b@c.de", ".a@b.de", "a.@b.de", "a b@c.de", "a@b.de.", "a@@b.de",
                "a@-b.de", "<a@b.de>", "a" * 65 + "@b.de")  # fmt: skip


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [("duration", DURATIONS, NO_DURATIONS), ("hostname", HOSTS, NO_HOSTS), ("email", MAILBOXES, NO_MAILBOXES)],
)
def test_durations_and_names(name: str, right: tuple[str, ...], wrong: tuple[str, ...]) -> None:
    texts = allowed(name)
    assert [text for text in right if not texts.fullmatch(text)] == []
    assert [text for text in wrong if texts.fullmatch(text)] == []


@pytest.mark.parametrize("name", FORMATS)
def test_how_long_texts_of_a_format_are(name: str) -> None:
    _, least, most = FORMATS[name]
    assert string_expression({"format": name}, least, most)
    assert not string_expression({"format": name}, least + 1, None)
    assert not string_expression({"format": name}, 0, most - 1)


def test_a_format_stands_once_in_a_grammar_and_others_are_any_text() -> None:
    day = {"type": "string", "format": "date"}
    text = json_grammar({"type": "object", "properties": {"from": day, "to": day}})
    assert text.count(FORMATS["date"][0]) == 1
    for name in ("iri", "", None, ["date"], {"a": 1}):
        assert "date" not in json_grammar({"type": "string", "format": name})
    of_any = json_grammar({"type": "string", "format": "uri"})
    assert "root ::= r" in of_any
    assert "char{0,}" in of_any
    short = json_grammar({"type": "string", "format": "date", "maxLength": 4})
    assert "char{0,4}" in short  # no date is so short: its length is kept to


@pytest.mark.parametrize("style", ["qwen_coder", "glm", "hermes"])
def test_arguments_of_a_call_are_of_their_format(style: str) -> None:
    schema = {"type": "object", "properties": {"day": {"type": "string", "format": "date"}}}
    assert FORMATS["date"][0] in calls_grammar(CALL_FORMATS[style], {"book": schema}, many=False)
    either = json.loads(json.dumps(schema).replace('"string"', '["string", "null"]'))
    assert calls_grammar(CALL_FORMATS[style], {"book": either}, many=False)
