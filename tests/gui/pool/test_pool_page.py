"""The Pool page over real nodes: alone, paired, left out, renamed, removed."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QMenu, QPushButton, QRadioButton, QWidget
from pytestqt.qtbot import QtBot

from app.api.snapshot import LinkReport
from app.core.errors import Reason, Refused
from app.gui.pool import pool_actions
from app.gui.pool.machine_dialogs import InterfaceDialog, RemoveMachineDialog, RenameMachineDialog, RolesDialog
from app.gui.pool.pool_page import PoolPage
from app.gui.settings.household import Household
from testbed.snapshots import household
from tests.gui.desk import Desk, desk, follow
from tests.node.pool import TestNode, paired


@pytest.fixture(scope="module")
def pair_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[TestNode]]:
    with paired(tmp_path_factory.mktemp("two"), "den", "attic") as nodes:
        yield nodes


@pytest.fixture
def page(qtbot: QtBot, qapp: QApplication, pair_of: list[TestNode]) -> Iterator[PoolPage]:
    made = desk(qapp, pair_of[0].root)
    follow(qtbot, made.services)
    yield shown(qtbot, made)
    made.services.pool.stop()


def shown(qtbot: QtBot, made: Desk) -> PoolPage:
    page = PoolPage(made.services)
    qtbot.addWidget(page)
    page.resize(1000, 720)
    page.show()
    page.shown()  # as the window says; news of a node at rest may not come for long
    return page


def test_one_machine_alone_says_what_fits_and_has_one_primary_button(qtbot: QtBot, at_lone: Desk) -> None:
    page = shown(qtbot, at_lone)
    assert page.alone.isVisible()

    def told() -> None:
        assert "fit on this machine now" in page.alone.sentence.text(), (
            page.load_forecast.now,
            at_lone.services.pool.now.loaded,
        )

    qtbot.waitUntil(told, timeout=30_000)
    primary = [
        button for button in page.findChildren(QPushButton)
        if button.property("role") == "primary" and button.isVisible()
    ]  # fmt: skip
    assert primary == [page.add]
    assert page.headline.choose.isVisible()
    page.headline.choose.click()
    assert at_lone.went == ["models"]


def test_everything_with_the_keyboard_has_a_name(page: PoolPage) -> None:
    page.choose(page.machines[1].id)
    nameless = [
        widget
        for widget in page.findChildren(QWidget)
        if widget.focusPolicy() is not Qt.FocusPolicy.NoFocus
        and widget.isVisible()
        and widget.focusProxy() is None
        and not (widget.accessibleName() or getattr(widget, "text", str)())
    ]
    assert not nameless
    page.choose("")


def test_where_no_node_runs_the_page_waits(qtbot: QtBot, away: Desk) -> None:
    page = shown(qtbot, away)
    assert page.views.currentWidget() is page.views.away
    assert not page.add.isVisible()
    assert not page.alone.isVisible()


def test_both_views_show_both_machines_and_share_the_choice(qtbot: QtBot, page: PoolPage) -> None:
    names = [machine.name for machine in page.machines]
    assert names == ["den", "attic"]
    attic = page.machines[1].id
    page.views.map.select(attic)
    assert page.inspector.isVisible()
    assert page.views.table.selected == attic
    page.view_choice.buttons["table"].click()
    assert page.views.currentWidget() is page.views.tables
    assert page.services.preferences.text("pool/view") == "table"
    page.views.table.select(page.machines[0].id)
    assert page.views.map.selected == page.machines[0].id
    page.view_choice.buttons["map"].click()


def test_what_was_reported_goes_when_the_next_thing_is_begun(page: PoolPage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that was removed and added again is part of the household."""
    monkeypatch.setattr("app.gui.pool.pool_page.AddMachineDialog", lambda *_: SimpleNamespace(open=lambda: None))
    page.notice.say("attic is no longer part of the household.")
    page.add_machine()
    assert page.notice.isHidden()
    page._say_removed("This machine was removed.")
    page.add_machine()
    assert page.notice.sentence == "This machine was removed."
    page._say_removed(None)


def test_it_opens_at_a_machine(page: PoolPage) -> None:
    page.open(page.machines[1].id)
    assert page.views.map.selected == page.machines[1].id
    assert page.inspector.isVisible()
    page.choose("")


@pytest.mark.long
def test_leaving_a_machine_out_says_what_that_changes_and_loads_nothing(qtbot: QtBot, page: PoolPage) -> None:
    page.shown()
    qtbot.waitUntil(lambda: page.load_forecast.now.fits, timeout=10_000)
    attic = page.machines[1]
    page.machine_actions.toggle(attic)
    assert page.machines[1].left_out
    qtbot.waitUntil(lambda: page.load_forecast.then is not None, timeout=10_000)
    assert page.what_if.isVisible()
    assert "Without attic" in page.what_if.words.text()
    assert page.services.pool.now.loaded is None
    page.what_if.load.click()
    qtbot.waitUntil(lambda: (page.services.pool.now.loaded and page.services.pool.now.loaded.state) == "ready")
    qtbot.waitUntil(lambda: not page.what_if.isVisible(), timeout=5000)
    assert page.machines[0].host
    assert not page.machines[1].held.layers
    page.headline.unload.click()
    qtbot.waitUntil(lambda: page.services.pool.now.loaded is None, timeout=10_000)
    qtbot.waitUntil(lambda: "unloaded" in page.notice.sentence, timeout=5000)


@pytest.mark.long
def test_dots_move_while_an_answer_crosses_the_links(qtbot: QtBot, page: PoolPage) -> None:
    pool, client = page.services.pool, page.services.client
    problems: list[object] = []
    client.post("/load", {"model": "guide", "split": [3, 2, 3]}, lambda _: None, problems.append)
    qtbot.waitUntil(lambda: bool(problems) or (pool.now.loaded and pool.now.loaded.state) == "ready")
    assert not problems
    qtbot.waitUntil(lambda: bool(page.machines[1].held.layers), timeout=5000)
    assert not page.views.map.traffic.moves
    body = {"prompt": "Hello", "max_tokens": 1500, "ignore_end": True}  # until it is cancelled
    ask = client.call("POST", "/ask", body, lambda _: None, problems.append, lambda _: None)
    qtbot.waitUntil(lambda: page.views.map.traffic.moves or bool(problems), timeout=20_000)
    assert ask is not None
    assert not problems
    ask.cancel()
    qtbot.waitUntil(lambda: not page.views.map.traffic.moves, timeout=10_000)
    page.headline.unload.click()
    qtbot.waitUntil(lambda: pool.now.loaded is None, timeout=10_000)


def test_a_test_of_links_gives_figures(qtbot: QtBot, page: PoolPage) -> None:
    assert page.test.isVisible()
    page.test.click()
    assert not page.test.isEnabled()
    qtbot.waitUntil(page.test.isEnabled, timeout=20_000)
    qtbot.waitUntil(lambda: bool(speed_of(page)), timeout=5000)  # told a moment after the answer
    link = page.machines[1].link
    assert link is not None
    assert link.kind == "loopback"


def speed_of(page: PoolPage) -> float | None:
    link = page.machines[1].link
    return link.out_bytes_per_s if link else None


def test_the_link_to_one_machine_is_tested_and_its_interface_chosen(qtbot: QtBot, page: PoolPage) -> None:
    attic = page.machines[1]
    page.choose(attic.id)
    before = attic.link.measured_at if attic.link else None
    assert page.inspector.buttons.test.isVisible()

    def measured() -> bool:
        is_new = getattr(page.machines[1].link, "measured_at", None) != before
        if not is_new and page.inspector.buttons.test.isEnabled():  # or refused: a machine still worked
            page.inspector.buttons.test.click()
        return is_new

    qtbot.waitUntil(measured)
    qtbot.waitUntil(page.inspector.buttons.test.isEnabled, timeout=5000)
    page.machine_actions.prefer(page.machines[1])
    sheet = page.findChild(InterfaceDialog)
    assert sheet is not None
    qtbot.waitUntil(sheet.act.isEnabled, timeout=5000)
    assert sheet.choices[0].isChecked()
    assert sheet.choices[0].text() == "Fastest available"
    assert not any("(lo)" in choice.text() for choice in sheet.choices)
    sheet.act.click()
    qtbot.waitUntil(lambda: "Traffic to attic now uses" in page.notice.sentence, timeout=20_000)


def test_a_wrong_interface_is_named_with_the_button_that_changes_it(
    qtbot: QtBot, away: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[tuple[Any, ...]] = []
    made = household(3)
    made["machines"][f"{0:064x}"]["roles"] = ["admin", "host", "lender"]
    far = f"{1:064x}"
    made["links"][far] |= {
        "kind": "vpn", "interface": "wg0", "preferred": None, "preferred_reason": None,
        "better_interface": "eth0",
        "better_reason_facts": {
            "code": "interface_through_vpn",
            "facts": {"machine": "attic-pc", "used": "wg0", "interface": "eth0"},
        },
    }  # fmt: skip
    away.services.pool.snapshot = made
    page = shown(qtbot, away)
    page.choose(f"{2:064x}")
    assert not page.inspector.use.isVisible()
    assert not page.inspector.trouble.isVisible()
    page.choose(far)
    assert page.inspector.trouble.isVisible()
    assert page.inspector.use.isVisible()
    assert "through a VPN" in page.inspector.trouble.text()
    assert page.inspector.use.text() == "Use eth0"
    monkeypatch.setattr(away.services.client, "post", lambda *order, **_: requests.append(order))
    page.inspector.use.click()
    assert requests[0][:2] == (f"/machines/{far}/interface", {"interface": "eth0"})
    report = LinkReport(interface="eth0", out_bytes_per_s=1e8, in_bytes_per_s=1e8)
    unused = Reason("interface_through_vpn", {"machine": "attic-pc", "used": "wg0", "interface": "eth0"})
    requests[0][2](replace(report, preferred_reason_facts=unused))
    assert page.notice.sentence.startswith("Traffic to attic-pc goes through a VPN (wg0).")
    page.machine_actions._preferred("attic-pc", report)
    assert page.notice.sentence == "Traffic to attic-pc now uses eth0 (800 Mbit/s)."
    menu = QMenu()
    page.machine_actions.fill(menu, next(machine for machine in page.machines if machine.id == far))
    names = [act.text() for act in menu.actions() if act.text()]
    assert names == [
        "Details", "Exclude", "Test link", "Choose interface…", "Rename…", "Permissions…",
        "Remove from household…",
    ]  # fmt: skip
    page.choose("")
    menu.actions()[0].trigger()
    assert page.inspector.isVisible()


def test_a_machine_that_is_not_reached_leads_to_the_reason(
    qtbot: QtBot, away: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[object] = []
    monkeypatch.setattr(pool_actions, "open_doctor", lambda services, _: opened.append(services))
    made, far = household(3), f"{1:064x}"
    made["machines"][far]["online"] = False
    away.services.pool.snapshot = made
    page = shown(qtbot, away)
    page.choose(f"{2:064x}")
    assert not page.inspector.buttons.unseen.isVisible()
    page.choose(far)
    assert page.inspector.buttons.first is page.inspector.buttons.unseen
    page.inspector.buttons.unseen.click()
    menu = QMenu()
    page.machine_actions.fill(menu, next(machine for machine in page.machines if machine.id == far))
    next(act for act in menu.actions() if act.text() == "Find out why…").trigger()
    assert opened == [away.services, away.services]


def test_a_machine_that_gave_wrong_numbers_says_so_and_is_taken_back_there(
    qtbot: QtBot, away: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[Any] = []
    made, far = household(3), f"{1:064x}"
    why = "attic-pc computed wrong numbers in a check, so this machine gives it no more layers."
    made["machines"][far] |= {
        "doubted": True,
        "reason_facts": {"code": "machine_doubted", "facts": {"machine": "attic-pc"}},
    }
    away.services.pool.snapshot = made
    page = shown(qtbot, away)
    page.choose(f"{2:064x}")
    assert not page.inspector.buttons.again.isVisible()
    page.choose(far)
    assert why in page.inspector.why.toolTip()
    assert not page.inspector.buttons.leave.isVisible()
    assert page.inspector.buttons.first is page.inspector.buttons.again
    monkeypatch.setattr(away.services.client, "post", lambda *order, **_: requests.append(order))
    page.inspector.buttons.again.click()
    menu = QMenu()
    page.machine_actions.fill(menu, next(machine for machine in page.machines if machine.id == far))
    names = {act.text(): act for act in menu.actions() if act.text()}
    assert "Exclude" not in names
    names["Use again"].trigger()
    assert [order[:2] for order in requests] == [(f"/machines/{far}/use-again", {})] * 2


def test_who_may_not_change_the_household_is_not_offered_it(
    qtbot: QtBot, away: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = household(3)
    attic = next(machine for machine in made["machines"].values() if machine["name"] == "attic-pc")
    attic["roles"] = ["admin", "host", "lender"]
    made["strangers"] = {"b" * 16: {"name": None, "addresses": ["10.0.0.9"]}}
    away.services.pool.snapshot = made
    page = shown(qtbot, away)
    assert not page.add.isVisible()
    menu = QMenu()
    page.machine_actions.fill(menu, page.machines[2])
    why = "This machine can't change the household. Make the change on attic-pc."
    assert [(act.text(), act.isEnabled()) for act in menu.actions()][-1] == (why, False)
    assert "Rename…" not in [act.text() for act in menu.actions()]
    page.nearby.findChildren(QPushButton)[0].click()
    assert page.notice.sentence == why
    settings = Household(away.services)
    qtbot.addWidget(settings)
    settings._tell()
    assert not settings._adds.isEnabled()
    assert settings._another.about.text() == why
    names = [button.text() for button in settings.findChildren(QPushButton)]
    assert "Remove…" not in names
    made["machines"][f"{0:064x}"]["roles"] = ["admin", "host", "lender"]
    away.services.pool.snapshot = dict(made)
    away.services.pool.changed.emit()
    settings._tell()
    assert page.add.isVisible()
    assert settings._adds.isEnabled()
    page.machine_actions.fill(menu, page.machines[2])
    assert menu.actions()[-1].text() == "Remove from household…"


def _the_link_is_the_one_to_the_host(page: PoolPage, monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine carries it, and what is tested and changed is the way to that host."""
    requests: list[str] = []
    monkeypatch.setattr(page.services.client, "post", lambda path, *_, **__: requests.append(path.rpartition("=")[2]))
    page.choose(page.machines[1].id)
    assert page.machines[1].this
    page.inspector.buttons.test.click()
    page.machine_actions.use_interface(page.machines[1])
    assert requests == [f"{1:064x}", f"/machines/{1:064x}/interface"]
    page.choose("")


def test_where_several_models_run_a_person_chooses_whose_is_shown(
    qtbot: QtBot, away: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = household(3)
    made["links"][f"{1:064x}"]["better_interface"] = "eth0"
    made["answers"]["running"] = 1
    away.services.pool.snapshot = made
    page = shown(qtbot, away)
    assert not page.placements.isVisible()
    assert page.views.map._active
    made["machines"][f"{2:064x}"]["used_by"] = [f"{0:064x}", f"{1:064x}"]
    away.services.pool.snapshot = dict(made)
    away.services.pool.changed.emit()
    assert page.placements.isVisible()
    names = [page.placements.box.itemText(at) for at in range(page.placements.box.count())]
    assert names == ["den-pc (this machine)", "attic-pc"]
    assert page.machines[0].name == "den-pc"
    page.placements.box.setCurrentIndex(1)
    page.placements.box.activated.emit(1)
    assert (page.machines[0].name, page.machines[0].host) == ("attic-pc", True)
    assert not page.views.map._active  # the answer is ours, and runs through our placement
    _the_link_is_the_one_to_the_host(page, monkeypatch)
    made["machines"][f"{2:064x}"]["used_by"] = []
    away.services.pool.snapshot = dict(made)
    away.services.pool.changed.emit()
    assert not page.placements.isVisible()
    assert page.machines[0].name == "den-pc"


def test_a_machine_is_renamed_and_gets_other_rights(qtbot: QtBot, page: PoolPage) -> None:
    page.machine_actions.rename(page.machines[1])
    sheet = page.findChild(RenameMachineDialog)
    assert sheet is not None
    sheet.name.setText("x" * 65)
    assert (sheet.act.isEnabled(), sheet.name.problem.isVisible()) == (False, True)
    sheet.name.setText("loft")
    sheet.act.click()
    qtbot.waitUntil(lambda: page.machines[1].name == "loft", timeout=10_000)
    page.machine_actions.choose_roles(page.machines[1])
    roles = page.findChild(RolesDialog)
    assert roles is not None
    roles.choice.choose("lend")
    roles.act.click()
    qtbot.waitUntil(lambda: page.machines[1].roles == {"lender"}, timeout=10_000)


def test_pausing_shows_its_reason_and_can_be_undone(qtbot: QtBot, page: PoolPage) -> None:
    page.machine_actions.pause(3600)
    qtbot.waitUntil(lambda: page.machines[0].state == "paused", timeout=10_000)
    page.choose(page.machines[0].id)
    assert page.machines[0].reason
    assert page.inspector.buttons.resume.isVisible()
    page.inspector.buttons.resume.click()
    qtbot.waitUntil(lambda: page.machines[0].state != "paused", timeout=10_000)


def test_a_removed_machine_is_gone_from_the_page(qtbot: QtBot, page: PoolPage) -> None:
    """The last test of these nodes."""
    page.choose(page.machines[1].id)
    page.machine_actions.remove(page.machines[1])
    sheet = page.findChild(RemoveMachineDialog)
    assert sheet is not None
    sheet._refused(Refused("remove_added", name="loft", added="hall-pc"))
    assert [button.text() for button in sheet.findChildren(QRadioButton)] == ["Keep: hall-pc", "Also remove: hall-pc"]
    sheet.act.click()
    qtbot.waitUntil(lambda: len(page.machines) == 1, timeout=10_000)
    assert not page.inspector.isVisible()
    text = "no longer part of the household"
    qtbot.waitUntil(lambda: text in page.notice.sentence, timeout=5000)
