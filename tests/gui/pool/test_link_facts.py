"""Links between two lenders: each once, as both ends see it, in the table and beside what is chosen."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication
from pytestqt.modeltest import ModelTester
from pytestqt.qtbot import QtBot

from app.api.snapshot import LinkMeasurement
from app.decoding import convert
from app.gui.look.theme import Scheme, Theme
from app.gui.pool.machine_facts import lender_links, machines_of, reversed_link
from app.gui.pool.map.card_item import all_lines
from app.gui.pool.map.link_items import plate_rows
from app.gui.pool.pool_page import PoolPage
from app.gui.pool.pool_tables import LinkTable
from testbed.snapshots import household, link, snapshot_of
from tests.gui.desk import Desk

IDS = [f"{number:064x}" for number in range(4)]
BETTER = {"code": "interface_through_vpn", "facts": {"machine": "attic-pc", "used": "wg0", "interface": "eth0"}}


@pytest.mark.parametrize("center", [IDS[0], IDS[2]])
def test_every_link_that_does_not_end_in_the_center_is_found_once(center: str) -> None:
    """This machine's own links too, where another one's placement is shown."""
    links = lender_links(snapshot_of(household(4)), center)
    pairs = {frozenset(pair) for pair in combinations(IDS, 2) if center not in pair}
    assert {frozenset(lender_link.ends) for lender_link in links} == pairs
    assert len(links) == len(pairs)
    assert [lender_link.names for lender_link in links] == sorted(lender_link.names for lender_link in links)
    own = [lender_link for lender_link in links if IDS[0] in lender_link.ends]
    assert [bool(lender_link.link.to) for lender_link in own] == [True] * len(own)  # they can be tested here


def test_links_of_machines_that_are_not_known_are_passed_over() -> None:
    snapshot = household(3)
    snapshot["links_between"] = {IDS[1]: {IDS[3]: link(1), IDS[1]: link(1)}, IDS[3]: {IDS[2]: link(1)}}
    assert lender_links(snapshot_of(snapshot), IDS[0]) == ()
    assert lender_links(snapshot_of({}), "") == ()


def test_the_other_end_sees_it_the_other_way_round() -> None:
    there = convert(link(2, interface="eno1", far_interface="wlan0", far_kind="wifi"), LinkMeasurement)
    back = reversed_link(there)
    assert (back.out_bytes_per_s, back.in_bytes_per_s) == (60e6, 58.5e6)
    assert (back.interface, back.far_interface) == ("wlan0", "eno1")
    assert reversed_link(back) == there


def test_another_host_s_placement_shows_that_host_s_own_links() -> None:
    """Told by the host, or by the machine at its other end; what is measured there is not tested here."""
    machines = {
        machine_facts.id: machine_facts for machine_facts in machines_of(snapshot_of(household(4)), center=IDS[2])
    }
    assert machines[IDS[2]].link is None
    mine, link_facts, turned_ = (machines[IDS[n]].link for n in (0, 3, 1))
    assert mine is not None
    assert link_facts is not None
    assert turned_ is not None
    assert mine.to == IDS[2]
    assert (link_facts.to, link_facts.interface) == ("", "eno1")
    assert turned_.interface == "wlan0"
    assert [machines[IDS[n]].can_test for n in range(4)] == [True, False, False, False]


@pytest.fixture
def table(qtbot: QtBot, qapp: QApplication) -> LinkTable:
    made = LinkTable(Theme(qapp, Scheme.LIGHT, 1.0))
    qtbot.addWidget(made)
    return made


def test_the_table_has_the_same_links_and_sorts_them(table: LinkTable, qtmodeltester: ModelTester) -> None:
    assert table.isHidden()
    table.show_links(lender_links(snapshot_of(household(4)), IDS[0]))
    assert not table.isHidden()
    model = table.table.model()
    shown = [[str(model.index(row, at).data()) for at in range(6)] for row in range(3)]
    assert [row[0] for row in shown] == [
        "attic-pc – kitchen-laptop", "attic-pc – studio-mac", "kitchen-laptop – studio-mac",
    ]  # fmt: skip
    assert shown[0][1:4] == ["468 Mbit/s", "480 Mbit/s", "1.0 ms"]
    assert shown[0][4].startswith("Wi-Fi (eno1, 1.00 Gbit/s) here, Wi-Fi (wlan0)")
    table.table.sortByColumn(1, Qt.SortOrder.AscendingOrder)
    assert str(model.index(0, 1).data()) == "312 Mbit/s"
    qtmodeltester.check(table.table._model)  # type: ignore[no-untyped-call]
    table.show_links(())
    assert table.isHidden()


def test_another_size_of_text_is_told_of_every_cell(qtbot: QtBot, qapp: QApplication) -> None:
    """Otherwise Qt keeps the previous heights and widths."""
    theme = Theme(qapp, Scheme.LIGHT, 1.0)
    made = LinkTable(theme)
    qtbot.addWidget(made)
    made.show_links(lender_links(snapshot_of(household(4)), IDS[0]))
    reports: list[tuple[int, int, int, int]] = []
    made.table._model.dataChanged.connect(
        lambda item, last: reports.append((item.row(), item.column(), last.row(), last.column()))
    )
    rows = made.table.verticalHeader()
    before = rows.defaultSectionSize()
    theme.choose(Scheme.LIGHT, 2.0)
    assert reports == [(0, 0, 2, 5)]
    assert rows.defaultSectionSize() == 2 * before
    made.show_links(())
    theme.choose(Scheme.LIGHT, 1.0)
    assert len(reports) == 1  # there is no cell to tell of


def test_of_links_that_change_only_these_are_told_and_a_choice_stays(table: LinkTable) -> None:
    model, every = table.table._model, lender_links(snapshot_of(household(4)), IDS[0])
    table.show_links(every)
    reports: list[tuple[int, int, int, int]] = []
    anew: list[int] = []
    model.dataChanged.connect(lambda item, last: reports.append((item.row(), item.column(), last.row(), last.column())))
    model.modelReset.connect(lambda: anew.append(1))
    slower = replace(every[1], link=replace(every[1].link, round_trip_s=9.0))
    table.show_links((every[0], slower, every[2]))
    assert (reports, anew) == ([(1, 0, 1, 5)], [])
    table.show_links(every[::-1])
    assert anew == [1]  # others stand in these places now


def test_the_page_tells_a_chosen_machine_s_links(qtbot: QtBot, away: Desk) -> None:
    away.services.pool.snapshot = household(4)
    page = PoolPage(away.services)
    qtbot.addWidget(page)
    page.finish()
    assert len(page.lender_links) == 3
    assert page.views.links.table.model().rowCount() == 3
    page.choose(IDS[1])
    entries = dict(page.inspector.facts.shown)
    assert entries["To kitchen-laptop"] == "468 Mbit/s, 1.0 ms, Wi-Fi"
    assert entries["To studio-mac"].startswith("312 Mbit/s")
    page.choose(IDS[0])
    assert not [name for name, _ in page.inspector.facts.shown if name.startswith("To ")]


def test_both_names_of_a_link_are_whole_before_how_it_is_carried(qapp: QApplication, table: LinkTable) -> None:
    table.resize(952, 300)
    table.show()
    table.show_links(lender_links(snapshot_of(household(10)), IDS[0]))
    qapp.processEvents()
    assert table.table.columnWidth(0) >= table.table.sizeHintForColumn(0)


@pytest.mark.parametrize(("compact", "rows"), [(False, 3), (True, 2)])
def test_the_map_itself_names_a_link_that_has_a_better_way(compact: bool, rows: int) -> None:
    snapshot = household(3)
    snapshot["links"][IDS[1]] |= {"kind": "vpn", "better_reason_facts": BETTER}
    link_facts = machines_of(snapshot_of(snapshot))[1].link
    assert link_facts is not None
    badges = plate_rows(link_facts, compact=compact)
    assert len(badges) == rows
    assert (badges[1].word, badges[1].color) == ("VPN (not the fastest option)", "warning")


def test_a_card_s_words_hold_power_and_another_version() -> None:
    machine = machines_of(snapshot_of(household(2)))[1]
    facts = replace(machine, hardware=replace(machine.hardware, watts=42), other_version="0.2")
    assert {"42 W", "Runs Poolhouse 0.2"} <= set(all_lines(facts))
