"""Stores the stage files of a node: receives them by hash, checks them, and deletes unused ones to free space."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

import msgspec

from app.catalog.files import Disk, OnBytes, hash_range, sync_folder, write_whole
from app.catalog.gguf.gguf_file import read_header
from app.catalog.stages.cut import Cut, read_pieces
from app.catalog.stages.manifest import Manifest
from app.catalog.stages.stage_receiver import RESERVE_BYTES, Donor, StagePaths, StageReceiver
from app.core.errors import AppError, BadInput, Busy, DoesNotFit, Reason
from app.core.reasons import said
from app.decoding import decode

log = logging.getLogger(__name__)
_NOWHERE: Mapping[str, Donor] = MappingProxyType({})
_STAGE_ID = re.compile(r"[0-9a-f]{64}")
MOST_BYTES = 200 << 30  # limit for all stages, even on the largest disk
LEFT_FREE_BYTES = 5 << 30  # left to the owner of the disk; more on a large disk, less on a tiny one
CHECKED_AGAIN_S = 7 * 86_400.0  # age at which an untouched file is hashed again
MAX_PARTS = 8  # partial stages from other machines that may wait to be resumed


@dataclass(frozen=True, slots=True)
class _Index:
    """The record of a complete stage file."""

    manifest: Manifest
    mtime_ns: int  # of the file at its last check
    ctime_ns: int = 0  # time of the last change of any kind, even one that reset mtime; on Windows, the creation time
    checked_s: float = 0.0  # Unix time


@dataclass(frozen=True, slots=True)
class _Kept:
    """An unused stage, complete or partial, that may be deleted to free space."""

    stage_id: str
    n_bytes: int
    used_ns: int
    is_part: bool = False  # not received completely


class StageStore:
    """The store of all stage files, in the folder `stages/`. Thread-safe.

    Unused stages are deleted to keep the folder within `limit_bytes`. Stages from other machines never exceed this
    limit, and leave at least `reserve_bytes` of the disk free.
    """

    def __init__(
        self,
        folder: Path,
        limit_bytes: int,
        disk: Disk | None = None,
        reserve_bytes: int = RESERVE_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._clock = clock
        self.folder, self._disk = folder, disk or Disk()
        self.limit_bytes, self.reserve_bytes = limit_bytes, reserve_bytes
        self._lock = threading.RLock()
        self._held: Counter[str] = Counter()
        self._unkept: dict[str, _Index] = {}  # records that could not be written to disk, by stage id
        self._receiving: dict[str, int] = {}  # final sizes of stages being received, by stage id

    def path(self, stage_id: str) -> Path | None:
        """Return the path of a stage file, or None if it is missing or damaged.

        The file is hashed again only if it was modified or its last check was long ago.
        """
        index = self._index(stage_id)
        if index is None:
            return None
        paths = self._paths(stage_id)
        try:
            if not self._is_as_it_was(index, paths.whole.stat()):
                self._check(index.manifest, paths.whole)
                self._remember_if_there_is_room(index.manifest, paths.whole)
            os.utime(paths.index)  # the time of this file states when the stage was last used
        except FileNotFoundError:
            return None
        except (BadInput, OSError):
            log.warning("deleting stage %s, because its file has changed on disk", stage_id)
            self.remove(stage_id)
            return None
        return paths.whole

    def hold(self, stage_id: str) -> Path | None:
        """Return the result of `path`, and protect the file from deletion until `release` is called."""
        self.protect(stage_id)
        path = self.path(stage_id)
        if path is None:
            self.release(stage_id)
        return path

    def protect(self, stage_id: str) -> None:
        """Protect a stage file from deletion until `release` is called. It need not exist yet."""
        with self._lock:
            self._held[stage_id] += 1

    def release(self, stage_id: str) -> None:
        with self._lock:
            self._held[stage_id] -= 1
            if self._held[stage_id] <= 0:
                del self._held[stage_id]

    def receive(self, manifest: Manifest, elsewhere: Mapping[str, Donor] = _NOWHERE) -> StageReceiver:
        """Begin or resume receiving a stage. Pieces in other local files are copied; the receiver's `wants` are the
        remaining pieces.

        Raises DoesNotFit if the disk is too full, and Busy if the stage is already being received.

        elsewhere: local files with pieces, by hash, in addition to the stored stages.
        """
        return self._receive(manifest, elsewhere, RESERVE_BYTES, lambda: None)

    def accept(self, manifest: Manifest, elsewhere: Mapping[str, Donor] = _NOWHERE) -> StageReceiver:
        """Begin or resume receiving a stage from another machine, within the limits of the folder and the disk."""
        make_space = partial(self._make_space, manifest)
        return self._receive(manifest, elsewhere, self.reserve_bytes, make_space)

    def write_stage(self, cut: Cut, tell: OnBytes = lambda _: None, *, as_others: bool = False) -> Path:
        """Write the file of a stage that was cut on this machine, unless it already exists. Return its path.

        as_others: apply the limits for stages from other machines.
        """
        path = self.path(cut.manifest.id)
        if path is not None:
            return path
        with (self.accept if as_others else self.receive)(cut.manifest) as receiver:
            tell(cut.manifest.total_bytes - receiver.wanted_bytes)
            for chunk in read_pieces(cut, receiver.wants):
                receiver.write(chunk)
                tell(len(chunk))
            return receiver.finish()

    def remove(self, stage_id: str) -> None:
        """Delete a stage unless it is in use or being received."""
        with self._lock:
            if stage_id in self._held or stage_id in self._receiving:
                return
            self._unkept.pop(stage_id, None)
            paths = self._paths(stage_id)
            for path in (paths.whole, paths.index, paths.part, paths.journal):
                # on Windows, another process may have the file open; it is deleted next time
                with contextlib.suppress(OSError):
                    _clear(path)
                    path.unlink(missing_ok=True)

    def remove_model(self, model_id: str) -> None:
        """Delete all unused stages of a model."""
        for stage_id, index in self._indexes():
            if index.manifest.model_id == model_id:
                self.remove(stage_id)

    def trim(self, keep_model: str = "") -> None:
        """Delete the least recently used stages until the folder is within its limit.

        keep_model: the id of a model whose stages are kept, because one stage is not in use yet while the next is
            received.
        """
        spared = {i for i, index in self._indexes() if index.manifest.model_id == keep_model}
        total = self.used_bytes()
        for kept in self._unused(spared):
            if total <= self.limit_bytes:
                return
            self.remove(kept.stage_id)
            total -= kept.n_bytes

    def used_bytes(self) -> int:
        """Return the total size of the files in the folder."""
        return sum(_size(path) for path in self.folder.iterdir())

    def _install(self, manifest: Manifest) -> Path:
        """Check that a complete stage file is valid and matches its manifest, and rename it to its final name."""
        paths = self._paths(manifest.id)
        try:
            _check_layout(manifest, paths.part)
        except BadInput:
            paths.part.unlink()
            paths.journal.unlink(missing_ok=True)
            raise
        self._remember(manifest, paths.part)  # written first, since a stage file without a record would be unusable
        _clear(paths.whole)
        paths.part.replace(paths.whole)
        sync_folder(self.folder)
        self._remember(manifest, paths.whole)  # renaming changes the ctime
        paths.journal.unlink(missing_ok=True)
        self.trim(manifest.model_id)
        return paths.whole

    def _receive(
        self, manifest: Manifest, elsewhere: Mapping[str, Donor], reserve_bytes: int, make_space: Callable[[], None]
    ) -> StageReceiver:
        stage_id = manifest.id
        with self._lock:
            if stage_id in self._receiving:
                raise Busy("stage_busy")
            self._receiving[stage_id] = manifest.total_bytes
        closed = self._closer(stage_id)
        try:
            make_space()  # counts other stages that are being received
            donors, keep = self._donors(manifest, elsewhere)
            self._make_room(manifest.total_bytes + reserve_bytes, keep | {stage_id})
            paths, disk = self._paths(stage_id), self._disk
            for path in (paths.index, paths.part, paths.journal):
                _clear(path)
            return StageReceiver(manifest, paths, donors, disk, self._install, closed, reserve_bytes)
        except BaseException:
            closed()
            raise

    def _make_space(self, manifest: Manifest) -> None:
        """Delete unused stages until a new one fits within the limit. Also delete partial stages beyond their maximum
        number.

        Stages of the same model are deleted last, since they may contain pieces of the new one. Raises DoesNotFit.
        """
        unused = self._unused({manifest.id})
        parts = [kept for kept in unused if kept.is_part]
        for kept in parts[: max(0, len(parts) - MAX_PARTS + 1)]:
            self.remove(kept.stage_id)
            unused.remove(kept)
        related = {i for i, index in self._indexes() if index.manifest.model_id == manifest.model_id}
        unused.sort(key=lambda kept: kept.stage_id in related)
        allowed = self.limit_bytes - self._promised_bytes({manifest.id})
        while unused and manifest.total_bytes > allowed:
            kept = unused.pop(0)
            self.remove(kept.stage_id)
            allowed += kept.n_bytes
        if manifest.total_bytes > allowed:
            needed, allowed = manifest.total_bytes, max(0, allowed)
            raise DoesNotFit("stages_full", needed_bytes=needed, allowed_bytes=allowed)

    def _promised_bytes(self, without: set[str]) -> int:
        """Return the size that the folder will have once all stages being received are complete."""
        with self._lock:
            growing = {stage_id: size for stage_id, size in self._receiving.items() if stage_id not in without}
        there = [path for path in self.folder.iterdir() if path.stem not in growing.keys() | without]
        return sum(growing.values()) + sum(map(_size, there))

    def _make_room(self, needed_bytes: int, keep: set[str]) -> None:
        """Delete unused stages, least recently used first, until the disk has room for a new one."""
        for kept in self._unused(keep):
            if self._disk.free_bytes(self.folder) >= needed_bytes:
                return
            self.remove(kept.stage_id)

    def _donors(self, manifest: Manifest, elsewhere: Mapping[str, Donor]) -> tuple[dict[str, Donor], set[str]]:
        """Return the locations of the manifest's pieces in local files, by hash, and the ids of all stages of the same
        model."""
        hashes = {piece.sha256 for piece in manifest.pieces}
        donors = {sha256: donor for sha256, donor in elsewhere.items() if sha256 in hashes}
        keep: set[str] = set()
        for stage_id, index in self._indexes():
            for piece in index.manifest.pieces:
                if piece.sha256 in hashes and piece.sha256 not in donors:
                    donors[piece.sha256] = Donor(self._paths(stage_id).whole, piece.offset)
            if index.manifest.model_id == manifest.model_id:
                keep.add(stage_id)
        return donors, keep

    def _unused(self, spared: set[str]) -> list[_Kept]:
        """Return the complete and partial stages that may be deleted, least recently used first."""
        with self._lock:
            spared = spared | set(self._held) | set(self._receiving)
        kept_by_id: dict[str, _Kept] = {}
        for path in self.folder.iterdir():
            stage_id = path.stem
            if not _STAGE_ID.fullmatch(stage_id) or stage_id in spared:
                continue
            with contextlib.suppress(FileNotFoundError):
                stat = path.stat()
                before = kept_by_id.get(stage_id, _Kept(stage_id, 0, 0))
                n_bytes = before.n_bytes + stat.st_size
                used_ns = max(before.used_ns, stat.st_mtime_ns)
                is_part = before.is_part or path.suffix == ".part"
                kept_by_id[stage_id] = _Kept(stage_id, n_bytes, used_ns, is_part)
        return sorted(kept_by_id.values(), key=lambda kept: kept.used_ns)

    def _check(self, manifest: Manifest, path: Path) -> None:
        """Hash a complete stage file again. Raises BadInput if it has changed."""
        _check_layout(manifest, path)
        with path.open("rb", buffering=0) as file:
            for piece in manifest.pieces:
                if hash_range(file, piece.offset, piece.n_bytes, lambda _: None) != piece.sha256:
                    raise BadInput("manifest_odd", what=Reason("piece_hash"))

    def _remember(self, manifest: Manifest, path: Path) -> None:
        stat = path.stat()
        index = _Index(manifest, stat.st_mtime_ns, stat.st_ctime_ns, self._clock())
        write_whole(self._paths(manifest.id).index, msgspec.json.encode(index))
        self._unkept.pop(manifest.id, None)

    def _remember_if_there_is_room(self, manifest: Manifest, path: Path) -> None:
        """Record that a stage was checked. If the disk is full or fails, record it only in memory."""
        try:
            self._remember(manifest, path)
        except AppError as error:
            log.warning("the check of stage %s could not be recorded: %s", manifest.id, said(error))
            stat = path.stat()
            self._unkept[manifest.id] = _Index(manifest, stat.st_mtime_ns, stat.st_ctime_ns, self._clock())

    def _is_as_it_was(self, index: _Index, now: os.stat_result) -> bool:
        """Return whether the file is unmodified and was hashed recently. Older hashes are not trusted, because a disk
        may silently corrupt data."""
        times = (now.st_size, now.st_mtime_ns, now.st_ctime_ns)
        known = (index.manifest.total_bytes, index.mtime_ns, index.ctime_ns)
        return times == known and 0 <= self._clock() - index.checked_s < CHECKED_AGAIN_S

    def _indexes(self) -> Iterator[tuple[str, _Index]]:
        for path in self.folder.glob("*.json"):
            index = self._index(path.stem)
            if index is not None:
                yield path.stem, index

    def _index(self, stage_id: str) -> _Index | None:
        if not _STAGE_ID.fullmatch(stage_id):
            return None
        if stage_id in self._unkept:
            return self._unkept[stage_id]
        try:
            return decode(self._paths(stage_id).index.read_bytes(), _Index)
        except (OSError, ValueError):
            return None

    def _paths(self, stage_id: str) -> StagePaths:
        at = self.folder / stage_id
        return StagePaths(*(at.with_suffix(end) for end in (".gguf", ".json", ".part", ".have")))

    def _closer(self, stage_id: str) -> Callable[[], None]:
        def closed() -> None:
            with self._lock:
                self._receiving.pop(stage_id, None)

        return closed


def disk_limits(folder: Path) -> tuple[int, int]:
    """Return how many bytes stages may use on the disk of `folder`, and how many bytes stages from other machines must
    leave free."""
    total = shutil.disk_usage(folder).total
    left_free = min(max(LEFT_FREE_BYTES, total // 20), total // 4)
    return min(MOST_BYTES, total // 4), left_free


def _check_layout(manifest: Manifest, path: Path) -> None:
    """Check that the header is valid and describes exactly the pieces that were hashed."""
    header = read_header(path)
    tensors = [(tensor.offset, tensor.n_bytes) for tensor in header.tensors.values()]
    pieces = [(piece.offset, piece.n_bytes) for piece in manifest.pieces]
    if header.raw != manifest.header or tensors != pieces:
        raise BadInput("manifest_odd", what=Reason("pieces_mismatched"))


def _clear(path: Path) -> None:
    """Delete a folder that has the name of one of our files, because the file could not be written otherwise."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
