"""Measurements taken beside other programs are repeated when it is quiet, or because a person wants it."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.api.plans import AnswerOutcome, Forecast, LoadedModel, Plan
from app.core.errors import Busy, Refused
from app.core.household.link import Link, LinkKind
from app.core.ids import MachineId
from app.core.planner.placement import Candidate
from app.core.planner.speed_estimates import Speed, SpeedConditions
from app.inference.worker.layer_benchmark import BenchmarkSettings
from app.machine.hardware.cores import Threads
from app.node.planning import local_speed
from app.node.planning.local_speed import LocalSpeed, LocalWork
from app.node.planning.planner_inputs import within_one_computer
from app.node.planning.quiet_measurements import QuietMeasurements
from tests.node.planning.test_speed_cache import SHAPE
from tests.node.planning.test_speed_measurer import Known, Machine

SPEED = Speed(0.01, 0.001, 1e-6, 0.1, 1e-5, 0.001, 0.002, 0.001)
CONDITIONS = SpeedConditions(64)


class Load:
    """A load of other programs, as a test sets it."""

    def __init__(self, share: float) -> None:
        self.share = share

    def __call__(self) -> float:
        return self.share


class Lenders:
    """The measurements of lenders, of which none was disturbed."""

    has_disturbed = False

    async def ask_disturbed(self) -> bool:
        raise AssertionError("no lender was disturbed")


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Load:
    made = Load(0.7)
    monkeypatch.setattr(local_speed, "other_programs_share", made)
    return made


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalSpeed:
    """This machine, whose measurements take no time."""

    async def measure(*_: Any, **__: Any) -> Speed:
        return SPEED

    monkeypatch.setattr(local_speed, "measure", measure)
    machine = Machine()
    return LocalSpeed(LocalWork(Known(Threads(1), lambda: None), machine, machine, machine), tmp_path)


async def test_a_disturbed_measurement_is_repeated_once_it_has_been_quiet_twice(own: LocalSpeed, load: Load) -> None:
    speed = await own.for_user(SHAPE, CONDITIONS)
    assert speed.other_load == 0.7
    assert own.has_disturbed
    quiet = QuietMeasurements(own, Lenders(), own.repeat_disturbed, load)  # type: ignore[arg-type]
    assert not await quiet.look()
    load.share = 0.05
    assert not await quiet.look(), "the other program may only rest"
    assert await quiet.look()
    assert (await own.for_user(SHAPE, CONDITIONS)).other_load == 0.05
    assert not await quiet.look()


async def test_what_was_disturbed_is_repeated_after_a_restart(own: LocalSpeed, load: Load) -> None:
    await own.for_user(SHAPE, CONDITIONS)
    anew = LocalSpeed(own._here, own.root)
    load.share = 0.05
    assert (anew.has_disturbed, await anew.repeat_disturbed(), anew.has_disturbed) == (True, True, False)
    assert (await anew.for_user(SHAPE, CONDITIONS)).other_load == 0.05
    assert not LocalSpeed(own._here, own.root).has_disturbed


async def test_one_that_fails_hinders_no_other_and_is_not_tried_again(
    own: LocalSpeed, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = [SpeedConditions(rows) for rows in (1, 2, 3)]
    for each in many:
        await own.for_user(SHAPE, each)

    async def measure(_shape: object, _folder: object, gauge: BenchmarkSettings, **_: object) -> Speed:
        rows_asked.append(gauge.batch_rows)
        if gauge.batch_rows < 3:
            raise (Busy("speed_busy") if gauge.batch_rows == 1 else Refused("role_missing"))
        return SPEED

    rows_asked: list[int] = []
    monkeypatch.setattr(local_speed, "measure", measure)
    load.share = 0.05
    assert await own.repeat_disturbed()
    assert (await own.for_user(SHAPE, many[2])).other_load == 0.05
    assert not await own.repeat_disturbed()
    assert rows_asked == [1, 2, 3, 1]


async def test_only_the_newest_are_repeated(own: LocalSpeed, load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    for rows in range(1, 5):
        await own.for_user(SHAPE, SpeedConditions(rows))
    monkeypatch.setattr(local_speed, "MOST_REPEATS", 2)
    load.share = 0.0
    assert await own.repeat_disturbed()
    speeds = [await own.known(SHAPE, SpeedConditions(rows)) for rows in range(1, 5)]
    assert [speed and speed.other_load for speed in speeds] == [0.7, 0.7, 0.0, 0.0]


async def test_a_repetition_for_another_host_keeps_to_the_limits_of_now(
    own: LocalSpeed, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    gauges: list[BenchmarkSettings] = []

    async def measure(_shape: object, _folder: object, gauge: BenchmarkSettings, **_: object) -> Speed:
        gauges.append(gauge)
        return SPEED

    monkeypatch.setattr(local_speed, "measure", measure)
    limits = own._here.terms
    assert isinstance(limits, Machine)
    await own.for_member(SHAPE, CONDITIONS, again=False)
    limits.lent, load.share, own._rested_at = 1 << 20, 0.0, 0.0
    assert await own.repeat_disturbed()
    assert gauges[1].allowed_bytes == 1 << 20 < gauges[0].allowed_bytes
    load.share, own._rested_at = 0.7, 0.0
    await own.for_member(SHAPE, SpeedConditions(1), again=False)
    own._rested_at = 0.0
    limits.why = "lending_paused"
    assert not await own.repeat_disturbed()
    assert not own.has_disturbed


async def test_a_lender_that_is_still_busy_does_not_measure_again(
    own: LocalSpeed, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await own.for_member(SHAPE, CONDITIONS, again=False)
    later = time.time() + local_speed.OLD_DISTURBED_S + 1
    own._cache._now, own._rested_at = lambda: later, 0.0
    load.share = 0.5
    assert await own.for_member(SHAPE, CONDITIONS, again=False) == first, "it would be as wrong as before"
    load.share = 0.05
    assert (await own.for_member(SHAPE, CONDITIONS, again=False)).other_load == 0.05


async def test_a_person_may_have_it_measured_again_at_any_time(own: LocalSpeed, load: Load) -> None:
    load.share = 0.0
    await own.for_user(SHAPE, CONDITIONS)
    assert await own.doubt(SHAPE, CONDITIONS)
    assert not await own.doubt(SHAPE, CONDITIONS), "it was repeated recently"
    assert await own.doubt(SHAPE, CONDITIONS, by_hand=True)
    load.share = 0.1
    assert (await own.for_user(SHAPE, CONDITIONS)).other_load == 0.1


def test_no_forecast_is_shown_that_a_busy_computer_makes_wrong() -> None:
    known = Forecast(1.0, 9.0, 9.0, 9.0, spread=1.6, disturbed="den", too_busy=True)
    shown = Plan(model="m", forecast=known).as_shown()
    assert shown.forecast is None
    assert [reason.code for reason in shown.why] == ["unforecast_busy"]
    assert "den" in shown.reasons[0]
    last = AnswerOutcome(
        prompt_tokens=9, output_tokens=9, forecast_ttft_s=0.1, ttft_s=0.9, forecast_tok_s=9.0, tok_s=2.0
    )
    loaded = LoadedModel(model="m", forecast=known, last_answer=last).as_shown()
    assert (loaded.forecast, loaded.last_answer) == (None, None)
    wide = Plan(model="m", forecast=Forecast(1.0, 9.0, 9.0, 9.0, spread=1.6, disturbed="den"))
    assert wide.as_shown() is wide


def machine(name: str, gib: int, kind: LinkKind | None = None) -> Candidate:
    link = Link(0.001, 0.001, 0.0, 1e9, 1e9, "", kind, None, None) if kind is not None else None
    return Candidate(MachineId(name), name, gib << 30, link=link)


def test_nodes_on_one_computer_lend_its_memory_only_once() -> None:
    den, attic, far = machine("den", 6), machine("attic", 6, LinkKind.LOOPBACK), machine("far", 8, LinkKind.ETHERNET)
    shed = machine("shed", 6, LinkKind.LOOPBACK)
    shared = within_one_computer([den, attic, far, shed], 9 << 30, {})
    assert [each.lends_bytes >> 30 for each in shared] == [3, 3, 8, 3]
    assert within_one_computer([den, attic], 20 << 30, {}) == [den, attic]
    assert within_one_computer([den, far], 1 << 30, {}) == [den, far]
    unmeasured = replace(attic, link=None)
    assert within_one_computer([den, unmeasured], 1 << 30, {}) == [den, unmeasured]


def test_only_what_its_own_nodes_release_adds_to_the_memory_of_the_computer() -> None:
    den, attic, far = machine("den", 6), machine("attic", 6, LinkKind.LOOPBACK), machine("far", 8, LinkKind.ETHERNET)
    released = {den.id: 1 << 30, attic.id: 2 << 30, far.id: 50 << 30}
    shared = within_one_computer([den, attic, far], 5 << 30, released)
    assert [each.lends_bytes >> 30 for each in shared] == [4, 4, 8]
