"""The list keeps its place: filters and buttons stay in their lines at any width, whatever the details beside it do."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.gui.look.theme import Scheme, Theme
from app.gui.models.models_page import ModelsPage
from app.gui.widgets.fields import SearchField
from tests.gui.speaking import speaking

SIDEBAR = 200


def geometry(page: ModelsPage) -> tuple[Any, ...]:
    """Return the places of the filters and of the list."""
    parts = (page.list.search, page.list.filter, page.list.size_filter, page.list.view)
    return tuple(part.mapTo(page, part.rect().topLeft()).toTuple() for part in parts), page.list.width()


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("width", [960, 1100, 1200, 1280, 1400])
def test_filters_share_one_line_and_the_list_holds_still_while_the_details_grow(
    qtbot: QtBot, qapp: QApplication, page: ModelsPage, width: int, language: str
) -> None:
    with speaking(qapp, language):
        page.resize(width - SIDEBAR, 700)
        qtbot.wait(50)
        page.details.fold.open(False)
        page.details.verdict.words.setText("")
        qtbot.wait(300)
        before = geometry(page)
        assert page.list.filter.y() == page.list.size_filter.y()
        assert page.list.filter.y() > page.list.search.y()
        page.details.fold.open()
        page.details.verdict.words.setText("A long sentence about memory that is shown. " * 6)
        page.details.forecast.fact.setText("The last answer was as fast as forecast. " * 6)
        page.details.forecast.fact.show()
        qtbot.wait(300)
        assert geometry(page) == before


def test_the_magnifying_glass_grows_with_the_text(qtbot: QtBot, qapp: QApplication) -> None:
    before = qapp.palette(), qapp.styleSheet()
    theme = Theme(qapp, Scheme.LIGHT, 1.0)
    field = SearchField(theme)
    qtbot.addWidget(field)
    field.resize(300, 60)
    field.show()

    def height() -> int:
        """The height of what is painted left of the text, in pixels."""
        qtbot.wait(20)
        image, ink = field.grab().toImage(), QColor(theme.colors.muted)
        columns = range(theme.px(8), theme.px(8 + 16))
        rows = [y for y in range(image.height()) if any(image.pixelColor(x, y) == ink for x in columns)]
        return rows[-1] - rows[0]

    usual = height()
    theme.choose(Scheme.LIGHT, 2.0)
    assert height() > 1.7 * usual
    assert field.textMargins().left() > 2 * 16
    qapp.setPalette(before[0])
    qapp.setStyleSheet(before[1])
