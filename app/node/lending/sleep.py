"""Keeps this computer awake while it works, and warns the hosts with layers here before it sleeps or shuts down."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from app.api.snapshot import Snapshot
from app.core.errors import Reason
from app.core.lending.policy import Battery
from app.machine.power_events.event_callbacks import PowerEvent
from app.machine.power_events.keep_awake import WakeLock
from app.machine.sensors import owner_activity

LOOK_SECONDS = 5.0  # well below the idle time after which any system sleeps
UNDER_WAY = ("starting", "running", "checking")  # states of an active download
WHY = {PowerEvent.SLEEP: Reason("pause_sleep"), PowerEvent.SHUTDOWN: Reason("pause_shutdown")}


def is_needed(snapshot: Snapshot, battery: Battery | None) -> bool:
    """Return whether going to sleep would interrupt work that someone is waiting for (UX.md TC6)."""
    if battery is not None and not battery.plugged:
        return False
    lending, answers, embedder = snapshot.node.lending.state, snapshot.answers, snapshot.embeds
    if lending in ("paused", "draining"):
        return False
    return (
        any(model.state == "loading" for model in snapshot.models)
        or bool(embedder and embedder.asks)
        or lending == "working"
        or bool(answers.running or answers.waiting)
        or any(download.state in UNDER_WAY for download in snapshot.downloads.values())
    )


async def stay_awake(
    snapshot: Callable[[], Snapshot],
    awake: WakeLock | None = None,
    battery: Callable[[], Battery | None] = owner_activity.battery,
) -> None:
    """Keep the computer awake while it is needed, until canceled."""
    held = awake or WakeLock()
    try:
        while True:
            if is_needed(snapshot(), battery()):
                held.hold()
            else:
                held.release()
            await asyncio.sleep(LOOK_SECONDS)
    finally:
        held.release()


class PowerPolicy(Protocol):
    """The part of the lending policy that reacts to power events, implemented by app/node/lending/lending_policy.py."""

    async def leave(self, why: Reason) -> None:
        """Announce that this computer is about to stop, and wait a few seconds for the hosts that use its layers."""
        ...

    def stay(self) -> None: ...


async def handle_power_event(policy: PowerPolicy, event: PowerEvent, woke: Callable[[], None] = lambda: None) -> None:
    """Tell the policy about a power event of the operating system. `woke` is called after a sleep."""
    if event is PowerEvent.WAKE:
        policy.stay()
        woke()
    else:
        await policy.leave(WHY[event])
