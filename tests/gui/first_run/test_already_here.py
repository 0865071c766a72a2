"""Models of other apps are offered at the end of the first steps, before anything is downloaded."""

from __future__ import annotations

from typing import Any

from pytestqt.qtbot import QtBot

from app.gui.first_run.already_here import AlreadyHere, usable
from tests.gui.desk import Desk

Json = dict[str, Any]


def file(name: str, size: int, *, usable: bool = True, on_shelf: str | None = None) -> Json:
    return {
        "name": name,
        "app": "LM Studio",
        "size_bytes": size,
        "usable": usable,
        "on_shelf": on_shelf,
    }


def test_only_what_can_be_taken_counts_the_largest_first() -> None:
    files = [
        file("small", 1),
        file("odd", 9, usable=False),
        file("mine", 8, on_shelf="mine"),
        file("large", 7),
    ]
    assert [one["name"] for one in usable(files)] == ["large", "small"]


def test_they_are_named_and_lead_to_the_page(qtbot: QtBot, away: Desk) -> None:
    made, asked = AlreadyHere(away.services), list[bool]()
    qtbot.addWidget(made)
    made.wanted.connect(lambda: asked.append(True))
    made._found({"files": [file("odd", 9, usable=False)]})
    assert made.isHidden()
    made._found({"files": [file(name, size) for size, name in enumerate("abcd")]})
    assert not made.isHidden()
    assert made.about.text().startswith("4 model")
    assert made.names.text() == "d, c, b…"
    made.wanted.emit()
    assert asked == [True]


def test_where_no_node_answers_nothing_is_said(qtbot: QtBot, away: Desk) -> None:
    made = AlreadyHere(away.services)
    qtbot.addWidget(made)
    made.look()
    assert made.isHidden()
    made.cancel()


def test_a_node_is_asked_once(qtbot: QtBot, at_lone: Desk) -> None:
    made = AlreadyHere(at_lone.services)
    qtbot.addWidget(made)
    made.look()
    qtbot.waitUntil(lambda: made._has_looked, timeout=20_000)
    made.look()
    assert made._call is None
