"""The first model: what needs no download comes first, and one button brings it into use, over a real node."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMainWindow, QWidget
from pytestqt.qtbot import QtBot

from app.api.models import Catalog, FoundFile, FoundFiles, Starter, StarterResponse
from app.api.responses import MachineRefs
from app.api.snapshot import MachineRef
from app.core.errors import DoesNotFit
from app.decoding import convert
from app.gui.app import navigation
from app.gui.look.sentences import GUIDE
from app.gui.models.model_starter import ModelStarter, Stage
from app.gui.welcome.first_models import CHAT, CODE, FirstModels, Source
from app.gui.welcome.model_page import ModelPage, in_place
from app.gui.welcome.welcome import Welcome
from testbed import tiny
from tests.catalog.hub_server import HubServer
from tests.gui.desk import Desk, desk, follow
from tests.gui.first_catalog import FACTS, NAME, SHAPE, node_with_catalog
from tests.gui.models.hub_thread import hub_thread
from tests.gui.models.offers import GIB, file, offer
from tests.node.pool import TestNode

WITHIN_MS = 30_000


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubServer]:
    path = tiny.llama(tmp_path_factory.mktemp("hub") / "served.gguf", SHAPE)
    with hub_thread(path.read_bytes()) as server:
        yield server


@pytest.fixture
def shop(hub: HubServer, tmp_path: Path) -> Iterator[TestNode]:
    with node_with_catalog(hub, tmp_path, FACTS) as made:
        yield made


@pytest.fixture
def at_shop(qtbot: QtBot, qapp: QApplication, shop: TestNode, hub: HubServer) -> Iterator[Desk]:
    made = desk(qapp, shop.root)
    follow(qtbot, made.services)
    yield made
    hub.faults.pause_s, hub.faults.sends = 0.0, None
    made.services.pool.stop()


def last_page(qtbot: QtBot, parts: Desk) -> tuple[Welcome, ModelPage]:
    window = QMainWindow()
    window.setCentralWidget(QWidget())
    window.resize(1200, 760)
    qtbot.addWidget(window)
    window.show()
    welcome = Welcome(parts.services, window)
    welcome.begin()
    welcome.show_next()
    welcome.show_next()
    page = welcome.step
    assert isinstance(page, ModelPage)
    return welcome, page


def chosen(page: ModelPage, source: Source) -> None:
    """Choose the model of this source as soon as it is there."""
    choice = next(choice for choice in page.models.choices() if choice.source is source)
    page.options[choice.key].button.click()


@pytest.mark.long
def test_what_another_app_holds_comes_first_and_one_button_ends_in_a_chat(qtbot: QtBot, at_shop: Desk) -> None:
    welcome, page = last_page(qtbot, at_shop)
    sources = [Source.OTHER_APP, Source.DOWNLOAD]
    qtbot.waitUntil(lambda: [choice.source for choice in page.models.choices()] == sources, timeout=WITHIN_MS)
    assert "LM Studio" in page.models.choices()[0].sentence
    assert welcome._main.text() == "Load"
    welcome._main.click()
    assert not welcome._main.isVisible(), "a second click does nothing else"
    qtbot.waitUntil(lambda: bool(at_shop.went), timeout=WITHIN_MS)
    assert at_shop.went[-1].startswith(f"{navigation.CHAT}/other-model")
    pool = at_shop.services.pool
    qtbot.waitUntil(lambda: pool.now.loaded is not None and pool.now.loaded.state == "ready", timeout=WITHIN_MS)


@pytest.mark.long
def test_the_recommended_one_is_measured_downloaded_and_loaded(qtbot: QtBot, at_shop: Desk, hub: HubServer) -> None:
    welcome, page = last_page(qtbot, at_shop)
    qtbot.waitUntil(lambda: len(page.options) == 2, timeout=WITHIN_MS)
    qtbot.waitUntil(lambda: page.models._was_measured and not page.models.is_measuring, timeout=WITHIN_MS)
    chosen(page, Source.DOWNLOAD)
    assert f"{NAME} for chat and code" in page.options[page._key].button.text()
    assert welcome._main.text() == "Download and load"
    hub.faults.bytes_at_once, hub.faults.pause_s = 1 << 14, 0.2
    welcome._main.click()
    qtbot.waitUntil(lambda: page.starter.download is not None and bool(page.starter.download.done_bytes))
    assert page.progress.isVisible()
    assert welcome._quiet.text() == "Stop"
    welcome._quiet.click()
    assert page.choice.isVisible()
    assert welcome._main.text() == "Download and load"
    pool = at_shop.services.pool
    qtbot.waitUntil(lambda: [d.state for d in pool.now.downloads.values()] == ["paused"], timeout=WITHIN_MS)
    hub.faults.pause_s = 0.0
    page.models.ask()
    qtbot.waitUntil(lambda: any(f.download for c in page.models.choices() if c.item for f in c.item.files))
    welcome._main.click()
    qtbot.waitUntil(lambda: bool(at_shop.went), timeout=WITHIN_MS)
    assert at_shop.went[-1].startswith(f"{navigation.CHAT}/")
    assert pool.now.loaded is not None


@pytest.mark.long
def test_stop_ends_an_import_and_a_load(qtbot: QtBot, at_shop: Desk) -> None:
    welcome, page = last_page(qtbot, at_shop)
    qtbot.waitUntil(lambda: len(page.options) == 2, timeout=WITHIN_MS)
    services = at_shop.services
    chosen(page, Source.OTHER_APP)
    welcome._main.click()
    assert page.starter.stage is Stage.IMPORTING
    QTest.keyClick(welcome, Qt.Key.Key_Return)
    assert len(services.importing.paths) == 1, "Enter does not press a hidden button"
    welcome._quiet.click()
    assert services.importing.paths == []
    assert (page.choice.isVisible(), welcome._main.text()) == (True, "Load")
    welcome._main.click()
    qtbot.waitUntil(lambda: page.starter.stage is Stage.LOADING, timeout=WITHIN_MS)
    loads = page.starter._loader._calls._running.copy()
    QTest.keyClick(welcome, Qt.Key.Key_Return)
    assert page.starter._loader._calls._running == loads, "it is loaded once"
    welcome._quiet.click()
    assert not page.starter.is_busy
    qtbot.waitUntil(lambda: not services.pool.now.models, timeout=WITHIN_MS)
    assert at_shop.went == []
    welcome.end()


@pytest.mark.long
def test_a_download_that_is_removed_leads_back_to_the_choice(qtbot: QtBot, at_shop: Desk, hub: HubServer) -> None:
    welcome, page = last_page(qtbot, at_shop)
    qtbot.waitUntil(lambda: len(page.options) == 2, timeout=WITHIN_MS)
    chosen(page, Source.DOWNLOAD)
    hub.faults.bytes_at_once, hub.faults.pause_s = 1 << 14, 0.2
    welcome._main.click()
    qtbot.waitUntil(lambda: page.starter.download is not None, timeout=WITHIN_MS)
    assert page.starter.download is not None
    at_shop.services.client.delete(f"/downloads/{page.starter.download.id}", lambda _: None)
    qtbot.waitUntil(lambda: not page.starter.is_busy, timeout=WITHIN_MS)
    assert (page.choice.isVisible(), welcome._main.text()) == (True, "Download and load")
    hub.faults.pause_s = 0.0
    welcome._main.click()
    qtbot.waitUntil(lambda: bool(at_shop.went), timeout=WITHIN_MS)


@pytest.mark.long
def test_an_error_is_shown_where_the_person_is(qtbot: QtBot, at_shop: Desk, hub: HubServer) -> None:
    welcome, page = last_page(qtbot, at_shop)
    qtbot.waitUntil(lambda: len(page.options) == 2, timeout=WITHIN_MS)
    chosen(page, Source.DOWNLOAD)
    hub.faults.sends = bytes(len(hub.data))
    welcome._main.click()
    qtbot.waitUntil(lambda: bool(welcome.notice.sentence), timeout=WITHIN_MS)
    assert "damaged" in welcome.notice.sentence
    assert page.choice.isVisible()
    assert welcome._main.isEnabled()
    welcome.end()


@pytest.mark.long
def test_a_download_that_is_left_alone_ends_in_a_load(qtbot: QtBot, at_shop: Desk, hub: HubServer) -> None:
    welcome, page = last_page(qtbot, at_shop)
    qtbot.waitUntil(lambda: len(page.options) == 2, timeout=WITHIN_MS)
    chosen(page, Source.DOWNLOAD)
    hub.faults.bytes_at_once, hub.faults.pause_s = 1 << 14, 0.1
    welcome._main.click()
    qtbot.waitUntil(page.meanwhile.isVisible, timeout=WITHIN_MS)
    page.meanwhile.click()
    assert at_shop.went == [f"{navigation.CHAT}/{GUIDE}"]
    hub.faults.pause_s = 0.0
    pool = at_shop.services.pool
    assert page.starter.is_alone, "the window shows its errors"
    qtbot.waitUntil(lambda: any("Tiny" in model.model for model in pool.now.models), timeout=WITHIN_MS)
    assert at_shop.went == [f"{navigation.CHAT}/{GUIDE}"], "nobody is taken away from what they do"


def models_of(away: Desk) -> FirstModels:
    made = FirstModels(away.services, away.services.pool)
    made._library.has_shelf = True
    made._library._offers_loaded(Catalog(models=[offer("small", file("Q4", 1.0, recommended=True), about="Small.")]))
    return made


def recommended(ident: str, **more: Any) -> StarterResponse:
    starter = {
        "id": ident,
        "name": ident,
        "file": "m-Q4.gguf",
        "size_bytes": GIB,
        "needs_bytes": GIB,
        "lends_bytes": GIB,
    }
    return StarterResponse(convert(starter | more, Starter))


def test_one_model_for_two_uses_is_one_choice_and_says_where_it_runs(away: Desk) -> None:
    made = models_of(away)
    for use in (CHAT, CODE):
        made._recommended(use, recommended("small", machines=["study", "kitchen"]))
    (choice,) = made.choices()
    assert choice.title == "small for chat and code"
    assert choice.sentence.endswith("Runs on study, kitchen together.")
    made._recommended(CODE, StarterResponse(None))
    assert made.choices()[0].title == "small for chat"
    made._not_recommended(CHAT, DoesNotFit("x"))
    assert made.is_known


def test_what_somebody_reads_stays_where_it_is_when_the_measurement_recommends_another(away: Desk) -> None:
    made = models_of(away)
    offers = [offer(name, file("Q4", 1.0, recommended=True), about=f"{name}.") for name in ("small", "large")]
    made._library._offers_loaded(Catalog(models=offers))
    made._recommended(CHAT, recommended("small"))
    shown = made.choices()
    made._recommended(CHAT, recommended("large", tok_s=9.0))
    made._recommended(CODE, recommended("large", tok_s=9.0))
    then = in_place(shown, made.choices())
    assert [choice.title for choice in then] == ["small for chat", "large for chat and code"]
    made.ask()
    assert [choice.title for choice in made.choices()] == ["large for chat and code"], "on the next visit"


def test_what_the_household_has_loaded_comes_before_all(away: Desk) -> None:
    made = models_of(away)
    made._recommended(CHAT, recommended("small"))
    shared = {"model": "large", "machine": "study", "machine_id": "a", "reference": "large@study", "ready": True}
    away.services.pool.snapshot = {"shared": [shared]}
    first, second = made.choices()
    assert (first.source, first.title, first.reference) == (Source.HOUSEHOLD, "large, loaded on study", "large@study")
    assert second.source is Source.DOWNLOAD


def test_a_measurement_that_was_stopped_is_made_again(away: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    measurements: list[Any] = []

    def call(_method: str, _path: str, body: Any, *callbacks: Any, **__: Any) -> None:
        if body.get("measure"):
            measurements.append(callbacks)

    monkeypatch.setattr(away.services.client, "call", call)
    monkeypatch.setattr(FirstModels, "is_measuring", property(lambda _: True))
    made = models_of(away)
    lists = [partial(made._recommended, use, recommended("small")) for use in (CHAT, CODE)]

    def listed() -> int:
        made._may_measure = True  # as when the lists are requested
        for each in lists:
            each()
        return len(measurements)

    assert listed() == listed() == 1
    made.stop_measuring()
    made._listed()
    assert len(measurements) == 1, "a load measures by itself"
    assert listed() == 2
    made.end()
    assert listed() == 3
    made._not_measured(DoesNotFit("x"))
    assert listed() == 4
    made._not_measured(DoesNotFit("x"))
    assert listed() == 4, "what fails twice is not tried forever"


def test_only_what_can_be_used_is_offered(away: Desk) -> None:
    made = models_of(away)
    usual = {"app": "LM Studio", "size_bytes": 9, "architecture": "llama"}
    files = [usual | {"path": "/a", "name": "a", "usable": False}, usual | {"path": "/b", "name": "b"}]
    made._library._others_loaded(FoundFiles([convert(facts, FoundFile) for facts in files]))
    assert made.choices() == (), "their verdicts are not known yet"


def test_a_file_that_a_computer_of_the_household_shares_is_copied_from_there(
    away: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[tuple[str, Any]] = []

    def post(path: str, body: Any, done: Callable[[Any], None], *_: Any, **__: Any) -> None:
        requests.append((path, body))
        if path == "/copies":
            done(MachineRefs([MachineRef("b" * 64, "kitchen")]))

    monkeypatch.setattr(away.services.client, "post", post)
    item = models_of(away)._library.item("offer:small")
    assert item is not None
    ModelStarter(away.services, away.services.pool).start(item)
    body = {"repository": "maker/large-70b", "file": "m-Q4.gguf", "revision": "main", "sha256": None}
    assert requests == [("/copies", body), ("/downloads", body | {"machine": "b" * 64})]


def test_a_starter_without_a_node_says_so(qtbot: QtBot, away: Desk) -> None:
    starter = ModelStarter(away.services, away.services.pool)
    errors: list[Any] = []
    starter.failed.connect(errors.append)
    made = models_of(away)
    item = made._library.item("offer:small")
    assert item is not None
    starter.start(item)
    assert starter.stage is Stage.IDLE
    assert errors[0].reason.code == "node_away"
