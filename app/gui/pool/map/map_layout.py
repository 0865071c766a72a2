"""Where cards, links and their plates stand on the map. Pure: rectangles in, rectangles out.

The host is in the centre, lenders in a column at either side of it, an odd one below; in a narrow window
all lenders stand at the right. A link leaves the host in a curve and is straight under its plate,
in the row of its lender: so no plate lies on a card, on another plate, or on another link.
Where large text leaves no room beside the host, lenders stand below it, each under its own plate.
Links between two lenders run round all of that (map_between.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

from app.gui.pool.map.lender_link_routes import FIRST_LANE, LANE, Line, Pair, lines_between
from app.gui.pool.map.map_rects import Point, Rect, Size

COMPACT_OVER = 8  # machines
BOTH_SIDES, ONE_SIDE = 3, 2  # columns
FAN, STUB = 24, 8  # of a link: the curve at the host, at least; straight bits at the plate's sides
OVER = 4  # the plate stands over the line
DROP = 20  # bits of a link that goes down, whose plate is on it
MOST_FAN = 150
ROW_GAP, MOST_ROW_GAP = 16, 64
PORT_GAP = 14  # between links where they leave the host


@dataclass(frozen=True, slots=True)
class Sizes:
    """Of what stands on the map, in pixels; they grow with the text."""

    host: Size
    card: Size
    plate: Size
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Way:
    """A link: a curve from `start` to `bend` (both ends level, or plumb), then straight to `end`."""

    start: Point
    bend: Point
    end: Point
    plate: Rect


@dataclass(frozen=True, slots=True)
class Places:
    """`cards` and `ways` in the order of the lenders, `between` in that of the pairs; `bounds` holds everything."""

    host: Rect
    cards: tuple[Rect, ...]
    ways: tuple[Way, ...]
    between: tuple[Line, ...] = ()
    margin: float = 0.0  # kept free for lines that come and go

    @property
    def bounds(self) -> Rect:
        every = [self.host, *self.cards, *(way.plate for way in self.ways)]
        left, top = min(one.x for one in every), min(one.y for one in every)
        right, bottom = max(one.right for one in every), max(one.bottom for one in every)
        left, top, right, bottom = (left - self.margin, top - self.margin, right + self.margin, bottom + self.margin)
        for x, y in (point for line in self.between for point in line):
            left, top, right, bottom = min(left, x), min(top, y), max(right, x), max(bottom, y)
        return Rect(left, top, right - left, bottom - top)


@dataclass(frozen=True, slots=True)
class Fitted:
    """The places that suit a room: with small cards or not, drawn that large."""

    places: Places
    compact: bool
    zoom: float

    def fits(self, room: Size) -> bool:
        """Whether all of it is seen at once."""
        bounds = self.places.bounds
        return bounds.w * self.zoom <= room.w and bounds.h * self.zoom <= room.h


@dataclass(frozen=True, slots=True)
class Others:
    """Links between two lenders. drawn: the pairs whose lines are to be seen; few: all of them at any time."""

    drawn: tuple[Pair, ...] = ()
    few: bool = True

    def margin(self, n_lenders: int, scale: float) -> float:
        """Where only one machine's are drawn: room for those of any, so that nothing moves when it is chosen."""
        return 0.0 if self.few else scale * (FIRST_LANE + LANE * max(0, n_lenders - 2))


NOBODY = Others()


@lru_cache(maxsize=32)  # news of a household rarely changes how large its cards are
def fitted(
    n_lenders: int, full: Sizes, small: Sizes, room: Size, zooms: tuple[float, ...], others: Others = NOBODY
) -> Fitted:
    """The best to see of what fits into the room. `zooms`: from the largest to the smallest.

    Links between lenders are left to the table where they would cost the view of the whole. Where nothing fits, what is
    narrowest: it scrolls up and down.
    """
    kinds = [small] if n_lenders + 1 > COMPACT_OVER else [full, small]
    ways = product(dict.fromkeys((others, NOBODY)), kinds, zooms, (BOTH_SIDES, ONE_SIDE))
    for seen, sizes, zoom, columns in ways:
        scaled = Size(room.w / zoom, room.h / zoom)
        places = _with_others(n_lenders, sizes, scaled, columns, seen)
        if places.bounds.w <= scaled.w and places.bounds.h <= scaled.h:
            return Fitted(places, sizes is small, zoom)
    narrow = [(small, _one_side(n_lenders, small, Size(room.w / zooms[-1], 0)))]
    narrow += [(sizes, _stacked(n_lenders, sizes)) for sizes in dict.fromkeys((kinds[0], small))]
    for (sizes, places), zoom in product(narrow, (one for one in zooms if one <= 1)):
        for found in (_routed(places, others, sizes), places):
            if found.bounds.w * zoom <= room.w:
                return Fitted(found, sizes is small, zoom)
    return Fitted(narrow[-1][1], True, zooms[-1])


def _with_others(n_lenders: int, sizes: Sizes, room: Size, columns: int, others: Others) -> Places:
    """What stands beside the columns takes its room from what the cards are spread over."""
    bare = arrange(n_lenders, sizes, room, columns)
    found = _routed(bare, others, sizes)
    wider, higher = found.bounds.w - bare.bounds.w, found.bounds.h - bare.bounds.h
    if not (wider or higher):
        return found
    left = Size(room.w - wider, room.h - higher)
    return _routed(arrange(n_lenders, sizes, left, columns), others, sizes)


def _routed(places: Places, others: Others, sizes: Sizes) -> Places:
    plates = [way.plate for way in places.ways]
    lines = lines_between(places.host, places.cards, plates, others.drawn, sizes.scale)
    margin = others.margin(len(places.cards), sizes.scale)
    return replace(places, between=lines, margin=margin)


def arrange(n_lenders: int, sizes: Sizes, room: Size, columns: int = BOTH_SIDES) -> Places:
    """Places for a host and so many lenders, spread over the room as far as that is good to see."""
    if n_lenders == 1 or columns == ONE_SIDE:
        return _one_side(n_lenders, sizes, room)
    below = n_lenders % 2
    sides = n_lenders - below
    rows = sides // 2
    gap = _row_gap(rows, sizes, room)
    away = sizes.host.w / 2 + _gutter(sizes, room, BOTH_SIDES) + sizes.card.w / 2
    host = Rect.around(0, 0, sizes.host)
    cards: list[Rect] = []
    ways: list[Way] = []
    for place in range(sides):
        side, row = (-1, place // 2) if place % 2 == 0 else (1, place // 2)
        y = (row - (rows - 1) / 2) * (sizes.card.h + gap)
        cards.append(Rect.around(side * away, y, sizes.card))
        ways.append(_sideways(host, cards[-1], side, _port(row, rows, host, sizes), sizes))
    if below:
        card, way = _below(host, sizes)
        cards.append(card)
        ways.append(way)
    return Places(host, tuple(cards), tuple(ways))


def _one_side(rows: int, sizes: Sizes, room: Size) -> Places:
    """The host at the left, all lenders in a column at the right."""
    gap = _row_gap(rows, sizes, room)
    host = Rect.around(0, 0, sizes.host)
    x = host.right + _gutter(sizes, room, ONE_SIDE) + sizes.card.w / 2
    cards = tuple(Rect.around(x, (row - (rows - 1) / 2) * (sizes.card.h + gap), sizes.card) for row in range(rows))
    ways = tuple(_sideways(host, card, 1, _port(row, rows, host, sizes), sizes) for row, card in enumerate(cards))
    if rows == 1:
        plate = ways[0].plate
        centred = replace(plate, x=(host.right + cards[0].x - plate.w) / 2)
        ways = (replace(ways[0], plate=centred),)
    return Places(host, cards, ways)


def _stacked(n_lenders: int, sizes: Sizes) -> Places:
    """All below the host, one under another, each under its plate; the links go down at their left."""
    scale = sizes.scale
    host = Rect(0, 0, sizes.host.w, sizes.host.h)
    trunk, left, top = STUB * scale, FAN * scale + 2 * STUB * scale, host.bottom
    cards, ways = [], []
    for _ in range(n_lenders):
        plate = Rect(left, top + ROW_GAP * scale, sizes.plate.w, sizes.plate.h)
        card = Rect(left, plate.bottom + OVER * scale, sizes.card.w, sizes.card.h)
        bend, end = (left - STUB * scale, card.centre[1]), (left, card.centre[1])
        cards.append(card)
        ways.append(Way((trunk, host.bottom), bend, end, plate))
        top = card.bottom
    return Places(host, tuple(cards), tuple(ways))


def _sideways(host: Rect, card: Rect, side: int, port: float, sizes: Sizes) -> Way:
    stub = STUB * sizes.scale
    edge = host.x if side < 0 else host.right
    near = card.right if side < 0 else card.x
    y = card.centre[1]
    plate_x = near - side * (stub + sizes.plate.w / 2)
    bend = (plate_x - side * (sizes.plate.w / 2 + stub), y)
    over = y - OVER * sizes.scale - sizes.plate.h / 2
    return Way((edge, port), bend, (near, y), Rect.around(plate_x, over, sizes.plate))


def _below(host: Rect, sizes: Sizes) -> tuple[Rect, Way]:
    stub = DROP * sizes.scale
    top = host.bottom + 2 * stub + sizes.plate.h
    card = Rect(-sizes.card.w / 2, top, sizes.card.w, sizes.card.h)
    plate = Rect.around(0, host.bottom + stub + sizes.plate.h / 2, sizes.plate)
    start = (0.0, host.bottom)
    return card, Way(start, start, (0.0, top), plate)


def _port(row: int, rows: int, host: Rect, sizes: Sizes) -> float:
    """How high a link leaves the host."""
    step = min(PORT_GAP * sizes.scale, host.h / (rows + 1))
    return (row - (rows - 1) / 2) * step


def _gutter(sizes: Sizes, room: Size, columns: int) -> float:
    """Between host and lenders: the plate, and curves as wide as the room allows, within limits."""
    straight = sizes.plate.w + 2 * STUB * sizes.scale
    gutters = columns - 1
    left = (room.w - sizes.host.w - gutters * (sizes.card.w + straight)) / gutters
    return straight + min(MOST_FAN * sizes.scale, max(FAN * sizes.scale, left))


def _row_gap(rows: int, sizes: Sizes, room: Size) -> float:
    gap = (room.h - rows * sizes.card.h) / rows if rows > 1 else 0
    return min(MOST_ROW_GAP * sizes.scale, max(ROW_GAP * sizes.scale, gap))
