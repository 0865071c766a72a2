"""Lines of the log: an object each, and a sentence for people."""

from __future__ import annotations

import json
import logging
import sys
from datetime import datetime

import pytest

from app.core.log_line import about, readable
from app.node.log_lines import JsonLines


def record(message: str, *given: object, **more: object) -> logging.LogRecord:
    made = logging.LogRecord("app.x", logging.INFO, "x.py", 1, message, given, None)
    vars(made).update(more)
    return made


def test_a_line_is_one_object_with_what_is_known() -> None:
    line = JsonLines().format(
        record("%s: %d tokens\u2028of “%s”\n", "req_1", 7, "ä", **about("req_1", tokens=7, by=None))
    )
    assert "\n" not in line
    told = json.loads(line)
    assert datetime.fromisoformat(told.pop("time")).tzinfo is not None
    assert told == {
        "level": "INFO", "logger": "app.x", "message": "req_1: 7 tokens\u2028of “ä”\n", "request": "req_1",
        "facts": {"tokens": 7, "by": None},
    }  # fmt: skip


def test_what_is_not_known_is_left_out() -> None:
    told = json.loads(JsonLines().format(record("node stopped", **about(""))))
    assert told.keys() == {"time", "level", "logger", "message"}


def test_an_error_keeps_its_stack_in_its_line() -> None:
    try:
        raise ValueError("no")
    except ValueError:
        line = JsonLines().format(record("it failed", exc_info=sys.exc_info()))
    assert "\n" not in line
    assert json.loads(line)["error"].endswith("ValueError: no")
    said = readable(line)
    assert said.splitlines()[0].endswith(" INFO app.x: it failed")
    assert said.endswith("ValueError: no")


def test_people_read_a_line_as_a_sentence() -> None:
    line = '{"time":"2026-01-02T03:04:05.678Z","level":"INFO","logger":"app","message":"two","request":"r"}'
    assert readable(line) == "2026-01-02 03:04:05.678 INFO app: two"


@pytest.mark.parametrize("line", ["", "one", "[1]", '{"a": 1}', "7", "{" * 100_000, '{"time": 1'])
def test_what_is_no_such_line_stays_as_it_is(line: str) -> None:
    assert readable(line) == line
