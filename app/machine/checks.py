"""What `doctor` looks at on this computer, node or not. Every check says what it found, and the cure."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path

from app.core.check import Check
from app.core.errors import AppError
from app.core.reasons import GIB, said, size
from app.machine.devices import memory, processor_name
from app.machine.engines import Engine, accelerators, probe_all
from app.machine.keystore import open_keystore
from app.machine.paths import Home
from app.machine.senses import battery

LOW_DISK_BYTES, LEAST_DISK_BYTES = 10 * GIB, 1 * GIB
LOW_MEMORY_BYTES, LEAST_MEMORY_BYTES = 2 * GIB, GIB // 2


async def machine_checks(home: Home) -> list[Check]:
    """All findings of this computer itself."""
    return [
        *await engines(),
        await asyncio.to_thread(disk, home),
        free_memory(),
        *await asyncio.to_thread(power),
        await asyncio.to_thread(writable, home),
        await key_store(home),
    ]


async def engines() -> list[Check]:
    """What a worker can load, each engine asked in a child: no engine runs in this process."""
    found = await probe_all()
    processor = processor_name()
    return [check for one in found for check in (engine(one, processor), *graphics(one))]


def engine(found: Engine, processor: str) -> Check:
    """One engine: its version and how it uses the processor, or why it cannot be loaded."""
    if found.missing:
        cure = "Run `make run` in the Poolhouse folder: it compiles the engine."
        cause = f"{found.name}: {found.missing.rstrip('.')}."
        return Check("Engine", False, cause, cure, "engine_missing")
    using = f" with {', '.join(found.features)}" if found.features else ""
    return Check("Engine", True, f"{found.name} {found.version} on {processor}{using}.")


def graphics(found: Engine) -> list[Check]:
    """The accelerators that this build of an engine can use."""
    return [
        Check("Device", True, f"{device.description or device.name} by {device.api or found.name}: "
              f"{size(device.free_bytes)} of {size(device.total_bytes)} are free.")
        for device in accelerators(found)
    ]  # fmt: skip


def power() -> list[Check]:
    """The battery, where there is one: a laptop on battery computes more slowly."""
    found = battery()
    if found is None:
        return []
    if found.plugged:
        return [Check("Power", True, "Plugged in.")]
    cure = "Plug it in: it is faster then."
    return [Check("Power", None, f"On battery, {found.percent:.0f} % left.", cure)]


def disk(home: Home) -> Check:
    """Room for models below the home."""
    folder = _existing(home.root)
    free = shutil.disk_usage(folder).free
    cause = f"{size(free)} are free where models are kept ({folder})."
    cure = "Free some space, or choose another folder with --home."
    ok = _enough(free, LEAST_DISK_BYTES, LOW_DISK_BYTES)
    return Check("Disk", ok, cause, cure, "" if ok else "disk_low")


def free_memory() -> Check:
    """Memory that a model could take now."""
    now = memory()
    cause = f"{size(now.free_bytes)} of {size(now.total_bytes)} are free."
    cure = "Close programs that are not needed."
    return Check(
        "Memory", _enough(now.free_bytes, LEAST_MEMORY_BYTES, LOW_MEMORY_BYTES), cause, cure
    )


def writable(home: Home) -> Check:
    """Whether the node can write where it keeps everything. Leaves nothing behind."""
    folder = _existing(home.root)
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        cure = "Make it writable for you, or choose another folder with --home."
        cause = f"{folder} cannot be written: {error.strerror}."
        return Check("Home", False, cause, cure, "home_unwritable")
    return Check("Home", True, f"{home.root} can be written.")


async def key_store(home: Home) -> Check:
    """Where the key of this machine is, and whether it can be read."""
    try:
        store = await open_keystore(home)
        if home.identity.is_dir():
            await store.read()
    except AppError as error:
        return Check("Key", False, said(error))
    return Check("Key", True, f"The key is kept {store.where}.")


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists: doctor makes nothing."""
    return next((one for one in (folder, *folder.parents) if one.is_dir()), Path.cwd())


def _enough(free: int, least: int, low: int) -> bool | None:
    return False if free < least else None if free < low else True
