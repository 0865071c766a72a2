"""Tests of the preview of "Load as well": the effect beside the loaded models, not instead of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from app.api.plans import Plan
from app.core.errors import DoesNotFit
from app.gui.models.details.model_actions import ModelAction
from app.gui.models.models_page import ModelsPage
from testbed import tiny
from tests.gui.desk import Desk
from tests.gui.models.test_models_page import until

MIB = 1 << 20
Json = dict[str, Any]


@pytest.mark.long
def test_the_forecast_beside_what_is_loaded_is_told_and_decides(
    qtbot: QtBot, page: ModelsPage, at_lone: Desk, tmp_path: Path
) -> None:
    details, client = page.details, at_lone.services.client
    bar, view = details.foot.bar, details.foot.beside
    assert not view.isVisibleTo(page)
    bar.buttons[ModelAction.LOAD].click()
    until(qtbot, lambda: ModelAction.CHAT in bar.buttons, 30_000)
    page.import_files([str(tiny.llama(tmp_path / "second.gguf"))])
    until(qtbot, lambda: page.list.chosen_key == "shelf:second")
    until(qtbot, lambda: view.isVisibleTo(page), 30_000)
    requests: list[Json] = []
    plans: list[Plan] = []
    body = {"model": "second", "measure": False, "beside": True}
    client.call("POST", "/plan", body, plans.append, answer=Plan)
    until(qtbot, lambda: bool(plans))
    shown = plans[0].machines[0].lends_bytes - plans[0].machines[0].needs_bytes
    assert view.judgment is not None
    assert abs(view.judgment.verdict.spare_bytes - shown) < 256 * MIB  # free memory moves
    assert view.words.text().startswith("Load alongside: Fits · ")
    assert bar.buttons[ModelAction.LOAD_ALONGSIDE].isEnabled()

    def no_room(method: str, path: str, order: Json, done: Any, failed: Any, **_types: object) -> None:
        requests.append(order)
        if order.get("beside"):
            failed(DoesNotFit("too_large", need_bytes=9 * MIB, lent_bytes=5 * MIB))
        else:
            done(plans[0])

    page.plan_loader._client = type("Client", (), {"call": staticmethod(no_room)})()
    details.plan()
    until(qtbot, lambda: view.words.text() == "Load alongside: Too big by 4.0 MiB")
    assert requests[-1]["beside"]
    assert not bar.buttons[ModelAction.LOAD_ALONGSIDE].isEnabled()
    assert bar.buttons[ModelAction.LOAD].isEnabled()  # in its place it fits
    page.plan_loader._client = client
    page.list.select("shelf:guide")
    until(qtbot, lambda: ModelAction.CHAT in bar.buttons)
    assert not view.isVisibleTo(page)
