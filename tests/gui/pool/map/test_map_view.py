"""The map: cards on no other, chosen by keys, still unless an answer runs and somebody can see it."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from PySide6.QtCore import QRectF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.gui.app.preferences import Preferences
from app.gui.look import drawing as drawn_with
from app.gui.look import sizes
from app.gui.look.formats import GIB
from app.gui.look.motion import ALWAYS, NEVER, Motion
from app.gui.look.theme import Scheme, Theme
from app.gui.pool.machine_facts import MemoryFacts, lender_links, machines_of
from app.gui.pool.map.card_item import NOTE_LINES, CardItem, card_sizes
from app.gui.pool.map.link_items import LenderLine, LinkFigures, LinkLine, Plate
from app.gui.pool.map.map_view import SMALLEST_ZOOM, MapView
from testbed.snapshots import household, snapshot_of

Key = Qt.Key
SAMPLES = 200  # of a line
LEAST_CARD = 40  # of a small card, with text of the usual size


@pytest.fixture
def view(qtbot: QtBot, qapp: QApplication, tmp_path: Path) -> MapView:
    made = MapView(Theme(qapp, Scheme.LIGHT, 1.0), Motion(qapp, Preferences(tmp_path, qapp)))
    qtbot.addWidget(made)
    made.resize(952, 500)
    made.show()
    return made


def moves(view: MapView) -> bool:
    return view.traffic.moves


def drawn(view: MapView) -> list[QRectF]:
    """Return the cards and plates on the map as it is drawn."""
    return [
        item.sceneBoundingRect()
        for item in view.scene().items()
        if isinstance(item, CardItem | Plate) and item.isVisible()
    ]


@pytest.mark.parametrize("n_machines", range(1, 11))
def test_what_is_drawn_grows_with_the_text_and_lies_on_nothing(view: MapView, n_machines: int) -> None:
    view._theme.choose(Scheme.LIGHT, 2.0)
    view.show_machines(machines_of(snapshot_of(household(n_machines))))
    for width, height in ((1600, 1000), (952, 500), (700, 340)):
        view.resize(width, height)
        rect_fs = drawn(view)
        assert len(rect_fs) == 2 * n_machines - 1
        assert not [pair for pair in combinations(rect_fs, 2) if pair[0].intersects(pair[1])]
        assert view.transform().m11() >= SMALLEST_ZOOM - 1e-6
        assert not view.horizontalScrollBar().maximum()
    assert card_sizes(view._theme, compact=True)[1].h > 2 * LEAST_CARD
    view._theme.choose(Scheme.LIGHT, 1.0)


@pytest.mark.parametrize(
    ("used", "lent", "expected"),
    [
        (0, GIB, ["lends 1.0 GiB", "2.0 GiB total"]),
        (GIB, 2 * GIB, ["1.0 of 2.0 GiB lent", "4.0 GiB"]),
        (187 << 20, 107 * GIB, ["187 MiB of 107.0 GiB lent"]),
    ],
)
def test_what_is_held_is_whole_on_the_card_where_all_memory_has_no_room_beside_it(
    view: MapView, monkeypatch: pytest.MonkeyPatch, used: int, lent: int, expected: list[str]
) -> None:
    """The total is in the details; `187 MiB of 10,7 …` was useless."""
    drew = list[str]()
    monkeypatch.setattr(drawn_with, "draw_text", lambda *all_of: drew.append(all_of[2]))
    memory = MemoryFacts(total=2 * lent, lent=lent, used=used, own=0)
    machine = replace(machines_of(snapshot_of(household(1)))[0], memory=memory)
    view.show_machines((machine,))
    view.grab()
    assert sorted(name for name in drew if "iB" in name) == sorted(expected)


def test_what_a_card_shortens_is_told_whole(view: MapView) -> None:
    snapshot = household(2)
    snapshot["machines"][f"{1:064x}"] |= {
        "roles": ["admin", "host", "lender"], "layers": [], "used_bytes": 0,
    }  # fmt: skip
    attic = machines_of(snapshot_of(snapshot))[1]
    view.show_machines(machines_of(snapshot_of(snapshot)))
    view.select(attic.id)
    words = "Use, lend, and add or remove machines"
    assert words in view._cards[attic.id].toolTip()
    assert words in view.accessibleDescription()
    view.select("")
    assert view.accessibleDescription().startswith("Use the arrow keys to select a machine")
    limit = "This limits how much memory others can use. Models that you load here may use more."
    assert [limit in card.toolTip() for card in view._cards.values()] == [True, False]


@pytest.mark.parametrize("n_machines", range(1, 11))
def test_what_is_drawn_lies_on_nothing_and_stays_readable(view: MapView, n_machines: int) -> None:
    for width, height in ((952, 500), (712, 340), (1600, 1000)):
        view.resize(width, height)
        view.show_machines(machines_of(snapshot_of(household(n_machines))))
        rect_fs = drawn(view)
        assert len(rect_fs) == 2 * n_machines - 1
        assert not [pair for pair in combinations(rect_fs, 2) if pair[0].intersects(pair[1])]
        assert view.transform().m11() >= SMALLEST_ZOOM - 1e-6
        if (width, height) != (712, 340):
            seen = view.mapToScene(view.viewport().rect()).boundingRect()
            assert all(seen.contains(rect_f) for rect_f in rect_fs)


def test_a_card_has_room_for_every_line_it_draws(view: MapView) -> None:
    """This machine beside another host's card says `This machine`: a line more than other lenders."""
    snapshot = household(3)
    attic = f"{1:064x}"
    snapshot["machines"][f"{2:064x}"]["used_by"] = [attic]
    theme = view._theme
    host, lender = card_sizes(theme, compact=False)
    view.show_machines(machines_of(snapshot_of(snapshot)))
    assert view.places is not None
    assert {round(card.h) for card in view.places.cards} == {lender.h}
    view.show_machines(machines_of(snapshot_of(snapshot), center=attic))
    assert {round(card.h) for card in view.places.cards} == {host.h}
    assert len(drawn(view)) == 3 + 2  # one way to the new center ends here, the other is told
    assert len([pair for pair in view.scene().items() if isinstance(pair, LinkLine)]) == 2


WHY = "studio-mac is not used: 9.6 tok/s with it, 11.8 without it."
WHY_FACTS = {"code": "left_out_slower", "facts": {"machine": "studio-mac", "with_tok_s": 9.6, "without_tok_s": 11.8}}


def test_a_reason_is_broken_into_two_lines_before_it_is_shortened(view: MapView) -> None:
    font = view._theme.font(sizes.CAPTION)
    room = card_sizes(view._theme, compact=False)[1].w - 2 * view._theme.px(sizes.M)
    lines = drawn_with.wrapped(WHY, font, room, NOTE_LINES)
    assert " ".join(lines) == WHY
    assert all(drawn_with.text_width(line, font) <= room for line in lines)
    assert len(lines) == 2
    long = drawn_with.wrapped(WHY * 3, font, room, NOTE_LINES)
    assert len(long) == 2
    assert long[1].endswith("…")
    word = drawn_with.wrapped("x" * 200, font, room, NOTE_LINES)
    assert len(word) == 1
    assert word[0].endswith("…")
    assert drawn_with.wrapped("", font, room, NOTE_LINES) == []


def test_cards_are_higher_where_one_has_a_reason_of_two_lines(view: MapView) -> None:
    snapshot = household(3)
    view.show_machines(machines_of(snapshot_of(snapshot)))
    assert view.places is not None
    before = view.places.cards[0].h
    snapshot["machines"][f"{2:064x}"] |= {"reason_facts": WHY_FACTS, "layers": []}
    view.show_machines(machines_of(snapshot_of(snapshot)))
    assert view.places.cards[0].h > before
    assert view.places.cards[0].h == view.places.cards[1].h
    rect_fs = drawn(view)
    assert not [pair for pair in combinations(rect_fs, 2) if pair[0].intersects(pair[1])]
    view.select(f"{2:064x}")
    assert WHY in view.accessibleDescription()


def lines_of(view: MapView) -> list[LenderLine]:
    return [item for item in view.scene().items() if isinstance(item, LenderLine)]


@pytest.mark.parametrize("n_machines", [2, 3, 5, 6])
def test_links_between_lenders_are_thin_lines_with_their_figures_in_the_tooltip(view: MapView, n_machines: int) -> None:
    snapshot = household(n_machines)
    shown = lender_links(snapshot_of(snapshot), f"{0:064x}")
    view.resize(1600, 1000)
    view.show_machines(machines_of(snapshot_of(snapshot)), lender_links=shown)
    lenders = n_machines - 1
    assert len(shown) == len(lines_of(view)) == lenders * (lenders - 1) // 2
    for line in lines_of(view):
        assert line.pen().widthF() < 1.5  # the host's own
        assert "Mbit/s" in line.toolTip()
        assert "wlan0" in line.toolTip()
        points = [line.path().pointAtPercent(part / SAMPLES) for part in range(SAMPLES + 1)]
        inner = [rect_f.adjusted(1, 1, -1, -1) for rect_f in drawn(view)]
        assert not [(rect_f, at) for rect_f in inner for at in points if rect_f.contains(at)]
    view.show_machines(machines_of(snapshot_of(household(2))))
    assert not lines_of(view)


def test_figures_stand_on_a_line_where_the_gap_is_high_enough(view: MapView) -> None:
    snapshot = household(3)
    shown = lender_links(snapshot_of(snapshot), f"{0:064x}")
    view.show_machines(machines_of(snapshot_of(snapshot)), lender_links=shown)
    (plate,) = [item for item in view.scene().items() if isinstance(item, LinkFigures)]
    assert plate.isVisible()
    assert not [rect_f for rect_f in drawn(view) if rect_f.intersects(plate.sceneBoundingRect())]
    view.resize(952, 330)
    assert not plate.isVisible()
    assert plate.toolTip() == lines_of(view)[0].toolTip()


def test_of_many_machines_the_chosen_one_s_links_are_drawn(view: MapView) -> None:
    snapshot = household(10)
    view.show_machines(
        machines_of(snapshot_of(snapshot)), lender_links=lender_links(snapshot_of(snapshot), f"{0:064x}")
    )
    view.resize(1600, 1000)
    assert not lines_of(view)
    before, zoom = view.places, view.transform().m11()
    view.select(f"{4:064x}")
    assert len(lines_of(view)) == 8
    assert before is not None
    assert view.places is not None
    assert (view.places.cards, view.transform().m11()) == (before.cards, zoom)
    lines = view.accessibleDescription().splitlines()
    assert len([line for line in lines if "garage-server" in line and "Mbit/s" in line]) == 8
    view.select("")
    assert not lines_of(view)


def test_the_lines_of_a_chosen_machine_stand_out(view: MapView) -> None:
    snapshot = household(4)
    view.resize(1600, 1000)
    view.show_machines(
        machines_of(snapshot_of(snapshot)), lender_links=lender_links(snapshot_of(snapshot), f"{0:064x}")
    )
    view.select(f"{1:064x}")
    accent = view._theme.color("accent")
    assert sorted(line.pen().color() == accent for line in lines_of(view)) == [False, True, True]


@pytest.mark.parametrize(("n_machines", "width", "height"), [(2, 850, 200), (2, 600, 120), (3, 600, 160)])
def test_scroll_bars_take_no_room_that_they_are_not_needed_for(
    view: MapView, n_machines: int, width: int, height: int
) -> None:
    """Each of the two takes the room that the other one is there for, and both stayed once they had come."""
    view.show_machines(machines_of(snapshot_of(household(n_machines))))
    seen = []
    for before in ((width, 900), (180, 120)):
        view.resize(*before)
        QApplication.processEvents()
        view.resize(width, height)
        QApplication.processEvents()
        seen.append((view.places, view.transform().m11(), view.verticalScrollBar().isVisible()))
        assert not view.horizontalScrollBar().isVisible()
    assert seen[0] == seen[1]


def test_machines_that_are_gone_leave_nothing(view: MapView) -> None:
    view.show_machines(machines_of(snapshot_of(household(5))))
    view.show_machines(machines_of(snapshot_of(household(2))))
    assert len(drawn(view)) == 3


def test_keys_choose_open_and_leave_out(view: MapView) -> None:
    machines = machines_of(snapshot_of(household(5)))
    view.show_machines(machines)
    reports: list[tuple[str, str]] = []
    view.opened.connect(lambda machine: reports.append(("opened", machine)))
    view.toggled.connect(lambda machine: reports.append(("toggled", machine)))
    QTest.keyClick(view, Key.Key_Right)
    assert view.selected == machines[0].id
    assert view.places is not None
    QTest.keyClick(view, Key.Key_Left)
    left = view.selected
    QTest.keyClick(view, Key.Key_Down)
    assert view.selected not in (left, machines[0].id)
    QTest.keyClick(view, Key.Key_Return)
    QTest.keyClick(view, Key.Key_Space)
    assert reports == [("opened", view.selected), ("toggled", view.selected)]
    QTest.keyClick(view, Key.Key_Escape)
    assert view.selected == ""


def test_a_click_on_a_plate_chooses_its_machine(view: MapView) -> None:
    machines = machines_of(snapshot_of(household(3)))
    view.show_machines(machines)
    assert view.places is not None
    x, y = view.places.routes[1].plate.center
    place = view.mapFromScene(x, y)
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert view.selected == machines[2].id


def test_dots_move_only_while_an_answer_runs_and_is_seen(qtbot: QtBot, view: MapView) -> None:
    machines = machines_of(snapshot_of(household(3)))
    active = frozenset(machine.id for machine in machines)
    view.show_machines(machines)
    assert not moves(view)
    view.show_machines(machines, active)
    assert moves(view)
    view.hide()
    qtbot.waitUntil(lambda: not moves(view))
    view.show()
    qtbot.waitUntil(lambda: moves(view))
    view.showMinimized()
    qtbot.waitUntil(lambda: not moves(view))
    view.showNormal()
    qtbot.waitUntil(lambda: moves(view))
    view.show_machines(machines)
    assert not moves(view)


def test_reduced_motion_stops_the_dots(view: MapView) -> None:
    machines = machines_of(snapshot_of(household(3)))
    view.show_machines(machines, frozenset(machine.id for machine in machines))
    view._motion.choose(ALWAYS)
    assert not moves(view)
    view._motion.choose(NEVER)
    assert moves(view)
