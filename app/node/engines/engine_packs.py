"""The installation, testing and choice of engine packs. The rest of the node uses the libraries that are chosen
here.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from app.api import engine_packs as api
from app.api.computer import Device
from app.catalog.transfers.file_transfer import run_to_completion
from app.core.errors import Refused
from app.core.reasons import sentence
from app.decoding import convert
from app.machine.engine_packs.manifest import BACKENDS, label, public_version
from app.machine.engine_packs.removal import removal
from app.machine.engine_packs.self_test import self_test
from app.machine.engine_packs.store import InstalledPack, Origin, PackStore, this_engine, this_system


class EnginePackService:
    """The engine packs of this machine. Changes happen one after the other."""

    def __init__(self, store: PackStore, changed: Callable[[], None] = lambda: None) -> None:
        self._store, self._changed = store, changed
        self.n_tests = 0  # how often the packs were tested at the user's request
        self._lock = asyncio.Lock()
        self._exports = asyncio.Lock()
        self.libraries: dict[str, Path] = {}  # of the packs in use, by back end
        self.whole: Sequence[InstalledPack] = ()  # what other machines may have, also if no card here uses it

    async def run(self) -> None:
        """Read the store when the node starts."""
        async with self._lock:
            await self._reload()
        self._changed()

    async def packs(self) -> api.EnginePacks:
        """Return the installed packs."""
        return described(await asyncio.to_thread(self._store.packs))

    async def add(self, path: str) -> api.EnginePacks:
        """Install a pack and test it. It is used from now on if it passes. Raises AppError."""
        async with self._lock:
            pack = await asyncio.to_thread(self._store.install, Path(path))
            pack = await self._test(pack)
            if pack.problem is None:
                await asyncio.to_thread(self._store.use, pack.name)
            return await self._answer([pack.name])

    async def add_copied(
        self, folder: Path, origin: Origin, tested: Callable[[], None], is_wanted: Callable[[], bool]
    ) -> api.EnginePack:
        """Install a pack that was copied from another machine, test it, and use it if it passes. Raises AppError.

        tested: called once the pack has been tested; from then on, it is too late to cancel.
        is_wanted: called if this method is canceled before then; returns whether the new pack stays installed.
        """
        async with self._lock:
            before = {pack.name for pack in await asyncio.to_thread(self._store.packs)}
            adopted: list[InstalledPack] = []
            try:
                await run_to_completion(lambda: adopted.append(self._store.adopt(folder, origin)))
                pack = await self._test(adopted[0])
            except asyncio.CancelledError:
                for new in adopted:
                    if new.name not in before and not is_wanted():
                        await run_to_completion(partial(self._store.remove, new.name))
                raise
            tested()
            if pack.problem is None:
                await asyncio.to_thread(self._store.use, pack.name)
            answer = await self._answer([pack.name])
        return next(described for described in answer.packs if described.name == pack.name)

    def path_of(self, pack: InstalledPack, file: str) -> Path:
        """Return the path of a file of an installed pack."""
        return self._store.path_of(pack, file)

    async def export(self, name: str, place: Path) -> api.EnginePacks:
        """Write an installed pack to an archive for another computer. Only one pack is exported at a time. Raises
        AppError.
        """
        stop = threading.Event()
        async with self._exports:
            pack = await run_to_completion(lambda: self._store.export(name, place, stop.is_set), stop.set)
        return msgspec.structs.replace(await self.packs(), changed=[pack.name])

    async def use(self, name: str) -> api.EnginePacks:
        """Test a pack, and use it if it passes. Raises BadInput or Refused."""
        async with self._lock:
            pack = await self._test(await asyncio.to_thread(self._store.find, name))
            try:
                await asyncio.to_thread(self._store.use, pack.name)
            finally:
                answer = await self._answer([pack.name])
            return answer

    async def roll_back(self, backend: str) -> api.EnginePacks:
        """Use the previous pack of a back end again. Raises Refused or Damaged."""
        async with self._lock:
            pack = await asyncio.to_thread(self._store.roll_back, backend)
            return await self._answer([pack.name])

    async def remove(self, name: str) -> api.EnginePacks:
        """Delete a pack. Raises BadInput or Refused."""
        async with self._lock:
            return await self._answer([await asyncio.to_thread(self._store.remove, name)])

    async def test(self, backend: str = "") -> api.EnginePacks:
        """Read all files of the packs in use again, and test the packs. If `backend` is set, do this for all of
        its packs instead. Raises Refused if it has none.
        """
        self.n_tests += 1
        async with self._lock:
            packs = await asyncio.to_thread(self._store.packs)
            chosen = [pack for pack in packs if pack.backend == backend or (not backend and pack.is_current)]
            if backend and not chosen:
                raise Refused("pack_none_for", backend=backend, known=", ".join(BACKENDS))
            for pack in chosen:
                if await asyncio.to_thread(self._store.verify, pack.name) is None:
                    await self._test(pack)
            return await self._answer([pack.name for pack in chosen])

    async def _test(self, pack: InstalledPack) -> InstalledPack:
        """Test a pack. A pack that is damaged or made for another engine is not even loaded."""
        failed_before = pack.tested is not None and pack.problem == pack.tested.failure
        if pack.problem is not None and not failed_before:
            return pack
        tested = await self_test(pack.backend, self._store.libraries_of(pack))
        return await asyncio.to_thread(self._store.note_test, pack.name, tested)

    async def _answer(self, changed: Sequence[str]) -> api.EnginePacks:
        await self._reload()
        self._changed()
        return msgspec.structs.replace(await self.packs(), changed=list(changed))

    async def _reload(self) -> None:
        self.libraries = await asyncio.to_thread(self._store.libraries)
        packs = await asyncio.to_thread(self._store.packs)
        self.whole = tuple(pack for pack in packs if pack.is_whole and pack.manifest and pack.sha256)


def described(packs: Sequence[InstalledPack]) -> api.EnginePacks:
    """Return the packs in the form of the API."""
    return api.EnginePacks(public_version(this_engine()), this_system(), [_described(pack, packs) for pack in packs])


def _described(pack: InstalledPack, packs: Sequence[InstalledPack]) -> api.EnginePack:
    own, follows = pack.manifest, removal(pack, packs)
    tested = pack.tested
    state = api.EnginePack(
        pack.name,
        pack.backend,
        label(pack.backend),
        current=pack.is_current,
        previous=pack.is_previous,
        tested=tested is not None,
        devices=convert(msgspec.to_builtins(tested.devices), list[Device]) if tested else [],
        problem=sentence(pack.problem),
        problem_facts=pack.problem,
        removal=sentence(follows),
        removal_facts=follows,
        sha256=pack.sha256,
        copied_from=pack.origin.name if pack.origin else "",
    )
    if own is None:
        return state
    return msgspec.structs.replace(
        state,
        engine_version=own.engine_version,
        ggml_version=own.ggml_version,
        system=own.system,
        built=own.built,
        compiler=own.compiler,
        size_bytes=own.size_bytes,
        lacks=own.lacks,
    )
