"""The journal in the window: what the node writes down arrives, and what runs is seen."""

from __future__ import annotations

from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from app.gui.activity.journal_feed import JournalFeed, event_sentence
from tests.gui.desk import Desk

ENDLESS = {"prompt": "Hello", "max_tokens": 1500, "ignore_end": True}  # until it is cancelled
SHORT = {"prompt": "Hello", "max_tokens": 9, "ignore_end": True}


def ask(at_lone: Desk, body: dict[str, Any], ends: list[object]) -> Any:
    client = at_lone.services.client
    return client.call("POST", "/ask", body, ends.append, ends.append, lambda _: None)


@pytest.fixture
def feed(at_lone: Desk) -> JournalFeed:
    return JournalFeed(at_lone.services.pool, at_lone.services.pool)


@pytest.mark.long
def test_answers_and_events_arrive_as_they_happen(qtbot: QtBot, at_lone: Desk, feed: JournalFeed) -> None:
    qtbot.waitUntil(lambda: bool(feed.events), timeout=5000)
    assert any("started" in event_sentence(event) for event in feed.events)
    before = len(feed.answers)
    ends: list[object] = []
    ask(at_lone, SHORT, ends)
    qtbot.waitUntil(lambda: len(feed.answers) == before + 1, timeout=20_000)
    answer = feed.answers[-1]
    assert (answer.model, answer.end, answer.tokens) == ("guide", "length", 9)
    assert answer.stages[0].machine == "den"
    again = JournalFeed(at_lone.services.pool, at_lone.services.pool)
    qtbot.waitUntil(lambda: len(again.answers) == len(feed.answers), timeout=5000)
    assert [answer.number for answer in again.answers] == [answer.number for answer in feed.answers]


def test_a_running_answer_is_seen_and_then_a_stopped_one(qtbot: QtBot, at_lone: Desk, feed: JournalFeed) -> None:
    feed.watch(True)
    call = ask(at_lone, ENDLESS, [])
    qtbot.waitUntil(lambda: bool(feed.running), timeout=20_000)
    assert feed.running[0].model == "guide"
    call.cancel()
    qtbot.waitUntil(lambda: bool(feed.answers) and feed.answers[-1].end == "stopped", timeout=5000)
    qtbot.waitUntil(lambda: not feed.running, timeout=5000)
    feed.watch(False)
    feed.stop()
