"""No name of a machine, a model or a file is read as HTML where a tooltip shows it."""

from __future__ import annotations

from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.gui.activity.bench_table import MODEL, BenchModel
from app.gui.activity.log_view import Entry, LogModel
from app.gui.parts.buttons import IconButton
from app.gui.shelf.about_view import AboutView
from app.gui.shelf.file_choice import FileChoice
from app.gui.shelf.item import Item, Kind
from tests.gui.activity.made import bench
from tests.gui.desk import Desk

ODD = "<b>odd</b>"
SAFE = "&lt;b&gt;odd"
TIP = Qt.ItemDataRole.ToolTipRole


def test_tables(away: Desk) -> None:
    log, benches = LogModel(away.services.theme), BenchModel()
    log.show([Entry(1, 0.0, "node", ODD)])
    benches.show([bench(model=ODD)])
    assert SAFE in str(log.data(log.index(0, 1), TIP))
    assert SAFE in str(benches.data(benches.index(0, MODEL), TIP))


def test_buttons(qtbot: QtBot, away: Desk) -> None:
    made = IconButton(away.services.theme, "close", f"Remove {ODD}")
    qtbot.addWidget(made)
    assert SAFE in made.toolTip()
    assert made.accessibleName() == f"Remove {ODD}"
    made.rename("Copy")
    assert made.toolTip() == "Copy"


def test_models(qtbot: QtBot) -> None:
    file = {"file": "a.gguf", "usable": False, "reason": ODD}
    item = Item(Kind.OFFER, "a", "a", {"page": f"https://a.b/{ODD}", "files": [file]})
    about, choice = AboutView(), FileChoice()
    for made in (about, choice):
        qtbot.addWidget(made)
        made.show_item(item)
    assert SAFE in about._page.toolTip()
    assert SAFE in str(choice.combo.itemData(0, TIP))
