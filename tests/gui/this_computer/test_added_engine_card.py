"""The card of the engine on the page "This computer": over a real node, and what each state says."""

from __future__ import annotations

from pathlib import Path

from pytestqt.qtbot import QtBot

from app.api.engine_packs import AddedEngine
from app.core.errors import Reason
from app.gui.this_computer.added_engine_card import AddedEngineCard, engine_details, engine_state
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
