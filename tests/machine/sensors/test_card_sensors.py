"""Tests of the separation of our own use of a graphics card from that of others, and of drivers that fail or hang."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence

import pytest

from app.machine.sensors import card_sensors
from app.machine.sensors.card_sensors import CardSensors
from app.machine.sensors.card_use import CardReading, DriverReport, attributed

GIB = 1 << 30
PLACE = "0000:01:00.0"
OWN, GAME, DESKTOP = 77, 4242, 1000


def report(holders: tuple[int, ...], percents: dict[int, float] | None, *, busy: float | None = 98.0) -> DriverReport:
    held = dict.fromkeys(holders, GIB)
    return DriverReport(PLACE, True, 61.0, busy, 4 * GIB, frozenset(holders), percents, held)


@pytest.mark.parametrize(
    ("reported", "computes", "percent", "others_bytes"),
    [
        # while our worker computes, the card is busy, and only what other processes do counts
        (report((OWN, DESKTOP), {OWN: 97.0, DESKTOP: 1.0}), True, 1.0, 3 * GIB),
        (report((OWN, GAME), {OWN: 40.0, GAME: 55.0}), True, 55.0, 3 * GIB),
        (report((OWN, GAME), {}), True, 0.0, 3 * GIB),
        (report((OWN,), None), True, None, 3 * GIB),  # the driver tells only the total
        (report((OWN,), None), False, None, 3 * GIB),  # as during a test of the card
        # while none of ours has the card open, all is by others
        (report((GAME,), None), False, 98.0, 4 * GIB),
        (report((GAME,), {GAME: 60.0}), False, 98.0, 4 * GIB),
        (report((GAME, DESKTOP), {GAME: 90.0, DESKTOP: 30.0}, busy=None), False, 100.0, 4 * GIB),
        (report((), None, busy=None), False, None, 4 * GIB),
        # layers of ours are on the card and the driver does not list them, as in a container
        (report((GAME,), {GAME: 60.0}), True, None, None),
    ],
)
def test_whose_use_it_is(
    reported: DriverReport, computes: bool, percent: float | None, others_bytes: int | None
) -> None:
    reading = attributed(reported, frozenset({OWN}), computes=computes)
    assert (reading.others_percent, reading.others_bytes) == (percent, others_bytes)
    assert (reading.pci, reading.celsius, reading.busy_percent) == (PLACE, 61.0, reported.busy_percent)


def test_memory_of_ours_that_the_driver_does_not_tell_makes_that_of_others_unknown() -> None:
    reported = DriverReport(PLACE, True, used_bytes=GIB, holders=frozenset({OWN}), percents={}, held_bytes={OWN: None})
    assert attributed(reported, frozenset({OWN}), computes=True).others_bytes is None


def test_this_process_and_its_children_are_ours() -> None:
    assert os.getpid() in card_sensors.own_pids()
    reports = [report((os.getpid(), GAME), {os.getpid(): 97.0, GAME: 3.0})]
    assert [reading.others_percent for reading in CardSensors([lambda: reports]).read({PLACE})] == [3.0]


def test_a_worker_that_has_just_ended_is_not_taken_for_a_game(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drivers report about the time since the last report, and their report is used for ten seconds."""
    now, running, listed = [100.0], {OWN}, [(OWN,)]
    monkeypatch.setattr(card_sensors, "own_pids", lambda: frozenset(running))
    sensors = CardSensors([lambda: [report(listed[0], dict.fromkeys(listed[0], 97.0))]], lambda: now[0])

    def others_percent() -> float | None:
        (reading,) = sensors.read()
        return reading.others_percent

    assert others_percent() == 0.0
    running.clear()
    now[0] = 103.0
    assert others_percent() == 0.0
    now[0] = 111.0  # a new report, of the time in which it still computed
    assert others_percent() == 0.0
    listed[0] = (GAME,)
    now[0] = 122.0
    assert others_percent() == 98.0


def test_sources_are_read_rarely_and_one_that_fails_hides_no_other() -> None:
    reads, now = [0], [100.0]

    def fails() -> Sequence[DriverReport]:
        reads[0] += 1
        raise RuntimeError("a driver answers nonsense")

    sensors = CardSensors([fails, lambda: [report((), None)]], clock=lambda: now[0])
    for now[0] in (100.0, 105.0, 109.9, 110.0):
        assert len(sensors.read()) == 1
    assert reads == [2]


def test_a_driver_that_hangs_is_unknown_and_is_not_asked_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(card_sensors, "HANGS_SECONDS", 0.05)
    ends, calls, now = threading.Event(), [0], [0.0]

    def hangs() -> Sequence[DriverReport]:
        calls[0] += 1
        ends.wait(20)
        return [report((), None)]

    sensors = CardSensors([hangs], clock=lambda: now[0])
    for now[0] in (100.0, 200.0):
        assert sensors.read() == ()
    assert calls == [1]
    ends.set()
    monkeypatch.setattr(card_sensors, "HANGS_SECONDS", 20.0)
    now[0] = 300.0
    while not sensors.read():  # the thread that hung ends in its own time
        now[0] += 100
    assert calls == [2]


def test_without_sources_nothing_is_known() -> None:
    assert CardSensors([]).read({PLACE}) == ()
    assert CardReading().others_percent is None
