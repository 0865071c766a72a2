"""The engine packs on the page "This computer": over a real node, and what each state of a pack says."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog, QLabel
from pytestqt.qtbot import QtBot

from app.api.computer import Device
from app.api.engine_packs import EnginePack, EnginePacks
from app.core.errors import Reason
from app.gui.this_computer.engines_card import (
    EnginesCard,
    RemovePackDialog,
    has_previous,
    outcome,
    pack_details,
    pack_title,
)
from tests.gui import walk
from tests.gui.desk import Desk
from tests.machine.engine_packs.fake_pack import LIBRARY, archive_pack, members, name_of

WITHIN_MS = 60_000  # a test of a pack starts a process
PACK = EnginePack(
    "vulkan-0.3.36-linux-x86_64-12345678", "vulkan", "Vulkan", "0.3.36", size_bytes=43 << 20, built="2026-11-30",
    current=True, tested=True, devices=[Device("Vulkan0", "A card", "gpu", "Vulkan", 0, 8 << 30)],
)  # fmt: skip
OLD = EnginePack("vulkan-old", "vulkan", "Vulkan", "0.3.36", previous=True)
BAD = EnginePack("metal-x", "metal", "Metal", "0.3.36", problem_facts=Reason("pack_no_device", {"backend": "Metal"}))


def texts(card: EnginesCard) -> str:
    return "\n".join(shown.text() for shown in card.findChildren(QLabel) if shown.isVisible())


def test_a_pack_is_described_with_its_state_and_devices() -> None:
    assert pack_title(PACK) == "Vulkan for llama.cpp 0.3.36, 43 MiB, in use"
    assert pack_details(PACK)[0][0] == "A card, 8.0 GiB"
    hashed = msgspec.structs.replace(PACK, sha256="0123456789abcdef" * 4)
    assert pack_details(hashed)[-1] == (f"Checksum: {' '.join(['01234567', '89abcdef'] * 4)}", "caption")
    assert pack_title(OLD).endswith("previously used")
    assert pack_title(BAD).endswith("not used")
    assert pack_title(EnginePack("broken-folder")) == "broken-folder"
    assert pack_details(BAD)[0] == (outcome(BAD), "error")
    assert "No graphics card was found through Metal" in outcome(BAD)
    assert outcome(PACK) == "Vulkan is in use."
    why = Reason("check_card_unused", {"device": "A card", "why": Reason("card_switched_off")})
    idle = msgspec.structs.replace(PACK, idle_facts=why)
    assert pack_title(idle).endswith("selected, but not in use now")
    assert pack_details(idle)[0] == ("A card is not used. It is switched off.", "muted")
    assert outcome(idle) == "Vulkan is selected but not in use now."
    shared = EnginePack(devices=[Device(description="Small", kind="igpu", total_bytes=2 << 30)])
    assert pack_details(shared) == [("Small, 2.0 GiB shared with the processor", "")]


def test_only_a_pack_in_use_can_be_taken_back() -> None:
    assert has_previous(PACK, [PACK, OLD])
    assert not has_previous(PACK, [PACK, BAD])
    assert not has_previous(OLD, [PACK, OLD])


@pytest.fixture
def card(qtbot: QtBot, at_lone: Desk) -> EnginesCard:
    made = EnginesCard(at_lone.services)
    qtbot.addWidget(made)
    made.resize(700, 500)
    made.show()
    made.refresh()
    qtbot.waitUntil(lambda: made._look is None, timeout=WITHIN_MS)
    return made


def test_a_pack_is_installed_tested_and_removed(qtbot: QtBot, card: EnginesCard, tmp_path: Path) -> None:
    assert "No pack is installed" in texts(card)
    card.add(str(archive_pack(tmp_path / "pack.tar.gz", members())))
    assert card.is_changing
    assert not card.install.isEnabled()
    assert "Installing and testing" in texts(card)
    qtbot.waitUntil(lambda: card._call is None, timeout=WITHIN_MS)
    assert "could not be loaded" in card.remark.text()  # its library is none
    assert "not used" in texts(card)
    name = name_of()
    assert {action for _, action in card.buttons} == {"use", "test", "save", "remove"}
    card.buttons[name, "use"].setFocus()
    QTest.keyClick(card.buttons[name, "use"], Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: card._call is None, timeout=WITHIN_MS)
    assert "could not be loaded" in card.remark.text()
    card.buttons[name, "remove"].click()
    (dialog,) = card.findChildren(RemovePackDialog)
    dialog.act.click()
    qtbot.waitUntil(lambda: "No pack is installed" in texts(card), timeout=WITHIN_MS)
    assert card.remark.text() == "The pack was removed."


def test_a_refused_file_is_told(qtbot: QtBot, card: EnginesCard, tmp_path: Path) -> None:
    card.add(str(archive_pack(tmp_path / "pack.tar.gz", members(engine_version="0.3.35"))))
    qtbot.waitUntil(lambda: card._call is None, timeout=WITHIN_MS)
    assert "is for llama.cpp 0.3.35, but this version of Poolhouse has" in card.remark.text()
    assert card.install.isEnabled()


def test_a_file_is_chosen_in_a_dialog(qtbot: QtBot, card: EnginesCard) -> None:
    card.install.click()
    (dialog,) = card.findChildren(QFileDialog)
    assert dialog.nameFilters() == ["Engine packs (*.tar.gz)"]
    dialog.reject()


def test_each_button_has_a_name_of_its_own_and_keeps_the_focus(qtbot: QtBot, card: EnginesCard) -> None:
    card._show(EnginePacks(packs=[PACK, OLD, BAD]))
    names = [shown.accessibleName() for shown in card.buttons.values()]
    assert len(set(names)) == len(names) == 12
    assert f"Use the previous pack instead of {PACK.name}" in names
    qtbot.waitUntil(lambda: set(card.buttons.values()) <= set(walk.focusable(card)))
    card.buttons[OLD.name, "use"].setFocus()
    card._show(EnginePacks(packs=[OLD, PACK]))
    assert card.buttons[OLD.name, "use"].hasFocus() or not card.isActiveWindow()
    card._show(EnginePacks(packs=[PACK]))
    assert LIBRARY not in texts(card)
    assert (PACK.name, "back") not in card.buttons


def test_without_a_node_the_card_waits(qtbot: QtBot, away: Desk) -> None:
    made = EnginesCard(away.services)
    qtbot.addWidget(made)
    made.refresh()
    assert made.isHidden()
    assert not made.install.isEnabled()
