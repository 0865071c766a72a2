"""Small errors below what they concern: a sentence, and what only helps who mends the app folded below it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.core.errors import AppError, BadInput, StageLost
from app.gui.app.app_context import AppContext
from app.gui.app.navigation import LOG_PAGE
from app.gui.diagnostics.address_form import AddressForm
from app.gui.settings.models import ModelsFolder
from app.gui.this_computer.hardware_card import HardwareCard
from app.gui.this_computer.rule_controls import AutostartSwitch
from app.gui.widgets.fold import Fold
from app.gui.widgets.notice import NarrowNotice, Remark
from tests.gui.desk import Desk

WORDS = "ops.cpp:4132: GGML_ASSERT(ids) failed."
DIED = StageLost("worker_died", worker="den", how="it was killed by SIGABRT", words=WORDS)
FAULT = AppError("node_fault", detail="its answer was not understood")
Fail = Callable[[AppError], Any]


def nothing(*_: object) -> None:
    """Nobody waits for it."""


def in_autostart(services: AppContext) -> tuple[QWidget, Fail]:
    made = AutostartSwitch(services)
    return made, made._fail


def in_speed(services: AppContext) -> tuple[QWidget, Fail]:
    made = HardwareCard(services)
    made._show_measuring(True)
    made.show()
    return made, made._not_measured


def in_hardware(services: AppContext) -> tuple[QWidget, Fail]:
    made = HardwareCard(services)
    return made, made._fail


def in_address(services: AppContext) -> tuple[QWidget, Fail]:
    made = AddressForm(services, "attic", "", nothing)
    return made, made._failed


def in_folder(services: AppContext) -> tuple[QWidget, Fail]:
    made = ModelsFolder(services)
    return made, made._refused


def in_chats(services: AppContext) -> tuple[QWidget, Fail]:
    made = NarrowNotice(services.theme)
    return made, lambda error: made.fail(error, services.go)


@pytest.mark.parametrize("make", [in_autostart, in_speed, in_hardware, in_address, in_folder, in_chats])
@pytest.mark.parametrize(("error", "inner"), [(FAULT, "node_fault"), (DIED, WORDS)])
def test_technical_words_are_folded_below_it_with_the_way_to_the_log(
    qtbot: QtBot, away: Desk, make: Callable[[AppContext], tuple[QWidget, Fail]], error: AppError, inner: str
) -> None:
    shown, fail = make(away.services)
    qtbot.addWidget(shown)
    shown.show()
    fail(error)
    QApplication.processEvents()
    folds = [fold for fold in shown.findChildren(Fold) if fold.isVisible()]
    assert len(folds) == 1
    (words,) = [label for label in shown.findChildren(QLabel) if inner in label.text()]
    assert not words.isVisible()
    folds[0].open()
    qtbot.waitUntil(words.isVisible)
    (log,) = folds[0].findChildren(QPushButton)
    log.click()
    assert away.went == [LOG_PAGE]


def test_details_stay_open_while_they_are_the_same(qtbot: QtBot, away: Desk) -> None:
    remark = Remark(away.services.theme, away.services.go)
    qtbot.addWidget(remark)
    remark.show()
    remark.fail(DIED)
    QApplication.processEvents()
    (fold,) = remark.findChildren(Fold)
    fold.open()
    remark.fail(DIED)
    assert fold.isVisible()
    assert fold.button.isChecked()
    remark.fail(BadInput("name_empty"))
    assert not fold.isVisible(), "a person can mend that"
