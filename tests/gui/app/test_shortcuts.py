"""The keyboard: the list of all shortcuts, the keys for the text size, and the palette that goes everywhere."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app.gui.app import navigation
from app.gui.app.command_palette import Command, CommandPalette, commands_of, matching
from app.gui.app.preferences import STEP_PERCENT, TEXT_SCALE
from app.gui.app.shortcuts import SECTIONS, ShortcutsDialog
from app.gui.app.window import Window
from tests.gui.desk import Desk


def window_of(qtbot: QtBot, desk: Desk) -> Window:
    window = Window(desk.services, lambda: False, lambda: None)
    qtbot.addWidget(window)
    return window


def press(window: Window, keys: str) -> None:
    """Press a shortcut of the window, which the offscreen platform does not deliver to inactive windows."""
    for shortcut in window.findChildren(QShortcut):
        if shortcut.key() == QKeySequence(keys):
            shortcut.activated.emit()
            return
    raise AssertionError(keys)


def test_the_text_grows_and_shrinks_by_key_and_the_size_is_kept(qtbot: QtBot, away: Desk) -> None:
    window, theme = window_of(qtbot, away), away.services.theme
    theme.choose(theme.scheme, 1.0)
    press(window, "Ctrl+=")
    press(window, "Ctrl++")
    assert theme.scale == 1 + 2 * STEP_PERCENT / 100
    assert away.services.preferences.text_scale == theme.scale
    press(window, "Ctrl+-")
    assert theme.scale == 1 + STEP_PERCENT / 100
    for _ in range(3):
        press(window, "Ctrl+-")
    assert theme.scale == 1.0  # not smaller than usual
    press(window, "Ctrl++")
    press(window, "Ctrl+0")
    assert (theme.scale, away.services.preferences.number(TEXT_SCALE, 0)) == (1.0, 1.0)


def test_the_list_names_every_shortcut_with_its_keys(qtbot: QtBot, away: Desk) -> None:
    window = window_of(qtbot, away)
    dialog = ShortcutsDialog(away.services, window)
    texts = {text.text() for text in dialog.findChildren(QLabel)}
    for _, entries in SECTIONS:
        for entry in entries:
            assert not entry.key_text or {entry.text, entry.key_text} <= texts  # some systems have no key to quit
    shown = {QKeySequence(part).toString() for text in texts for part in text.split("  ")}
    # whatever the window itself reacts to is in the list
    own = {
        shortcut.key().toString()
        for shortcut in window.findChildren(QShortcut, options=Qt.FindChildOption.FindDirectChildrenOnly)
    }
    assert own - {"Ctrl+=", "Zoom In", "Zoom Out"} <= shown, own - shown  # other keys for the same


def test_a_part_of_a_name_finds_it_and_return_goes_there(qtbot: QtBot, away: Desk) -> None:
    away.services.pool.snapshot = {"shared": [{
        "model": "qwen", "machine": "den", "machine_id": "b" * 64, "reference": "qwen@den",
    }]}  # fmt: skip
    window, went = window_of(qtbot, away), list[str]()
    commands = commands_of(away.services, went.append)
    palette = CommandPalette(away.services.theme, commands, window)
    qtbot.addWidget(palette)
    palette.field.setText("net")
    QTest.keyClick(palette.field, Qt.Key.Key_Return)
    assert went == ["settings/Network"]
    palette = CommandPalette(away.services.theme, commands, window)
    qtbot.addWidget(palette)
    palette.field.setText("qwen den")
    assert palette.list.count() == 1
    palette.list.itemClicked.emit(palette.list.item(0))
    assert went[-1] == f"{navigation.CHAT}/qwen@den"
    palette = CommandPalette(away.services.theme, commands, window)
    qtbot.addWidget(palette)
    QTest.keyClick(palette.field, Qt.Key.Key_Down)
    QTest.keyClick(palette.field, Qt.Key.Key_Return)
    assert went[-1] == commands[1].text.lower()  # the second page
    palette = CommandPalette(away.services.theme, commands, window)
    qtbot.addWidget(palette)
    palette.field.setText("nothing of that name")
    QTest.keyClick(palette.field, Qt.Key.Key_Return)
    assert len(went) == 3


@pytest.mark.parametrize(("typed", "texts"), [("", "abc"), ("b", "b"), ("x", ""), ("chat", "bc")])
def test_every_typed_word_must_occur(typed: str, texts: str) -> None:
    kinds = {"a": "page", "b": "chat", "c": "chat"}
    commands = [Command(text, kind, lambda: None) for text, kind in kinds.items()]
    assert [command.text for command in matching(commands, typed)] == list(texts)
