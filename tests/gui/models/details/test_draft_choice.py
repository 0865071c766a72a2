"""The box that lets a smaller model guess ahead: what is sent, and when the model must be loaded again."""

from __future__ import annotations

from dataclasses import replace

from pytestqt.qtbot import QtBot

from app.api.models import ShelfModel
from app.api.plans import LoadedModel
from app.gui.models.details.model_actions import _differs
from app.gui.models.details.plan_loader import Setup
from app.gui.models.details.setup_form import SetupForm
from app.gui.models.model_item import ModelItem
from tests.gui.desk import Desk

ITEM = ModelItem("model:m", "m", ShelfModel(name="m"))
LOADED = LoadedModel(model="m", context=4096, users=1, kv="f16")


def test_only_a_load_names_the_draft() -> None:
    setup = Setup(ITEM, context=4096, draft=True)
    assert setup.load_body() == setup.request_body() | {"draft": "auto"}
    assert "draft" not in setup.request_body()
    assert "draft" not in replace(setup, draft=False).load_body()


def test_a_change_of_the_box_is_a_change_of_the_settings() -> None:
    setup = Setup(ITEM, context=4096)
    assert not _differs(setup, LOADED)
    assert _differs(replace(setup, draft=True), LOADED)
    for ordered, drafts in (("auto", True), ("small", True), ("none", False)):
        loaded = LoadedModel(model="m", context=4096, users=1, kv="f16", draft_ordered=ordered)
        assert _differs(replace(setup, draft=drafts), loaded) is False
        assert _differs(replace(setup, draft=not drafts), loaded) is True


def test_the_box_shows_how_the_model_is_loaded(qtbot: QtBot, at_lone: Desk) -> None:
    form = SetupForm(at_lone.services.pool)
    qtbot.addWidget(form)
    form.show_item(ITEM, None, draft=True)
    assert form.setup(ITEM, None).draft
    with qtbot.waitSignal(form.changed):
        form.draft.setChecked(False)
    assert not form.setup(ITEM, None).draft
