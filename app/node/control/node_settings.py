"""The settings of the node, the sandbox of its workers, and the folders that it uses."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from app.api import computer, requests
from app.api.computer import FolderUse, Walls
from app.api.computer import Settings as SettingsState
from app.core.errors import BadInput
from app.core.reasons import said, sentence
from app.machine.checks import confined
from app.machine.hardware import engines
from app.machine.interfaces import USED_BY_DEFAULT, Interface, interfaces
from app.machine.keyring_store import open_keystore
from app.machine.models_folders import ModelsFolders
from app.machine.paths import Home
from app.machine.settings import NodeOptions, Settings, SettingsStore, load
from app.network.network import Network
from app.node.downloads.models_folder import nearest_existing
from app.node.links.discovery_service import DiscoveryService, choice_of


class OwnSettings:
    """The settings of the node. `options` are the command-line options that it was started with."""

    def __init__(
        self,
        home: Home,
        options: NodeOptions,
        choices: SettingsStore,
        network: Network,
        discovery: DiscoveryService,
        folders: ModelsFolders,
        changed: Callable[[], None],
    ) -> None:
        self._home, self._options, self._choices = home, options, choices
        self._network, self._discovery, self._folders, self._changed = network, discovery, folders, changed

    async def state(self) -> SettingsState:
        """Return all settings and whether some of them take effect only after a restart."""
        saved = await asyncio.to_thread(load, self._home.settings_file)
        every = await asyncio.to_thread(interfaces)
        keys = await open_keystore(self._home)
        chosen, port = self._options.port, self._network.port
        moved = chosen is None and saved.port != port
        return SettingsState(
            address=str(self._network.address),
            port=port if chosen is not None else saved.port,
            port_fixed=chosen is not None,
            discovery=saved.discovery,
            look_for_updates=saved.look_for_updates,
            share_models=saved.share_models,
            answer_household=saved.answer_household,
            ask_household=saved.ask_household,
            exact=saved.exact,
            interfaces=[_interface(interface, saved) for interface in every],
            restart=moved or choice_of(self._options, saved) != self._discovery.choice,
            keys=said(keys.where),
            keys_facts=keys.where,
            home=str(self._home.root),
            folders=await asyncio.to_thread(_folders, self._home, self._folders),
        )

    async def change(self, order: requests.ChangeSettings) -> SettingsState:
        """Save the given settings. Some take effect only when the node restarts. Raises BadInput."""
        if order.interfaces is not msgspec.UNSET:
            known = {interface.name for interface in await asyncio.to_thread(interfaces)}
            saved = await asyncio.to_thread(load, self._home.settings_file)
            known |= set(saved.interfaces)  # an interface in use may be unplugged now
            for name in order.interfaces:
                if name not in known:
                    raise BadInput("interface_unknown", name=name)
        changes = {
            field: tuple(value) if isinstance(value, list) else value
            for field in order.__struct_fields__
            if (value := getattr(order, field)) is not msgspec.UNSET
        }
        if changes:
            await self._choices.change(lambda now: msgspec.structs.replace(now, **changes))
            self._changed()
        return await self.state()


async def worker_walls() -> Walls:
    """Return the sandbox level of the process that reads model files, the obstacle to a stricter level, and the
    remedy."""
    walls = await engines.probe_walls()
    check = confined(walls)
    level = walls.level if walls is not None else "unknown"
    return Walls(level, sentence(check.cause), check.cause, sentence(check.cure), check.cure)


def _interface(interface: Interface, saved: Settings) -> computer.Interface:
    return computer.Interface(
        name=interface.name,
        kind=str(interface.kind),
        addresses=list(interface.addresses),
        up=interface.is_up,
        unasked=interface.kind in USED_BY_DEFAULT,
        chosen=interface.name in saved.interfaces,
        bits_per_s=interface.negotiated_bits_per_s,
    )


def _folders(home: Home, of_models: ModelsFolders) -> list[FolderUse]:
    """Return the large folders with their sizes. Folders on disconnected disks are left out."""
    here = [folder for folder in of_models.all if folder not in (of_models.own, *of_models.unreachable)]
    now = of_models.now  # the same folder as shown by `poolhouse folder`
    now_free = 0 if now in of_models.unreachable else _free(now)
    models = used_bytes(file for folder in (home.models, *here) for file in folder.rglob("*"))
    free = _free(home.root)
    return [
        FolderUse("models", str(now), models, now_free),
        FolderUse("stages", str(home.stages), used_bytes(home.stages.rglob("*")), free),
        FolderUse("kept", str(home.kept), used_bytes(home.kept.rglob("*")), free),
        FolderUse("logs", str(home.logs), used_bytes(home.logs.rglob("*")), free),
    ]


def _free(folder: Path) -> int:
    return shutil.disk_usage(nearest_existing(folder)).free


def used_bytes(files: Iterable[Path]) -> int:
    """Return the disk space that these files use. Symbolic links are not followed."""
    total = 0
    for file in files:
        try:
            if file.is_file() and not file.is_symlink():
                total += file.stat().st_size
        except OSError:
            continue  # the file was deleted in the meantime
    return total
