"""Engine packs: the installed ones, and which of them is used."""

from __future__ import annotations

import msgspec

from app.api.computer import Device
from app.core.errors import Reason


class EnginePack(msgspec.Struct, frozen=True):
    """An installed engine pack. `problem` says why it is not used; devices are those that its last test saw."""

    name: str = ""
    backend: str = ""
    label: str = ""  # of the back end, as people call it
    engine_version: str = ""
    ggml_version: str = ""
    system: str = ""
    built: str = ""
    compiler: str = ""
    size_bytes: int = 0
    lacks: list[str] = []
    current: bool = False
    previous: bool = False  # what a rollback would use
    tested: bool = False
    devices: list[Device] = []
    problem: str | None = None
    problem_facts: Reason | None = None
    idle: str | None = None  # why it computes nothing at the moment, although it is in use
    idle_facts: Reason | None = None
    removal: str | None = None  # what follows from removing it
    removal_facts: Reason | None = None


class EnginePacks(msgspec.Struct, frozen=True):
    """The response of the `/engines` routes. `changed` names the packs that the request concerned."""

    engine_version: str = ""
    system: str = ""
    packs: list[EnginePack] = []
    changed: list[str] = []
