"""Tests of transfer rates with the test's own clock."""

from __future__ import annotations

from app.node.downloads.transfer_rate import SPEED_SECONDS, STALLED_SECONDS, TransferRate


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_speed_needs_two_marks_and_forgets_old_ones() -> None:
    clock = Clock()
    pace = TransferRate(clock)
    assert pace.bytes_per_s() is None
    pace.mark(0)
    assert (pace.bytes_per_s(), pace.seconds_left(500)) == (None, None)
    clock.now += 1
    pace.mark(1000)
    assert (pace.bytes_per_s(), pace.seconds_left(2000)) == (1000, 2)
    for _ in range(2 * int(SPEED_SECONDS)):
        clock.now += 1
        pace.mark(1000)
    assert pace.bytes_per_s() == 0
    assert pace.seconds_left(2000) is None


def test_what_stands_still_is_said_to() -> None:
    clock = Clock()
    pace = TransferRate(clock)
    pace.mark(0)
    clock.now += 1
    pace.mark(1000)
    clock.now += STALLED_SECONDS + 0.1
    assert pace.bytes_per_s() == 0
    pace.clear()
    assert pace.bytes_per_s() is None
