"""Tests of the models that a chat may use, on a host and on a guest."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
import shiboken6
from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from app.api.models import Models
from app.api.snapshot import Snapshot
from app.decoding import convert
from app.gui.chat.chat_settings import ModelNames, names_of
from tests.gui.desk import Desk

Json = dict[str, Any]
ANSWER: Json = {
    "models": [{"name": "guide"}, {"name": "own"}],
    "offered": [{"name": "big", "writes": True}, {"name": "vectors", "writes": False}],
}


@pytest.mark.parametrize(
    ("offered", "hosts", "loaded", "names"),
    [
        (False, None, "guide", ["guide", "own"]),  # no guest
        (True, ["den"], "", ["big"]),
        (False, [], "", []),  # a guest whose hosts are away
        (True, None, "own", ["own", "big"]),  # a guest that has loaded one itself
        (True, None, "big", ["big"]),
    ],
)
def test_a_guest_is_offered_what_its_hosts_answer_with(
    offered: bool, hosts: list[str] | None, loaded: str, names: list[str]
) -> None:
    answer = ANSWER if offered else ANSWER | {"offered": []}
    assert names_of(convert(answer, Models), hosts, loaded) == names


class Client:
    """Answers when a test says so."""

    def __init__(self) -> None:
        self.asked: list[Callable[[Models], object]] = []
        self.call = SimpleNamespace(running=True, cancel=lambda: None)

    def get(self, path: str, done: Callable[[Models], object], **_: Any) -> Any:
        assert path == "/models"
        self.asked.append(done)
        self.call.running = True
        return self.call

    def answer(self, subject: Json) -> None:
        self.call.running = False
        self.asked[-1](convert(subject, Models))


def test_they_are_asked_for_again_when_another_host_answers() -> None:
    client, reports = Client(), list[list[str]]()
    pool = SimpleNamespace(now=Snapshot(hosts=[]))
    made = ModelNames(cast("Any", client), cast("Any", pool), lambda: reports.append(made.names))
    made.pool_changed()
    assert not client.asked  # nobody looks at them yet
    made.load()
    made.load()
    assert len(client.asked) == 1
    client.answer(ANSWER | {"offered": []})
    made.pool_changed()
    assert len(client.asked) == 1
    pool.now = Snapshot(hosts=["den"])
    made.pool_changed()
    client.answer(ANSWER)
    assert reports == [[], ["big"]]
    made.pool_changed()
    assert len(client.asked) == 2


def test_a_page_that_is_gone_is_told_nothing(qtbot: QtBot, at_lone: Desk) -> None:
    services, messages = at_lone.services, list[str]()
    page, gone = QObject(), QObject()
    for name, parent in (("page", page), ("gone", gone)):
        ModelNames(services.client, services.pool, partial(messages.append, name), parent).load()
    shiboken6.delete(gone)
    qtbot.waitUntil(lambda: bool(messages), timeout=5000)
    qtbot.wait(20)
    assert messages == ["page"]
