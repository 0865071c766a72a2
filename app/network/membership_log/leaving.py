"""A machine's wish to leave its household: kept in its home until its node begins anew, as somebody else."""

from __future__ import annotations

import asyncio
import logging

import psutil

from app.network import identity
from app.network.storage import Place

log = logging.getLogger(__name__)

WISH = "leave"
LATE_SECONDS = 10.0  # a node that was asked to stop is ended after eight (app/node/start.py)
LOOK_SECONDS = 0.1


def wish(home: Place, pid: int | None) -> None:
    """Only ever on the user's word. pid: of the node that still runs, as the one who leaves. Raises OSError."""
    home.write(home.identity / WISH, str(pid or "").encode())


async def carry_out(home: Place, late_s: float = LATE_SECONDS) -> None:
    """Before a node reads who it is: the identity and the household are put aside where that was wished.

    The node that leaves has ended by then, so that it writes nothing into what is new. Raises OSError, BadInput.
    """
    try:
        text = await asyncio.to_thread((home.identity / WISH).read_text)
    except FileNotFoundError:
        return
    for _ in range(round(late_s / LOOK_SECONDS)):
        if not _runs(text):
            break
        await asyncio.sleep(LOOK_SECONDS)
    await identity.reset(home)
    log.info("this machine left its household, and has a new identity")


def _runs(pid: str) -> bool:
    """A process that has ended may still be listed, until whoever started it asks how it ended."""
    try:
        return pid.isdecimal() and psutil.Process(int(pid)).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
