"""Installing and removing the engines that are not part of Poolhouse, PyTorch and MLX, at the owner's request."""

from __future__ import annotations

import asyncio
import logging
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec

from app.api import engine_packs as api
from app.core.errors import AppError, BadInput, Busy, Reason, Refused, bug
from app.core.reasons import sentence
from app.machine.engine_packs.store import this_system
from app.machine.engine_packs.wheel_install import (
    damage,
    delete_unfinished,
    forget_download,
    install_engine,
    installed_engines,
    remove_engine,
)
from app.machine.engine_packs.wheels import NAMES, EngineDownload, downloads
from app.machine.hardware.graphics import NVIDIA_WORDS, list_cards
from app.machine.settings import EngineSettings, SettingsStore
from app.node.engines.added_engine import AddedEngine

log = logging.getLogger(__name__)

SETTING: dict[str, Literal["pytorch", "apple"]] = {"pytorch": "pytorch", "mlx": "apple"}  # the names in the settings


class EngineInstallation:
    """The engines that can be installed, and the installation in progress. Only one runs at a time.

    folder: each installed engine has a folder in it.
    """

    def __init__(self, folder: Path, added: AddedEngine, choices: SettingsStore, changed: Callable[[], None]) -> None:
        self._folder, self._added, self._choices, self._changed = folder, added, choices, changed
        self._group = asyncio.TaskGroup()  # entered by `run`
        self._task: asyncio.Task[None] | None = None
        self._order = asyncio.Lock()  # held while an installation is begun or ended, or an engine removed
        self.now: api.EngineInstallation | None = None

    async def run(self) -> None:
        """Delete what an interrupted installation has left, then wait. Canceling this stops an installation."""
        async with self._group:
            await asyncio.to_thread(delete_unfinished, self._folder)
            await asyncio.get_running_loop().create_future()

    async def available(self) -> list[api.AvailableEngine]:
        """Return the engines that are installed or can be."""
        return await asyncio.to_thread(self._available)

    def _available(self) -> list[api.AvailableEngine]:
        engines: dict[str, api.AvailableEngine] = {}
        for download in downloads():
            engines[download.engine] = api.AvailableEngine(
                download.engine, download.label, download.size_bytes, download.unpacked_bytes
            )
        for name, here in installed_engines(self._folder).items():
            offered = engines.get(name)
            is_preferred = self._choices.now.engine.folder == str(self._folder / name)
            most = offered.download_bytes if offered else 0
            engines[name] = api.AvailableEngine(name, here.label, most, here.size_bytes, here.version, is_preferred)
        return [_advised(engines[name]) for name in NAMES if name in engines]

    def folder_of(self, engine: str) -> Path:
        """Return the folder of an installed engine. Raises BadInput if it is not installed."""
        if engine not in installed_engines(self._folder):
            raise BadInput("engine_not_installed", engine=NAMES[engine])
        return self._folder / engine

    async def start(self, engine: str, wheels: str) -> None:
        """Start installing an engine, which is used from then on where it is faster. Raises Busy or Refused.

        wheels: a folder with its files, or "" to download them.
        """
        async with self._order:
            if self._task is not None and not self._task.done():
                raise Busy("engine_installing")
            download = next((each for each in downloads() if each.engine == engine), None)
            if download is None:
                facts = {"engine": NAMES[engine], "system": this_system(), "python": platform.python_version()}
                raise Refused("engine_not_offered", **facts)
            self.now = api.EngineInstallation(
                engine, download.label, "unpacking" if wheels else "downloading", total_bytes=download.size_bytes
            )
            self._task = self._group.create_task(self._run(download, wheels), name="install an engine")
            self._changed()

    async def cancel(self) -> None:
        """Cancel the installation in progress, and delete what has arrived. Return when it has ended."""
        async with self._order:
            if self._task is None or self._task.done():
                return
            self._task.cancel()
            await asyncio.wait({self._task})
            if self.now is not None and not self.now.is_over:
                await asyncio.to_thread(forget_download, self._folder)
                self._tell(state="canceled")

    async def remove(self, engine: str) -> None:
        """Delete an installed engine. llama.cpp then computes. Raises BadInput, Busy or Refused."""
        async with self._order:
            if self._task is not None and not self._task.done():
                raise Busy("engine_installing")
            folder = self.folder_of(engine)
            if self._choices.now.engine.folder == str(folder):
                await self._prefer(EngineSettings())
            await asyncio.to_thread(remove_engine, self._folder, engine)
            if self.now is not None and self.now.engine == engine:
                self.now = None
            self._changed()

    async def damage(self, engine: str) -> AppError | None:
        """Return the error for the first changed file of an installed engine, or None. Reads all of its files."""
        return await asyncio.to_thread(damage, self._folder, engine)

    async def _run(self, download: EngineDownload, wheels: str) -> None:
        try:
            await install_engine(
                download,
                self._folder,
                wheels,
                lambda n_bytes: self._tell(done_bytes=min(n_bytes, download.size_bytes)),
                lambda: self._tell(state="unpacking"),
            )
            self._tell(state="testing")
            folder = str(self._folder / download.engine)
            await self._prefer(EngineSettings(SETTING[download.engine], folder, if_faster=True))
            state = await self._added.tested()
            why = state.problem_facts if state is not None else None
            self._tell(state="failed" if why else "done", problem=sentence(why), problem_facts=why)
        except AppError as error:
            self._fail(error.reason)
        except Exception as error:  # top of a task: an installation must not end the node
            log.exception("installing an engine")
            self._fail(bug(error).reason)

    async def _prefer(self, engine: EngineSettings) -> None:
        await self._choices.change(lambda now: msgspec.structs.replace(now, engine=engine))
        self._added.test_again()

    def _fail(self, why: Reason) -> None:
        self._tell(state="failed", problem=sentence(why), problem_facts=why)

    def _tell(self, **changes: Any) -> None:
        assert self.now is not None  # set by `start`
        self.now = msgspec.structs.replace(self.now, **changes)
        self._changed()


def _advised(engine: api.AvailableEngine) -> api.AvailableEngine:
    why = processor_only(engine.engine)
    return msgspec.structs.replace(engine, advice=sentence(why), advice_facts=why)


def processor_only(engine: str) -> Reason | None:
    """Return a warning if an engine would compute on this computer's processor, where llama.cpp is faster, or None."""
    if this_system().startswith("macos"):
        return None
    cards = " ".join(list_cards()).casefold()
    if engine == "pytorch" and any(word in cards for word in NVIDIA_WORDS):
        return None
    return Reason("engine_processor_only", {"engine": NAMES[engine]})
