"""Calls to the node: none waits for another."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from tests.gui.desk import Desk


def test_a_call_is_answered_while_many_streams_are_open(qtbot: QtBot, at_lone: Desk) -> None:
    """Qt alone holds six connections, and lets the seventh wait for ever."""
    client = at_lone.services.client
    streams = [client.events() for _ in range(8)]
    qtbot.waitUntil(lambda: all(one.bytesAvailable() for one in streams), timeout=5000)
    answers: list[object] = []
    client.get("/models", answers.append)
    qtbot.waitUntil(lambda: bool(answers), timeout=5000)
    for one in streams:
        one.abort()
