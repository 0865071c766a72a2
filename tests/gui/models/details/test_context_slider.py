"""The context of a model, chosen with a slider."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from app.gui.models.details.setup_form import ContextSlider


def test_its_words_need_no_room_beside_each_other(qtbot: QtBot) -> None:
    """Otherwise large text made the details wider than their pane, and cut them off at its edge."""
    made = ContextSlider()
    qtbot.addWidget(made)
    made.offer(512)
    wide = made._value.sizeHint().width()
    assert "(model maximum)" in made._value.text()
    assert made.minimumSizeHint().width() <= wide
    made.resize(wide, 200)
    made.show()
    assert made._value.geometry().top() >= made._title.geometry().bottom()
    made.resize(3 * wide, 200)
    qtbot.waitUntil(lambda: made._value.geometry().top() < made._title.geometry().bottom())
