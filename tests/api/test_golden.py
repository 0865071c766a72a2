"""The JSON of the loopback API is what it was: windows and command lines of today rely on it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from tests.api.recording import ANSWERS, REQUESTS, answers, as_text, differences, request_schemas
from tests.node.pool import paired


def test_every_request_has_the_form_and_the_bounds_it_had() -> None:
    assert as_text(request_schemas()) == REQUESTS.read_text()


def test_every_answer_of_real_nodes_has_the_form_it_had(tmp_path: Path) -> None:
    golden = json.loads(ANSWERS.read_text())
    with paired(tmp_path, "den", "attic") as nodes:
        now = asyncio.run(answers(nodes))
    assert list(differences(golden, now, "")) == []
    assert list(golden) == list(now)


def test_a_key_that_is_new_gone_or_moved_is_a_difference() -> None:
    golden = {"a": "text", "b": {"c": "number"}}
    assert list(differences(golden, {"a": "text", "b": {"c": "text"}}, "x"))
    assert list(differences(golden, {"b": {"c": "number"}, "a": "text"}, "x"))
    assert list(differences(golden, {"a": "text", "b": {"c": "number", "d": "text"}}, "x"))
    assert not list(differences(golden, {"a": None, "b": {"c": "number"}}, "x"))
