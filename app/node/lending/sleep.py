"""Sleep: keeps this computer awake while it works, and warns the hosts with layers here before it sleeps or ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from app.core.errors import Reason
from app.core.lending.policy import Battery
from app.machine.power_events.event_callbacks import PowerEvent
from app.machine.power_events.keep_awake import Awake
from app.machine.sensors import owner_activity

Json = dict[str, Any]

LOOK_SECONDS = 5.0  # well below the idle time after which any system sleeps
UNDER_WAY = ("starting", "running", "checking")  # states of a download
WHY = {PowerEvent.SLEEPS: Reason("pause_sleep"), PowerEvent.ENDS: Reason("pause_shutdown")}


def is_needed(snapshot: Json, battery: Battery | None) -> bool:
    """Return whether sleep would interrupt work that somebody waits for (UX.md TC6)."""
    if battery is not None and not battery.plugged:
        return False
    lending = snapshot["node"]["lending"]["state"]
    if lending in ("paused", "draining"):
        return False
    models = snapshot.get("loaded") or {}, *(snapshot.get("beside") or ())
    loading = any(model.get("state") == "loading" for model in models)
    vectors = snapshot.get("embeds") or {}
    downloads = (snapshot.get("downloads") or {}).values()
    return (
        loading
        or bool(vectors.get("asks"))
        or lending == "working"
        or any((snapshot.get("answers") or {}).values())
        or any(download.get("state") in UNDER_WAY for download in downloads)
    )


async def stay_awake(
    snapshot: Callable[[], Json],
    awake: Awake | None = None,
    battery: Callable[[], Battery | None] = owner_activity.battery,
) -> None:
    """Keep the computer awake while needed, until cancelled."""
    held = awake or Awake()
    try:
        while True:
            if is_needed(snapshot(), battery()):
                held.hold()
            else:
                held.release()
            await asyncio.sleep(LOOK_SECONDS)
    finally:
        held.release()


class Terms(Protocol):
    """The owner's rules in force, implemented by app/node/lending/lending_policy.py."""

    async def leave(self, why: Reason) -> None:
        """Announce the departure, and wait a few seconds for the hosts that compute with this machine."""
        ...

    def stay(self) -> None: ...


async def follow(terms: Terms, going: PowerEvent) -> None:
    """Act on a power event of the system."""
    if going is PowerEvent.STAYS:
        terms.stay()
    else:
        await terms.leave(WHY[going])
