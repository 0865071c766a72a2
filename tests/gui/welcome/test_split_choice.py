"""The box that splits the first model over the computers that were just paired."""

from __future__ import annotations

from typing import Any

import pytest

from app.api.models import ShelfModel
from app.decoding import convert
from app.gui.models.model_item import shelf_item
from app.gui.models.model_starter import ModelStarter
from app.gui.welcome.first_models import Choice, Source
from app.gui.welcome.model_page import ModelPage
from app.gui.welcome.split_choice import SPLIT, SplitChoice
from tests.gui.desk import Desk

LENDS = {"id": "b", "name": "kitchen", "online": True, "roles": ["lender"], "lent_bytes": 1 << 30}


def household(desk: Desk, **changes: Any) -> None:
    """This computer and another one, which lends unless the changes say otherwise."""
    this = LENDS | {"id": "a", "name": "study", "this": True}
    desk.services.pool.snapshot = {"machines": {"a": this, "b": LENDS | changes}}


def choice(source: Source = Source.HERE, **facts: Any) -> Choice:
    item = shelf_item(convert({"name": "model", "splits": True} | facts, ShelfModel))
    return Choice("key", source, "Model", "", item=item)


@pytest.mark.parametrize(
    ("changes", "offered"),
    [({}, True), ({"online": False}, False), ({"lent_bytes": 0}, False), ({"roles": ["guest"]}, False)],
)
def test_it_is_offered_while_another_computer_lends(away: Desk, changes: dict[str, Any], offered: bool) -> None:
    household(away, **changes)
    made = SplitChoice(away.services.pool)
    made.show_for(choice(shipped=True))
    assert made.isHidden() is not offered
    assert made.shape == (SPLIT if offered else None)


@pytest.mark.parametrize("other", [None, choice(Source.DOWNLOAD), choice(splits=False)])
def test_what_cannot_be_split_now_is_left_to_the_planner(away: Desk, other: Choice | None) -> None:
    household(away)
    made = SplitChoice(away.services.pool)
    made.show_for(choice(shipped=True))
    made.show_for(other)
    assert (made.isHidden(), made.shape) == (True, None)


def test_it_begins_checked_for_the_model_that_came_with_it_and_a_click_is_kept(away: Desk) -> None:
    household(away)
    made = SplitChoice(away.services.pool)
    shapes = list[str | None]()
    for shipped in (False, True):
        made.show_for(choice(shipped=shipped))
        shapes.append(made.shape)
    made.box.click()
    for shipped in (True, False):
        made.show_for(choice(shipped=shipped))
        shapes.append(made.shape)
    assert shapes == [None, SPLIT, None, None]


def test_the_box_decides_what_is_requested(away: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    household(away)
    bodies: list[dict[str, Any]] = []
    starter_loads = ModelStarter(away.services, away.services.pool)
    monkeypatch.setattr(starter_loads._loader, "start", lambda setup: bodies.append(setup.request_body()))
    item = choice(shipped=True).item
    assert item is not None
    for shape in (SPLIT, None):
        starter_loads.start(item, None, shape)
        starter_loads.stop()
    assert [body["shape"] for body in bodies] == [SPLIT, None]


def test_the_page_loads_as_the_box_says(away: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    household(away)
    page = ModelPage(away.services)
    started: list[tuple[Any, ...]] = []
    monkeypatch.setattr(page.starter, "start", lambda *words: started.append(words))
    monkeypatch.setattr(page.models, "choices", lambda: (choice(shipped=True),))
    page.models.changed.emit()
    assert not page.split.isHidden()
    page.press_main()
    page.split.box.click()
    page.press_main()
    assert [words[-1] for words in started] == [SPLIT, None]
    page.cancel()
