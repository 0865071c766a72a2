"""Weekly schedules in the form that people write, such as `mon-fri 18:00-08:00`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from app.core.errors import BadInput

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DAY_MINUTES = 24 * 60
MAX_SPANS = 28
MAX_CHARACTERS = 400

_SPAN = re.compile(
    r"(?:(?P<days>[a-z]{3}(?:-[a-z]{3})?))?\s*"
    r"(?:(?P<from>\d{1,2}:\d\d)\s*-\s*(?P<to>\d{1,2}:\d\d))?"
)


@dataclass(frozen=True, slots=True)
class Span:
    """A time span on certain days of the week. If it ends before it begins, it continues past midnight.

    days: 0 is Monday. A span belongs to the day on which it begins.
    """

    days: tuple[int, ...]
    from_minute: int = 0
    to_minute: int = DAY_MINUTES

    def __post_init__(self) -> None:
        sound = (
            self.days == tuple(sorted(set(self.days)))
            and self.days
            and set(self.days) <= set(range(len(DAYS)))
            and 0 <= self.from_minute < DAY_MINUTES
            and 0 < self.to_minute <= DAY_MINUTES
        )
        if not sound:
            raise ValueError("hours that no week has")

    def includes(self, weekday: int, minute: int) -> bool:
        """Return whether the span includes this minute of this weekday."""
        if self.from_minute < self.to_minute:
            return weekday in self.days and self.from_minute <= minute < self.to_minute
        today = weekday in self.days and minute >= self.from_minute
        return today or ((weekday - 1) % len(DAYS) in self.days and minute < self.to_minute)


def is_within(spans: Sequence[Span], weekday: int, minute: int) -> bool:
    """Return whether any span includes this moment. An empty schedule includes every moment."""
    return not spans or any(span.includes(weekday, minute) for span in spans)


def parse_hours(text: str) -> tuple[Span, ...]:
    """Parse a schedule such as `mon-fri 18:00-08:00, sat, sun 9:00-12:00`. `always` has no spans.

    Raises BadInput if the text is invalid.
    """
    typed = text.strip().lower()
    if typed == "always":
        return ()
    parts = typed.split(",") if len(typed) <= MAX_CHARACTERS else []
    if not 0 < len(parts) <= MAX_SPANS:
        raise _odd(text)
    try:
        return tuple(_span(part.strip()) for part in parts)
    except ValueError:
        raise _odd(text) from None


def format_hours(spans: Sequence[Span]) -> str:
    """Return the spans in the form that `parse_hours` accepts, such as `mon-fri 18:00-08:00, sat` or `always`."""
    return ", ".join(_written(span) for span in spans) or "always"


def _span(part: str) -> Span:
    match = _SPAN.fullmatch(part)
    if not part or match is None:
        raise ValueError("neither days nor hours")
    days = _days(match["days"]) if match["days"] else tuple(range(len(DAYS)))
    if not match["from"]:
        return Span(days)
    return Span(days, _minute(match["from"]), _minute(match["to"]) or DAY_MINUTES)


def _days(text: str) -> tuple[int, ...]:
    """Return the numbers of the days. A range such as `sat-mon` wraps around the end of the week."""
    first, _, last = text.partition("-")
    start = DAYS.index(first)
    count = (DAYS.index(last or first) - start) % len(DAYS)
    return tuple(sorted((start + n) % len(DAYS) for n in range(count + 1)))


def _minute(text: str) -> int:
    hours, _, minutes = text.partition(":")
    if int(minutes) >= 60:
        raise ValueError("an hour has 60 minutes")
    return int(hours) * 60 + int(minutes)


def _written(span: Span) -> str:
    runs: list[list[int]] = []
    for day in span.days:
        if runs and runs[-1][-1] == day - 1:
            runs[-1].append(day)
        else:
            runs.append([day])
    hours = ""
    if (span.from_minute, span.to_minute) != (0, DAY_MINUTES):
        hours = f" {_clock(span.from_minute)}-{_clock(span.to_minute % DAY_MINUTES)}"
    names = (DAYS[run[0]] if len(run) == 1 else f"{DAYS[run[0]]}-{DAYS[run[-1]]}" for run in runs)
    return ", ".join(f"{name}{hours}" for name in names)


def _clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


def _odd(text: str) -> BadInput:
    return BadInput("hours_odd", typed=text[:64])
