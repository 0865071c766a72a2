"""A row of buttons never wraps: what has no room is in the menu behind the last."""

from __future__ import annotations

from itertools import pairwise

import pytest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.gui.widgets.overflow_row import OverflowRow


@pytest.fixture
def row(qtbot: QtBot) -> OverflowRow:
    made = OverflowRow()
    qtbot.addWidget(made)
    buttons = [QPushButton(words) for words in ("Open chat", "Load with these settings", "Unload", "Delete 4.7 GiB")]
    made.show_buttons(buttons, far_from=3)
    made.show()
    return made


@pytest.mark.parametrize("width", [220, 300, 380, 460, 700, 1000])
def test_buttons_stand_in_one_line_and_none_is_cut(row: OverflowRow, width: int) -> None:
    row.resize(width, row.sizeHint().height())
    shown = [button for button in (*row._buttons, row.more) if not button.isHidden()]
    assert len({button.y() for button in shown}) == 1
    places = sorted((button.x(), button.x() + button.width()) for button in shown)
    assert all(left >= 0 and right <= width for left, right in places)
    assert all(before[1] <= after[0] for before, after in pairwise(places))
    assert not row._buttons[0].isHidden()
    assert bool(row.overflowing) is not row.more.isHidden()


def test_the_menu_does_what_the_button_would(row: OverflowRow, qtbot: QtBot) -> None:
    row.resize(row.minimumSizeHint())
    assert len(row.overflowing) == 3
    row.overflowing[1].setEnabled(False)
    row._open_menu()
    actions = row._menu.actions()
    assert [action.text() for action in actions] == ["Load with these settings", "Unload", "Delete 4.7 GiB"]
    assert [action.isEnabled() for action in actions] == [True, False, True]
    with qtbot.waitSignal(row.overflowing[2].clicked):
        actions[2].trigger()
    row._menu.close()
