"""A lender's computer is put to sleep or shut down while it computes, and its system says so first and waits; or its
person signs out, and all processes of the session are asked to end at once."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

import psutil

from tests.faults.cases import END_SECONDS, judged
from tests.faults.clocks import LONG
from tests.faults.household import LENDERS, Household
from tests.faults.outcome import Kind, Outcome
from tests.machine.logind import Logind, bus, has_tool, system_bus

WAITS_SECONDS = 5.0  # logind's own InhibitDelayMaxSec
ASLEEP_SECONDS = 8.0  # longer than a machine that is silent is waited for
BARS = (1.0, 10.0)  # told, goes on


@dataclass(frozen=True, slots=True)
class Sleep:
    """An announcement of the system's sleep or shutdown."""

    name: str
    member: str = ""  # of logind's signals; none: it says nothing

    @property
    def kind(self) -> Kind:
        return "F2", f"{self.name}, 1st lender", "middle"

    @property
    def wakes(self) -> bool:
        return self.member == "PrepareForSleep"


def kinds() -> list[Sleep]:
    return [Sleep("put to sleep", "PrepareForSleep"), Sleep("shut down", "PrepareForShutdown"), Sleep("signed out")]


def can_be() -> bool:
    return has_tool()


@dataclass
class Drowsy(Household):
    """Each lender has a system bus of its own, where logind's part is played."""

    logind: dict[str, Logind] = field(default_factory=dict)
    buses: dict[str, str] = field(default_factory=dict)
    long: list[int] = field(default_factory=list)  # the undisturbed long answer

    async def whole(self) -> list[str]:
        lenders = await super().whole()
        if not self.long:
            heard = await self.ask(lambda: None, lambda _: False, LONG)
            assert heard.done is not None, heard.error
            self.long = heard.ids
        return lenders

    def start(self, name: str) -> None:
        if name not in LENDERS:
            return super().start(name)
        if name not in self.buses:
            self.buses[name] = self.stack.enter_context(bus(self.folder / f"{name}.bus"))
            with system_bus(self.buses[name]):
                self.logind[name] = self.stack.enter_context(Logind())
        with system_bus(self.buses[name]):
            return super().start(name)

    def processes(self, name: str) -> list[psutil.Process]:
        """The node and all that it started, as far as it is there."""
        node = psutil.Process(self.nodes[name].process.pid)
        return [*node.children(recursive=True), node]


async def run(home: Drowsy, case: Sleep) -> Outcome:
    """The system waits until its layers have gone elsewhere, at most so long as it does; then nothing runs there."""
    name = (await home.whole())[0]
    logind = home.logind[name]
    after = random.randrange(len(home.long) // 8, len(home.long) // 4)
    waited_s: list[float] = []
    asleep: list[asyncio.Task[None]] = []

    async def sleep() -> None:
        began = time.monotonic()
        while logind.delayed and time.monotonic() - began < WAITS_SECONDS:  # noqa: ASYNC110  another process
            await asyncio.sleep(0.005)
        waited_s.append(time.monotonic() - began)
        if case.wakes:
            with stopped(home.processes(name)):
                await asyncio.sleep(ASLEEP_SECONDS)
            logind.say(case.member, False)
        else:
            home.nodes[name].process.send_signal(signal.SIGTERM)

    def strike() -> None:
        if not case.member:
            end_session(home.processes(name))
        else:
            logind.say(case.member, True)
            asleep.append(asyncio.create_task(sleep(), name="sleep"))  # noqa: TID251  awaited below

    why = "" if logind.delayed else "nothing holds its system up"
    try:
        async with asyncio.timeout(END_SECONDS):
            heard = await home.ask(strike, lambda heard: len(heard.ids) >= after, LONG)
            await asyncio.gather(*asleep)
            await home.whole()  # it is lent again
    except TimeoutError:
        return Outcome(*case.kind, False, f"no end within {END_SECONDS:g} s", in_time=False)
    if waited_s and waited_s[0] >= WAITS_SECONDS:
        why = why or "its system did not wait so long"
    recoveries = int((heard.done or {}).get("recoveries") or 0)
    if recoveries > 1:
        why = why or f"it was left {recoveries} times"
    outcome = judged(case.kind, BARS, heard, home.long, why)
    return replace(outcome, facts={"waited_s": max(waited_s, default=0.0)})


def end_session(processes: list[psutil.Process]) -> None:
    """End processes as systemd ends a session's scope: both signals to each of them (systemd.kill(5))."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)


@contextmanager
def stopped(processes: list[psutil.Process]) -> Iterator[None]:
    """Stop the processes during the block, as a sleeping computer does."""
    for process in processes:
        process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            if process.is_running():
                process.send_signal(signal.SIGCONT)
