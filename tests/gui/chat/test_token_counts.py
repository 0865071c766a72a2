"""The files of a draft are counted once, by the model of the chat, as soon as that is loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.api.plans import LoadedModel
from app.api.responses import TokenCount
from app.api.snapshot import Snapshot
from app.gui.chat.chat_page import ChatPage
from app.gui.chat.composer import TokenCounts
from tests.gui.chat.test_chat_page import page
from tests.gui.desk import Desk

__all__ = ["page"]  # a fixture
NOTES = {"name": "notes.txt", "text": "Home."}


def test_each_text_is_asked_once_for_each_model(away: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    posted: list[Any] = []
    reports: list[tuple[str, int]] = []
    there: list[str] = []
    services = away.services
    now = lambda _: Snapshot(beside=[LoadedModel(model=name) for name in there])  # noqa: E731
    monkeypatch.setattr(type(services.pool), "now", property(now))
    monkeypatch.setattr(services.client, "post", lambda _, body, done, **__: posted.append((body["model"], done)))
    counts = TokenCounts(services, lambda file, tokens: reports.append((file["name"], tokens)))
    counts.request([NOTES], "guide")
    assert posted == [], "it is not loaded"
    there += ["guide", "large"]
    counts.request([NOTES], "guide")
    counts.request([NOTES], "guide")
    assert [model for model, _ in posted] == ["guide"]
    posted[0][1](TokenCount(2))
    counts.request([NOTES, {**NOTES, "name": "the same"}], "guide")
    counts.request([{**NOTES, "tokens": 2}], "large")
    assert [model for model, _ in posted] == ["guide"]
    assert reports == [("notes.txt", 2), ("notes.txt", 2), ("the same", 2)]
    counts.request([NOTES], "large")
    assert [model for model, _ in posted] == ["guide", "large"]


def test_what_waits_goes_on_waiting_while_its_files_are_counted(page: ChatPage) -> None:
    page.composer.attach([Path(__file__)])
    [file] = page.composer._files
    page.composer.show_busy(True)
    page.composer.field.sent.emit()
    page.composer.count(file, 12)
    page.composer.count({"name": "of another chat"}, 5)
    assert (page.composer.is_queued, page.composer.files[0]["tokens"]) == (True, 12)
    page.composer.show_busy(False)
