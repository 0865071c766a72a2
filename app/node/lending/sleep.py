"""Before this computer sleeps or ends: who has layers here is told, and may place them elsewhere first."""

from __future__ import annotations

from typing import Protocol

from app.core.errors import Reason
from app.machine.power_events.event_callbacks import Going

WHY = {Going.SLEEPS: Reason("pause_sleep"), Going.ENDS: Reason("pause_shutdown")}


class Terms(Protocol):
    """The owner's rules in force; app/node/lending/lending_policy.py has them."""

    async def leave(self, why: Reason) -> None:
        """Say so, and wait some seconds for those who compute with it now."""
        ...

    def stay(self) -> None: ...


async def follow(terms: Terms, going: Going) -> None:
    """Do what the system's word asks for."""
    if going is Going.STAYS:
        terms.stay()
    else:
        await terms.leave(WHY[going])
