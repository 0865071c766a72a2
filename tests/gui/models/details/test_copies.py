"""A model that another machine has is copied from there: allowed in its window, taken in this one; real nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.api import downloads
from app.api.snapshot import MachineRef
from app.decoding import convert
from app.gui.models.details.model_actions import ActionContext, ModelAction, actions
from app.gui.models.details.plan_loader import Setup
from app.gui.models.model_item import offer_item
from app.gui.models.models_page import ModelsPage
from app.gui.models.transfers import of_download
from app.gui.settings.models import Models
from testbed import tiny
from tests.catalog.hub_server import FILE, REPOSITORY, HubServer
from tests.gui.desk import Desk, desk, follow
from tests.gui.models.hub_thread import hub_thread
from tests.gui.models.offers import download, file, offer
from tests.node.pool import TestNode, node, pair

WITHIN_MS = 20_000
IDLE = ActionContext(None, False, None, False, {})
DEN = MachineRef("d" * 64, "den")


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[HubServer]:
    data = tiny.llama(tmp_path / "served.gguf", layers=4, width=256, ffn=512).read_bytes()
    with hub_thread(data) as server:
        yield server


@pytest.fixture
def both(hub: HubServer, tmp_path: Path) -> Iterator[tuple[TestNode, TestNode]]:
    """den, which has downloaded the hub's model, and attic, which has not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_ENDPOINT", hub.hub.endpoint)
        patch.setenv("HOME", str(tmp_path / "person"))
        for name in ("HF_HOME", "HF_HUB_CACHE", "OLLAMA_MODELS", "XDG_DATA_HOME"):
            patch.delenv(name, raising=False)
        with node(tmp_path / "den", "den") as den, node(tmp_path / "attic", "attic") as attic:
            pair(den, attic)
            assert den.run("pull", f"{REPOSITORY}/{FILE}").returncode == 0
            yield den, attic


def until(qtbot: QtBot, met: Callable[[], Any]) -> None:
    qtbot.waitUntil(lambda: bool(met()), timeout=WITHIN_MS)


def at(qtbot: QtBot, qapp: QApplication, test_node: TestNode) -> Desk:
    parts = desk(qapp, test_node.root)
    follow(qtbot, parts.services)
    return parts


@pytest.mark.long
def test_from_one_window_to_the_other(
    qtbot: QtBot, qapp: QApplication, both: tuple[TestNode, TestNode], hub: HubServer
) -> None:
    den, attic = both
    there = at(qtbot, qapp, den)
    settings = Models(there.services)
    qtbot.addWidget(settings)
    settings.refresh()
    settings.share.click()
    until(qtbot, lambda: den.control("GET", "/settings")["share_models"])
    here = at(qtbot, qapp, attic)
    page = ModelsPage(here.services)
    qtbot.addWidget(page)
    page.resize(1000, 760)
    page.show()
    until(qtbot, lambda: page.details.verdict.judgment)
    page.list.search.setText("tiny")
    page.list._online.click()
    until(qtbot, lambda: page.library.found)
    assert page.list.select(f"found:{REPOSITORY}")
    until(qtbot, lambda: ModelAction.COPY in page.details.foot.bar.buttons)
    assert page.details.foot.bar.buttons[ModelAction.COPY].text() == "Copy from den"
    assert ModelAction.DOWNLOAD in page.details.foot.bar.buttons
    count = len(hub.requests)
    page.details.foot.bar.buttons[ModelAction.COPY].click()
    until(qtbot, lambda: "was copied and verified" in page.notice.sentence)
    assert len(hub.requests) == count
    settings.reset()
    until(qtbot, lambda: not den.control("GET", "/settings")["share_models"])
    page.end()
    for item in (here, there):
        item.services.pool.stop()


def test_a_copy_comes_before_a_download_where_a_machine_has_it() -> None:
    def done(now: ActionContext, **changes: Any) -> list[str]:
        item = offer_item(offer("large", file("Q4_K_M", 2.0, **changes)))
        return [action.text for action in actions(Setup(item), now)]

    has = replace(IDLE, copies=(DEN,))
    assert done(has) == ["Copy from den", "Download 2.0 GiB"]
    assert done(IDLE) == ["Download 2.0 GiB"]
    assert done(has, on_shelf="mine") == ["Show"]


def test_a_copy_says_from_where_it_comes() -> None:
    copied = {"source": "den", "machine": DEN.id}
    assert "from den" in of_download(convert(download("running", **copied), downloads.Download)).words
    assert of_download(convert(download("done", **copied), downloads.Download)).words == "Copied and verified"
    assert of_download(convert(download("done"), downloads.Download)).words == "Downloaded and verified"
