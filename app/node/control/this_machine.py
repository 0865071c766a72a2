"""What this computer has, for its own page: system, processor, memory, disk, engines and their devices."""

from __future__ import annotations

import asyncio
import platform
import shutil
from typing import Any

import msgspec

from app.core.reasons import in_words, said
from app.inference.worker.worker import threads_now
from app.machine.hardware import devices, graphics
from app.machine.models_folders import ModelsFolders
from app.machine.paths import Home
from app.machine.sensors import owner_activity
from app.node.downloads.models_move import existing
from app.node.hardware import Hardware

Json = dict[str, Any]


async def told(hardware: Hardware, home: Home, of_models: ModelsFolders) -> Json:
    """All of it; the engines may need some seconds to say what they find. A disk that is away is not asked."""
    models = of_models.own if of_models.now in of_models.known_away else of_models.now
    disk = await asyncio.to_thread(shutil.disk_usage, existing(models))
    memory, engines = devices.memory(), await hardware.engines()
    unused = graphics.unused(engines, await asyncio.to_thread(graphics.listed))
    return {
        "system": await asyncio.to_thread(system),
        "processor": hardware.processor,
        "cores": devices.usable_cores(),
        "threads": hardware.threads.most,
        "threads_now": threads_now() or hardware.threads.begin or hardware.threads.most,
        "hottest_c": await asyncio.to_thread(owner_activity.hottest_celsius),
        "memory": {"total_bytes": memory.total_bytes, "free_bytes": memory.free_bytes},
        "disk": {"folder": str(models), "total_bytes": disk.total, "free_bytes": disk.free},
        "engines": [msgspec.to_builtins(engine) for engine in engines],
        "unused_graphics": {"reason": said(unused), "cure": in_words("cure_graphics_unused")}
        if unused
        else None,
    }


def system() -> str:
    """The system as its maker calls it."""
    if name := platform.mac_ver()[0]:
        return f"macOS {name}"
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]  # Linux only
    except (OSError, KeyError):
        return f"{platform.system()} {platform.release()}"
