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
    sha256: str = ""  # of pack.json, which has the hashes of all other files
    copied_from: str = ""  # the name of the machine of the household from which it was copied


class EngineOffer(msgspec.Struct, frozen=True):
    """A pack that another machine of the household would give to this one.

    problem: why it cannot be used here. here_bytes: how much of it an interrupted copy left here.
    """

    machine: str = ""  # its ID
    name: str = ""  # of the machine
    pack: str = ""
    backend: str = ""
    label: str = ""  # of the back end, as people call it
    built: str = ""
    size_bytes: int = 0
    sha256: str = ""
    here_bytes: int = 0
    installed: bool = False
    copied_from: str = ""  # the machine from which that machine says it copied the pack
    problem: str | None = None
    problem_facts: Reason | None = None


class EngineOffers(msgspec.Struct, frozen=True):
    """The response to `GET /engines/offers`."""

    offers: list[EngineOffer] = []


class EngineCopy(msgspec.Struct, frozen=True):
    """The pack that is being copied from another machine, or how the last copy ended."""

    machine: str = ""  # the name of the other machine
    pack: str = ""
    label: str = ""
    sha256: str = ""
    state: str = ""  # copying, testing, done, failed or canceled
    done_bytes: int = 0
    total_bytes: int = 0
    held_up: str | None = None  # why no data arrives, although it goes on by itself
    held_up_facts: Reason | None = None
    problem: str | None = None  # why it failed
    problem_facts: Reason | None = None

    @property
    def is_over(self) -> bool:
        """Return whether nothing more will come of it."""
        return self.state in ("done", "failed", "canceled")


class AddedEngine(msgspec.Struct, frozen=True):
    """The engine that the owner prefers to llama.cpp. `problem` says why it is not used."""

    name: str = ""  # pytorch or apple, which is MLX
    label: str = ""  # with its version and device, once it has been tested
    folder: str = ""
    testing: bool = False
    used: bool = False
    architectures: list[str] = []  # that it computes; llama.cpp computes all others
    refused: list[str] = []  # families that it failed to compute as llama.cpp does
    if_faster: bool = False  # it computes only families for which it was measured to be faster than llama.cpp
    faster: list[str] = []  # families for which it was
    slower: list[str] = []  # families for which it was not
    problem: str | None = None
    problem_facts: Reason | None = None


class AvailableEngine(msgspec.Struct, frozen=True):
    """An engine that is not part of Poolhouse, and is installed or can be. `advice` says why it may not be worth it."""

    engine: str = ""  # pytorch or mlx
    label: str = ""  # with its version
    download_bytes: int = 0  # 0 if there is none for this computer
    installed_bytes: int = 0
    installed: str = ""  # the version that is installed
    preferred: bool = False  # whether it is the one that the owner prefers to llama.cpp
    advice: str | None = None
    advice_facts: Reason | None = None


class EngineInstallation(msgspec.Struct, frozen=True):
    """The engine that is being installed, or how the last installation ended."""

    engine: str = ""
    label: str = ""
    state: str = ""  # downloading, unpacking, testing, done, failed or canceled
    done_bytes: int = 0  # of the download
    total_bytes: int = 0
    problem: str | None = None  # why it failed
    problem_facts: Reason | None = None

    @property
    def is_over(self) -> bool:
        """Return whether it has ended."""
        return self.state in ("done", "failed", "canceled")


class EnginePacks(msgspec.Struct, frozen=True):
    """The response of the `/engines` routes.

    changed: names the packs that the request concerned.
    added: the engine that the owner prefers to llama.cpp.
    available: the engines that are installed or can be, besides llama.cpp.
    """

    engine_version: str = ""
    system: str = ""
    packs: list[EnginePack] = []
    changed: list[str] = []
    copy: EngineCopy | None = None
    added: AddedEngine | None = None
    available: list[AvailableEngine] = []
    installation: EngineInstallation | None = None
