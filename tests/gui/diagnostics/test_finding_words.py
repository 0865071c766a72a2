"""Tests of the doctor's findings in the window's language."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.core.diagnostics import Check
from app.core.errors import Reason
from app.gui.diagnostics.doctor_dialog import CheckList
from app.gui.diagnostics.finding_words import NAMES, advice, cause, headline, name_of
from tests.gui.desk import Desk
from tests.gui.speaking import speaking
from tests.test_reasons import called, sources

ALONE = Check("IPv6", None, Reason("check_ipv6_off"))
MEMORY = Check(
    "Memory", False, Reason("check_memory", {"free_bytes": 3 << 29, "total_bytes": 8 << 30}),
    Reason("cure_memory"),
)  # fmt: skip
NAMED_SO = Check("Memory", False, Reason("check_not_reached"), machine="Memory")


@pytest.fixture
def german(qapp: QApplication) -> Iterator[None]:
    with speaking(qapp, "de"):
        yield


def test_every_name_that_is_looked_at_has_its_word() -> None:
    """These are the node's checks. The command line names its own two, which the window never shows."""
    named = {
        node.args[0].value
        for name, tree in sources("app")
        if name.startswith(("app/node/", "app/machine/"))
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and called(node) == "Check"
        if isinstance(node.args[0], ast.Constant)
    }
    assert named == set(NAMES)


def test_a_finding_in_german(german: None) -> None:
    assert (name_of(MEMORY), cause(MEMORY)) == ("Arbeitsspeicher", "1,5 GiB von 8,0 GiB sind frei.")
    assert advice(MEMORY) == "Schließen Sie Programme, die nicht gebraucht werden."
    assert headline(MEMORY) == "Arbeitsspeicher"
    assert cause(ALONE) == "IPv6 ist aus. IPv4 genügt."


def test_a_machine_may_be_called_like_a_check(german: None) -> None:
    assert name_of(NAMED_SO) == "Memory"
    assert cause(NAMED_SO) == "Es ist aus oder in einem anderen Netz."


def test_the_list_says_it_in_german_to_a_screen_reader_too(qtbot: QtBot, german: None, away: Desk) -> None:
    shown = CheckList(away.services.theme)
    qtbot.addWidget(shown)
    shown.show_checks([ALONE])
    names = [widget.accessibleName() for widget in shown.findChildren(QWidget)]
    assert "IPv6: Hinweis. IPv6 ist aus. IPv4 genügt." in names
