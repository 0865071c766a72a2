"""Other servers on the map: a card each, below the machines, with what was measured; and in the table."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.api.chat_api import OtherServer, StreamsSpeed, UpstreamSpeed
from app.gui.app.preferences import Preferences
from app.gui.look.motion import Motion
from app.gui.look.theme import Scheme, Theme
from app.gui.pool.machine_facts import machines_of
from app.gui.pool.map.map_view import MapView, server_key
from app.gui.pool.map.server_item import server_lines
from app.gui.pool.server_table import ServerTable
from testbed.snapshots import household, snapshot_of
from tests.gui.pool.map.test_map_view import drawn

SPEED = UpstreamSpeed(at=1_790_000_000.0, prompt_tokens=310, ttft_s=0.25, decode_tok_s=31.0,
                      at_once=[StreamsSpeed(1, 31.0), StreamsSpeed(4, 88.0)])  # fmt: skip
LAB = OtherServer(name="lab", models=["qwen-32b"], speeds={"qwen-32b": SPEED}, last_contact=1_790_000_000.0)
BARN = OtherServer(name="barn", models=["smol", "big"])


@pytest.fixture
def view(qtbot: QtBot, qapp: QApplication, tmp_path: Path) -> MapView:
    made = MapView(Theme(qapp, Scheme.LIGHT, 1.0), Motion(qapp, Preferences(tmp_path, qapp)))
    qtbot.addWidget(made)
    made.resize(952, 560)
    made.show()
    return made


def test_a_card_says_what_it_serves_and_what_was_measured() -> None:
    assert server_lines(LAB)[:5] == (
        "lab", "another server", "Serves qwen-32b", "31.0 tok/s, first token after 0.3 s",
        "88.0 tok/s with 4 at once",
    )  # fmt: skip
    assert server_lines(LAB)[5].startswith("Last reached at ")
    assert server_lines(BARN)[2:] == ("Serves smol, big", "Speed not measured", "", "Not reached since the start")


@pytest.mark.parametrize("scale", [1.0, 2.0])
@pytest.mark.parametrize("n_machines", [1, 3, 6])
def test_the_cards_lie_on_nothing_and_go_with_their_servers(view: MapView, n_machines: int, scale: float) -> None:
    view._theme.choose(Scheme.LIGHT, scale)
    machines = machines_of(snapshot_of(household(n_machines)))
    view.show_machines(machines, servers=[BARN, LAB])
    for width, height in ((952, 560), (700, 340), (1600, 1000)):
        view.resize(width, height)
        items = [item.sceneBoundingRect() for item in view._server_items.values()]
        assert len(items) == 2
        rects = drawn(view) + items
        assert not [pair for pair in combinations(rects, 2) if pair[0].intersects(pair[1])]
        assert all(view.sceneRect().contains(rect) for rect in rects)
        assert view.horizontalScrollBar().maximum() <= view.horizontalScrollBar().minimum()
    view.show_machines(machines)
    assert not view._server_items
    view._theme.choose(Scheme.LIGHT, 1.0)


def test_keys_reach_a_card_and_a_screen_reader_hears_all_of_it(view: MapView) -> None:
    machines = machines_of(snapshot_of(household(1)))
    view.show_machines(machines, servers=[LAB])
    view.select(machines[0].id)
    heard = list[str]()
    view.chosen.connect(heard.append)
    QTest.keyClick(view, Qt.Key.Key_Down)
    assert view.selected == server_key(LAB)
    assert view.accessibleDescription() == "\n".join(server_lines(LAB))
    assert heard == [""]  # no machine is chosen, so no details of one are shown
    QTest.keyClick(view, Qt.Key.Key_Up)
    assert view.selected == machines[0].id


def test_the_table_shows_the_same(qtbot: QtBot, qapp: QApplication) -> None:
    table = ServerTable(Theme(qapp, Scheme.LIGHT, 1.0))
    qtbot.addWidget(table)
    table.show_servers([LAB])
    model = table.table.model()
    cells = [model.index(0, at).data() for at in range(model.columnCount())]
    assert (cells[0], f"Serves {cells[1]}", *cells[2:]) == (server_lines(LAB)[0], *server_lines(LAB)[2:])
    table.show_servers([])
    assert table.isHidden()
