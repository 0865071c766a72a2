"""The page of models over a real node."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from app.gui.models.models_page import ModelsPage
from tests.gui.desk import Desk

WITHIN_MS = 10_000


@pytest.fixture
def page(qtbot: QtBot, at_lone: Desk) -> Iterator[ModelsPage]:
    """Shown, with the Guide chosen and planned; nothing is loaded afterwards."""
    made = ModelsPage(at_lone.services)
    qtbot.addWidget(made)
    made.resize(1000, 760)
    made.show()
    made.shown()
    qtbot.waitUntil(lambda: made.details.verdict.judgment is not None, timeout=WITHIN_MS)
    made.notice.clear()
    yield made
    made.end()
    done: list[object] = []
    at_lone.services.client.post("/unload", None, done.append, done.append)
    qtbot.waitUntil(lambda: bool(done), timeout=WITHIN_MS)
