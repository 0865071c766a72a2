"""A machine that gives too little: the verdict says by how much, and trying anyway works."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QPushButton
from pytestqt.qtbot import QtBot

from app.gui.models.details.model_actions import ModelAction
from app.gui.models.model_item import offer_item
from app.gui.models.models_page import ModelsPage
from app.gui.models.verdicts import short
from testbed import tiny
from tests.gui.desk import desk, follow
from tests.gui.models.offers import file, offer
from tests.node.pool import TestNode, node

WITHIN_MS = 30_000


@pytest.fixture(scope="module")
def attic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestNode]:
    """Each test leaves it lending 32 MiB, with nothing loaded."""
    with node(tmp_path_factory.mktemp("small") / "attic", "attic", lend="32MiB") as made:
        yield made


@pytest.fixture
def page(qtbot: QtBot, qapp: QApplication, attic: TestNode) -> Iterator[ModelsPage]:
    made = opened(qtbot, qapp, attic)
    yield made
    made.end()
    made.services.pool.stop()


def opened(qtbot: QtBot, qapp: QApplication, at: TestNode) -> ModelsPage:
    parts = desk(qapp, at.root)
    follow(qtbot, parts.services)
    made = ModelsPage(parts.services)
    qtbot.addWidget(made)
    made.show()
    qtbot.waitUntil(lambda: made.details.verdict.judgment is not None, timeout=WITHIN_MS)
    return made


@pytest.mark.long
def test_it_is_said_and_can_be_tried_anyway(qtbot: QtBot, page: ModelsPage) -> None:
    details = page.details
    qtbot.waitUntil(lambda: ModelAction.LOAD_ANYWAY in details.foot.bar.buttons, timeout=WITHIN_MS)
    assert details.verdict.title.text().startswith("Too big by")
    assert "32 MiB is free for models now" in details.verdict.sum.text()
    assert not details.foot.bar.buttons[ModelAction.LOAD].isEnabled()
    details.foot.bar.buttons[ModelAction.LOAD_ANYWAY].click()
    question = page.removal.question
    assert question is not None
    next(button for button in question.findChildren(QPushButton) if button.text() == "Try anyway").click()
    qtbot.waitUntil(lambda: ModelAction.CHAT in details.foot.bar.buttons, timeout=WITHIN_MS)
    assert page.removal.question is None
    details.foot.bar.buttons[ModelAction.UNLOAD].click()
    qtbot.waitUntil(lambda: ModelAction.LOAD_ANYWAY in details.foot.bar.buttons, timeout=WITHIN_MS)


def test_what_fits_no_more_says_so_by_itself(qtbot: QtBot, page: ModelsPage, attic: TestNode) -> None:
    """This happens when a game takes the memory while one looks at the page."""
    details = page.details
    given(attic, 1 << 30)

    def fits() -> bool:
        buttons = details.foot.bar.buttons
        return ModelAction.LOAD_ANYWAY not in buttons and buttons[ModelAction.LOAD].isEnabled()

    qtbot.waitUntil(fits, timeout=WITHIN_MS)
    given(attic, 32 << 20)
    qtbot.waitUntil(lambda: ModelAction.LOAD_ANYWAY in details.foot.bar.buttons, timeout=WITHIN_MS)
    assert details.verdict.title.text().startswith("Too big by")
    assert not details.foot.bar.buttons[ModelAction.LOAD].isEnabled()


@pytest.mark.long
def test_a_smaller_file_of_a_model_that_is_here_is_named_and_shown(
    qtbot: QtBot, qapp: QApplication, tmp_path: Path
) -> None:
    """The smaller file belongs to the same model in the catalog."""
    made = tiny.llama(tmp_path / "large.gguf", layers=4, width=1024, ffn=2048)
    with node(tmp_path / "study", "study", lend="112MiB") as study:
        assert study.run("import", str(made), "--name", "large").returncode == 0
        page = opened(qtbot, qapp, study)
        page.list.select("shelf:large")
        details = page.details
        qtbot.waitUntil(lambda: ModelAction.LOAD_ANYWAY in details.foot.bar.buttons, timeout=WITHIN_MS)
        large = details.item
        assert large is not None
        here = file("F16", 0, size_bytes=large.file_bytes, on_shelf="large")
        small = file("Q2_K", 0, size_bytes=1 << 20)
        facts = {"kv_bytes_per_token": 64, "n_layers": 4, "context_length": 512}
        page.library.offers = [offer_item(offer("large", here, small, **facts))]
        page.library.changed.emit()
        qtbot.waitUntil(details.verdict.use.isVisible, timeout=WITHIN_MS)
        assert details.verdict.use.text() == "Show Q2_K"
        known = page.verdict_loader.of(large)
        assert known is not None
        assert short(known) == "Q2_K fits"
        page.verdict_loader.put(large, replace(known, quantization=""))  # as the details find it anew
        assert page.verdict_loader.of(large) == known
        details.verdict.use.click()
        qtbot.waitUntil(lambda: page.list.chosen_key == "offer:large", timeout=WITHIN_MS)
        assert details.files.file == small.file
        page.end()
        page.services.pool.stop()


def given(attic: TestNode, memory_bytes: int) -> None:
    attic.control("POST", "/lending", {"memory_bytes": memory_bytes, "limit_bytes": memory_bytes})
