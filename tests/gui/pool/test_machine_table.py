"""The table has every machine, sorts by values rather than words, and keeps what is chosen."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QRect, Qt
from PySide6.QtWidgets import QApplication, QStyle, QStyledItemDelegate, QStyleOptionViewItem
from pytestqt.modeltest import ModelTester
from pytestqt.qtbot import QtBot

from app.gui.look.theme import Scheme, Theme
from app.gui.pool.machine_facts import machines_of
from app.gui.pool.pool_tables import COMPUTES, SHARE, MachineModel, MachineTable
from testbed.snapshots import household, machine, snapshot_of
from tests.gui.speaking import speaking

USUAL_WIDTH = 952  # of the table in a window as it first opens


@pytest.fixture
def table(qtbot: QtBot, qapp: QApplication) -> MachineTable:
    made = MachineTable(Theme(qapp, Scheme.LIGHT, 1.0))
    qtbot.addWidget(made)
    return made


@pytest.fixture
def german(qapp: QApplication) -> Iterator[None]:
    with speaking(qapp, "de"):
        yield


def column(table: MachineTable, number: int) -> list[str]:
    model = table.model()
    return [str(model.index(row, number).data()) for row in range(model.rowCount())]


def test_the_model_is_sound(qtmodeltester: ModelTester, qapp: QApplication) -> None:
    model = MachineModel(Theme(qapp, Scheme.LIGHT, 1.0))
    model.show_facts(machines_of(snapshot_of(household(3))))
    qtmodeltester.check(model)  # type: ignore[no-untyped-call]


def test_sizes_are_sorted_by_size(table: MachineTable) -> None:
    table.show_machines(machines_of(snapshot_of(household(4))))
    table.sortByColumn(3, Qt.SortOrder.DescendingOrder)
    assert column(table, 3) == ["28.0 GiB", "24.0 GiB", "20.0 GiB", "16.0 GiB"]
    table.sortByColumn(0, Qt.SortOrder.AscendingOrder)
    assert column(table, 0)[0] == "attic-pc"


def test_what_a_way_costs_is_a_number_alone(table: MachineTable) -> None:
    """Its meaning is explained on the map and in the details; here the word was cut off."""
    table.show_machines(machines_of(snapshot_of(household(3))))
    assert sorted(column(table, SHARE)) == ["", "14%", "36%"]


def test_the_choice_outlives_news_and_new_machines(table: MachineTable) -> None:
    table.show_machines(machines_of(snapshot_of(household(3))))
    table.select(machine(1)["id"])
    chosen = table.selected
    news = household(3)
    news["machines"][chosen]["used_bytes"] = 1
    table.show_machines(machines_of(snapshot_of(news)))
    assert table.selected == chosen
    table.show_machines(machines_of(snapshot_of(household(5))))
    assert table.selected == chosen
    assert len(column(table, 0)) == 5


def test_the_table_says_what_a_machine_is_for_us_as_the_map_does(table: MachineTable) -> None:
    snapshot = household(3)
    _, attic, kitchen = (snapshot["machines"][machine(number)["id"]] for number in range(3))
    table.show_machines(machines_of(snapshot_of(snapshot)))
    assert "den-pc (this machine, host)" in column(table, 0)
    kitchen["used_by"] = [attic["id"]]
    table.show_machines(machines_of(snapshot_of(snapshot), center=attic["id"]))
    assert column(table, 0) == ["attic-pc (host)", "den-pc (this machine)", "kitchen-laptop"]
    assert column(table, 4) == ["its own model", "its own model", "layers for attic-pc"]


def test_what_is_not_measured_says_so(table: MachineTable) -> None:
    snapshot = household(2)
    for link in snapshot["links"].values():
        for name in ("measured_round_trip_seconds", "out_bytes_per_s", "in_bytes_per_s", "kind"):
            del link[name]
    table.show_machines(machines_of(snapshot_of(snapshot)))
    table.sortByColumn(0, Qt.SortOrder.AscendingOrder)
    assert column(table, 6)[0] == "not measured"


def test_in_german_no_title_makes_a_column_wider_than_its_figures(german: None, table: MachineTable) -> None:
    """The longest of them would push the last columns out of a window of the usual width."""
    table.resize(USUAL_WIDTH, 500)
    table.show()
    table.show_machines(machines_of(snapshot_of(household(3))))
    for place in (2, 7):  # held of lent, round trip
        assert table.columnWidth(place) <= table.sizeHintForColumn(place) + 8


@pytest.mark.parametrize("language", ["en", "de"])
def test_ten_machines_have_room_in_a_window_of_the_usual_width(
    qapp: QApplication, table: MachineTable, request: pytest.FixtureRequest, language: str
) -> None:
    if language == "de":
        request.getfixturevalue("german")
    table.resize(USUAL_WIDTH, 500)
    table.show()
    table.show_machines(machines_of(snapshot_of(household(10))))
    qapp.processEvents()
    assert table.horizontalScrollBar().maximum() == 0
    for place in (2, 3, 4, 5, 6, 7, 8):  # figures are never shortened
        assert table.columnWidth(place) >= table.sizeHintForColumn(place)
    cell = table.model().index(1, SHARE)
    assert str(cell.data()) in str(cell.data(Qt.ItemDataRole.ToolTipRole))


def test_a_title_stands_over_its_words(qtbot: QtBot, table: MachineTable) -> None:
    """The words of a cell have a margin of Qt's own, which those of a title have not."""
    table.resize(USUAL_WIDTH, 500)
    table.show()
    table.show_machines(machines_of(snapshot_of(household(3))))
    option = QStyleOptionViewItem()
    option.initFrom(table)
    option.rect = table.visualRect(table.model().index(0, 2))
    option.features |= QStyleOptionViewItem.ViewItemFeature.HasDisplay
    option.text = "x"
    words = table.style().subElementRect(QStyle.SubElement.SE_ItemViewItemText, option, table)
    margin = table.style().pixelMetric(QStyle.PixelMetric.PM_FocusFrameHMargin, option, table) + 1
    assert words.left() + margin - option.rect.left() == table._theme.cell


def test_of_a_long_name_its_middle_is_left_out(table: MachineTable) -> None:
    table.show_machines(machines_of(snapshot_of(household(1))))
    option = QStyleOptionViewItem()
    names = table.itemDelegateForColumn(0)
    assert isinstance(names, QStyledItemDelegate)
    option.rect = QRect(0, 0, 40, 20)
    names.initStyleOption(option, table.model().index(0, 0))
    assert option.text.startswith("den-pc (")
    modes = [option.textElideMode]
    option.rect = QRect(0, 0, 140, 20)  # the name has room, what is said of it has not
    names.initStyleOption(option, table.model().index(0, 0))
    modes.append(option.textElideMode)
    assert modes == [Qt.TextElideMode.ElideMiddle, Qt.TextElideMode.ElideRight]


def test_what_a_machine_computes_and_the_age_of_its_link_have_columns(
    table: MachineTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.gui.pool.machine_words.time.time", lambda: 1_790_000_000.0 + 300)
    table.show_machines(machines_of(snapshot_of(household(3))))
    assert sorted(column(table, COMPUTES)) == ["10%", "15%", "5%"]
    assert sorted(column(table, 8)) == ["", "5 min", "5 min"], "none to itself"
    assert not table.isColumnHidden(COMPUTES)
    table.show_machines(machines_of(snapshot_of(household(3, with_model=False))))
    assert table.isColumnHidden(COMPUTES)
