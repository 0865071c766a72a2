"""The search for an update and its installation, step by step. All functions block; the command line and the node
call them.

The client that checks signatures uses memory that few nodes need, so it is imported only by the first search.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from app import __version__, launcher
from app.core.errors import AppError, Busy, Refused
from app.core.reasons import os_cause
from app.machine.engine_packs.store import this_system
from app.machine.installation import APP, installation
from app.machine.paths import PRIVATE_DIR
from app.machine.running_node import HomeLock
from app.machine.versions.version_store import DOWNLOADS, METADATA, NewLayer, VersionStore
from app.node.updates.release import Release, newest, require_newer
from app.node.updates.update_address import update_host

if TYPE_CHECKING:
    from app.node.updates.sources import Source, WebSource
    from app.node.updates.trust import TrustedRepository

KEYS = APP / "resources" / "updates"
ROOT, ADDRESS = "root.json", "address.txt"
MAX_ROOT_BYTES = 512_000
LOOK_SECONDS = 0.1
READ_SECONDS = 60.0  # for another process to finish reading

Tell = Callable[[int, int], None]  # bytes done, of so many


@dataclass(frozen=True, slots=True)
class Build:
    """The update settings of this build: the keys of its publisher, and the address where updates are published."""

    root: bytes | None = None
    address: str = ""

    @classmethod
    def of_this_copy(cls, folder: Path = KEYS) -> Build:
        """Return the keys and the address that came with this copy. Both are empty if it has none."""
        try:
            with (folder / ROOT).open("rb") as file:
                root = file.read(MAX_ROOT_BYTES)
        except OSError:
            return cls()
        try:
            address = (folder / ADDRESS).read_text("utf-8").strip()
        except (OSError, UnicodeError):
            address = ""
        return cls(root, address)

    @property
    def host(self) -> str:
        """The host where this build looks for updates, or "". Raises BadInput if its address is not safe."""
        return update_host(self.address) if self.root and self.address else ""

    def source(self) -> WebSource | None:
        """Return the source where this build looks for updates, or None. Raises BadInput if its address is not
        safe.
        """
        if not self.host:
            return None
        from app.node.updates.sources import WebSource

        return WebSource(self.address)


@dataclass(frozen=True, slots=True)
class Offer:
    """A release that a repository offers for this computer."""

    release: Release
    download_bytes: int  # of the layers that are not here yet
    is_staged: bool  # released gradually, and not for this machine so far
    repository: TrustedRepository


class Updater:
    """Finds and installs updates for this copy."""

    def __init__(self, build: Build, store: VersionStore | None, folder: Path, own: str = __version__) -> None:
        """Create the updater. `store` is None if this copy cannot update itself; verified metadata is then saved
        in `folder`.
        """
        self.build, self.store, self.own = build, store, own
        self._metadata = (store.folder if store else folder) / METADATA

    def obstacle(self) -> AppError | None:
        """Return why this copy cannot install updates, or None."""
        if self.store is None:
            return Refused("update_by_system" if installation() else "update_from_source")
        return None if self.build.root else Refused("update_no_keys")

    def find(
        self, source: Source, machine: str = "", system: str = "", stop: threading.Event | None = None
    ) -> Offer | None:
        """Return the newest release of a source, or None if it has none. Raises AppError.

        machine: the ID that decides whether a staged release has been rolled out to this machine yet. If it is "",
            every release is offered at once.
        stop: aborts the search with an error when set.
        """
        if self.build.root is None:
            raise Refused("update_no_keys")
        from app.node.updates.trust import TrustedRepository

        with self._reading(stop):
            repository = TrustedRepository(source, self.build.root, self._metadata, stop)
            channel = repository.channel(system or this_system())
        latest, meant = newest(channel), newest(channel, machine)
        is_staged = meant is None or not launcher.is_newer(meant.version, self.own)
        release = latest if is_staged else meant
        if release is None:
            return None
        needed = sum(
            repository.target(layer.target).length for layer in release.layers if not self._has(layer.name, layer.hash)
        )
        return Offer(release, needed, is_staged and launcher.is_newer(release.version, self.own), repository)

    def install(self, offer: Offer, tell: Tell = lambda done, of: None, stop: threading.Event | None = None) -> None:
        """Download the missing layers, verify them, and install the release for the next start. Raises AppError,
        or Canceled.
        """
        if (obstacle := self.obstacle()) is not None:
            raise obstacle
        from app.node.updates.trust import arrived_bytes

        assert self.store is not None
        store, release, stop = self.store, offer.release, stop or threading.Event()
        require_newer(release, self.own)
        with store.locked():
            require_newer(release, store.next_version())
            here = {layer.name: store.find_layer(layer.name, layer.hash) for layer in release.layers}
            missing = {
                layer.name: offer.repository.target(layer.target) for layer in release.layers if not here[layer.name]
            }
            total = sum(target.length for target in missing.values())
            unpacked = sum(layer.n_bytes for layer in release.layers if layer.name in missing)
            arrived = sum(arrived_bytes(target, store.folder / DOWNLOADS) for target in missing.values())
            store.require_space(total - arrived + unpacked)
            archives: dict[str, Path] = {}
            done = 0
            for name, target in missing.items():
                so_far = partial(_tell_sum, tell, done, total)
                archives[name] = offer.repository.download(target, store.folder / DOWNLOADS, so_far, stop)
                done += target.length
            layers = [
                NewLayer(layer.name, layer.hash, layer.n_bytes, here[layer.name], archives.get(layer.name))
                for layer in release.layers
            ]
            store.install(release.version, release.commit, layers, release.data_format, stop=stop)
            shutil.rmtree(store.folder / DOWNLOADS, ignore_errors=True)
            store.remove_unused(self.own)

    def roll_back(self) -> str:
        """Select the previous version for the next start, and return it. Raises AppError."""
        if self.store is None:
            raise self.obstacle() or Refused("update_no_previous")
        with self.store.locked():
            return self.store.roll_back()

    @contextmanager
    def _reading(self, stop: threading.Event | None) -> Iterator[None]:
        """Lock the metadata folder while the block runs, because only one process may use it at a time. Raises
        Busy or Refused.
        """
        lock = HomeLock(self._metadata.with_name("metadata.lock"))
        until = time.monotonic() + READ_SECONDS
        try:
            self._metadata.parent.mkdir(mode=PRIVATE_DIR, parents=True, exist_ok=True)
            while not lock.acquire():
                if time.monotonic() > until or (stop is not None and stop.is_set()):
                    raise Busy("update_busy")
                time.sleep(LOOK_SECONDS)
        except OSError as error:
            raise Refused("update_disk", folder=str(self._metadata.parent), why=os_cause(error)) from error
        try:
            yield
        finally:
            lock.release()

    def _has(self, name: str, digest: str) -> bool:
        return self.store is not None and self.store.has_layer(name, digest)


def _tell_sum(tell: Tell, before: int, total: int, n_bytes: int) -> None:
    tell(before + n_bytes, total)
