"""Tests of whether anything may move: the system's setting, unless a person chose."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from app.gui.app.preferences import Preferences
from app.gui.look.motion import ALWAYS, NEVER, REDUCE_MOTION, SYSTEM, Motion, SystemMotion


class Told(SystemMotion):
    """A system that says what a test wants; `looks` counts how often it was asked."""

    looks = 0

    def look(self) -> None:
        self.looks += 1

    def says(self, reduced: bool) -> None:
        self._take(reduced)


@pytest.fixture
def system() -> Told:
    return Told()


@pytest.fixture
def motion(qapp: QApplication, tmp_path: Path, system: Told) -> Motion:
    return Motion(qapp, Preferences(tmp_path, qapp), system)


def test_as_the_system_says_at_once(motion: Motion, system: Told) -> None:
    heard: list[bool] = []
    motion.changed.connect(lambda: heard.append(motion.still))
    assert (motion.wish, motion.still, system.looks) == (SYSTEM, False, 1)
    system.says(True)
    system.says(False)
    assert heard == [True, False]


def test_a_person_s_choice_is_above_the_system_s(motion: Motion, system: Told) -> None:
    motion.choose(ALWAYS)
    assert (motion.wish, motion.still) == (ALWAYS, True)
    system.says(True)
    motion.choose(NEVER)
    assert (motion.wish, motion.still) == (NEVER, False)
    motion.choose(SYSTEM)
    assert (motion.wish, motion.still) == (SYSTEM, True)


def test_whoever_comes_back_may_have_changed_it(qapp: QApplication, motion: Motion, system: Told) -> None:
    qapp.applicationStateChanged.emit(Qt.ApplicationState.ApplicationInactive)
    assert system.looks == 1
    qapp.applicationStateChanged.emit(Qt.ApplicationState.ApplicationActive)
    assert system.looks == 2


@pytest.mark.parametrize(("kept", "wish"), [(True, ALWAYS), (False, SYSTEM), ("odd", SYSTEM)])
def test_what_an_earlier_version_kept_is_understood(
    qapp: QApplication, tmp_path: Path, system: Told, kept: object, wish: str
) -> None:
    preferences = Preferences(tmp_path, qapp)
    preferences.keep(REDUCE_MOTION, kept)
    assert Motion(qapp, preferences, system).wish == wish


def test_menus_do_not_fade_either(qapp: QApplication, tmp_path: Path, system: Told) -> None:
    effect = Qt.UIEffect.UI_General
    before = QApplication.isEffectEnabled(effect)
    QApplication.setEffectEnabled(effect, True)
    motion = Motion(qapp, Preferences(tmp_path, qapp), system)
    system.says(True)
    assert not QApplication.isEffectEnabled(effect)
    motion.choose(NEVER)
    assert QApplication.isEffectEnabled(effect)
    QApplication.setEffectEnabled(effect, before)
