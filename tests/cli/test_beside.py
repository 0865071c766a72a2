"""Tests of the command line with several models loaded at once."""

from __future__ import annotations

from typing import Any

from tests.cli.answers import LOADED, SNAPSHOT
from tests.cli.fake_node import Lines

WHOLE = LOADED | {"model": "small", "shape": "one", "stages": LOADED["stages"][:1]}


def test_load_beside(poolhouse: Any, answering: Any) -> None:
    node = answering({("POST", "/load"): Lines([{"done": {"loaded": WHOLE}}])})
    assert poolhouse("load", "small", "--beside").code == 0
    assert node.asked[0][2]["beside"] is True


def test_plan_beside(poolhouse: Any, answering: Any) -> None:
    node = answering({("POST", "/plan"): Lines([{"done": WHOLE}])})
    assert poolhouse("plan", "small", "--beside").code == 0
    assert node.asked[0][2]["beside"] is True


def test_status_shows_each(poolhouse: Any, answering: Any) -> None:
    answers = {"running": 0, "waiting": 0}
    shown = SNAPSHOT | {"loaded": WHOLE, "beside": [LOADED], "answers": answers}
    answering({("GET", "/status"): shown})
    lines = poolhouse("status").out.splitlines()
    assert lines[0] == "Ready. small is loaded on this machine. guide is loaded on 2 machines."
    assert [line.split(" · ")[0] for line in lines if "context" in line] == ["small", "guide"]


def test_status_says_of_one_beside_that_it_comes_or_is_lost(poolhouse: Any, answering: Any) -> None:
    answers, lost = {"running": 0, "waiting": 0}, {"state": "lost", "reason": "attic-pc is gone."}
    coming = LOADED | {"state": "loading"}
    beside = [coming, coming | {"stopping": True}, LOADED | lost]
    shown = SNAPSHOT | {"loaded": WHOLE, "beside": beside, "answers": answers}
    answering({("GET", "/status"): shown})
    first = poolhouse("status").out.splitlines()
    said = (
        "Ready. small is loaded on this machine. Loading guide. guide is stopping and freeing its memory. "
        "guide was lost. attic-pc is gone."
    )
    assert " ".join(first[:4]).startswith(f"{said} The next question will load it again.")
