"""Several models of this machine side by side: each can be shown alone."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from testbed.snapshots import household
from tests.gui.desk import Desk
from tests.gui.pool.test_pool_page import shown


def test_of_several_models_of_this_machine_one_can_be_shown_alone(qtbot: QtBot, away: Desk) -> None:
    made = household(3)
    made["loaded"]["answering"] = 0
    stages = [{"machine": "kitchen-laptop", "id": f"{2:064x}", "first": 0, "last": 6}]
    made["beside"] = [{"model": "guide", "state": "ready", "answering": 1, "stages": stages}]
    made["answers"]["running"] = 1
    away.services.pool.snapshot = made
    page = shown(qtbot, away)
    box = page.placements.box
    names = [box.itemText(at) for at in range(box.count())]
    llama = "Llama 3.3 70B Q4_K_M"
    assert names == ["den-pc (this machine)", f"den-pc: {llama}", "den-pc: Guide"]
    assert page.views.map._active == {f"{2:064x}"}
    box.setCurrentIndex(2)
    box.activated.emit(2)
    assert [machine.held.layers for machine in page.machines] == [(), (), ((0, 6),)]
    away.services.pool.snapshot = dict(made)
    away.services.pool.changed.emit()
    assert box.currentIndex() == 2, "the choice stays"
    box.setCurrentIndex(1)
    box.activated.emit(1)
    assert not page.views.map._active, "another one answers"
    made["beside"] = []
    away.services.pool.snapshot = dict(made)
    away.services.pool.changed.emit()
    assert not page.placements.isVisible()


def test_a_lender_sees_the_only_host_s_placement_with_nothing_to_choose(qtbot: QtBot, away: Desk) -> None:
    """The dots of its map follow that pipeline, and the headline stands above it."""
    made = household(3)
    made["loaded"] = None
    made["machines"][f"{2:064x}"]["used_by"] = [f"{1:064x}"]
    away.services.pool.snapshot = made
    page = shown(qtbot, away)
    assert not page.placements.isVisible()
    assert (page.machines[0].name, page.machines[0].host) == ("attic-pc", True)
    made["machines"][f"{2:064x}"]["used_by"] = []
    away.services.pool.snapshot = dict(made)
    away.services.pool.changed.emit()
    assert page.machines[0].name == "den-pc"
