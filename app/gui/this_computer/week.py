"""The hours of a week as cells of a table, 7 by 24, and as the text that lending's rule has. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from app.core.lending.hours import DAY_MINUTES, DAYS, Span, hours_text, within

HOUR_MINUTES = 60
HOURS = DAY_MINUTES // HOUR_MINUTES
WEEK = len(DAYS) * HOURS
Cell = tuple[int, int]  # weekday, 0 is Monday; hour
Cells = frozenset[Cell]

ALL: Cells = frozenset((day, hour) for day in range(len(DAYS)) for hour in range(HOURS))


def cells_of(spans: Iterable[Span]) -> Cells:
    """The hours that lie wholly inside these spans; no spans are all hours."""
    given = tuple(spans)
    return frozenset((day, hour) for day, hour in ALL if _whole(given, day, hour))


def is_exact(spans: Iterable[Span]) -> bool:
    """Whether whole hours say all of it."""
    given = tuple(spans)
    cells = cells_of(given)
    return all(
        within(given, day, minute) == ((day, minute // HOUR_MINUTES) in cells)
        for day in range(len(DAYS))
        for minute in range(DAY_MINUTES)
    )


def text_of(cells: Cells) -> str:
    """What the rule says for these cells. Raises ValueError for none: that is no rule."""
    if not cells:
        raise ValueError("no hour at all")
    return hours_text(spans_of(cells))


def spans_of(cells: Cells) -> tuple[Span, ...]:
    """As few spans as people would write; a night is one span over midnight. All cells: none."""
    if cells == ALL:
        return ()
    days: dict[tuple[int, int], list[int]] = {}
    for start, length in _runs(cells):
        for day, first, last in _pieces(start, length):
            days.setdefault((first, last), []).append(day)
    spans = [Span(tuple(sorted(on)), first * HOUR_MINUTES, last * HOUR_MINUTES) for (first, last), on in days.items()]
    return tuple(sorted(spans, key=lambda span: (span.days, span.from_minute)))


def _whole(spans: tuple[Span, ...], day: int, hour: int) -> bool:
    start = hour * HOUR_MINUTES
    return all(within(spans, day, minute) for minute in range(start, start + HOUR_MINUTES))


def _runs(cells: Cells) -> list[tuple[int, int]]:
    """(first hour of the week, length) of each unbroken run; the week is a circle."""
    hours = {day * HOURS + hour for day, hour in cells}
    found = []
    for start in sorted(hours):
        if (start - 1) % WEEK not in hours:
            length = 1
            while (start + length) % WEEK in hours:
                length += 1
            found.append((start, length))
    return found


def _pieces(start: int, length: int) -> list[tuple[int, int, int]]:
    """(day, from hour, to hour) of a run: one piece up to a night, else cut into whole days."""
    day, hour = divmod(start, HOURS)
    if hour and length <= HOURS:
        last = (hour + length) % HOURS or HOURS
        return [(day, hour, last)]
    found = []
    while length:
        day, hour = divmod(start % WEEK, HOURS)
        taken = min(length, HOURS - hour)
        found.append((day, hour, hour + taken))
        start, length = start + taken, length - taken
    return found
