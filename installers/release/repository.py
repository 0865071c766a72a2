"""The repository that computers get updates from: plain files for any web server or USB stick, in TUF's layout."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

import msgspec
from tuf.api.exceptions import RepositoryError
from tuf.api.metadata import Metadata, MetaFile, Root, Snapshot, TargetFile, Targets, Timestamp

from app.core.errors import AppError, Refused
from app.core.reasons import said
from app.machine.versions.layer_archive import unpack_archive
from app.machine.versions.tree_hash import tree_bytes, tree_hash
from app.node.updates.release import Channel, Release, ReleasedLayer, channel_target, parse_channel
from installers.release.keys import DATE_DAYS, TARGETS_DAYS, Keys, today
from scripts.setup_errors import Trouble

T = TypeVar("T", Root, Timestamp, Snapshot, Targets)
KEPT_RELEASES = 5
UNNAMED = "unnamed.json"  # since when no metadata names a file; it need not be copied to a server
DAY_SECONDS = 86_400


class Repository:
    """The files in a folder. Nothing that computers may be reading is changed in place."""

    def __init__(self, folder: Path, keys: Keys, now: datetime | None = None) -> None:
        self.folder, self._keys, self._now = folder, keys, now or today()
        self._metadata, self._targets = folder / "metadata", folder / "targets"

    @property
    def exists(self) -> bool:
        """Return whether the repository is complete: its timestamp is written last."""
        return (self._metadata / "timestamp.json").exists()

    def create(self, root: Metadata[Root]) -> None:
        """Start an empty repository. Raises Trouble if one is there."""
        if self.exists:
            raise Trouble(f"There is a repository in {self.folder} already.")
        self._metadata.mkdir(parents=True, exist_ok=True)
        self._targets.mkdir(exist_ok=True)
        self.add_root(root)
        self._write(Targets(expires=self._now), Snapshot(expires=self._now), Timestamp(expires=self._now))

    def add_root(self, root: Metadata[Root]) -> None:
        """Add a new root, which the one before has signed."""
        self._put(self._metadata / f"{root.signed.version}.root.json", root.to_bytes())

    def root(self) -> Metadata[Root]:
        """Return the newest root. Raises Trouble if there is no repository."""
        self._timestamp()
        versions = [int(path.name.partition(".")[0]) for path in self._metadata.glob("*.root.json")]
        return self._read(Root, f"{max(versions, default=1)}.root.json")

    def channel(self, system: str) -> Channel:
        """Return the published releases for a system."""
        target = self._read_targets().targets.get(channel_target(system))
        return self._read_channel(target) if target else Channel()

    def publish(self, system: str, release: Release, archives: Mapping[str, Path]) -> None:
        """Add a release. archives: the files of its layers by target. Raises Trouble."""
        for layer in release.layers:
            _check_archive(layer, archives[layer.target])
        channel = self.channel(system)
        if any(kept.version == release.version for kept in channel.releases):
            raise Trouble(f"{release.version} is published already. A release never changes: publish a new version.")
        targets = self._read_targets()
        for path, file in archives.items():
            targets.targets[path] = self._add(path, file)
        kept = [release, *channel.releases][:KEPT_RELEASES]
        self._write_channel(targets, system, kept)

    def roll_out(self, system: str, version: str, percent: int) -> None:
        """Offer a release to so many percent of the computers. Raises Trouble."""
        releases = self.channel(system).releases
        if version not in [release.version for release in releases]:
            raise Trouble(f"{version} is not published for {system}.")
        changed = [
            msgspec.structs.replace(release, rollout_percent=percent) if release.version == version else release
            for release in releases
        ]
        self._write_channel(self._read_targets(), system, changed)

    def withdraw(self, system: str, version: str) -> None:
        """Offer a release to nobody any more. Computers that have it keep it until a newer one appears."""
        left = [release for release in self.channel(system).releases if release.version != version]
        self._write_channel(self._read_targets(), system, left)

    def renew(self, root: Metadata[Root] | None = None) -> None:
        """Give all metadata new dates, so that computers trust it for another month.

        root: new keys, which appear after everything that they sign except the timestamp.
        """
        self._write(self._read_targets(), self._snapshot(), self._timestamp(), root)

    def _write_channel(self, targets: Targets, system: str, releases: list[Release]) -> None:
        path = channel_target(system)
        content = msgspec.json.format(msgspec.json.encode(Channel(releases=releases)), indent=1)
        try:
            parse_channel(content, system)
        except Refused as error:
            raise Trouble(
                "No computer could read this list of releases. Check the version and the percentage."
            ) from error
        part = self.folder / "channel.part"
        part.write_bytes(content)
        targets.targets[path] = self._add(path, part)
        part.unlink()
        used = {layer.target for name in self._systems(targets) for layer in self._layers(targets, name)}
        for name in [name for name in targets.targets if name.startswith("layers/") and name not in used]:
            del targets.targets[name]
        self._write(targets, self._snapshot(), self._timestamp())
        self._remove_unnamed(targets)

    def _read_channel(self, target: TargetFile) -> Channel:
        file = self._file_of(target)
        try:
            return msgspec.json.decode(file.read_bytes(), type=Channel)
        except (OSError, msgspec.DecodeError, UnicodeError) as error:
            raise Trouble(f"{file} is missing or damaged. Take it from the server or from a copy.") from error

    def _systems(self, targets: Targets) -> list[str]:
        return [name.removesuffix(".json") for name in targets.targets if name.endswith(".json")]

    def _layers(self, targets: Targets, system: str) -> list[ReleasedLayer]:
        channel = self._read_channel(targets.targets[channel_target(system)])
        return [layer for release in channel.releases for layer in release.layers]

    def _write(
        self, targets: Targets, snapshot: Snapshot, timestamp: Timestamp, root: Metadata[Root] | None = None
    ) -> None:
        """Sign and write all three, the timestamp last: until then, computers see the old ones."""
        is_first = not self.exists
        for signed, days in ((targets, TARGETS_DAYS), (snapshot, DATE_DAYS), (timestamp, DATE_DAYS)):
            signed.expires = self._now + timedelta(days=days)
            signed.version += 0 if is_first else 1
        snapshot.meta["targets.json"] = self._signed(targets, f"{targets.version}.targets.json")
        timestamp.snapshot_meta = self._signed(snapshot, f"{snapshot.version}.snapshot.json")
        if root is not None:
            self.add_root(root)
        self._signed(timestamp, "timestamp.json")

    def _signed(self, content: T, name: str) -> MetaFile:
        metadata = Metadata(content)
        metadata.sign(self._keys.targets if name.endswith(".targets.json") else self._keys.dates)
        data = metadata.to_bytes()
        self._put(self._metadata / name, data)
        return MetaFile(content.version, len(data), {"sha256": hashlib.sha256(data).hexdigest()})

    def _add(self, path: str, file: Path) -> TargetFile:
        target = TargetFile.from_file(path, str(file), ["sha256"])
        place = self._file_of(target)
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            part = place.with_name(f"{place.name}.part")
            shutil.copyfile(file, part)
            part.replace(place)
        return target

    def _file_of(self, target: TargetFile) -> Path:
        folder, slash, name = target.path.rpartition("/")
        return self._targets / f"{folder}{slash}{target.hashes['sha256']}.{name}"

    def _remove_unnamed(self, targets: Targets) -> None:
        """Delete files that no metadata has named for as long as computers may believe older ones."""
        named = {self._file_of(target) for target in targets.targets.values()}
        file, now = self.folder / UNNAMED, self._now.timestamp()
        since: dict[str, float] = {}  # if the file is missing or damaged, the 30 days begin anew
        with suppress(OSError, msgspec.DecodeError):
            since = msgspec.json.decode(file.read_bytes(), type=dict[str, float])
        left = {}
        for path in sorted(self._targets.rglob("*")):
            name = path.relative_to(self._targets).as_posix()
            if not path.is_file() or path in named:
                continue
            if now - since.get(name, now) > DATE_DAYS * DAY_SECONDS:
                path.unlink()
            else:
                left[name] = since.get(name, now)
        self._put(file, msgspec.json.encode(left))

    def _read_targets(self) -> Targets:
        return self._read(Targets, f"{self._snapshot().meta['targets.json'].version}.targets.json").signed

    def _snapshot(self) -> Snapshot:
        return self._read(Snapshot, f"{self._timestamp().snapshot_meta.version}.snapshot.json").signed

    def _timestamp(self) -> Timestamp:
        return self._read(Timestamp, "timestamp.json").signed

    def _read(self, kind: type[T], name: str) -> Metadata[T]:
        try:
            return Metadata[T].from_bytes((self._metadata / name).read_bytes())
        except OSError as error:
            raise Trouble(f"There is no repository of updates in {self.folder}: {name} is missing.") from error
        except RepositoryError as error:
            raise Trouble(f"{name} in {self.folder} is damaged. Take it from the server or from a copy.") from error

    @staticmethod
    def _put(path: Path, data: bytes) -> None:
        part = path.with_name(f"{path.name}.part")
        part.write_bytes(data)
        part.replace(path)


def _check_archive(layer: ReleasedLayer, archive: Path) -> None:
    """Unpack an archive as computers do. Raises Trouble if they would refuse it."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            unpack_archive(archive, Path(folder), layer.name, layer.n_bytes)
        except AppError as error:
            raise Trouble(f"Computers would refuse the layer {layer.name}: {said(error.reason)}") from error
        if tree_hash(Path(folder)) != layer.hash or tree_bytes(Path(folder)) != layer.n_bytes:
            raise Trouble(f"Computers would refuse the layer {layer.name}: it unpacks to other files.")
