"""An answer that waits for a machine: what fits now is offered, and nothing is offered for long."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication, QPushButton
from pytestqt.qtbot import QtBot

from app.api.models import Models
from app.core.errors import AppError
from app.decoding import convert
from app.gui.chat.answer import Answer
from app.gui.chat.error_actions import SmallerModelOffer, smaller_models
from app.gui.chat.session import RunningAnswer
from app.gui.look.theme import Scheme, Theme
from app.gui.widgets.notice import Notice
from tests.findings import tells
from tests.gui.typed_api import answer_line

TEXT = "attic is gone, and the rest is too small."
SIZES = {"large": 90, "guide": 1, "small": 40, "tiny": 20}
MODELS: list[dict[str, Any]] = [
    *({"name": name, "file_bytes": size} for name, size in SIZES.items()),
    {"name": "vectors", "file_bytes": 80, "embeds": True},
]


class Client:
    """A node on which only what a test says fits."""

    def __init__(self, fits: str) -> None:
        self.fits, self.planned = fits, list[str]()
        self.models: Callable[[dict[str, Any]], object] = lambda _: None

    def get(self, path: str, done: Callable[[Models], object], **_: Any) -> None:
        assert path == "/models"
        self.models = lambda json: done(convert(json, Models))

    def post(self, path: str, body: dict[str, Any], done: Any, failed: Any) -> None:
        assert (path, body["measure"]) == ("/plan", False)
        self.planned.append(body["model"])
        if body["model"] == self.fits:
            done({})
        else:
            failed(AppError("too_large"))


class Scene:
    def __init__(self, qtbot: QtBot, theme: Theme, fits: str) -> None:
        self.client, self.used, self.parent = Client(fits), list[str](), QObject()
        self.notice = Notice(theme)
        qtbot.addWidget(self.notice)
        use, client = self.used.append, cast("Any", self.client)
        self.shortage = SmallerModelOffer(client, self.notice, use, self.parent)
        self.answer = Answer(client, "key", {}, self.parent)
        self.running = cast("RunningAnswer", SimpleNamespace(message="m1", answer=self.answer))

    def take(self, line: dict[str, Any]) -> None:
        self.answer._receive(answer_line(line))
        self.shortage.update(self.running, "large")

    @property
    def buttons(self) -> dict[str, QPushButton]:
        QApplication.processEvents()  # they are laid out
        buttons = self.notice.findChildren(QPushButton)
        return {button.text(): button for button in buttons if button.text() and not button.isHidden()}


@pytest.fixture
def scene(qtbot: QtBot, qapp: QApplication) -> Callable[[str], Scene]:
    return lambda fits: Scene(qtbot, Theme(qapp, Scheme.LIGHT, 1.0), fits)


SHORT = {"recovery": {"state": "short", "machine": "attic", **tells(TEXT, "text")}}


def test_the_largest_model_that_fits_is_offered_and_used(scene: Callable[[str], Scene]) -> None:
    item = scene("tiny")
    item.take({"recovery": {"state": "lost", "machine": "attic", **tells("attic is gone.", "text")}})
    assert item.notice.isHidden()
    item.take(SHORT)
    assert item.notice.sentence == TEXT
    assert list(item.buttons) == ["Wait"]
    item.client.models({"models": MODELS})
    assert item.client.planned == ["small", "tiny"]
    item.buttons["Use a smaller model: tiny"].click()
    assert item.used == ["tiny"]


def test_a_guest_is_offered_none_of_its_own_models(scene: Callable[[str], Scene]) -> None:
    """Its hosts know nothing of them."""
    item = scene("tiny")
    item.take(SHORT)
    item.client.models({"models": MODELS, "offered": [{"name": "large"}]})
    assert item.client.planned == []
    assert list(item.buttons) == ["Wait"]


def test_who_waits_is_left_in_peace(scene: Callable[[str], Scene]) -> None:
    item = scene("tiny")
    item.take(SHORT)
    item.buttons["Wait"].click()
    item.client.models({"models": MODELS})  # late
    item.take(SHORT)
    assert item.notice.isHidden()


def test_when_it_goes_on_nothing_is_offered_any_more(scene: Callable[[str], Scene]) -> None:
    item = scene("none")
    item.take(SHORT)
    item.take({"delta": {"text": "on", "token_ids": [1]}})
    assert item.notice.isHidden()
    item.client.models({"models": MODELS})
    assert item.client.planned == []


def test_an_answer_that_is_stopped_takes_its_notice_along(scene: Callable[[str], Scene]) -> None:
    item = scene("none")
    item.take(SHORT)
    item.client.models({"models": MODELS})
    assert list(item.buttons) == ["Wait"]
    item.shortage.update(None, "large")
    assert item.notice.isHidden()


def test_smaller_ones_come_the_largest_first() -> None:
    assert smaller_models(convert({"models": MODELS}, Models).models, "large") == ["small", "tiny", "guide"]
    assert smaller_models(convert({"models": MODELS}, Models).models, "guide") == []
    assert smaller_models(convert({"models": MODELS}, Models).models, "gone") == ["large", "small", "tiny", "guide"]
