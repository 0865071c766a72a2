"""A line of the list: its name is whole where there is room for it, the verdict beside it or below."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QRect
from PySide6.QtGui import QImage, QPainter
from PySide6.QtWidgets import QApplication, QListView
from pytestqt.qtbot import QtBot

from app.api.models import ShelfModel
from app.core.planner.verdict import Verdict, VerdictWord
from app.gui.look.theme import Scheme, Theme
from app.gui.models.model_item import shelf_item
from app.gui.models.model_rows import LINE_HEIGHT, Row, RowPainter
from app.gui.models.verdicts import Judgment
from tests.gui.speaking import speaking

TOO_BIG = Judgment(Verdict(VerdictWord.TOO_BIG, short_bytes=816 << 20))
SMALL = 340  # pixels of a line in a window at its smallest
OFFER = shelf_item(ShelfModel(name="Ministral 3 Instruct", quantization="Q8_0"))


class Seen(RowPainter):
    """Remembers where it wrote what."""

    def __init__(self, theme: Theme, parent: QListView) -> None:
        super().__init__(theme, parent)
        self.wrote: list[tuple[str, int]] = []

    def _text(
        self, painter: QPainter, room: QRect, words: str, color: str, size: int = 14, *,
        right: bool = False,
    ) -> int:  # fmt: skip
        self.wrote.append((self._shown(words, size, room), room.top()))
        return super()._text(painter, room, words, color, size, right=right)


@pytest.fixture
def theme(qapp: QApplication) -> Iterator[Theme]:
    before = qapp.palette(), qapp.styleSheet()
    yield Theme(qapp, Scheme.LIGHT, 1.0)
    qapp.setPalette(before[0])
    qapp.setStyleSheet(before[1])


@pytest.mark.parametrize(("width", "beside"), [(600, True), (290, False)])
def test_the_name_is_whole_and_the_verdict_goes_below_it(qtbot: QtBot, theme: Theme, width: int, beside: bool) -> None:
    parent = QListView()
    qtbot.addWidget(parent)
    painted, image = Seen(theme, parent), QImage(width, LINE_HEIGHT, QImage.Format.Format_RGB32)
    painter = QPainter(image)
    painted._line(painter, image.rect(), Row(item=OFFER, judgment=TOO_BIG))
    painter.end()
    wrote = dict(painted.wrote)
    assert wrote.keys() >= {"Ministral 3 Instruct", "Too big by 816 MiB"}
    assert (wrote["Ministral 3 Instruct"] == wrote["Too big by 816 MiB"]) is beside


def test_the_guide_is_whole_in_german_in_a_small_window(qtbot: QtBot, qapp: QApplication, theme: Theme) -> None:
    parent = QListView()
    qtbot.addWidget(parent)
    model = ShelfModel(name="guide", quantization="Q8_0", file_bytes=5_660_000, builtin=True)
    painted, image = Seen(theme, parent), QImage(SMALL, LINE_HEIGHT, QImage.Format.Format_RGB32)
    painter = QPainter(image)
    with speaking(qapp, "de"):
        guide = Row(item=shelf_item(model), mark="Geladen")
        painted._line(painter, image.rect(), guide)
    painter.end()
    assert guide.item is not None
    assert guide.item.is_guide
    assert "Q8_0 · 5,4 MiB · klein, zum Probieren" in dict(painted.wrote)
