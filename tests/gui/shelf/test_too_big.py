"""A machine that gives too little: the verdict says by how much, and trying anyway works."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.gui.shelf.actions import Do
from app.gui.shelf.models_page import ModelsPage
from tests.gui.desk import desk, follow
from tests.node.pool import TestNode, node

WITHIN_MS = 30_000


@pytest.fixture(scope="module")
def attic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestNode]:
    """Each test leaves it lending 32 MiB, with nothing loaded."""
    with node(tmp_path_factory.mktemp("small") / "attic", "attic", lend="32MiB") as made:
        yield made


@pytest.fixture
def page(qtbot: QtBot, qapp: QApplication, attic: TestNode) -> Iterator[ModelsPage]:
    parts = desk(qapp, attic.root)
    follow(qtbot, parts.services)
    made = ModelsPage(parts.services)
    qtbot.addWidget(made)
    made.show()
    qtbot.waitUntil(lambda: made.details.verdict.judgement is not None, timeout=WITHIN_MS)
    yield made
    made.end()
    parts.services.pool.stop()


def test_it_is_said_and_can_be_tried_anyway(qtbot: QtBot, page: ModelsPage) -> None:
    details = page.details
    qtbot.waitUntil(lambda: Do.ANYWAY in details.bar.buttons, timeout=WITHIN_MS)
    assert details.verdict.title.text().startswith("Too big by")
    assert "32 MiB are free for models now" in details.verdict.sum.text()
    assert not details.bar.buttons[Do.LOAD].isEnabled()
    details.bar.buttons[Do.ANYWAY].click()
    question = page.removal.question
    assert question is not None
    next(one for one in question.buttons() if one.text() == "Try anyway").click()
    qtbot.waitUntil(lambda: Do.CHAT in details.bar.buttons, timeout=WITHIN_MS)
    assert page.removal.question is None
    details.bar.buttons[Do.UNLOAD].click()
    qtbot.waitUntil(lambda: Do.ANYWAY in details.bar.buttons, timeout=WITHIN_MS)


def test_what_fits_no_more_says_so_by_itself(
    qtbot: QtBot, page: ModelsPage, attic: TestNode
) -> None:
    """As when a game takes the memory while one looks at the page."""
    details = page.details
    given(attic, 1 << 30)

    def fits() -> bool:
        buttons = details.bar.buttons
        return Do.ANYWAY not in buttons and buttons[Do.LOAD].isEnabled()

    qtbot.waitUntil(fits, timeout=WITHIN_MS)
    given(attic, 32 << 20)
    qtbot.waitUntil(lambda: Do.ANYWAY in details.bar.buttons, timeout=WITHIN_MS)
    assert details.verdict.title.text().startswith("Too big by")
    assert not details.bar.buttons[Do.LOAD].isEnabled()


def given(attic: TestNode, memory_bytes: int) -> None:
    attic.control("POST", "/lending", {"memory_bytes": memory_bytes})
