"""The checks of this computer that `doctor` runs, with or without a node. Each returns its findings and remedies."""

from __future__ import annotations

import asyncio
import errno
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from app.core.diagnostics import Check
from app.core.errors import AppError, Damaged, DoesNotFit, Fact, Reason
from app.core.reasons import GIB, os_cause
from app.machine.hardware import graphics
from app.machine.hardware.devices import memory, processor_name
from app.machine.hardware.engines import Engine, accelerators, probe_all, probe_walls, walls_code
from app.machine.keyring_store import FileStore, open_keystore
from app.machine.models_folders import ModelsFolders
from app.machine.paths import Home
from app.machine.sensors.owner_activity import battery
from app.machine.settings import load
from backends.contract import PROVED_ENGINES, is_proved
from backends.worker.confine import FULL, Restrictions

LOW_DISK_BYTES, MIN_DISK_BYTES = 10 * GIB, 1 * GIB
SOME_BYTES = 4096
LOW_MEMORY_BYTES, MIN_MEMORY_BYTES = 2 * GIB, GIB // 2


async def machine_checks(home: Home) -> list[Check]:
    """Run all checks of this computer."""
    return [
        *await engines(),
        confined(await probe_walls()),
        await asyncio.to_thread(disk, home),
        free_memory(),
        *await asyncio.to_thread(power),
        await asyncio.to_thread(writable, home),
        await key_store(home),
    ]


async def engines() -> list[Check]:
    """Check the inference engines and their devices. Each engine is probed in a child process."""
    probed = await probe_all()
    processor = processor_name()
    checks = [check for probe in probed for check in (engine(probe, processor), *devices(probe))]
    return [*checks, *unused_graphics(probed, await asyncio.to_thread(graphics.list_cards))]


def engine(probe: Engine, processor: str) -> Check:
    """Report an engine's version and the processor features that it uses, or why it cannot be loaded."""
    if probe.missing:
        cause = Reason("check_engine_missing", {"engine": probe.name, "why": probe.missing})
        return Check("Engine", False, cause, Reason("cure_engine_missing"), "engine_missing")
    if probe.version and not is_proved(probe.version):
        proved = " or ".join(PROVED_ENGINES)
        cause = Reason("check_engine_unproved", {"engine": probe.name, "version": probe.version, "proved": proved})
        return Check("Engine", None, cause, Reason("cure_engine_unproved"), "engine_unproved")
    facts: dict[str, Fact] = {"engine": probe.name, "version": probe.version, "processor": processor}
    if not probe.features:
        return Check("Engine", True, Reason("check_engine", facts))
    features = ", ".join(probe.features)
    return Check("Engine", True, Reason("check_engine_with", {"features": features, **facts}))


def devices(probe: Engine) -> list[Check]:
    """Report each accelerator that this build of the engine can use."""
    return [
        Check(
            "Device",
            True,
            Reason(
                "check_device",
                {
                    "device": device.description or device.name,
                    "api": device.api or probe.name,
                    "free_bytes": device.free_bytes,
                    "total_bytes": device.total_bytes,
                },
            ),
        )
        for device in accelerators(probe)
    ]


def unused_graphics(probed: Sequence[Engine], listed: Sequence[str]) -> list[Check]:
    """Report graphics cards that are present but unused, because they may explain low speed."""
    why = graphics.unused_cards(probed, listed)
    cure = Reason("cure_graphics_unused")
    return [Check("Device", None, why, cure, why.code)] if why else []


def confined(kept_from: Restrictions | None) -> Check:
    """Check how well workers are sandboxed, which matters if the parser of model files has a vulnerability."""
    cause = Reason(walls_code(kept_from))
    if kept_from is not None and kept_from.level == FULL:
        return Check("Sandbox", True, cause)
    return Check("Sandbox", None, cause, Reason("cure_confined"))


def power() -> list[Check]:
    """Report the power source of a computer with a battery. Laptops compute more slowly on battery."""
    reading = battery()
    if reading is None:
        return []
    if reading.plugged:
        return [Check("Power", True, Reason("check_plugged"))]
    cause = Reason("check_on_battery", {"percent": reading.percent})
    return [Check("Power", None, cause, Reason("cure_on_battery"))]


def disk(home: Home) -> Check:
    """Check the free disk space for models, and that their folder exists and is writable. Leaves no file behind."""
    folders = models_folders(home)
    if why := folders.check_reachable(folders.now):
        return Check("Disk", False, why, None, why.code)
    folder = folders.now
    free = shutil.disk_usage(_existing(folder)).free
    cause = Reason("check_disk", {"free_bytes": free, "folder": str(folder)})
    ok = _enough(free, MIN_DISK_BYTES, LOW_DISK_BYTES)
    if ok is not False and folders.now != folders.own:  # the default folder is checked together with the home
        try:
            folders.check_writable(folder)
        except DoesNotFit as error:
            return Check("Disk", False, error.reason, Reason("cure_disk"), "disk_low")
        except AppError as error:
            return Check("Disk", False, error.reason, None, error.reason.code)
    return Check("Disk", ok, cause, Reason("cure_disk"), "" if ok else "disk_low")


def models_folders(home: Home) -> ModelsFolders:
    """Return the models folders from the settings, or only the default folder if the settings cannot be read."""
    try:
        return ModelsFolders(home.downloaded, load(home.settings_file).models)
    except (Damaged, OSError):
        return ModelsFolders(home.downloaded)


def free_memory() -> Check:
    """Check how much memory is free for a model."""
    usage = memory()
    cause = Reason("check_memory", {"free_bytes": usage.free_bytes, "total_bytes": usage.total_bytes})
    ok = _enough(usage.free_bytes, MIN_MEMORY_BYTES, LOW_MEMORY_BYTES)
    return Check("Memory", ok, cause, Reason("cure_memory"))


def writable(home: Home) -> Check:
    """Check that the node can write to its home. Leaves no file behind."""
    folder = _existing(home.root)
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(SOME_BYTES))  # an empty file would fit even on a full disk
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        cure = Reason("cure_disk" if full else "cure_home_unwritable")
        cause = Reason("check_home_unwritable", {"folder": str(folder), "why": os_cause(error)})
        return Check("Home", False, cause, cure, "home_unwritable")
    return Check("Home", True, Reason("check_home", {"folder": str(home.root)}))


async def key_store(home: Home) -> Check:
    """Report where the passphrase of this machine's key is stored, and check that it can be read.

    If it is in a file, the finding is a note, because the file protects the key from other accounts but not from a
    person who copies the folder.
    """
    try:
        store = await open_keystore(home)
        if home.identity.is_dir():
            await store.read()
    except AppError as error:
        return Check("Key", False, error.reason)
    if isinstance(store, FileStore):
        cure = Reason("cure_key_in_file", {"folder": str(home.root)})
        return Check("Key", None, Reason("check_key_in_file", {"path": str(store.path)}), cure)
    return Check("Key", True, Reason("check_key", {"where": store.where}))


def _existing(folder: Path) -> Path:
    """Return the folder or its nearest existing parent, because `doctor` creates no folders."""
    return next((candidate for candidate in (folder, *folder.parents) if candidate.is_dir()), Path.cwd())


def _enough(free: int, least: int, low: int) -> bool | None:
    return False if free < least else None if free < low else True
