"""No card, plate or link of the map lies on another, for one to ten machines in any window."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise

import pytest

from app.gui.pool.map.map_layout import (
    BOTH_SIDES,
    COMPACT_OVER,
    ONE_SIDE,
    LenderPairs,
    LinkRoute,
    MapPositions,
    Point,
    Rect,
    Size,
    Sizes,
    arrange,
    fit_layout,
    route_lender_links,
)

FULL = Sizes(Size(216, 136), Size(204, 118), Size(132, 56))
SMALL = Sizes(Size(196, 80), Size(180, 60), Size(132, 40))
ROOMS = [Size(712, 340), Size(952, 500), Size(1600, 1000)]
SAMPLES, EDGE = 40, 1e-6
ZOOMS = (1.4, 1.2, 1.0, 11 / 12)


def along(route: LinkRoute) -> list[Point]:
    """Points of a link as it is drawn: a curve with level ends, then straight."""
    (x0, y0), (x1, y1) = route.start, route.bend
    half = (x0 + x1) / 2
    curve = []
    for step in range(SAMPLES + 1):
        t = step / SAMPLES
        a, b, c, d = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3
        curve.append((a * x0 + (b + c) * half + d * x1, (a + b) * y0 + (c + d) * y1))
    ex, ey = route.end
    straight = [(x1 + (ex - x1) * step / SAMPLES, y1 + (ey - y1) * step / SAMPLES) for step in range(SAMPLES + 1)]
    return curve + straight


def inside(point: Point, rect: Rect) -> bool:
    x, y = point
    return rect.x + EDGE < x < rect.right - EDGE and rect.y + EDGE < y < rect.bottom - EDGE


def check(places: MapPositions, n_lenders: int) -> None:
    plates = [route.plate for route in places.routes]
    assert len(places.cards) == len(plates) == n_lenders
    for choice, other in combinations([places.host, *places.cards, *plates], 2):
        assert not choice.overlaps(other), (choice, other)
    for number, route in enumerate(places.routes):
        level = route.start[0] != route.end[0]  # else it goes down, through its own plate
        lender_pairs = [plate for place, plate in enumerate(plates) if level or place != number]
        solid = [places.host, *places.cards, *lender_pairs]
        for point in along(route):
            assert not any(inside(point, rect) for rect in solid), (number, point)


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: f"{room.w}x{room.h}")
@pytest.mark.parametrize("n_machines", range(1, 11))
@pytest.mark.parametrize("sizes", [FULL, SMALL], ids=["full", "compact"])
def test_nothing_lies_on_anything(sizes: Sizes, n_machines: int, room: Size) -> None:
    check(arrange(n_machines - 1, sizes, room), n_machines - 1)
    check(arrange(n_machines - 1, sizes, room, ONE_SIDE), n_machines - 1)


def twice(sizes: Sizes) -> Sizes:
    """Return the layout with text twice as large."""
    host, card, plate = (Size(2 * size.w, 2 * size.h) for size in (sizes.host, sizes.card, sizes.plate))
    return Sizes(host, card, plate, 2.0)


def test_larger_text_lies_on_nothing_either() -> None:
    for n_lenders in range(10):
        check(arrange(n_lenders, twice(FULL), ROOMS[1]), n_lenders)


def test_every_link_ends_at_its_machine() -> None:
    places = arrange(5, FULL, ROOMS[1])
    for card, route in zip(places.cards, places.routes, strict=True):
        x, y = route.end
        assert card.x <= x <= card.right
        assert card.y <= y <= card.bottom
        x, y = route.start
        assert places.host.x <= x <= places.host.right
        assert places.host.y <= y <= places.host.bottom


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: f"{room.w}x{room.h}")
@pytest.mark.parametrize("n_machines", range(1, 11))
def test_all_is_in_the_window_or_scrolls_one_way(n_machines: int, room: Size) -> None:
    fitted_layout = fit_layout(n_machines - 1, FULL, SMALL, room, ZOOMS)
    bounds = fitted_layout.places.bounds
    assert bounds.w * fitted_layout.zoom <= room.w + EDGE
    assert bounds.h * fitted_layout.zoom <= room.h + EDGE or room is ROOMS[0]
    assert fitted_layout.compact or n_machines <= COMPACT_OVER


@pytest.mark.parametrize("n_machines", range(1, 11))
def test_where_large_text_has_no_room_beside_the_host_lenders_stand_below_it(n_machines: int) -> None:
    narrow = Size(700, 400)
    fitted_layout = fit_layout(n_machines - 1, twice(FULL), twice(SMALL), narrow, ZOOMS)
    assert fitted_layout.places.bounds.w * fitted_layout.zoom <= narrow.w + EDGE  # it scrolls one way only
    assert fitted_layout.zoom >= ZOOMS[-1]
    check(fitted_layout.places, n_machines - 1)


def crosses(start: Point, end: Point, rect: Rect) -> bool:
    """Return whether a horizontal or vertical piece runs through a rectangle."""
    (left, right), (top, bottom) = sorted((start[0], end[0])), sorted((start[1], end[1]))
    beside = right <= rect.x + EDGE or left >= rect.right - EDGE
    return not (beside or bottom <= rect.y + EDGE or top >= rect.bottom - EDGE)


def check_between(places: MapPositions, pairs: list[tuple[int, int]]) -> None:
    """Each line joins its two cards; it runs through no card and no plate, and on no other line."""
    assert len(places.lender_lines) == len(pairs)
    solid = [places.host, *places.cards, *(route.plate for route in places.routes)]
    bounds, taken = places.bounds, []
    for line, pair in zip(places.lender_lines, pairs, strict=True):
        ends = [line[0], line[-1]]
        for card in (places.cards[number] for number in pair):
            assert any(card.x <= x <= card.right and card.y <= y <= card.bottom for x, y in ends), (pair, line)
        for start, end in pairwise(line):
            assert start[0] == end[0] or start[1] == end[1]
            assert not [rect for rect in solid if crosses(start, end, rect)], (pair, line)
            assert bounds.x <= start[0] <= bounds.right
            assert bounds.y <= start[1] <= bounds.bottom
        taken += [(pair, *piece) for piece in pairwise(line)]
    for (group, a, b), (other, c, d) in combinations(taken, 2):
        assert group == other or not along_another((a, b), (c, d)), (group, a, b, other, c, d)


def along_another(group: tuple[Point, Point], other: tuple[Point, Point]) -> bool:
    """Return whether two pieces lie on one line and share more than a point of it."""
    for across, far in ((0, 1), (1, 0)):
        if {point[across] for point in (*group, *other)} == {group[0][across]}:
            (a, b), (c, d) = (sorted(point[far] for point in piece) for piece in (group, other))
            return min(b, d) - max(a, c) > EDGE
    return False


def all_pairs(n_lenders: int) -> list[tuple[int, int]]:
    return list(combinations(range(n_lenders), 2))


@pytest.mark.parametrize("room", [*ROOMS, Size(700, 400)], ids=lambda room: f"{room.w}x{room.h}")
@pytest.mark.parametrize("n_machines", range(1, 11))
def test_links_between_lenders_lie_on_nothing(n_machines: int, room: Size) -> None:
    n_lenders = n_machines - 1
    pairs = all_pairs(n_lenders)
    few = n_lenders <= 6
    drawn = pairs if few else [pair for pair in pairs if 2 in pair]
    for full, small in ((FULL, SMALL), (twice(FULL), twice(SMALL))):
        fitted_layout = fit_layout(n_lenders, full, small, room, ZOOMS, LenderPairs(tuple(drawn), few))
        check(fitted_layout.places, n_lenders)
        assert fitted_layout.places.bounds.w * fitted_layout.zoom <= room.w + EDGE
        if full is FULL and room in ROOMS[1:]:
            assert fitted_layout.fits(room)
            assert len(fitted_layout.places.lender_lines) == len(drawn)
        if fitted_layout.places.lender_lines:
            check_between(fitted_layout.places, drawn)


@pytest.mark.parametrize("n_lenders", range(2, 10))
@pytest.mark.parametrize("columns", [BOTH_SIDES, ONE_SIDE])
def test_all_links_at_once_lie_on_nothing_either(n_lenders: int, columns: int) -> None:
    pairs = all_pairs(n_lenders)
    for room in ROOMS:
        bare = arrange(n_lenders, SMALL, room, columns)
        plates = [route.plate for route in bare.routes]
        lines = route_lender_links(bare.host, bare.cards, plates, pairs, 1.0)
        check_between(replace(bare, lender_lines=lines), pairs)


@pytest.mark.parametrize("n_lenders", range(7, 10))
def test_nothing_moves_when_another_machine_of_many_is_chosen(n_lenders: int) -> None:
    fitted_layouts = [
        fit_layout(
            n_lenders, FULL, SMALL, ROOMS[1], ZOOMS,
            LenderPairs(tuple(pair for pair in all_pairs(n_lenders) if chosen in pair), few=False),
        )
        for chosen in range(-1, n_lenders)
    ]  # fmt: skip
    assert (
        len(
            {
                (fitted_layout.zoom, fitted_layout.places.cards, fitted_layout.places.bounds)
                for fitted_layout in fitted_layouts
            }
        )
        == 1
    )
    assert [len(fitted_layout.places.lender_lines) for fitted_layout in fitted_layouts] == [0] + [
        n_lenders - 1
    ] * n_lenders


def test_more_than_eight_machines_get_small_cards() -> None:
    wide = Size(4000, 4000)
    assert not fit_layout(COMPACT_OVER - 1, FULL, SMALL, wide, ZOOMS).compact
    assert fit_layout(COMPACT_OVER, FULL, SMALL, wide, ZOOMS).compact


def test_a_large_window_shows_all_of_it_larger() -> None:
    assert fit_layout(2, FULL, SMALL, Size(4000, 4000), ZOOMS).zoom == ZOOMS[0]


def test_lenders_stand_at_one_side_where_that_shows_them_larger() -> None:
    room = Size(932, 540)  # of a window of the usual size
    fitted_layout = fit_layout(2, FULL, SMALL, room, ZOOMS)
    assert fitted_layout.zoom == ZOOMS[0]
    assert {card.x for card in fitted_layout.places.cards} == {fitted_layout.places.cards[0].x}
    wide = fit_layout(2, FULL, SMALL, Size(1600, 540), ZOOMS).places
    assert wide.cards[0].right < wide.host.x < wide.cards[1].x
