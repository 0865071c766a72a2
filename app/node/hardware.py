"""The processor and engines of this machine. The engines are probed once, in the background of the start."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from app.machine.hardware import devices, engines
from app.machine.hardware.cores import Threads
from app.machine.hardware.engines import Engine
from app.node.planning.speed_cache import Setup
from backends.contract import LLAMACPP

log = logging.getLogger(__name__)

MAX_DEVICE_TEXT = 200  # as other machines take it


class Hardware:
    """The hardware in one line, for faces and other machines, and the setup that a measured speed depends on."""

    def __init__(self, threads: Threads, changed: Callable[[], None]) -> None:
        self.threads, self._changed = threads, changed
        self.processor = devices.processor_name()
        self._engines: list[Engine] = []
        self._asking = asyncio.Lock()

    @property
    def device(self) -> str:
        """The processor's name, with the devices the engines found once they were probed."""
        return engines.described(self.processor, self._engines)[:MAX_DEVICE_TEXT]

    @property
    def told(self) -> tuple[str, tuple[str, ...]]:
        """The device and the engine that runs layers, with its version once probed, as reported to other machines."""
        known = [engine for engine in self._engines if engine.name == LLAMACPP and not engine.missing]
        version = known[0].version[:40] if known else ""
        return self.device, (f"{LLAMACPP} {version}".strip(),)

    async def run(self) -> None:
        """Probe the engines. A failure is logged; the next caller that needs the answer probes again."""
        for engine in await self.engines():
            if engine.missing:
                log.warning("the engine %s cannot be used: %s", engine.name, engine.missing)
        self._changed()

    async def engines(self) -> list[Engine]:
        """Return all engines, probed once for all callers."""
        async with self._asking:
            if not any(not engine.missing for engine in self._engines):
                self._engines = await engines.probe_all()
            return self._engines

    async def setup(self, batch_rows: int) -> Setup:
        """Return the setup that a speed measured now holds for."""
        build = "".join(engine.build for engine in await self.engines() if engine.name == LLAMACPP)
        return Setup(build, self.processor, self.threads.most, batch_rows)
