"""What this system keeps from whatever reads model files: tried in a child, as a worker does it."""

from __future__ import annotations

import sys

import msgspec

from app.decoding import decode
from app.machine import own_python
from app.machine.hardware.engines import child
from backends.worker.confine import Walls

TRY_SECONDS = 10.0
_CODES = {
    Walls(files=True, network=True): "check_confined_full",
    Walls(files=True): "check_confined_files",
    Walls(network=True): "check_confined_network",
}


async def tried() -> Walls | None:
    """What a worker would be kept from here. None: nobody can say."""
    command = own_python.command("-m", "backends", "walls")
    code, out, _ = await child(command, TRY_SECONDS)
    try:
        return None if code else decode(out, Walls)
    except msgspec.DecodeError:
        return None


def code_of(walls: Walls | None, system: str = sys.platform) -> str:
    """Of the sentence that says so, and why it is no more."""
    if walls is None:
        return "check_confined_unknown"
    neither = "check_confined_neither" if system == "linux" else "check_confined_none"
    return _CODES.get(walls, neither)
