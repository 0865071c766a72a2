"""Settings of a chat: defaults are seen, presets fill in, what is saved is what was chosen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.core.chat import Chat, ChatId
from app.gui.app.preferences import Preferences
from app.gui.chat.answer import MAX_TOKENS
from app.gui.chat.chat_settings import CONTEXTS, ChatSettings, ModelLimits
from app.gui.chat.presets import MAX_PRESETS, Presets
from app.gui.look import formats
from app.gui.look.theme import Scheme, Theme

Make = Callable[[Chat], ChatSettings]


@pytest.fixture
def saved() -> list[Chat]:
    return []


@pytest.fixture
def make(qtbot: QtBot, qapp: QApplication, tmp_path: Path, saved: list[Chat]) -> Make:
    parent = QWidget()
    qtbot.addWidget(parent)
    theme, presets = Theme(qapp, Scheme.LIGHT, 1.0), Presets(Preferences(tmp_path))
    defaults = Chat(ChatId("1"), system="Be brief.")
    models = ["guide", "qwen"]
    known: dict[str | None, ModelLimits] = {"guide": ModelLimits(1_024, is_guide=True), "qwen": ModelLimits(40_960)}
    return lambda chat: ChatSettings(
        theme, presets, chat, defaults, models, lambda name: known.get(name, ModelLimits()), saved.append, parent
    )


def test_defaults_are_seen_and_saved_as_nothing(make: Make, saved: list[Chat]) -> None:
    chat = Chat(ChatId("1"))
    dialog = make(chat)
    names = [dialog.model.itemText(at) for at in range(dialog.model.count())]
    assert names == ["The loaded model", "Guide", "qwen"]
    assert dialog.model.currentText() == "The loaded model"
    assert dialog.sampling_fields["temperature"].value() == 0.8
    assert dialog.sampling_fields["temperature"].toolTip() == "Default: 0.80"
    assert dialog.sampling_fields["top_k"].toolTip() == "Default: 40"
    assert dialog.sampling_fields["seed"].toolTip() == "Default: Random"
    assert dialog.sampling_fields["seed"].text() == "Random"
    assert dialog.longest.value() == MAX_TOKENS
    dialog._save()
    assert saved == [chat]


def test_what_the_guide_does_otherwise_is_said(make: Make) -> None:
    dialog = make(Chat(ChatId("1"), model="guide"))
    assert "Its default temperature is 0." in dialog._hint.text()
    dialog.model.setCurrentText("qwen")
    assert "Guide" not in dialog._hint.text()


def test_what_is_chosen_is_saved_and_shown_again(make: Make, saved: list[Chat]) -> None:
    dialog = make(Chat(ChatId("1")))
    dialog.model.setCurrentText("qwen")
    dialog.context.setCurrentIndex(3)
    dialog.system_presets.setCurrentIndex(1)
    dialog.system_presets.activated.emit(1)
    dialog.sampling_presets.setCurrentText("Precise")
    dialog.sampling_presets.activated.emit(2)
    dialog.sampling_fields["seed"].setValue(7)
    dialog.longest.setValue(100)
    dialog._save()
    chat = saved[0]
    assert (chat.model, chat.context) == ("qwen", 8192)
    assert chat.system
    assert chat.sampling == {"temperature": 0.2, "top_p": 0.9, "seed": 7, "max_tokens": 100}
    again = make(chat)
    again._save()
    assert saved[1] == chat
    buttons = again.findChildren(QPushButton)
    next(button for button in buttons if button.text() == "Reset to defaults").click()
    again._save()
    assert saved[2] == Chat(ChatId("1"), system="Be brief.")


def test_only_contexts_that_the_chosen_model_reads_are_offered(make: Make) -> None:
    dialog = make(Chat(ChatId("1")))
    box = dialog.context
    assert [box.itemData(at) for at in range(1, box.count())] == list(CONTEXTS)
    assert "at most" not in dialog._hint.text()
    box.setCurrentIndex(box.findData(32_768))
    dialog.model.setCurrentText("qwen")
    assert (box.currentData(), box.itemData(box.count() - 1)) == (32_768, 40_960)
    dialog.model.setCurrentText("Guide")
    assert [box.itemData(at) for at in range(box.count())] == [None, 1_024]
    assert box.currentData() is None
    most = f"This model's maximum context is {formats.number(1_024)} tokens."
    assert dialog._hint.text().startswith(most)


def test_a_model_that_is_gone_stays_chosen(make: Make, saved: list[Chat]) -> None:
    dialog = make(Chat(ChatId("1"), model="gone"))
    assert dialog.model.currentText() == "gone"
    dialog._save()
    assert saved[0].model == "gone"


@pytest.mark.parametrize("group", ["system", "sampling"])
def test_a_preset_of_ones_own_can_be_removed(make: Make, group: str) -> None:
    dialog = make(Chat(ChatId("1"), system="Say arr."))
    box, remove = getattr(dialog, f"{group}_presets"), getattr(dialog, f"remove_{group}")
    dialog._presets.save_system("Pirate", "Say arr.")
    dialog._presets.save_sampling("Pirate", {"temperature": 1.5})
    box.setCurrentIndex(1)
    assert remove.isHidden()  # it came with the app
    box.setCurrentText("Pirate")
    assert not remove.isHidden()
    remove.click()
    assert box.findText("Pirate") < 0
    assert box.currentText() == "Presets"
    assert remove.isHidden()
    assert dialog.system.toPlainText() == "Say arr."


def test_no_more_presets_than_are_kept(make: Make) -> None:
    dialog = make(Chat(ChatId("1")))
    for number in range(MAX_PRESETS):
        assert dialog._save_system_button.isEnabled()
        dialog._presets.save_system(f"{number}", "x")
    assert not dialog._save_system_button.isEnabled()
    assert dialog._save_system_button.toolTip() == "There are already 100 presets. Remove one first."
