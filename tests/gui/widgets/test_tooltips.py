"""No name of a machine, a model or a file is read as HTML where a tooltip shows it."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QTextDocument
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.api.models import CatalogModel, HubFile
from app.core.errors import Reason
from app.gui.activity.bench_view import MODEL, BenchModel
from app.gui.activity.log_view import Entry, LogModel
from app.gui.chat.message.message_view import _caption
from app.gui.models.details.about_view import AboutView
from app.gui.models.details.file_choice import FileChoice
from app.gui.models.model_item import offer_item
from app.gui.pool.machine_facts import strangers_of
from app.gui.pool.pool_page import Nearby
from app.gui.widgets.buttons import IconButton
from app.gui.widgets.labels import tooltip
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


def test_what_nobody_has_let_in_says_of_itself(qtbot: QtBot, away: Desk) -> None:
    item = {"name": ODD, "addresses": ["10.0.0.9"], "pairing_address": "10.0.0.9:4", "system": ODD, "device": ODD}
    away.services.pool.snapshot = {"strangers": {"1" * 64: item}}
    (stranger,) = strangers_of(away.services.pool.now)
    assert ODD in stranger.claims
    nearby = Nearby(lambda _: None)
    qtbot.addWidget(nearby)
    nearby.show_strangers((stranger,))
    tips = [made.toolTip() for made in nearby.findChildren(QPushButton)]
    assert [SAFE in tip and ODD not in tip for tip in tips] == [True]


def test_an_answer_that_went_on(qtbot: QtBot) -> None:
    lines = [f"{ODD} was lost", "Waited for its turn: 2 s"]
    made = _caption("11 tok/s", lines)
    qtbot.addWidget(made)
    assert made.toolTip().startswith(f"<span>{SAFE}")
    assert made.accessibleDescription() == "\n".join(lines)


def test_a_name_with_an_apostrophe_is_read_as_it_is() -> None:
    """Qt's tooltips are labels, which show it as it is."""
    for words in ("Anna's PC", 'the "R&D" of Anna\'s', ODD):
        tip = QTextDocument()
        assert tooltip(words).startswith("<span>")  # else Qt may take it for plain text
        tip.setHtml(tooltip(words, words))
        assert tip.toPlainText() == f"{words}\n{words}"
    assert tooltip("") == tooltip() == ""


def test_buttons(qtbot: QtBot, away: Desk) -> None:
    made = IconButton(away.services.theme, "close", f"Remove {ODD}")
    qtbot.addWidget(made)
    assert SAFE in made.toolTip()
    assert made.accessibleName() == f"Remove {ODD}"
    made.rename("Copy")
    assert made.toolTip() == "Copy"


def test_models(qtbot: QtBot) -> None:
    why = Reason("embedding_model_unknown", {"name": ODD, "there": "x"})
    file = HubFile(file="a.gguf", usable=False, reason_facts=why)
    item = offer_item(CatalogModel(id="a", name="a", page=f"https://a.b/{ODD}", files=[file]))
    about, choice = AboutView(), FileChoice()
    for made in (about, choice):
        qtbot.addWidget(made)
        made.show_item(item)
    assert SAFE in about._page.toolTip()
    assert SAFE in str(choice.combo.itemData(0, TIP))
