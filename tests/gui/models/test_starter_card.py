"""The recommended model on the page Models: one button downloads and loads it, over a real node and a hub."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.gui.models.model_starter import Stage
from app.gui.models.models_page import ModelsPage
from testbed import tiny
from tests.catalog.hub_server import HubServer
from tests.gui.desk import desk, follow
from tests.gui.first_catalog import FACTS, NAME, SHAPE, node_with_catalog
from tests.gui.models.hub_thread import hub_thread


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[HubServer]:
    with hub_thread(tiny.llama(tmp_path / "made.gguf", SHAPE).read_bytes()) as server:
        yield server


@pytest.fixture
def page(qtbot: QtBot, qapp: QApplication, hub: HubServer, tmp_path: Path) -> Iterator[ModelsPage]:
    with node_with_catalog(hub, tmp_path, FACTS) as den:
        parts = desk(qapp, den.root)
        follow(qtbot, parts.services)
        made = ModelsPage(parts.services)
        qtbot.addWidget(made)
        made.resize(1000, 760)
        made.show()
        yield made
        made.end()
        parts.services.pool.stop()


@pytest.mark.long
def test_one_button_downloads_and_loads_it(qtbot: QtBot, page: ModelsPage) -> None:
    qtbot.waitUntil(page.starter.isVisible)
    assert page.starter.name.whole() == NAME
    assert page.starter.start.text().startswith("Download and load (")
    page.starter.start.click()
    qtbot.waitUntil(lambda: page.model_starter.stage is Stage.LOADING)
    assert page.is_busy, "a load ends with the window"
    pool = page.services.pool
    qtbot.waitUntil(lambda: pool.now.loaded is not None and pool.now.loaded.state == "ready")
    assert not page.starter.isVisible()


@pytest.mark.long
def test_a_damaged_download_is_told_in_its_row_and_nothing_is_loaded(
    qtbot: QtBot, page: ModelsPage, hub: HubServer
) -> None:
    qtbot.waitUntil(page.starter.isVisible)
    hub.faults.sends = bytes(len(hub.data))
    page.starter.start.click()
    qtbot.waitUntil(lambda: [row._shown.state for row in page.transfers.rows.values()] == ["failed"])
    qtbot.waitUntil(lambda: not page.model_starter.is_busy)
    assert not page.notice.sentence
    assert page.services.pool.now.loaded is None
