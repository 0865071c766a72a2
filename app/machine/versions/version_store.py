"""The folder of the versions that updates have installed. Each version is complete in its own folder.

A version becomes visible by a single rename, after all its layers were checked. Unchanged layers are hard links to
those of another version, so they need no additional space.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from app import launcher
from app.core.errors import AppError, Busy, DoesNotFit, Reason, Refused
from app.core.reasons import os_cause
from app.decoding import decode
from app.machine.installation import MANIFEST, Installation
from app.machine.json_state import read_json
from app.machine.paths import PRIVATE_DIR, sync_folder, write_atomically
from app.machine.running_node import HomeLock
from app.machine.versions.layer_archive import unpack_archive
from app.machine.versions.tree_hash import tree_bytes, tree_hash
from app.machine.versions.version_lock import is_held

log = logging.getLogger(__name__)

ABOUT = "about"  # the layer with the files beside the other layers, such as the list of licenses
DOWNLOADS, METADATA, NEW = "downloads", "metadata", ".new-"
LEFT_FREE_BYTES = 256 << 20


class Current(msgspec.Struct, frozen=True):
    """The version to start, and the previous one. "" stands for the installed copy."""

    current: str = ""
    previous: str = ""


class FailedStart(msgspec.Struct, frozen=True):
    """The launcher's record of a version that did not start."""

    how: str = ""  # ended or unfinished
    code: int = 0
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class NewLayer:
    """A layer of a version to install: either an existing folder or an archive."""

    name: str
    hash: str  # of its folder
    n_bytes: int
    folder: Path | None = None
    archive: Path | None = None


class VersionStore:
    """The installed versions in a folder. Its methods block; the lock excludes changes by other processes."""

    def __init__(self, folder: Path, base: Path) -> None:
        """Use the versions in `folder`, which is created when it is first needed.

        base: the folder of the installed copy.
        """
        self.folder, self.base = folder, base

    @classmethod
    def of_this_process(cls, environment: Mapping[str, str] = os.environ) -> VersionStore | None:
        """Return the store from which the launcher chose this version, or None if this copy cannot update itself."""
        folder, base = environment.get(launcher.FOLDER, ""), environment.get(launcher.BASE, "")
        return cls(Path(folder), Path(base)) if folder and base else None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the store. Raises Busy if another process changes it, or Refused if it cannot be written."""
        with self._writing():
            self.folder.mkdir(mode=PRIVATE_DIR, parents=True, exist_ok=True)
            lock = HomeLock(self.folder / "lock")
            if not lock.acquire():
                raise Busy("update_busy")
        try:
            yield
        finally:
            lock.release()

    def current(self) -> Current:
        """Return the versions from which the launcher chooses."""
        try:
            return read_json(self.folder / launcher.CURRENT, Current)
        except (OSError, ValueError):
            return Current()

    def next_version(self) -> str:
        """Return the version that the next start uses."""
        base = self.manifest_of("")
        base_version = base.version if base else ""
        return launcher.choose(self.folder, base_version) or base_version

    def manifest_of(self, version: str) -> Installation | None:
        """Return the facts of a version, or None if it is not installed here. "" stands for the installed copy."""
        try:
            return decode((self._place(version) / MANIFEST).read_bytes(), Installation)
        except (OSError, ValueError):
            return None

    def failed(self, version: str) -> FailedStart | None:
        """Return the record of why a version is no longer started, or None."""
        try:
            return read_json(self._mark(version, launcher.FAILED), FailedStart)
        except (OSError, ValueError):
            return None

    def failures(self) -> dict[str, FailedStart]:
        """Return the records of all versions that did not start, by version."""
        marks = (self.folder / launcher.MARKS).glob(f"*.{launcher.FAILED}")
        names = [path.name.removesuffix(f".{launcher.FAILED}") for path in marks]
        return {name: failure for name in sorted(names, key=launcher.parts_of) if (failure := self.failed(name))}

    def mark_started(self, version: str, what: str) -> None:
        """Record that this version has started well. `what` is the part that started: the window or the node."""
        with contextlib.suppress(OSError):  # then it is watched once more at its next start
            self._mark(version, what).parent.mkdir(mode=PRIVATE_DIR, parents=True, exist_ok=True)
            self._mark(version, what).touch()
            self._forget_tries(version)

    def note_crash(self, version: str, code: int) -> None:
        """Record that the node of this version crashes, unless it has started well before."""
        if self.manifest_of(version) is not None and not self._mark(version, launcher.NODE).exists():
            launcher.give_up(self.folder / launcher.MARKS, version, "ended", code)

    def find_layer(self, name: str, digest: str) -> Path | None:
        """Return the folder of an intact copy of a layer in any version, or None. Reads all files of the layer."""
        for version in ["", *self.versions()] if name != ABOUT else []:
            manifest = self.manifest_of(version)
            if manifest is None or manifest.layers.get(name) != digest:
                continue
            place = self._place(version) / name
            with contextlib.suppress(OSError):
                if tree_hash(place) == digest:
                    return place
            log.warning("the layer %s of %s is damaged", name, version or "the installed copy")
        return None

    def has_layer(self, name: str, digest: str) -> bool:
        """Return whether the manifest of any version here lists the layer. Does not check its files."""
        manifests = [self.manifest_of(version) for version in ["", *self.versions()]]
        known = (manifest.layers.get(name) for manifest in manifests if manifest is not None)
        return name != ABOUT and digest in known

    def versions(self) -> list[str]:
        """Return the versions in the store, without the installed copy."""
        if not self.folder.is_dir():
            return []
        names = [path.name for path in self.folder.iterdir() if (path / MANIFEST).is_file()]
        return sorted((name for name in names if not name.startswith(NEW)), key=launcher.parts_of)

    def require_space(self, n_bytes: int) -> None:
        """Raise DoesNotFit if the disk has no space for another `n_bytes`."""
        with self._writing():
            self.folder.mkdir(mode=PRIVATE_DIR, parents=True, exist_ok=True)
            free = shutil.disk_usage(self.folder).free
        if free < n_bytes + LEFT_FREE_BYTES:
            raise DoesNotFit(
                "update_no_space", folder=str(self.folder), needed_bytes=n_bytes + LEFT_FREE_BYTES, free_bytes=free
            )

    def install(
        self,
        version: str,
        commit: str,
        layers: Sequence[NewLayer],
        data_format: int = 1,
        stop: threading.Event | None = None,
    ) -> None:
        """Assemble a version from its layers, and let the next start use it. The lock must be held.

        data_format: the format of the data that this version writes. Raises AppError, or Canceled once `stop` is set.
        """
        base = self.manifest_of("")
        if base is None:
            raise Refused("update_from_source")
        if is_held(self.folder / version):  # its files are in use, so they cannot be replaced
            self._choose_again(version, layers)
            return
        self.remove_unfinished()
        self.require_space(sum(layer.n_bytes for layer in layers if layer.archive))
        with self._writing():
            part = Path(tempfile.mkdtemp(prefix=NEW, dir=self.folder))
            try:
                for layer in layers:
                    self._place_layer(layer, part, stop or threading.Event())
                hashes = {layer.name: layer.hash for layer in layers}
                manifest = Installation(version, commit, base.kind, base.command, hashes, data_format)
                write_atomically(part / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")
                if not launcher.python_of(part).is_file():
                    raise Refused("update_incomplete", version=version)
                part.chmod(0o755)
                if hasattr(os, "sync"):
                    os.sync()  # before the rename, so that a power failure leaves no half of a version
                self._forget_marks(version)
                self._remove(self.folder / version)
                part.rename(self.folder / version)
                sync_folder(self.folder)
            finally:
                shutil.rmtree(part, ignore_errors=True)
            self._choose(version)

    def roll_back(self) -> str:
        """Let the next start use the previous version, and return it. The lock must be held.

        Raises Refused if there is none, or if it could not read the data that the current version has written.
        """
        previous = self.previous_version()
        if previous is None:
            raise Refused("update_no_previous")
        self._require_readable(previous)
        with self._writing():
            chosen = previous if previous in self.versions() else ""
            write_atomically(self.folder / launcher.CURRENT, msgspec.json.encode(Current(chosen, "")))
        return self.next_version()

    def previous_version(self) -> str | None:
        """Return the version to which `roll_back` would return, or None.

        If the newest version did not start, its predecessor is already running, so that is the version to leave.
        """
        now, base, next_version = self.current(), self.manifest_of(""), self.next_version()
        if base is None or next_version == base.version:
            return None
        return now.previous if next_version == now.current and now.previous in self.versions() else base.version

    def _require_readable(self, previous: str) -> None:
        leaving = self.manifest_of(self.next_version())
        kept = self.manifest_of(previous) or self.manifest_of("")
        if leaving and kept and kept.data_format < leaving.data_format:
            raise Refused("update_data_newer", version=kept.version, own=leaving.version)

    def remove_unused(self, running: str) -> None:
        """Delete the versions that are neither running nor among the last two. The lock must be held."""
        now = self.current()
        for version in self.versions():
            kept = version in (running, now.current, now.previous)
            if not kept and not is_held(self.folder / version):
                self._remove(self.folder / version)

    def remove_unfinished(self) -> None:
        """Delete what interrupted installations left. The lock must be held."""
        for path in self.folder.glob(f"{NEW}*"):
            shutil.rmtree(path, ignore_errors=True)

    def _place_layer(self, layer: NewLayer, part: Path, stop: threading.Event) -> None:
        """Add one layer to a new version, either as links to an existing copy or by unpacking its archive."""
        target = part if layer.name == ABOUT else part / layer.name
        if layer.folder is not None:
            _link_tree(layer.folder, target)
            return
        assert layer.archive is not None
        fresh = part / f".{layer.name}"
        unpack_archive(layer.archive, fresh, layer.name, layer.n_bytes, stop)
        if tree_hash(fresh) != layer.hash or tree_bytes(fresh) != layer.n_bytes:
            raise Refused("update_other_content", layer=layer.name)
        if target != part:
            fresh.rename(target)
            return
        for path in fresh.iterdir():
            path.rename(part / path.name)
        fresh.rmdir()

    def _choose(self, version: str) -> None:
        """Let the next start use a version. The last version that started well becomes the previous one."""
        before = self.current()
        running = self.next_version()
        previous = running if running in self.versions() and running != version else ""
        if before.current == version or (previous and not launcher.has_started(self.folder, previous)):
            previous = before.previous
        write_atomically(self.folder / launcher.CURRENT, msgspec.json.encode(Current(version, previous)))

    def _choose_again(self, version: str, layers: Sequence[NewLayer]) -> None:
        """Choose an installed version whose files are in use. Raises Busy if its layers differ from these."""
        manifest = self.manifest_of(version)
        if manifest is None or manifest.layers != {layer.name: layer.hash for layer in layers}:
            raise Busy("update_busy")
        with self._writing():
            self._mark(version, launcher.FAILED).unlink(missing_ok=True)
            self._choose(version)

    def _forget_marks(self, version: str) -> None:
        for suffix in (launcher.FAILED, launcher.WINDOW, launcher.NODE):
            self._mark(version, suffix).unlink(missing_ok=True)
        self._forget_tries(version)

    def _forget_tries(self, version: str) -> None:
        for attempt in (self.folder / launcher.MARKS).glob(f"{version}.{launcher.TRY}-*"):
            attempt.unlink(missing_ok=True)

    def _remove(self, folder: Path) -> None:
        """Delete a version. A rename first hides it from the launcher, then its files are deleted."""
        aside = self.folder / f"{NEW}{folder.name}-removed"
        with contextlib.suppress(OSError):
            folder.rename(aside)
            shutil.rmtree(aside, ignore_errors=True)

    def _mark(self, version: str, suffix: str) -> Path:
        return self.folder / launcher.MARKS / f"{version}.{suffix}"

    def _place(self, version: str) -> Path:
        return self.folder / version if version else self.base

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Within this context, convert disk errors to Refused."""
        try:
            yield
        except OSError as error:
            raise _disk_error(self.folder, error) from error


def why_not_started(failure: FailedStart) -> Reason:
    """Return the cause of a failed start as a reason."""
    if failure.how == "ended":
        return Reason("update_start_ended", {"code": failure.code})
    return Reason("update_start_unfinished")


def _disk_error(folder: Path, error: OSError) -> AppError:
    return Refused("update_disk", folder=str(folder), why=os_cause(error))


def _link_tree(source: Path, target: Path) -> None:
    """Copy a folder as hard links. Files that the disk cannot link are copied."""

    def link(old: str, new: str) -> None:
        try:
            os.link(old, new, follow_symlinks=False)
        except OSError:
            shutil.copy2(old, new, follow_symlinks=False)

    shutil.copytree(source, target, symlinks=True, copy_function=link)
