"""Models are found online and in other apps, downloaded with pause and cancel, deleted; over a hub on loopback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication, QPushButton
from pytestqt.qtbot import QtBot

from app.api.models import FoundFile
from app.gui.models.details.model_actions import ModelAction
from app.gui.models.model_item import offer_item
from app.gui.models.models_page import ModelsPage
from testbed import tiny
from tests.catalog.hub_server import REPOSITORY, HubServer
from tests.gui.desk import Desk, desk, follow
from tests.gui.models.hub_thread import hub_thread
from tests.gui.models.offers import download, file, offer
from tests.node.pool import TestNode, node

WITHIN_MS = 15_000
FOUND = f"found:{REPOSITORY}"


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubServer]:
    path = tmp_path_factory.mktemp("hub") / "served.gguf"
    with hub_thread(tiny.llama(path, layers=4, width=256, ffn=512).read_bytes()) as server:
        yield server


@pytest.fixture(scope="module")
def shop(hub: HubServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestNode]:
    """A node of this hub, on a computer where LM Studio holds one model."""
    person = tmp_path_factory.mktemp("person")
    folder = person / ".lmstudio" / "models" / "maker" / "other-GGUF"
    folder.mkdir(parents=True)
    tiny.llama(folder / "other-model-F16.gguf", seed=7)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_ENDPOINT", hub.hub.endpoint)
        patch.setenv("HOME", str(person))
        patch.setenv("USERPROFILE", str(person))
        for name in ("HF_HOME", "HF_HUB_CACHE", "OLLAMA_MODELS", "XDG_DATA_HOME"):
            patch.delenv(name, raising=False)
        with node(tmp_path_factory.mktemp("shop"), "den") as made:
            yield made


@pytest.fixture
def page(qtbot: QtBot, qapp: QApplication, shop: TestNode, hub: HubServer) -> Iterator[ModelsPage]:
    parts: Desk = desk(qapp, shop.root)
    follow(qtbot, parts.services)
    made = ModelsPage(parts.services)
    qtbot.addWidget(made)
    made.resize(1000, 760)
    made.show()
    qtbot.waitUntil(lambda: made.details.verdict.judgment is not None, timeout=WITHIN_MS)
    yield made
    made.end()
    hub.faults.pause_s = 0.0
    parts.services.pool.stop()


def until(qtbot: QtBot, met: Callable[[], Any]) -> None:
    qtbot.waitUntil(lambda: bool(met()), timeout=WITHIN_MS)


def found_online(qtbot: QtBot, page: ModelsPage) -> None:
    """The only model of the hub is chosen, with its files."""
    page.list.search.setText("tiny")
    page.list._online.click()
    assert page.library.searching
    until(qtbot, lambda: page.library.found)
    assert page.list.select(FOUND)
    until(qtbot, lambda: ModelAction.DOWNLOAD in page.details.foot.bar.buttons)


@pytest.mark.long
def test_a_search_a_download_and_the_question_before_its_file_is_deleted(qtbot: QtBot, page: ModelsPage) -> None:
    found_online(qtbot, page)
    until(qtbot, lambda: page.details.verdict.judgment)
    assert page.details.verdict.judgment is not None
    assert page.details.verdict.judgment.estimate
    page.details.foot.bar.buttons[ModelAction.DOWNLOAD].click()
    until(qtbot, lambda: "downloaded and verified" in page.notice.sentence)
    button = next(button for button in page.notice.findChildren(QPushButton) if button.text() == "Show")
    page.list.show_all()
    button.click()
    until(qtbot, lambda: page.list.chosen_key.startswith("shelf:Tiny"))
    until(qtbot, lambda: ModelAction.DELETE in page.details.foot.bar.buttons)
    assert page.details.foot.bar.buttons[ModelAction.DELETE].text().startswith("Delete ")
    page.details.foot.bar.buttons[ModelAction.DELETE].click()
    assert page.removal.question is not None
    words = [
        button for button in page.removal.question.findChildren(QPushButton) if button.text().startswith("Delete ")
    ]
    words[0].click()
    until(qtbot, lambda: "was deleted" in page.notice.sentence)
    until(qtbot, lambda: page.list.chosen_key == "shelf:guide")


def test_a_download_is_paused_resumed_and_cancelled(qtbot: QtBot, page: ModelsPage, hub: HubServer) -> None:
    found_online(qtbot, page)
    hub.faults.pause_s, hub.faults.bytes_at_once = 0.2, 1 << 14
    page.details.foot.bar.buttons[ModelAction.DOWNLOAD].click()
    until(qtbot, lambda: any(row._shown.state == "running" for row in page.transfers.rows.values()))
    assert page.transfers.isVisibleTo(page)
    row = next(row for row in page.transfers.rows.values() if row._shown.state == "running")
    row.pause.click()
    until(qtbot, lambda: row.resume.isVisibleTo(page))
    assert row._shown.words.startswith("Paused at")
    row.resume.click()
    until(qtbot, lambda: row.pause.isVisibleTo(page))
    ident = row._shown.id
    row.cancel.click()
    until(qtbot, lambda: ident not in page.transfers.rows)


def test_much_that_came_is_not_thrown_away_without_a_question(qtbot: QtBot, page: ModelsPage) -> None:
    pool = page.services.pool
    pool.snapshot = {**pool.snapshot, "downloads": {"d1": download("paused")}}
    page.transfers.refresh()
    page.transfers.rows["d1"].cancel.click()
    question = page.removal.question
    assert question is not None
    assert any(button.text() == "Delete 10.0 GiB" for button in question.findChildren(QPushButton))
    question.reject()
    assert page.removal.question is None
    pool.snapshot = {**pool.snapshot, "downloads": {}}
    page.transfers.refresh()
    assert not page.transfers.isVisibleTo(page)


def test_a_search_without_network_says_so(qtbot: QtBot, page: ModelsPage, hub: HubServer) -> None:
    hub.faults.listing_status = 503
    try:
        page.list.search.setText("anything")
        page.list._online.click()
        until(qtbot, lambda: page.notice.sentence and not page.library.searching)
    finally:
        hub.faults.listing_status = 200
    assert page.notice.sentence.endswith(".")


def test_a_file_of_another_app_is_used_where_it_lies(qtbot: QtBot, page: ModelsPage) -> None:
    until(qtbot, lambda: page.library.others)
    item = page.library.others[0]
    assert isinstance(item.facts, FoundFile)
    assert item.facts.app == "LM Studio"
    assert page.list.select(item.key)
    until(qtbot, lambda: ModelAction.IMPORT in page.details.foot.bar.buttons)
    page.details.foot.bar.buttons[ModelAction.IMPORT].click()
    until(qtbot, lambda: page.list.chosen_key == f"shelf:{item.name}")
    until(qtbot, lambda: not page.library.others)
    until(qtbot, lambda: ModelAction.REMOVE in page.details.foot.bar.buttons)
    page.details.foot.bar.buttons[ModelAction.REMOVE].click()
    until(qtbot, lambda: page.list.chosen_key == "shelf:guide")
    assert Path(item.facts.path).exists()


def test_what_is_too_big_names_the_smaller_version_that_fits(qtbot: QtBot, page: ModelsPage) -> None:
    item = offer_item(offer("huge", file("Q4_K_M", 39.7, recommended=True), file("Q2_K", 0.1),
                            kv_bytes_per_token=1024))  # fmt: skip
    page.library.offers = [item]
    page.library.changed.emit()
    assert page.list.select(item.key)
    until(qtbot, lambda: (known := page.verdict_loader.of(item)) and known.quantization == "Q2_K")
    details = page.details
    details.plan()
    until(qtbot, lambda: details.verdict.use.isVisibleTo(page))
    assert details.verdict.title.text().startswith("Too big by ")
    assert details.foot.bar.buttons[ModelAction.DOWNLOAD].text() == "Download 39.7 GiB"
    details.verdict.use.click()
    until(qtbot, lambda: details.verdict.title.text() in ("Fits", "Tight"))
    assert details.foot.bar.buttons[ModelAction.DOWNLOAD].text() == "Download 102 MiB"
    assert "License: Example license 1.0" in details.about.card.text


def test_a_gated_model_takes_a_token(qtbot: QtBot, page: ModelsPage) -> None:
    page.library.offers = [offer_item(offer("gated", gated=True))]
    page.library.changed.emit()
    assert page.list.select("offer:gated")
    token = page.details.token
    assert token.isVisibleTo(page)
    until(qtbot, lambda: "account" in token._words.text())
    token._field.setText("hf_" + "a" * 34)
    token._save.click()
    until(qtbot, lambda: "The token is stored" in token._words.text())
    assert not token._field.text()
