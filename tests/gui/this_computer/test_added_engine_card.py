"""The card of the engine on the page "This computer": over a real node, and what each state says."""

from __future__ import annotations

from pathlib import Path

import msgspec
from PySide6.QtWidgets import QLabel, QWidget
from pytestqt.qtbot import QtBot

from app.api.engine_packs import AddedEngine, AvailableEngine, EngineInstallation, EnginePacks
from app.core.errors import Reason
from app.gui.this_computer.added_engine_card import AddedEngineCard, engine_details, engine_size, engine_state
from app.gui.this_computer.engine_install_dialogs import InstallEngineDialog
from tests.gui.desk import Desk

WITHIN_MS = 60_000  # the test of an engine starts a process


def test_each_state_of_the_engine_is_a_sentence() -> None:
    assert engine_state(None) == "llama.cpp computes on this computer."
    assert engine_details(None) == ""
    torch = AddedEngine("pytorch", "PyTorch 2.13.0", "/srv/torch", used=True)
    assert (
        engine_state(torch) == "PyTorch 2.13.0 computes on this computer. llama.cpp computes the models that it cannot."
    )
    assert engine_details(torch) == "Folder: /srv/torch"
    testing = AddedEngine("pytorch", "PyTorch", "/srv/torch", testing=True)
    assert engine_state(testing) == "PyTorch is being tested. Until then, llama.cpp computes."
    wrong = AddedEngine("apple", "MLX", "/srv/mlx", problem_facts=Reason("engine_wrong", {"percent": 12.5}))
    assert engine_state(wrong).startswith("MLX is not used, so llama.cpp computes. It gave a wrong answer in its test.")


def test_a_folder_without_an_engine_is_refused_and_llama_cpp_comes_back(
    qtbot: QtBot, at_lone: Desk, tmp_path: Path
) -> None:
    card = AddedEngineCard(at_lone.services)
    qtbot.addWidget(card)
    card.show()
    qtbot.waitUntil(lambda: card.state.text() == engine_state(None) and card.choose.isEnabled(), timeout=WITHIN_MS)
    assert not card.back.isVisible()
    card.use_folder(str(tmp_path))
    assert not card.choose.isEnabled()
    qtbot.waitUntil(lambda: card.state.text().startswith("MLX is not used"), timeout=WITHIN_MS)
    assert "Its test failed" in card.state.text()
    assert card.details.text() == f"Folder: {tmp_path}"
    card.back.click()
    qtbot.waitUntil(lambda: card.state.text() == engine_state(None), timeout=WITHIN_MS)
    card.use_folder(str(tmp_path / "nowhere"))
    qtbot.waitUntil(lambda: "There is no folder" in card.remark.text(), timeout=WITHIN_MS)
    assert card.choose.isEnabled()


PYTORCH = AvailableEngine("pytorch", "PyTorch 2.13.0", 2_740_000_000, 4_760_000_000)
INSTALLED = AvailableEngine("mlx", "MLX 0.32.4", 11_000_000, 37_000_000, "0.32.4")


def test_each_engine_has_a_line_and_the_buttons_that_make_sense(qtbot: QtBot, at_lone: Desk) -> None:
    assert engine_size(PYTORCH) == "PyTorch 2.13.0 is not installed (a download of 2.6 GiB)."
    assert engine_size(INSTALLED) == "MLX 0.32.4 is installed and takes 35 MiB."
    card = AddedEngineCard(at_lone.services)
    qtbot.addWidget(card)
    card.show()
    card.refresh()
    qtbot.waitUntil(lambda: ("mlx", "install") in card.buttons, timeout=WITHIN_MS)  # what the node offers
    card._show(EnginePacks(available=[PYTORCH, INSTALLED]))
    assert set(card.buttons) == {("pytorch", "install"), ("mlx", "if-faster"), ("mlx", "use"), ("mlx", "delete")}
    assert card.buttons["mlx", "delete"].accessibleName() == "Delete MLX 0.32.4"
    preferred = msgspec.structs.replace(INSTALLED, preferred=True)
    card._show(EnginePacks(available=[preferred]))
    assert set(card.buttons) == {("mlx", "if-faster"), ("mlx", "delete")}
    mlx = AddedEngine("apple", "MLX 0.32.4", "/srv/mlx", used=True, if_faster=True)
    card._show(EnginePacks(available=[preferred], added=mlx))
    assert set(card.buttons) == {("mlx", "use"), ("mlx", "delete")}


def test_what_was_measured_is_listed() -> None:
    mlx = AddedEngine("apple", "MLX 0.32.4", "/srv/mlx", used=True, if_faster=True)
    assert engine_state(mlx) == "MLX 0.32.4 computes the models for which it is faster than llama.cpp on this computer."
    assert engine_details(mlx).endswith("No model has been measured with it yet. That happens when a model is planned.")
    measured = msgspec.structs.replace(mlx, faster=["qwen3 Q4_K_M"], slower=["llama Q4_1", "gemma3 Q8_0"])
    assert engine_details(measured).splitlines()[1:] == ["Faster: qwen3 Q4_K_M", "Slower: llama Q4_1, gemma3 Q8_0"]


def test_an_installation_shows_its_progress_and_its_end(qtbot: QtBot, at_lone: Desk) -> None:
    card = AddedEngineCard(at_lone.services)
    qtbot.addWidget(card)
    card.show()
    card.refresh()
    qtbot.waitUntil(lambda: ("mlx", "install") in card.buttons, timeout=WITHIN_MS)
    card._tick.timeout.disconnect()  # the node knows nothing of this installation
    going = EngineInstallation("mlx", "MLX 0.32.4", "downloading", 1 << 20, 10 << 20)
    card._show(EnginePacks(available=[INSTALLED], installation=going))
    assert card.progress.words.text() == "Downloading MLX 0.32.4: 1.0 MiB of 10 MiB"
    assert card.progress.isVisible()
    assert not card.choose.isEnabled()
    assert card.progress.cancel.isEnabled()
    failed = msgspec.structs.replace(
        going, state="failed", problem_facts=Reason("engine_wheel_changed", {"engine": "MLX"})
    )
    card._show(EnginePacks(available=[INSTALLED], installation=failed))
    assert not card.progress.isVisible()
    assert "was not installed" in card.remark.text()
    assert card.choose.isEnabled()


def test_the_question_says_what_an_engine_takes(qtbot: QtBot, at_lone: Desk) -> None:
    agreed: list[str] = []
    advised = msgspec.structs.replace(PYTORCH, advice_facts=Reason("engine_processor_only", {"engine": "PyTorch"}))
    parent = QWidget()
    qtbot.addWidget(parent)
    dialog = InstallEngineDialog(at_lone.services, advised, agreed.append, parent)
    dialog.open()
    words = " ".join(each.text() for each in dialog.findChildren(QLabel))
    assert "a download of 2.6 GiB, and takes 4.4 GiB on the disk" in words
    assert "llama.cpp does faster" in words
    dialog.act.click()
    assert agreed == ["pytorch"]
