"""Pure functions that lay out the map by positioning cards and plates and routing links.

The host is in the center, with a column of lenders on either side; an odd lender goes below. In a narrow window,
all lenders are on the right. Each link leaves the host as a curve and ends in a straight line level with its
lender. The plate with its measurements is above that line, so plates never cover cards, links or each other. If
large text leaves no space beside the host, the lenders are stacked below it, each under its own plate.

Links between two lenders run around the outside, so they cross neither cards nor plates. Neighbors in a column are
connected through the gap between them. Other links leave a card at its outer edge and run in lanes beside the
columns: over the top to the other column, or around the bottom to the lender below the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Size:
    w: float
    h: float


@dataclass(frozen=True, slots=True)
class Rect:
    """A rectangle, given by its left and top edges, its width and its height."""

    x: float
    y: float
    w: float
    h: float

    @classmethod
    def around(cls, x: float, y: float, size: Size) -> Rect:
        return cls(x - size.w / 2, y - size.h / 2, size.w, size.h)

    @property
    def right(self) -> float:
        return self.x + self.w

    @property
    def bottom(self) -> float:
        return self.y + self.h

    @property
    def center(self) -> Point:
        return self.x + self.w / 2, self.y + self.h / 2

    def overlaps(self, other: Rect) -> bool:
        apart = self.right <= other.x or other.right <= self.x
        return not (apart or self.bottom <= other.y or other.bottom <= self.y)


FIRST_LANE, LANE = 10, 6  # distance from the cards to the first line, and between lines
LEAST_DROP = 12  # minimum vertical distance of a link that turns once below its card
LEFT, BELOW, RIGHT = -1, 0, 1
OVER_ALL, UNDER_ALL = -1, 1 << 30  # row numbers beyond all cards

Pair = tuple[int, int]  # indexes of two cards
Line = tuple[Point, ...]
Spans = list[list[tuple[int, int]]]  # occupied rows (from, to) for each lane


@dataclass(slots=True)
class _Ports:
    """The points at which links leave one edge of a card, evenly spaced and ordered to avoid crossings."""

    order: dict[Pair, tuple[int, int]] = field(default_factory=dict)

    def share(self, pair: Pair) -> float:
        """Return the position of a link along the edge, between 0 and 1."""
        ranked = sorted(self.order, key=lambda link: (self.order[link], link))
        return (ranked.index(pair) + 1) / (len(ranked) + 1)


@dataclass(slots=True)
class _Route:
    """The route of a link, with the card edge and lane at each end and the lane in which it crosses between columns."""

    lanes: dict[int, tuple[str, int]] = field(default_factory=dict)  # edge and lane for each of the two cards
    crossing: tuple[str, int] | None = None  # "top" or "bottom", and the lane


def route_lender_links(
    host: Rect, cards: Sequence[Rect], plates: Sequence[Rect], pairs: Sequence[Pair], scale: float
) -> tuple[Line, ...]:
    """Return a line of horizontal and vertical segments for each pair of lenders, in the same order."""
    return _Router(host, cards, plates, scale).lines(pairs)


class _Router:
    """A router that assigns lanes and ports to the links between lenders, and computes their lines."""

    def __init__(self, host: Rect, cards: Sequence[Rect], plates: Sequence[Rect], scale: float) -> None:
        self._cards, self._scale = cards, scale
        rects = (host, *cards, *plates)
        self._top, self._bottom = min(rect.y for rect in rects), max(rect.bottom for rect in rects)
        self._left, self._right = min(rect.x for rect in rects), max(rect.right for rect in rects)
        sides = [_side(card, host) for card in cards]
        self._stacked = sides.count(BELOW) > 1
        self._sides = [RIGHT] * len(cards) if self._stacked else sides
        self._rows = [self._row(card) for card in range(len(cards))]
        self._taken: dict[str, Spans] = {"left": [], "right": [], "top": [], "bottom": []}
        self._ports: dict[tuple[int, str], _Ports] = {}

    def lines(self, pairs: Sequence[Pair]) -> tuple[Line, ...]:
        routes: dict[Pair, _Route | None] = {}
        for pair in sorted(pairs, key=self._length):  # short links use the lanes next to the cards
            routes[pair] = None if self._is_direct(pair) else self._plan(pair)
        return tuple(
            self._direct(pair) if (route := routes[pair]) is None else self._drawn(pair, route) for pair in pairs
        )

    def _row(self, card: int) -> int:
        column = [number for number, side in enumerate(self._sides) if side == self._sides[card]]
        return sorted(column, key=lambda number: self._cards[number].y).index(card)

    def _length(self, pair: Pair) -> tuple[bool, int, Pair]:
        near, far = pair
        rows = self._rows[near], self._rows[far]
        together = self._sides[near] == self._sides[far]
        return not together, abs(rows[0] - rows[1]) if together else sum(rows), pair

    def _is_direct(self, pair: Pair) -> bool:
        """Return whether there is nothing between the two cards.

        This is true for neighbors in a column, and for the last card of a column and the card below the host.
        """
        near, far = pair
        if self._sides[near] == self._sides[far]:
            return abs(self._rows[near] - self._rows[far]) == 1 and not self._stacked
        if BELOW not in (self._sides[near], self._sides[far]):
            return False
        below, beside = pair if self._sides[near] == BELOW else (far, near)
        is_last = self._rows[beside] == self._sides.count(self._sides[beside]) - 1
        room = self._cards[below].center[1] - self._cards[beside].bottom
        return is_last and room >= LEAST_DROP * self._scale

    def _plan(self, pair: Pair) -> _Route:
        """Assign lanes and ports to an indirect link."""
        route, sides = _Route(), [self._sides[card] for card in pair]
        if sides[0] == sides[1]:
            rows = sorted(self._rows[card] for card in pair)
            edge = _edge(sides[0])
            lane = self._lane(edge, rows[0], rows[1])
            for card in pair:
                goes_up = self._rows[card] == rows[1]
                self._leave(route, card, pair, (edge, lane), goes_up=goes_up)
            return route
        crossing = "bottom" if BELOW in sides else "top"
        route.crossing = crossing, self._lane(crossing, 0, 0)
        for card, side in zip(pair, sides, strict=True):
            row = self._rows[card]
            if side == BELOW or (crossing == "top" and row == 0):
                self._leave(route, card, pair, (crossing, route.crossing[1]), goes_up=False)
                continue
            first, last = (OVER_ALL, row) if crossing == "top" else (row, UNDER_ALL)
            lane = self._lane(_edge(side), first, last)
            self._leave(route, card, pair, (_edge(side), lane), goes_up=crossing == "top")
        return route

    def _lane(self, edge: str, first: int, last: int) -> int:
        """Reserve the innermost lane that is free between two rows, and return its number."""
        lanes = self._taken[edge]
        for number, taken in enumerate(lanes):
            if all(last < begin or end < first for begin, end in taken):
                taken.append((first, last))
                return number
        lanes.append([(first, last)])
        return len(lanes) - 1

    def _leave(self, route: _Route, card: int, pair: Pair, lane: tuple[str, int], *, goes_up: bool) -> None:
        """Assign a link's port at one of its cards. Ports are ordered so that lines at the same edge never cross."""
        route.lanes[card] = lane
        ports = self._ports.setdefault((card, lane[0]), _Ports())
        if lane[0] in ("top", "bottom"):
            ports.order[pair] = (0, self._sides[card] * lane[1])
        else:
            ports.order[pair] = (0, lane[1]) if goes_up else (1, -lane[1])

    def _direct(self, pair: Pair) -> Line:
        first, second = sorted(pair, key=lambda card: self._cards[card].y)
        upper, lower = self._cards[first], self._cards[second]
        if self._sides[first] == self._sides[second]:
            x = upper.center[0]
            return (x, upper.bottom), (x, lower.y)
        x, y = upper.center[0], lower.center[1]
        return (x, upper.bottom), (x, y), (lower.x if x < lower.x else lower.right, y)

    def _drawn(self, pair: Pair, route: _Route) -> Line:
        there = self._leaving(pair[0], pair, route)
        back = self._leaving(pair[1], pair, route)
        return (*there, *reversed(back))

    def _leaving(self, card: int, pair: Pair, route: _Route) -> Line:
        """Return the part of a line from a card to its lane and, if the link changes columns, to its crossing lane."""
        edge, lane = route.lanes[card]
        rect, share = self._cards[card], self._ports[card, edge].share(pair)
        if edge in ("top", "bottom"):
            x = rect.x + share * rect.w
            start = rect.y if edge == "top" else rect.bottom
            return (x, start), (x, self._at(edge, lane))
        y, x = rect.y + share * rect.h, self._at(edge, lane)
        begin = (rect.x if edge == "left" else rect.right, y), (x, y)
        return begin if route.crossing is None else (*begin, (x, self._at(*route.crossing)))

    def _at(self, edge: str, lane: int) -> float:
        away = (FIRST_LANE + lane * LANE) * self._scale
        match edge:
            case "left":
                return self._left - away
            case "right":
                return self._right + away
            case "top":
                return self._top - away
            case _:
                return self._bottom + away


def _side(card: Rect, host: Rect) -> int:
    if card.right <= host.x:
        return LEFT
    return RIGHT if card.x >= host.right else BELOW


def _edge(side: int) -> str:
    return "left" if side == LEFT else "right"


COMPACT_OVER = 8  # with more machines, all cards are compact
BOTH_SIDES, ONE_SIDE = 3, 2  # number of columns
FAN, STUB = 24, 8  # minimum width of the curve at the host; straight pieces on both sides of the plate
OVER = 4  # distance of the plate above the line
DROP = 20  # length of the straight pieces above and below the plate of a vertical link
MOST_FAN = 150
ROW_GAP, MOST_ROW_GAP = 16, 64
PORT_GAP = 14  # distance between links at the host


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of cards and plates in pixels, which depend on the text size."""

    host: Size
    card: Size
    plate: Size
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class LinkRoute:
    """The route of a link from the host. It is a curve from `start` to `bend`, then a straight line to `end`."""

    start: Point
    bend: Point
    end: Point
    plate: Rect


@dataclass(frozen=True, slots=True)
class MapPositions:
    """The positions of all items on the map.

    `cards` and `routes` have the same order as the lenders, and `lender_lines` the same order as the pairs.
    """

    host: Rect
    cards: tuple[Rect, ...]
    routes: tuple[LinkRoute, ...]
    lender_lines: tuple[Line, ...] = ()
    margin: float = 0.0  # reserved for lines that appear with the selection

    @property
    def bounds(self) -> Rect:
        rects = [self.host, *self.cards, *(route.plate for route in self.routes)]
        left, top = min(rect.x for rect in rects), min(rect.y for rect in rects)
        right, bottom = max(rect.right for rect in rects), max(rect.bottom for rect in rects)
        left, top, right, bottom = (left - self.margin, top - self.margin, right + self.margin, bottom + self.margin)
        for x, y in (point for line in self.lender_lines for point in line):
            left, top, right, bottom = min(left, x), min(top, y), max(right, x), max(bottom, y)
        return Rect(left, top, right - left, bottom - top)


@dataclass(frozen=True, slots=True)
class FittedLayout:
    """A layout chosen to fit the available space, with its zoom factor and whether its cards are compact."""

    places: MapPositions
    compact: bool
    zoom: float

    def fits(self, room: Size) -> bool:
        """Return whether everything is visible without scrolling."""
        bounds = self.places.bounds
        return bounds.w * self.zoom <= room.w and bounds.h * self.zoom <= room.h


@dataclass(frozen=True, slots=True)
class LenderPairs:
    """The pairs of lenders whose links are drawn.

    few: whether there are few enough pairs to always draw them all. Otherwise, only the pairs of the selected
    machine are drawn.
    """

    drawn: tuple[Pair, ...] = ()
    few: bool = True

    def margin(self, n_lenders: int, scale: float) -> float:
        """Return the margin to reserve for lines that appear on selection, so that the cards do not move."""
        return 0.0 if self.few else scale * (FIRST_LANE + LANE * max(0, n_lenders - 2))


NO_PAIRS = LenderPairs()


@lru_cache(maxsize=32)  # new snapshots rarely change the card sizes
def fit_layout(
    n_lenders: int,
    full: Sizes,
    small: Sizes,
    room: Size,
    zooms: tuple[float, ...],
    lender_pairs: LenderPairs = NO_PAIRS,
) -> FittedLayout:
    """Return the largest layout that fits into `room`.

    zooms: the allowed zoom factors in descending order. Links between lenders are omitted if they would make
    scrolling necessary; the table also shows them. If nothing fits, the narrowest layout is returned, which scrolls
    vertically.
    """
    kinds = [small] if n_lenders + 1 > COMPACT_OVER else [full, small]
    layouts = product(dict.fromkeys((lender_pairs, NO_PAIRS)), kinds, zooms, (BOTH_SIDES, ONE_SIDE))
    for pairs, sizes, zoom, columns in layouts:
        scaled = Size(room.w / zoom, room.h / zoom)
        places = _with_lender_pairs(n_lenders, sizes, scaled, columns, pairs)
        if places.bounds.w <= scaled.w and places.bounds.h <= scaled.h:
            return FittedLayout(places, sizes is small, zoom)
    narrow = [(small, _one_side(n_lenders, small, Size(room.w / zooms[-1], 0)))]
    narrow += [(sizes, _stacked(n_lenders, sizes)) for sizes in dict.fromkeys((kinds[0], small))]
    for (sizes, places), zoom in product(narrow, (zoom for zoom in zooms if zoom <= 1)):
        for candidate in (_routed(places, lender_pairs, sizes), places):
            if candidate.bounds.w * zoom <= room.w:
                return FittedLayout(candidate, sizes is small, zoom)
    return FittedLayout(narrow[-1][1], True, zooms[-1])


def _with_lender_pairs(
    n_lenders: int, sizes: Sizes, room: Size, columns: int, lender_pairs: LenderPairs
) -> MapPositions:
    """Arrange the cards in the space left after reserving lanes for the links between lenders."""
    bare = arrange(n_lenders, sizes, room, columns)
    places = _routed(bare, lender_pairs, sizes)
    wider, higher = places.bounds.w - bare.bounds.w, places.bounds.h - bare.bounds.h
    if not (wider or higher):
        return places
    left = Size(room.w - wider, room.h - higher)
    return _routed(arrange(n_lenders, sizes, left, columns), lender_pairs, sizes)


def _routed(places: MapPositions, lender_pairs: LenderPairs, sizes: Sizes) -> MapPositions:
    plates = [route.plate for route in places.routes]
    lines = route_lender_links(places.host, places.cards, plates, lender_pairs.drawn, sizes.scale)
    margin = lender_pairs.margin(len(places.cards), sizes.scale)
    return replace(places, lender_lines=lines, margin=margin)


def arrange(n_lenders: int, sizes: Sizes, room: Size, columns: int = BOTH_SIDES) -> MapPositions:
    """Return the positions of the host and its lenders. Gaps grow with the available space, up to a limit."""
    if n_lenders == 1 or columns == ONE_SIDE:
        return _one_side(n_lenders, sizes, room)
    below = n_lenders % 2
    sides = n_lenders - below
    rows = sides // 2
    gap = _row_gap(rows, sizes, room)
    away = sizes.host.w / 2 + _gutter(sizes, room, BOTH_SIDES) + sizes.card.w / 2
    host = Rect.around(0, 0, sizes.host)
    cards: list[Rect] = []
    routes: list[LinkRoute] = []
    for place in range(sides):
        side, row = (-1, place // 2) if place % 2 == 0 else (1, place // 2)
        y = (row - (rows - 1) / 2) * (sizes.card.h + gap)
        cards.append(Rect.around(side * away, y, sizes.card))
        routes.append(_sideways(host, cards[-1], side, _port(row, rows, host, sizes), sizes))
    if below:
        card, route = _below(host, sizes)
        cards.append(card)
        routes.append(route)
    return MapPositions(host, tuple(cards), tuple(routes))


def _one_side(rows: int, sizes: Sizes, room: Size) -> MapPositions:
    """Place the host on the left and all lenders in one column on the right."""
    gap = _row_gap(rows, sizes, room)
    host = Rect.around(0, 0, sizes.host)
    x = host.right + _gutter(sizes, room, ONE_SIDE) + sizes.card.w / 2
    cards = tuple(Rect.around(x, (row - (rows - 1) / 2) * (sizes.card.h + gap), sizes.card) for row in range(rows))
    routes = tuple(_sideways(host, card, 1, _port(row, rows, host, sizes), sizes) for row, card in enumerate(cards))
    if rows == 1:
        plate = routes[0].plate
        centered = replace(plate, x=(host.right + cards[0].x - plate.w) / 2)
        routes = (replace(routes[0], plate=centered),)
    return MapPositions(host, cards, routes)


def _stacked(n_lenders: int, sizes: Sizes) -> MapPositions:
    """Place all lenders below the host, each under its own plate, with the links along the left edge."""
    scale = sizes.scale
    host = Rect(0, 0, sizes.host.w, sizes.host.h)
    trunk, left, top = STUB * scale, FAN * scale + 2 * STUB * scale, host.bottom
    cards, routes = [], []
    for _ in range(n_lenders):
        plate = Rect(left, top + ROW_GAP * scale, sizes.plate.w, sizes.plate.h)
        card = Rect(left, plate.bottom + OVER * scale, sizes.card.w, sizes.card.h)
        bend, end = (left - STUB * scale, card.center[1]), (left, card.center[1])
        cards.append(card)
        routes.append(LinkRoute((trunk, host.bottom), bend, end, plate))
        top = card.bottom
    return MapPositions(host, tuple(cards), tuple(routes))


def _sideways(host: Rect, card: Rect, side: int, port: float, sizes: Sizes) -> LinkRoute:
    stub = STUB * sizes.scale
    edge = host.x if side < 0 else host.right
    near = card.right if side < 0 else card.x
    y = card.center[1]
    plate_x = near - side * (stub + sizes.plate.w / 2)
    bend = (plate_x - side * (sizes.plate.w / 2 + stub), y)
    over = y - OVER * sizes.scale - sizes.plate.h / 2
    return LinkRoute((edge, port), bend, (near, y), Rect.around(plate_x, over, sizes.plate))


def _below(host: Rect, sizes: Sizes) -> tuple[Rect, LinkRoute]:
    stub = DROP * sizes.scale
    top = host.bottom + 2 * stub + sizes.plate.h
    card = Rect(-sizes.card.w / 2, top, sizes.card.w, sizes.card.h)
    plate = Rect.around(0, host.bottom + stub + sizes.plate.h / 2, sizes.plate)
    start = (0.0, host.bottom)
    return card, LinkRoute(start, start, (0.0, top), plate)


def _port(row: int, rows: int, host: Rect, sizes: Sizes) -> float:
    """Return the y coordinate at which a link leaves the host."""
    step = min(PORT_GAP * sizes.scale, host.h / (rows + 1))
    return (row - (rows - 1) / 2) * step


def _gutter(sizes: Sizes, room: Size, columns: int) -> float:
    """Return the distance between the host and a column.

    The gutter contains the plate and the curves, whose width grows with the available space up to a limit.
    """
    straight = sizes.plate.w + 2 * STUB * sizes.scale
    gutters = columns - 1
    left = (room.w - sizes.host.w - gutters * (sizes.card.w + straight)) / gutters
    return straight + min(MOST_FAN * sizes.scale, max(FAN * sizes.scale, left))


def _row_gap(rows: int, sizes: Sizes, room: Size) -> float:
    gap = (room.h - rows * sizes.card.h) / rows if rows > 1 else 0
    return min(MOST_ROW_GAP * sizes.scale, max(ROW_GAP * sizes.scale, gap))
