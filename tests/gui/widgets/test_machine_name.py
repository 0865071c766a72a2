"""A machine's name is judged where it is typed, and nothing of it is cut."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from app.gui.widgets.fields import MachineName


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        ("attic", ""),
        ("x" * 64, ""),
        ("  ", "Enter a name of up to 64 characters."),
        ("x" * 70, "A name can have up to 64 characters. This one has 70."),
    ],
)
def test_what_is_wrong_with_a_name(qtbot: QtBot, typed: str, problem: str) -> None:
    field = MachineName("Name", "den")
    qtbot.addWidget(field)
    qtbot.addWidget(field.problem)
    values: list[bool] = []
    field.judged.connect(lambda: values.append(field.fits))
    field.setText(typed)
    assert field.problem.text() == field.accessibleDescription() == problem
    assert field.problem.isHidden() is not bool(problem)
    assert values == [not problem]
    assert field.name == typed.strip()
