"""Models of other apps are offered early in the first steps, before anything is downloaded, and taken in there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QMainWindow
from pytestqt.qtbot import QtBot

from app.api.models import FoundFile, FoundFiles
from app.gui.welcome import other_models
from app.gui.welcome.other_models import OtherModels, OtherModelsCard, usable
from app.gui.welcome.steps import HardwareStep
from app.gui.welcome.welcome import Welcome
from testbed import tiny
from tests.gui.desk import Desk

Json = dict[str, Any]


def file(name: str, size: int, *, path: str = "", usable: bool = True, on_shelf: str | None = None) -> FoundFile:
    return FoundFile(
        path=path or f"/models/{name}.gguf",
        app="LM Studio",
        name=name,
        size_bytes=size,
        usable=usable,
        on_shelf=on_shelf,
    )


def shelf(qtbot: QtBot, desk: Desk) -> list[str]:
    answers: list[Json] = []
    desk.services.client.get("/models", answers.append)
    qtbot.waitUntil(lambda: bool(answers))
    return [model["name"] for model in answers[0]["models"]]


def test_only_what_can_be_taken_counts_the_largest_first() -> None:
    files = [file("small", 1), file("odd", 9, usable=False), file("mine", 8, on_shelf="mine"), file("large", 7)]
    assert [model.name for model in usable(files)] == ["large", "small"]


def test_they_are_named_and_the_last_step_leads_to_the_page(qtbot: QtBot, away: Desk) -> None:
    rest, requests = OtherModels(away.services), list[bool]()
    early, last = OtherModelsCard(rest), OtherModelsCard(rest, is_last=True)
    for card in (early, last):
        qtbot.addWidget(card)
    last.page_requested.connect(lambda: requests.append(True))
    rest._found(FoundFiles([file("odd", 9, usable=False)]))
    assert early.isHidden()
    rest._found(FoundFiles([file(name, 1 << 30) for name in "dcba"]))
    assert not early.isHidden()
    assert early.about.text().startswith("You can use 4 model")
    assert "4.0 GiB" in early.about.text()
    assert early.names.text() == "d, c, b…"
    assert early.show_them.isHidden()
    last.show_them.click()
    assert requests == [True]


def test_all_of_them_are_used_where_they_are(
    qtbot: QtBot, at_lone: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    monkeypatch.setattr(other_models, "announce", lambda _, text: heard.append(text))
    good = tiny.llama(tmp_path / "theirs.gguf")
    bad = tmp_path / "damaged.gguf"
    bad.write_bytes(b"GGUF")
    rest = OtherModels(at_lone.services)
    early, last = OtherModelsCard(rest), OtherModelsCard(rest, is_last=True)
    for card in (early, last):
        qtbot.addWidget(card)
    early.show()
    results = [file("theirs", 2, path=str(good)), file("damaged", 1, path=str(bad))]
    rest._found(FoundFiles(results))
    early.take.click()
    assert rest.is_busy
    assert early.about.text().startswith("theirs.gguf: Computing the file's checksum")
    assert not early.stop.isHidden()
    qtbot.waitUntil(lambda: not rest.is_busy)
    assert [model.name for model in rest.imported] == ["theirs"]
    assert "damaged.gguf" in last.problem.text()
    assert set(heard) == {last.problem.text()}  # and never the offer of before
    assert "theirs" in shelf(qtbot, at_lone)
    assert good.exists()


def test_what_waits_can_be_stopped(qtbot: QtBot, at_lone: Desk, tmp_path: Path) -> None:
    files = [tiny.llama(tmp_path / f"stopped-{n}.gguf") for n in range(3)]
    rest = OtherModels(at_lone.services)
    early = OtherModelsCard(rest)
    qtbot.addWidget(early)
    rest._found(FoundFiles([file(path.stem, 1, path=str(path)) for path in files]))
    early.take.click()
    early.stop.click()
    assert not rest.is_busy
    assert at_lone.services.importing.paths == []
    assert not early.take.isHidden()
    assert not {path.stem for path in files[1:]} & set(shelf(qtbot, at_lone))


def test_where_no_node_answers_nothing_is_said(qtbot: QtBot, away: Desk) -> None:
    rest = OtherModels(away.services)
    made = OtherModelsCard(rest)
    qtbot.addWidget(made)
    rest.search()
    assert made.isHidden()


def test_the_second_step_has_a_node_asked_once(qtbot: QtBot, at_lone: Desk) -> None:
    window = QMainWindow()
    qtbot.addWidget(window)
    steps = Welcome(at_lone.services, window)
    steps.begin()
    rest = steps.findChildren(OtherModels)[0]
    assert rest._call is None
    steps.skip()
    assert isinstance(steps.step, HardwareStep)
    qtbot.waitUntil(lambda: rest._has_looked)
    rest.search()
    assert rest._call is None
    steps.end()
