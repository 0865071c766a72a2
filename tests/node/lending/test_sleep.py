"""Tests of sleep and shutdown: machines that have layers there are told first. Rules without a node."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from app.core.errors import Reason
from app.core.lending.lending import Working
from app.core.lending.policy import Rules
from app.machine.power_events.event_callbacks import PowerEvent
from app.node.lending import lending_policy
from app.node.lending.sleep import handle_power_event
from tests.node.lending.test_lending_policy import HOST, Bench, until


@pytest.fixture
async def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Bench, None]:
    """A machine at work for a host."""
    for name in ("SENSE_SECONDS", "LOOK_SECONDS", "DRAIN_LOOK_SECONDS"):
        monkeypatch.setattr(lending_policy, name, 0.02)
    made = Bench(tmp_path / "settings.json", Rules(memory_bytes=1 << 30))
    await made.rules.begin(made.layers)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(made.rules.run(), name="rules")
        made.layers.hosts = {HOST}
        await until(lambda: isinstance(made.rules.state, Working))
        yield made
        running.cancel()


async def test_before_it_sleeps_it_says_so_and_waits_for_who_computes(bench: Bench) -> None:
    async with asyncio.TaskGroup() as tasks:
        leaving = tasks.create_task(handle_power_event(bench.rules, PowerEvent.SLEEP), name="leave")
        await until(lambda: bench.word() == "draining")
        assert bench.rules.reason() == Reason("pause_sleep")
        assert (bench.rules.snapshot().gives_back_in_s or 0) <= lending_policy.LEAVE_SECONDS
        assert not leaving.done()
        bench.layers.hosts = set()  # it went on elsewhere
        async with asyncio.timeout(30):
            await leaving
    await until(lambda: bench.word() == "paused")
    await handle_power_event(bench.rules, PowerEvent.WAKE)
    await until(lambda: bench.word() == "ready")


async def test_it_waits_no_longer_than_the_system_does(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lending_policy, "LEAVE_SECONDS", 0.2)
    await handle_power_event(bench.rules, PowerEvent.SHUTDOWN)
    await until(lambda: bench.layers.told == [Reason("pause_shutdown")])


async def test_who_needs_it_still_is_told_before_it_goes(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next periodic look would be too late: by then it may sleep, or the node's links are closed."""
    monkeypatch.setattr(lending_policy, "LEAVE_SECONDS", 0.2)
    monkeypatch.setattr(lending_policy, "DRAIN_LOOK_SECONDS", 3600.0)
    await handle_power_event(bench.rules, PowerEvent.SHUTDOWN)
    assert bench.layers.told == [Reason("pause_shutdown")]


async def test_an_answer_that_another_machine_computes_is_waited_for(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No frame passes here meanwhile; but its host has said that an answer is under way."""
    bench.layers.quiet, bench.layers.is_asked = 60.0, True
    async with asyncio.TaskGroup() as tasks:
        monkeypatch.setattr(lending_policy, "LEAVE_SECONDS", 30.0)
        leaving = tasks.create_task(bench.rules.leave(), name="leave")
        for _ in range(20):  # looks at what is lent
            await asyncio.sleep(0.02)
            assert not bench.layers.told
        assert bench.word() == "draining"
        bench.layers.is_asked = False  # it has ended
        await leaving
    await until(lambda: bench.layers.told == [Reason("pause_quit")])


async def test_nobody_is_waited_for_between_answers(bench: Bench) -> None:
    bench.layers.quiet = 60.0
    async with asyncio.timeout(30):
        await bench.rules.leave()
    assert bench.rules.reason() == Reason("pause_quit")


async def test_a_worker_that_no_kill_ends_holds_up_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver may hold its process: the system, or what ends the node at last, would wait for it."""
    for name, seconds in (("LEAVE", 0.2), ("KILLED", 0.1), ("DRAIN_LOOK", 3600.0)):
        monkeypatch.setattr(lending_policy, f"{name}_SECONDS", seconds)
    reasons = list[Reason]()

    async def stop_now(why: Reason) -> None:
        reasons.append(why)
        await asyncio.Event().wait()

    monkeypatch.setattr(bench.layers, "stop_now", stop_now)
    async with asyncio.timeout(30):
        await bench.rules.leave()
    assert reasons == [Reason("pause_quit")]


async def test_who_computes_with_a_machine_that_stays_after_all_keeps_its_layers(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lending_policy, "LEAVE_SECONDS", 2.0)
    async with asyncio.TaskGroup() as tasks:
        leaving = tasks.create_task(handle_power_event(bench.rules, PowerEvent.SLEEP), name="leave")
        await until(lambda: bench.word() == "draining")
        await handle_power_event(bench.rules, PowerEvent.WAKE)
        async with asyncio.timeout(30):
            await leaving
    assert (bench.word(), bench.layers.told) == ("working", [])


async def test_a_node_that_ends_does_so_though_its_computer_stays(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lending_policy, "LEAVE_SECONDS", 0.5)
    async with asyncio.TaskGroup() as tasks:
        leaving = tasks.create_task(bench.rules.leave(), name="leave")
        await until(lambda: bench.word() == "draining")
        await handle_power_event(bench.rules, PowerEvent.WAKE)
        async with asyncio.timeout(30):
            await leaving
    assert bench.layers.told == [Reason("pause_quit")]
