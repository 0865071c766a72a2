"""Calls to the node: none waits for another, and none calls back what is gone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import shiboken6
from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from app.gui.api.node_client import Call
from tests.gui.desk import Desk


def test_a_call_is_answered_while_many_streams_are_open(qtbot: QtBot, at_lone: Desk) -> None:
    """Qt alone holds six connections, and lets the seventh wait for ever."""
    client = at_lone.services.client
    streams = [client.events() for _ in range(8)]
    qtbot.waitUntil(lambda: all(stream.bytesAvailable() for stream in streams), timeout=5000)
    answers: list[object] = []
    client.get("/models", answers.append)
    qtbot.waitUntil(lambda: bool(answers), timeout=5000)
    for stream in streams:
        stream.abort()


class Asking(QObject):
    """Asks the node, and may be gone before it answers."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[object] = []

    def hear(self, *args: object) -> None:
        self.objectName()  # fails when it is gone
        self.told.append(args)


@pytest.mark.parametrize(
    "ask",
    [
        lambda client, owner: client.get("/models", owner.hear),
        lambda client, owner: client.get("/models", partial(owner.hear, "what it was about")),
        lambda client, owner: client.post("/unload", {}, lambda _: None, partial(owner.hear, "why")),
    ],
    ids=["by name", "partial", "failed only"],
)
def test_a_call_ends_with_the_object_that_it_calls_back(
    qtbot: QtBot, at_lone: Desk, ask: Callable[[Any, Asking], Call]
) -> None:
    client = at_lone.services.client
    heard, gone = Asking(), Asking()
    first, call = ask(client, heard), ask(client, gone)
    shiboken6.delete(gone)
    assert (first.running, call.running) == (True, False)
    qtbot.waitUntil(lambda: not first.running, timeout=5000)
    qtbot.wait(20)  # what the other one might still bring
    assert gone.told == []
