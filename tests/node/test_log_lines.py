"""Lines of the log: an object each, and a sentence for people."""

from __future__ import annotations

import ast
import json
import logging
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from app.core.errors import Reason, Refused, StageLost
from app.core.log_redaction import log_extra, readable_line
from app.node.start import JsonLines


def record(message: str, *args: object, **more: object) -> logging.LogRecord:
    made = logging.LogRecord("app.x", logging.INFO, "x.py", 1, message, args, None)
    vars(made).update(more)
    return made


def test_a_line_is_one_object_with_what_is_known() -> None:
    line = JsonLines().format(
        record("%s: %d tokens\u2028of “%s”\n", "req_1", 7, "ä", **log_extra("req_1", tokens=7, by=None))
    )
    assert "\n" not in line
    data = json.loads(line)
    assert datetime.fromisoformat(data.pop("time")).tzinfo is not None
    assert data == {
        "level": "INFO", "logger": "app.x", "message": "req_1: 7 tokens\u2028of “ä”\n", "request": "req_1",
        "facts": {"tokens": 7, "by": None},
    }  # fmt: skip


def test_what_is_not_known_is_left_out() -> None:
    data = json.loads(JsonLines().format(record("node stopped", **log_extra(""))))
    assert data.keys() == {"time", "level", "logger", "message"}


def test_an_error_keeps_its_stack_in_its_line() -> None:
    try:
        raise ValueError("no")
    except ValueError:
        line = JsonLines().format(record("it failed", exc_info=sys.exc_info()))
    assert "\n" not in line
    assert json.loads(line)["error"].endswith("ValueError: no")
    said = readable_line(line)
    assert said.splitlines()[0].endswith(" INFO app.x: it failed")
    assert said.endswith("ValueError: no")


def test_people_read_a_line_as_a_sentence() -> None:
    line = '{"time":"2026-01-02T03:04:05.678Z","level":"INFO","logger":"app","message":"two","request":"r"}'
    assert readable_line(line) == "2026-01-02 03:04:05.678 INFO app: two"


@pytest.mark.parametrize("line", ["", "one", "[1]", '{"a": 1}', "7", "{" * 100_000, '{"time": 1'])
def test_what_is_no_such_line_stays_as_it_is(line: str) -> None:
    assert readable_line(line) == line


@pytest.mark.parametrize(
    ("line", "values", "expected"),
    [
        ("%s was not measured: %s", ("attic", Reason("nothing_loaded")),
         "attic was not measured: No model is loaded. Load one and ask again."),
        ("%s is lost: %s", ("attic", StageLost("nothing_loaded")),
         "attic is lost: No model is loaded. Load one and ask again."),
        ("it says: %r", (Refused("nothing_loaded"),),
         "it says: No model is loaded. Load one and ask again."),
        ("%(what)s", ({"what": Reason("nothing_loaded")},), "No model is loaded. Load one and ask again."),
        ("%s", (Reason("of_a_newer_machine"),), "Reason(code='of_a_newer_machine', facts={})"),
        ("%s", (Reason("model_gone", {"name": "x"}),), "Reason(code='model_gone', facts={'name': 'x'})"),
    ],
)  # fmt: skip
def test_reasons_and_errors_are_told_as_sentences(line: str, values: tuple[object, ...], expected: str) -> None:
    assert json.loads(JsonLines().format(record(line, *values)))["message"] == expected


def logged() -> Iterator[tuple[str, ast.Call]]:
    """Each call of a log in the app, and where it is."""
    root = Path(__file__).parents[2] / "app"
    for file in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="log"))):
                    yield f"{file.relative_to(root)}:{node.lineno}", node


def test_no_line_tells_a_code_or_writes_an_error_itself() -> None:
    """Only the object of a reason or error becomes its sentence: not its code, nor what `str` or an f-string makes."""
    names, n_calls = list[str](), 0
    for place, call in logged():
        n_calls += 1
        for part in (part for arg in call.args for part in ast.walk(arg)):
            match part:
                case ast.Attribute(attr="code", value=ast.Attribute(attr="reason")):
                    names.append(f"{place}: a code")
                case ast.FormattedValue(value=ast.Name(id="error" | "why")):
                    names.append(f"{place}: an error in an f-string")
                case ast.Call(func=ast.Name(id="str" | "repr"), args=[ast.Attribute(attr="reason")]):
                    names.append(f"{place}: a reason by str")
    assert n_calls > 100
    assert not names, names
