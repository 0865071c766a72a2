"""A file that is there is replaced only after a question, whatever end its name got."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QFileDialog, QWidget
from pytestqt.qtbot import QtBot

from app.gui.app.preferences import Preferences
from app.gui.widgets.files import LastFolder, save_file

JSON, HTML = "JSON (*.json)", "HTML (*.html)"
KINDS = {JSON: ".json", HTML: ".html"}


@pytest.mark.parametrize(
    ("typed", "kind", "whole"),
    [
        ("Chat v1.2", JSON, "Chat v1.2.json"),
        ("Chat.JSON", JSON, "Chat.JSON"),
        ("report.html", JSON, "report.json"),  # another kind was chosen than offered
        ("report", HTML, "report.html"),
        ("report", "", "report.json"),
    ],
)
def test_it_gets_its_suffix(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str, kind: str, whole: str
) -> None:
    requests: list[str] = []

    def answer(parent: QWidget, title: str, offered: str, kinds: str) -> tuple[str, str]:
        requests.append(Path(offered).name)
        return (str(tmp_path / typed) if len(requests) == 1 else offered, kind)

    monkeypatch.setattr(QFileDialog, "getSaveFileName", answer)
    parent, last = QWidget(), LastFolder(Preferences(tmp_path), "test")
    qtbot.addWidget(parent)
    assert save_file(parent, "", tmp_path / "x.json", KINDS, last) == tmp_path / whole
    assert requests == ["x.json"]
    assert last.folder() == str(tmp_path)
    (tmp_path / whole).touch()
    requests.clear()
    assert save_file(parent, "", tmp_path / "x.json", KINDS, last) == tmp_path / whole
    assert requests == (["x.json"] if typed == whole else ["x.json", whole])


def test_nothing_chosen(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: Any) -> tuple[str, str]:
        return ("", "")

    monkeypatch.setattr(QFileDialog, "getSaveFileName", none)
    parent, last = QWidget(), LastFolder(Preferences(tmp_path), "test")
    qtbot.addWidget(parent)
    assert save_file(parent, "", Path("x"), KINDS, last) is None
    assert last.folder() == str(Path.home())  # as before
