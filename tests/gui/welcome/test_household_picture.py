"""The drawing of the household: who is in it, who could join, and the same in words."""

from __future__ import annotations

from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from app.api.snapshot import LendingState
from app.gui.look.theme import Scheme
from app.gui.welcome.household_picture import HouseholdPicture, Standing, computers_of, together_bytes
from testbed.snapshots import household, snapshot_of
from tests.gui.desk import Desk

GIB = 1 << 30
NEAR = {"a" * 16: {"name": "attic", "addresses": ["10.0.0.9"], "pairing_address": "10.0.0.9:4"}, "b" * 16: {}}


def made(number: int, **more: Any) -> dict[str, Any]:
    node = {"id": f"{0:064x}", "name": "den-pc", "lending": {"free_bytes": 5 * GIB, "total_bytes": 8 * GIB}}
    return household(number, with_model=False) | {"node": node, "strangers": {}} | more


def test_alone_it_shows_the_place_of_another() -> None:
    here, other = computers_of(snapshot_of(made(1)), "study", 5 * GIB)
    assert (here.name, here.note, here.standing) == ("study", "5.0 GiB", Standing.THIS)
    assert other.standing is Standing.IMAGINED


def test_members_are_inside_and_those_nearby_outside() -> None:
    snapshot = snapshot_of(made(3, strangers=NEAR))
    standings = [computer.standing for computer in computers_of(snapshot, "study", 5 * GIB)]
    assert standings == [Standing.THIS, Standing.MEMBER, Standing.MEMBER, Standing.NEARBY, Standing.NEARBY]
    assert [computer.note for computer in computers_of(snapshot, "study", 5 * GIB)][-2:] == ["showing a code", ""]
    assert together_bytes(snapshot, 5 * GIB) == (5 + 10 + 12) * GIB


def test_who_is_offline_is_drawn_and_adds_nothing() -> None:
    made_of_two = made(2)
    made_of_two["machines"][f"{1:064x}"] |= {"online": False, "state": "offline"}
    snapshot = snapshot_of(made_of_two)
    assert computers_of(snapshot, "study", 5 * GIB)[1].standing is Standing.OFFLINE
    assert together_bytes(snapshot, 5 * GIB) == 5 * GIB


@pytest.mark.parametrize("scheme", [Scheme.LIGHT, Scheme.DARK])
def test_it_is_painted_and_read_as_a_sentence(qtbot: QtBot, away: Desk, scheme: Scheme) -> None:
    theme = away.services.theme
    theme.choose(scheme, 1.0)
    picture = HouseholdPicture(away.services)
    qtbot.addWidget(picture)
    picture._told(LendingState(own_most_bytes=5 * GIB))
    picture.show_household(snapshot_of(made(2, strangers=NEAR)), "study")
    picture.resize(picture.sizeHint())
    drawn = picture.grab().toImage()
    colors = {drawn.pixelColor(x, y).name() for x in range(0, drawn.width(), 2) for y in range(0, drawn.height(), 2)}
    assert {theme.colors.accent, theme.colors.good, theme.colors.selected} <= colors
    inside, nearby = "study (5.0 GiB), attic-pc (10.0 GiB)", "attic (showing a code), Nearby"
    assert picture.accessibleName() == f"Your household: {inside}. Together: 15.0 GiB. Nearby: {nearby}."
    theme.choose(Scheme.LIGHT, 1.0)


def test_many_computers_fit_into_a_narrow_window(qtbot: QtBot, away: Desk) -> None:
    picture = HouseholdPicture(away.services)
    qtbot.addWidget(picture)
    picture.show_household(snapshot_of(made(10, strangers=NEAR)), "study")
    picture.resize(400, picture.sizeHint().height())
    assert picture._place() * 6 <= 400
    assert not picture.grab().isNull()
