"""The context kept as q8_0, chosen in the window, over a real node: its memory, its words, its answers."""

from __future__ import annotations

from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from app.gui.models.details.model_actions import ModelAction
from app.gui.models.details.setup_form import KvChoice
from app.gui.models.models_page import ModelsPage
from backends.contract import KV_ANSWERS, KV_SAME_ANSWERS
from tests.gui.desk import Desk
from tests.gui.models.test_models_page import until


@pytest.mark.long
def test_it_is_chosen_planned_loaded_and_answers(qtbot: QtBot, page: ModelsPage, at_lone: Desk) -> None:
    kv, client = page.details.form.kv, at_lone.services.client
    until(qtbot, lambda: "With q8_0, it would use" in kv.hint.text())
    before = page.details.verdict.sum.text()
    kv.combo.setCurrentIndex(kv.combo.findData("q8_0"))
    until(qtbot, lambda: page.details.verdict.sum.text() != before)
    assert "instead of" in kv.hint.text()
    assert f"{KV_SAME_ANSWERS} of {KV_ANSWERS} short answers were identical" in kv.hint.text()
    page.details.foot.bar.buttons[ModelAction.LOAD].click()
    until(qtbot, lambda: ModelAction.CHAT in page.details.foot.bar.buttons, 30_000)
    loaded = at_lone.services.pool.now.loaded
    assert loaded is not None
    assert loaded.kv == "q8_0"
    kept = sum(stage.kv_bytes for stage in loaded.stages)
    assert kept == loaded.kv_bytes["q8_0"]
    assert 64 * kept == 34 * loaded.kv_bytes["f16"]
    answers: list[Any] = []
    body = {"messages": [{"role": "user", "content": "How do I add a computer?"}], "max_tokens": 24}
    client.call("POST", "/ask", body | {"sampling": {"temperature": 0}}, answers.append)
    until(qtbot, lambda: answers and answers[-1].get("text"))
    assert ModelAction.LOAD not in page.details.foot.bar.buttons
    kv.combo.setCurrentIndex(kv.combo.findData("f16"))
    until(qtbot, lambda: ModelAction.LOAD in page.details.foot.bar.buttons)  # it differs from what is loaded


def test_a_model_whose_heads_are_too_small_says_so(qtbot: QtBot) -> None:
    made = KvChoice()
    qtbot.addWidget(made)
    made.offer("q8_0", possible=False)
    assert (made.kind, made.combo.isEnabled()) == ("f16", False)
    assert "too small for q8_0" in made.hint.text()
    made.offer("q8_0", possible=True)
    assert (made.kind, made.combo.isEnabled()) == ("q8_0", True)
    made.offer(None, possible=True)
    assert made.hint.isHidden()  # nothing is known of it: no room is kept for that
    assert made.kind == "f16"
