"""The JSON of the loopback API is what it was: windows and command lines of today rely on it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import msgspec

from app.decoding import convert
from tests.api.contract import TYPES
from tests.api.recording import ANSWERS, REQUESTS, answers, as_text, differences, forms, request_schemas
from tests.node.pool import paired


def test_every_request_has_the_form_and_the_bounds_it_had() -> None:
    assert as_text(request_schemas()) == REQUESTS.read_text()


def test_every_answer_of_real_nodes_has_the_form_it_had(tmp_path: Path) -> None:
    golden = json.loads(ANSWERS.read_text())
    with paired(tmp_path, "den", "attic") as nodes:
        result = asyncio.run(answers(nodes))
    now = forms(result)
    assert list(differences(golden, now, "")) == []
    assert list(golden) == list(now) == list(TYPES)
    for name, answer in result.items():
        if kind := TYPES[name]:
            assert list(lost(answer, json.loads(msgspec.json.encode(convert(answer, kind))), name)) == []


def lost(answer: object, typed: object, at: str) -> Iterator[str]:
    """Yield what of `answer` is missing from or different in what its type made of it."""
    if isinstance(answer, dict) and isinstance(typed, dict):
        for key, value in answer.items():
            if key in typed:
                yield from lost(value, typed[key], f"{at}.{key}")
            else:
                yield f"{at}: no field {key}"
        for key in typed.keys() - answer.keys():
            if typed[key] not in (None, "", 0):  # without a value it may be left out
                yield f"{at}: the field {key} was not there"
    elif isinstance(answer, list) and isinstance(typed, list) and len(answer) == len(typed):
        for number, (item, converted) in enumerate(zip(answer, typed, strict=True)):
            yield from lost(item, converted, f"{at}[{number}]")
    elif answer != typed:
        yield f"{at}: {answer!r} became {typed!r}"


def test_a_field_that_a_type_has_not_is_lost() -> None:
    assert list(lost({"a": 1, "b": None}, {"a": 1}, "x"))
    assert list(lost({"a": 1}, {"a": 2}, "x"))
    assert not list(lost({"a": 1, "b": [{"c": 2}]}, {"a": 1, "b": [{"c": 2}]}, "x"))


def test_a_key_that_is_new_gone_or_moved_is_a_difference() -> None:
    golden = {"a": "text", "b": {"c": "number"}}
    assert list(differences(golden, {"a": "text", "b": {"c": "text"}}, "x"))
    assert list(differences(golden, {"b": {"c": "number"}, "a": "text"}, "x"))
    assert list(differences(golden, {"a": "text", "b": {"c": "number", "d": "text"}}, "x"))
    assert not list(differences(golden, {"a": None, "b": {"c": "number"}}, "x"))
