"""Where the links between two lenders run on the map: round the outside, so on no card and on no plate. Pure.

Neighbours in a column are joined through the gap between them. Others leave their card at its outer edge, and run in
lanes beside the columns; from one column to the other over the top, to the machine below the host round the bottom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from app.gui.pool.map.map_rects import Point, Rect

FIRST_LANE, LANE = 10, 6  # from the cards to the first line, and from line to line
LEAST_DROP = 12  # of a link that turns once, under its card
LEFT, BELOW, RIGHT = -1, 0, 1
OVER_ALL, UNDER_ALL = -1, 1 << 30  # rows

Pair = tuple[int, int]  # of cards
Line = tuple[Point, ...]
Spans = list[list[tuple[int, int]]]  # of each lane: from which row to which row it is taken


@dataclass(slots=True)
class _Ports:
    """Where links leave one edge of a card: spread over it in their order."""

    order: dict[Pair, tuple[int, int]] = field(default_factory=dict)

    def share(self, pair: Pair) -> float:
        """How far along the edge."""
        ranked = sorted(self.order, key=lambda one: (self.order[one], one))
        return (ranked.index(pair) + 1) / (len(ranked) + 1)


@dataclass(slots=True)
class _Way:
    """Of one link: how it leaves its ends (an edge and a lane), and the lane of its crossing, if there is one."""

    lanes: dict[int, tuple[str, int]] = field(default_factory=dict)  # by card
    crossing: tuple[str, int] | None = None  # "top" or "bottom", and its lane


def lines_between(
    host: Rect, cards: Sequence[Rect], plates: Sequence[Rect], pairs: Sequence[Pair], scale: float
) -> tuple[Line, ...]:
    """A line of level and plumb pieces for each pair, in their order."""
    return _Router(host, cards, plates, scale).lines(pairs)


class _Router:
    def __init__(self, host: Rect, cards: Sequence[Rect], plates: Sequence[Rect], scale: float) -> None:
        self._cards, self._scale = cards, scale
        every = (host, *cards, *plates)
        self._top, self._bottom = min(one.y for one in every), max(one.bottom for one in every)
        self._left, self._right = min(one.x for one in every), max(one.right for one in every)
        sides = [_side(card, host) for card in cards]
        self._stacked = sides.count(BELOW) > 1
        self._sides = [RIGHT] * len(cards) if self._stacked else sides
        self._rows = [self._row(card) for card in range(len(cards))]
        self._taken: dict[str, Spans] = {"left": [], "right": [], "top": [], "bottom": []}
        self._ports: dict[tuple[int, str], _Ports] = {}

    def lines(self, pairs: Sequence[Pair]) -> tuple[Line, ...]:
        ways: dict[Pair, _Way | None] = {}
        for pair in sorted(pairs, key=self._length):  # short ones next to the cards
            ways[pair] = None if self._is_direct(pair) else self._planned(pair)
        return tuple(self._direct(pair) if (way := ways[pair]) is None else self._drawn(pair, way) for pair in pairs)

    # Which way

    def _row(self, card: int) -> int:
        beside = [one for one, side in enumerate(self._sides) if side == self._sides[card]]
        return sorted(beside, key=lambda one: self._cards[one].y).index(card)

    def _length(self, pair: Pair) -> tuple[bool, int, Pair]:
        one, other = pair
        rows = self._rows[one], self._rows[other]
        together = self._sides[one] == self._sides[other]
        return not together, abs(rows[0] - rows[1]) if together else sum(rows), pair

    def _is_direct(self, pair: Pair) -> bool:
        """Whether nothing stands between: neighbours in a column, or the last of one and the machine below."""
        one, other = pair
        if self._sides[one] == self._sides[other]:
            return abs(self._rows[one] - self._rows[other]) == 1 and not self._stacked
        if BELOW not in (self._sides[one], self._sides[other]):
            return False
        below, beside = pair if self._sides[one] == BELOW else (other, one)
        is_last = self._rows[beside] == self._sides.count(self._sides[beside]) - 1
        room = self._cards[below].centre[1] - self._cards[beside].bottom
        return is_last and room >= LEAST_DROP * self._scale

    def _planned(self, pair: Pair) -> _Way:
        """Takes lanes and ports."""
        way, sides = _Way(), [self._sides[one] for one in pair]
        if sides[0] == sides[1]:
            rows = sorted(self._rows[one] for one in pair)
            edge = _edge(sides[0])
            lane = self._lane(edge, rows[0], rows[1])
            for one in pair:
                goes_up = self._rows[one] == rows[1]
                self._leave(way, one, pair, (edge, lane), goes_up=goes_up)
            return way
        crossing = "bottom" if BELOW in sides else "top"
        way.crossing = crossing, self._lane(crossing, 0, 0)
        for one, side in zip(pair, sides, strict=True):
            row = self._rows[one]
            if side == BELOW or (crossing == "top" and row == 0):
                self._leave(way, one, pair, (crossing, way.crossing[1]), goes_up=False)
                continue
            first, last = (OVER_ALL, row) if crossing == "top" else (row, UNDER_ALL)
            lane = self._lane(_edge(side), first, last)
            self._leave(way, one, pair, (_edge(side), lane), goes_up=crossing == "top")
        return way

    def _lane(self, edge: str, first: int, last: int) -> int:
        """The nearest lane that is free from one row to the other."""
        lanes = self._taken[edge]
        for number, taken in enumerate(lanes):
            if all(last < begin or end < first for begin, end in taken):
                taken.append((first, last))
                return number
        lanes.append([(first, last)])
        return len(lanes) - 1

    def _leave(self, way: _Way, card: int, pair: Pair, lane: tuple[str, int], *, goes_up: bool) -> None:
        """By an edge of a card; the order of ports keeps lines of one edge from crossing."""
        way.lanes[card] = lane
        ports = self._ports.setdefault((card, lane[0]), _Ports())
        if lane[0] in ("top", "bottom"):
            ports.order[pair] = (0, self._sides[card] * lane[1])
        else:
            ports.order[pair] = (0, lane[1]) if goes_up else (1, -lane[1])

    # Drawn

    def _direct(self, pair: Pair) -> Line:
        one, other = sorted(pair, key=lambda card: self._cards[card].y)
        upper, lower = self._cards[one], self._cards[other]
        if self._sides[one] == self._sides[other]:
            x = upper.centre[0]
            return (x, upper.bottom), (x, lower.y)
        x, y = upper.centre[0], lower.centre[1]
        return (x, upper.bottom), (x, y), (lower.x if x < lower.x else lower.right, y)

    def _drawn(self, pair: Pair, way: _Way) -> Line:
        there = self._leaving(pair[0], pair, way)
        back = self._leaving(pair[1], pair, way)
        return (*there, *reversed(back))

    def _leaving(self, card: int, pair: Pair, way: _Way) -> Line:
        """From its edge to its lane, and on to the crossing."""
        edge, lane = way.lanes[card]
        rect, share = self._cards[card], self._ports[card, edge].share(pair)
        if edge in ("top", "bottom"):
            x = rect.x + share * rect.w
            start = rect.y if edge == "top" else rect.bottom
            return (x, start), (x, self._at(edge, lane))
        y, x = rect.y + share * rect.h, self._at(edge, lane)
        begin = (rect.x if edge == "left" else rect.right, y), (x, y)
        return begin if way.crossing is None else (*begin, (x, self._at(*way.crossing)))

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
