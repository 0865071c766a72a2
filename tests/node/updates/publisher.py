"""A publisher with real keys, and a small Poolhouse whose versions it publishes."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import msgspec
from tuf.api.metadata import Metadata, Root

from app import launcher
from app.machine.engine_packs.store import this_system
from app.machine.installation import MANIFEST, Installation
from app.machine.versions.layer_archive import write_archive
from app.machine.versions.tree_hash import tree_bytes, tree_hash
from app.machine.versions.version_store import VersionStore
from app.network.messages import OLDEST_PROTOCOL, PROTOCOL
from app.node.updates.release import Release, ReleasedLayer
from app.node.updates.sources import Source
from app.node.updates.updater import Build, Updater
from installers.release.keys import Keys, new_keys, new_root, today
from installers.release.repository import Repository

SYSTEM = this_system()
LIBRARIES = {"library.py": b"x = 1\n" * 2000, "folder/notes.txt": b"unchanged"}


def write_files(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def layers_of(version: str) -> dict[str, dict[str, bytes]]:
    """The layers of a small Poolhouse: its program prints its version."""
    return {
        "python": {"bin/python3.11": b"#!/bin/sh\nexit 0\n"},
        "libraries": LIBRARIES,
        "app": {"app/__init__.py": f'__version__ = "{version}"\n'.encode(), "data.bin": version.encode() * 40_000},
    }


@dataclass
class Publisher:
    """The keys and the repository of a publisher, and the copy that a user has."""

    folder: Path
    now: datetime = field(default_factory=today)

    def __post_init__(self) -> None:
        self.keys: Keys = new_keys(self.folder / "keys", 3)
        self.root: Metadata[Root] = new_root(self.keys, 2, self.now)
        self.place = self.folder / "repository"
        self.repository.create(self.root)

    @property
    def repository(self) -> Repository:
        return Repository(self.place, self.keys, self.now)

    @property
    def build(self) -> Build:
        return Build(self.root.to_bytes())

    def publish(
        self,
        version: str,
        *,
        layers: dict[str, dict[str, bytes]] | None = None,
        rollout: int = 100,
        protocol: int = PROTOCOL,
        oldest: int = OLDEST_PROTOCOL,
        data_format: int = 1,
    ) -> Release:
        """Publish a version with these layers."""
        made, archives = [], {}
        for name, files in (layers or layers_of(version)).items():
            folder = write_files(self.folder / "made" / version / name, files)
            for path in folder.glob("bin/*"):
                path.chmod(0o755)
            layer = ReleasedLayer(name, tree_hash(folder), tree_bytes(folder))
            archive = self.folder / "made" / version / f"{name}.tar.zst"
            write_archive(folder, archive, 1_700_000_000)
            made.append(layer)
            archives[layer.target] = archive
        release = Release(
            version=version, commit="c", date="2026-12-01", protocol=protocol, oldest_protocol=oldest,
            rollout_percent=rollout, changes="## New\n\n- A change.", layers=made, data_format=data_format,
        )  # fmt: skip
        self.repository.publish(SYSTEM, release, archives)
        return release

    def archive_of(self, layer: str) -> Path:
        """Return the published archive of a layer."""
        (path,) = (self.place / "targets" / "layers").glob(f"*.{layer}-*")
        return path


@dataclass
class Copy:
    """An installed copy of a version, and the versions beside it."""

    folder: Path
    version: str = "1.0"
    kind: str = "appimage"

    def __post_init__(self) -> None:
        self.base = self.folder / "installed"
        hashes = {}
        for name, files in layers_of(self.version).items():
            place = write_files(self.base / name, files)
            for path in place.glob("bin/*"):
                path.chmod(0o755)
            hashes[name] = tree_hash(place)
        facts = Installation(self.version, "c", self.kind, "", hashes)
        (self.base / MANIFEST).write_bytes(msgspec.json.encode(facts))
        self.store = VersionStore(self.folder / "versions", self.base)

    def updater(self, publisher: Publisher, own: str = "") -> Updater:
        return Updater(publisher.build, self.store, self.folder, own or self.version)

    def update(self, publisher: Publisher, source: Source) -> str:
        """Update this copy, which started well, and return the version that the next start uses."""
        running = self.store.next_version()
        self.store.mark_started(running, launcher.NODE)
        updater = self.updater(publisher, running)
        offer = updater.find(source)
        assert offer is not None
        updater.install(offer)
        return self.store.next_version()

    @property
    def chosen(self) -> str:
        return launcher.choose(self.store.folder, self.version)


def copied(publisher: Publisher, to: Path) -> Path:
    """Return a copy of the repository, such as on a USB stick."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(publisher.place, to)
    return to
