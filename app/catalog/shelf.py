"""Manages the list of models on this machine: imports and hashes their files, and checks that they are unchanged."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import msgspec

from app.catalog.files import OnBytes, chunks, hash_range, write_whole
from app.catalog.gguf.gguf_file import Header, part_paths, read_header
from app.catalog.gguf.model_reader import PRE, model_of
from app.catalog.gguf.projector_reader import (
    ProjectorFacts,
    attached,
    fits,
    has_markers,
    is_projector,
    other_model,
    projector_facts,
)
from app.catalog.stages.cut import Cut, cut
from app.catalog.stages.stage_receiver import Donor
from app.catalog.stages.stage_store import StageStore
from app.catalog.transfers.download_records import joint_hash
from app.core.errors import AppError, BadInput, Damaged, Reason, Unreachable
from app.core.model import Model
from app.core.nearest_names import nearest_names
from app.core.reasons import os_cause, said
from app.decoding import decode
from backends.contract import Layers, Role

log = logging.getLogger(__name__)

GUIDE = "guide"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
TURN_SECONDS = 0.2  # interval at which a waiting thread may stop
FORMAT = 7  # version of stored entries; increase it when Model or the family table changes
_PART_END = re.compile(r"-\d{5}-of-\d{5}$")
_DEVICE = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)  # names reserved by Windows

TokenProbabilities = tuple[tuple[tuple[int, float], ...], ...]
Progress = Callable[[int, int], None]  # called with the bytes done and the total; may raise to stop


def always_reachable(_file: Path) -> Reason | None:
    """Return None, which means that the file is reachable. Default for a shelf without models on removable disks."""
    return None


def no_progress(_done: int, _total: int) -> None:
    """Report no progress."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A model on the shelf. Its file is used in place and is never written, moved or deleted."""

    model: Model
    path: str
    mtime_ns: int  # of the file when it was last hashed
    tensors: dict[str, str]  # name -> SHA-256 in hex
    builtin: bool = False
    format: int = FORMAT
    # known answer of the model on a single machine (app/inference/pipeline/result_checks.py)
    proof: TokenProbabilities = ()
    sha256: str = ""  # of the whole file or files, if imported; a download has its own record
    ctime_ns: int = 0  # time of the last change of any kind, even one that reset mtime; 0 if stored by an older version
    shipped: bool = False  # came with the app, as the built-in model did, but is a model like any other

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def is_of_app(self) -> bool:
        """Return whether an installer brought the file, so that it cannot be removed and updates may replace it."""
        return self.builtin or self.shipped

    def is_unchanged(self, size: int, mtime_ns: int, ctime_ns: int) -> bool:
        """Return whether a file with this size and these times is still the file that was hashed."""
        same = (size, mtime_ns) == (self.model.file_bytes, self.mtime_ns)
        return same and self.ctime_ns in (0, ctime_ns)


class Shelf:
    """The models of this machine, each described by a small JSON file in the folder `models/`. Thread-safe."""

    def __init__(self, folder: Path, guide: Path, stages: StageStore, shipped: Sequence[Path] = ()) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._guide, self._stages = folder, guide, stages
        self._shipped = {name_for(path.stem): path for path in shipped}  # models beside the Guide
        self._lock = threading.RLock()
        self._unkept: dict[str, Entry] = {}  # entries that could not be written to disk, by name
        # Files that no longer contain their model, by path: the model's id, and the file's state, so that the file is
        # not hashed again.
        self._changed: dict[str, tuple[str, tuple[int, int, int]]] = {}
        self._turns: dict[str, threading.Lock] = {}  # locks held while a file is hashed, by path
        # returns why a file is unreachable; must not read the disk
        self.why_away: Callable[[Path], Reason | None] = always_reachable
        self.changes = 0  # increased whenever a model is added or removed

    def entries(self) -> tuple[Entry, ...]:
        """Return all models, starting with those bundled with the app.

        Reads a model file only if its entry is outdated after an update of the app.
        """
        stored = [entry for path in sorted(self._folder.glob("*.json")) if (entry := _read(path))]
        imported = tuple(entry for entry in stored if not entry.is_of_app)
        taken = {entry.name for entry in imported}
        of_app = {GUIDE: self._guide} | {name: path for name, path in self._shipped.items() if name not in taken}
        return (*self._usable(of_app), *imported)

    def get(self, name: str, loaded: Collection[str] | None = None) -> Entry:
        """Return the model with this name or id, or the only one whose name begins with it. Raises BadInput.

        loaded: if given, a partial name may refer only to these models, so that it never replaces a loaded model.
        """
        entries = self.entries()
        folded = name.casefold()
        if folded == GUIDE and not self._guide.exists():
            raise BadInput("model_builtin_missing", path=str(self._guide))
        exact = [entry for entry in entries if entry.name == name] or self._by_id(entries, name, loaded)
        same = [entry for entry in entries if entry.name.casefold() == folded]
        begins = [entry for entry in entries if name and entry.name.casefold().startswith(folded)]
        matches = exact or same or begins
        if len(matches) == 1:
            if not (exact or same or loaded is None or matches[0].name in loaded):
                raise BadInput("model_inexact", name=name[:100], there=matches[0].name)
            return matches[0]
        there = ", ".join(entry.name for entry in matches or entries) or Reason("none")
        if matches:
            raise BadInput("model_ambiguous", name=name[:100], there=there)
        if near := ", ".join(nearest_names(name, (entry.name for entry in entries))):
            raise BadInput("model_unknown_near", name=name[:100], near=near, there=there)
        raise BadInput("model_unknown", name=name[:100], there=there)

    def inspect_file(self, path: Path) -> tuple[Model, str]:
        """Read a GGUF file's header without hashing the file. Return the model and the name of its pre-tokenizer.

        Raises BadInput if the file cannot be imported.
        """
        header = read_header(part_paths(path)[0])
        return model_of(header, path.stem, ""), header.text(PRE)

    def import_file(
        self,
        path: Path,
        progress: Progress = no_progress,
        *,
        name: str | None = None,
        whole: bool = False,
        siblings: Collection[Path] | None = None,
    ) -> Entry:
        """Check a GGUF file, hash its tensors, and put it on the shelf as `name` or under its file's name.

        Importing the same file again replaces its entry. If a different file already has the name, a number is
        appended. If the shelf has a different file with the same bytes, its entry is returned unless `name` is
        given.

        whole: also store the hash of the file, by which other machines may request it.

        A projector (mmproj) is attached to the model that it fits, whose entry is returned. A model gets the projector
        beside it.

        siblings: the models that came from the same place as a projector. By default, those in its folder.
        """
        if name is not None and not (NAME.fullmatch(name) and name_for(name) == name):
            raise BadInput("model_name_odd", name=name[:100])
        path = part_paths(path.expanduser().absolute())[0]
        header = read_header(path)
        if is_projector(header):
            return self._attach(header, path, siblings)
        model_of(header, path.stem, "")  # refuse an invalid model before hashing it
        entry = _hashed(header, path, "unnamed", progress, whole=whole)
        with self._lock:
            if name is None and (known := self._same(entry)):
                return known
            name = self._free_name(name or name_for(whole_stem(path.stem)), str(path))
            entry = replace(entry, model=replace(entry.model, name=name))
            entry = _with_projector(entry, self._projector_path(entry))
            self._write(entry)
            self.changes += 1
        return entry

    def _projector_path(self, new: Entry) -> str:
        """Return the path of the projector of an entry that a new one replaces, or "" if it has none."""
        known = (entry.model.projector for entry in self.entries() if (entry.name, entry.path) == (new.name, new.path))
        return next((projector.path for projector in known if projector is not None), "")

    def _attach(self, header: Header, path: Path, siblings: Collection[Path] | None) -> Entry:
        """Attach a projector to the models in its folder that it fits, or else to the only model without one that it
        fits. Raises BadInput.
        """
        facts = projector_facts(header)
        with self._lock:
            fitting = [entry for entry in self.entries() if not entry.builtin and _takes(entry, facts)]
            near = {Path(entry.path) for entry in fitting if Path(entry.path).parent == path.parent}
            beside = [entry for entry in fitting if Path(entry.path) in (near if siblings is None else siblings)]
            blind = [entry for entry in fitting if entry.model.projector is None]
            chosen = beside or blind or fitting
            if not chosen:
                raise other_model(header, facts)
            if len(chosen) > 1 and not beside:
                raise BadInput("projector_several", path=header.path, models=", ".join(entry.name for entry in chosen))
            now = [
                replace(entry, model=replace(entry.model, projector=attached(facts, header, entry.model)))
                for entry in chosen
            ]
            for entry in now:
                self._write(entry)
            self.changes += 1
        return now[0]

    def verify(self, entry: Entry, progress: Progress = no_progress) -> Entry:
        """Check that a model's file is still the imported one, and return its current entry.

        A projector whose file is missing is marked as unusable, so that no memory is planned for it.

        A file that was touched is hashed again, once per change, because changed permissions or a restored backup
        do not affect the bytes. Raises BadInput if the file is missing, Damaged if its bytes have changed, and
        Unreachable if its disk is disconnected.
        """
        self._check_near(entry)
        if known := self._untouched(entry):
            return _without_lost_projector(known)
        with self._alone(entry, progress):  # only one of two concurrent callers hashes
            return _without_lost_projector(self._untouched(entry) or self._hashed_again(entry, progress))

    def whole_hash(self, entry: Entry) -> str | None:
        """Return the SHA-256 of an imported model's file, or None if it is unknown or the file has been touched. Reads
        the disk."""
        path = Path(entry.path)
        if not entry.sha256 or self.why_away(path):
            return None
        with suppress(OSError):
            if entry.is_unchanged(*_seen(path)):
                return entry.sha256
        return None

    def name_of(self, path: Path) -> str:
        """Return the name of the model with this file, or the file's own name if it is not on the shelf. Reads the
        disk."""
        named = (entry.name for entry in self.entries() if Path(entry.path) == path)
        return next(named, path.stem)

    def save_known_answer(self, entry: Entry, proof: TokenProbabilities) -> None:
        """Store the known answer that a model gave on a single machine. It must give the same answer when it is
        split."""
        with self._lock:
            now = _read(self._entry_path(entry.name))
            if now is not None and now.model.id == entry.model.id and now.proof != proof:
                try:
                    self._write(replace(now, proof=proof))
                except AppError as error:  # a full disk does not prevent answers
                    log.warning("the known answer of %s could not be stored: %s", now.name, said(error))

    def header(self, entry: Entry) -> Header:
        """Read the header of a model's file. Raises AppError, for example if the file is missing or its disk is
        disconnected."""
        self._check_near(entry)
        try:
            return read_header(Path(entry.path))
        except BadInput as error:
            if error.reason.code != "file_missing":
                raise
            raise BadInput("model_gone", name=entry.name, path=entry.path) from None

    def cut(self, entry: Entry, layers: Layers, role: Role) -> Cut:
        """Cut a stage out of a verified model, as the function `cut` does. Raises AppError."""
        return cut(entry.model, self.header(entry), entry.tensors, layers, role)

    def donors(self, hashes: frozenset[str] | None = None) -> dict[str, Donor]:
        """Return the locations of all models' tensors, by hash. A lender need not fetch tensors that it already has.

        hashes: if given, only files that contain one of these are opened.
        """
        donors: dict[str, Donor] = {}
        for entry in self.entries():
            if hashes is not None and hashes.isdisjoint(entry.tensors.values()):
                continue
            if self.why_away(Path(entry.path)):
                continue
            try:
                header = self.header(entry)
            except AppError:
                continue  # missing or changed; reported when that model is used
            for name, tensor in header.tensors.items():
                if name in entry.tensors:
                    donors[entry.tensors[name]] = Donor(Path(header.path_of(tensor)), tensor.offset)
        return donors

    def record_move(self, old: Path, new: Path) -> None:
        """Update the entries of models after a file, or a folder of files, was moved without changes. Raises
        AppError."""
        with self._lock:
            for entry in self.entries():
                path = Path(entry.path)
                if entry.is_of_app or (path != old and path.parent != old):
                    continue
                now = new if path == old else new / path.name
                _, mtime_ns, ctime_ns = _seen(now)
                moved = replace(entry, path=str(now), mtime_ns=mtime_ns, ctime_ns=ctime_ns)
                self._write(_with_moved_projector(moved, path.parent, now.parent))
                self.changes += 1

    def remove(self, name: str) -> Entry:
        """Remove a model from the shelf and delete its stages. Its file is kept."""
        entry = self.get(name)
        if entry.is_of_app:
            raise BadInput("model_builtin", name=entry.name)
        with self._lock:
            self._entry_path(entry.name).unlink(missing_ok=True)
            self.changes += 1
        self._stages.remove_model(entry.model.id)
        return entry

    def _untouched(self, entry: Entry) -> Entry | None:
        """Return the entry if its file has not been touched since it was hashed, otherwise None. Raises the errors of
        `verify`."""
        try:
            seen = _seen(Path(entry.path))
        except OSError:
            raise BadInput("model_gone", name=entry.name, path=entry.path) from None
        stored = self._unkept.get(entry.name) or _read(self._entry_path(entry.name))
        if stored is not None and not _same_file(stored, entry):
            stored = None
        # an entry without ctime is older than the stored one
        known_entry = entry if entry.ctime_ns or stored is None else None
        for known in (known_entry, stored):
            if known is not None and known.is_unchanged(*seen):
                return known if known.ctime_ns else self._kept(known, seen)
        is_known_as_changed = self._changed.get(entry.path) == (entry.model.id, seen)
        if is_known_as_changed or seen[0] != entry.model.file_bytes:
            raise Damaged("model_changed", name=entry.name, path=entry.path)
        return None

    def _hashed_again(self, entry: Entry, progress: Progress) -> Entry:
        path, changed = Path(entry.path), Damaged("model_changed", name=entry.name, path=entry.path)
        try:
            again = _hashed(read_header(path), path, entry.name, progress, whole=bool(entry.sha256))
        except BadInput:
            raise changed from None
        seen = (again.model.file_bytes, again.mtime_ns, again.ctime_ns)
        if again.model.id != entry.model.id:
            self._changed[entry.path] = (entry.model.id, seen)
            raise changed
        return self._kept(replace(entry, sha256=again.sha256), seen)

    def _kept(self, entry: Entry, seen: tuple[int, int, int]) -> Entry:
        """Store and return the entry of an unchanged file with its new times. If the model was removed in the
        meantime, nothing is stored."""
        _, mtime_ns, ctime_ns = seen
        with self._lock:
            stored = _read(self._entry_path(entry.name))
            is_there = stored is not None and _same_file(stored, entry)
            proof = stored.proof if stored is not None and is_there else entry.proof
            now = replace(entry, mtime_ns=mtime_ns, ctime_ns=ctime_ns, proof=proof)
            self._unkept.pop(entry.name, None)
            try:
                if not is_there:
                    raise BadInput("model_unknown", name=entry.name, there=Reason("none"))
                self._write(now)
            # The disk is full: the model still loads, but is hashed again after the next start.
            except AppError as error:
                log.warning("the check of %s could not be recorded: %s", entry.name, said(error))
                self._unkept[entry.name] = now
        return now

    @contextmanager
    def _alone(self, entry: Entry, progress: Progress) -> Iterator[None]:
        """Hold the lock for hashing this file. While another thread holds the lock, call `progress`, which may raise
        to stop."""
        turn = self._turns.setdefault(entry.path, threading.Lock())
        while not turn.acquire(timeout=TURN_SECONDS):
            progress(0, entry.model.file_bytes)  # lets a waiting caller stop
        try:
            yield
        finally:
            turn.release()

    def _by_id(self, entries: Sequence[Entry], model_id: str, loaded: Collection[str] | None) -> list[Entry]:
        """Return the entry with this model id in a list, or an empty list.

        Files with the same bytes have the same id. A loaded model is preferred, then one whose file exists.
        """
        matches = [entry for entry in entries if entry.model.id == model_id]
        if len(matches) > 1:
            matches.sort(key=lambda match: (match.name not in (loaded or ()), not self._is_there(match)))
        return matches[:1]

    def _is_there(self, entry: Entry) -> bool:
        path = Path(entry.path)
        return not self.why_away(path) and path.exists()

    def _check_near(self, entry: Entry) -> None:
        if why := self.why_away(Path(entry.path)):
            raise Unreachable("model_away", name=entry.name, folder=why.facts["folder"])

    def _usable(self, of_app: Mapping[str, Path]) -> Iterator[Entry]:
        """Yield the entries of models that came with the app. An entry that cannot be used does not hide the others."""
        for name, path in of_app.items():
            try:
                if path.exists():
                    yield self._of_app(name, path.absolute())
            except AppError as error:
                log.warning("the model %s of the app cannot be used: %s", name, said(error))

    def _of_app(self, name: str, path: Path) -> Entry:
        """Return the entry of a model that came with the app. If an update of the app has replaced its file, accept
        the new file."""
        with self._lock:
            entry = _read(self._entry_path(name))
            stat = path.stat()
            seen = (str(path), stat.st_size, stat.st_mtime_ns)
            for known in (entry, self._unkept.get(name)):
                if known and (known.path, known.model.file_bytes, known.mtime_ns) == seen:
                    return known
            is_guide = name == GUIDE
            entry = _hashed(read_header(path), path, name, no_progress, whole=not is_guide)
            entry = replace(entry, builtin=is_guide, shipped=not is_guide)
            try:
                self._write(entry)
            except AppError as error:  # a full disk does not prevent it from answering
                log.warning("the entry of %s could not be stored: %s", name, said(error))
                self._unkept[name] = entry
            return entry

    def _same(self, new: Entry) -> Entry | None:
        """Return a model with the same bytes in a different, existing file, or None."""
        same = [candidate for candidate in self.entries() if candidate.model.id == new.model.id]
        return next(
            (candidate for candidate in same if candidate.path != new.path and Path(candidate.path).exists()), None
        )

    def _free_name(self, name: str, path: str) -> str:
        taken = {e.name.casefold(): e for e in self.entries() if e.path != path or e.is_of_app}
        taken_names = {*taken, GUIDE}
        tries = [name, *(f"{name[:95]}-{number}" for number in range(2, 1000))]
        for candidate in tries:
            if candidate.casefold() not in taken_names:
                return candidate
        raise BadInput("model_name_odd", name=name)

    def _write(self, entry: Entry) -> None:
        write_whole(self._entry_path(entry.name), msgspec.json.encode(entry))

    def _entry_path(self, name: str) -> Path:
        return self._folder / f"{name}.json"


def _same_file(entry: Entry, other: Entry) -> bool:
    return (entry.path, entry.model.id) == (other.path, other.model.id)


class _Version(msgspec.Struct, frozen=True):
    """The format version of a stored entry."""

    format: int


class _ProjectorPath(msgspec.Struct, frozen=True):
    """The part of a stored projector that all versions share."""

    path: str


class _ModelName(msgspec.Struct, frozen=True):
    """The part of a stored model that all versions share."""

    id: str
    name: str
    projector: _ProjectorPath | None = None


class _OlderEntry(msgspec.Struct, frozen=True):
    """The part of an entry from an older version that is still valid: everything except the model's facts."""

    model: _ModelName
    path: str
    mtime_ns: int
    tensors: dict[str, str]
    builtin: bool = False
    proof: TokenProbabilities = ()
    sha256: str = ""
    ctime_ns: int = 0
    shipped: bool = False


def is_projector_file(path: Path) -> bool:
    """Return whether a file is a projector rather than a model. Raises BadInput if it is no GGUF file."""
    return is_projector(read_header(part_paths(path)[0]))


def with_projector_beside(entry: Entry) -> Entry:
    """Return a model with the projector that fits it in the same folder, if it has none yet and there is one."""
    if entry.model.projector is not None or not entry.model.writes:
        return entry
    path = Path(entry.path)
    with suppress(OSError):
        names = sorted(name for name in os.listdir(path.parent) if PROJECTOR_NAME.search(name))
        for name in sorted(names, key=lambda name: not _is_named_after(name, path.stem)):
            with suppress(AppError):
                header = read_header(path.parent / name)
                if is_projector(header) and _takes(entry, facts := projector_facts(header)):
                    projector = attached(facts, header, entry.model)
                    return replace(entry, model=replace(entry.model, projector=projector))
    return entry


def _takes(entry: Entry, facts: ProjectorFacts) -> bool:
    """Return whether a projector is for a model. Reads the model's file if the family alone does not settle it."""
    if not fits(facts, entry.model):
        return False
    try:
        return has_markers(facts, read_header(Path(entry.path)))
    except AppError:
        return False


def _with_projector(entry: Entry, path: str) -> Entry:
    """Return a model with the projector that it had before, whose facts are read again, or with the one beside it."""
    if path:
        with suppress(AppError):
            header = read_header(Path(path))
            if is_projector(header) and _takes(entry, facts := projector_facts(header)):
                return replace(entry, model=replace(entry.model, projector=attached(facts, header, entry.model)))
    return with_projector_beside(entry)


PROJECTOR_NAME = re.compile(r"mmproj.*\.gguf$", re.IGNORECASE)


def _with_moved_projector(entry: Entry, old: Path, new: Path) -> Entry:
    """Return a moved model whose projector was moved along with it."""
    projector = entry.model.projector
    if (
        projector is None
        or Path(projector.path).parent != old
        or not (moved := new / Path(projector.path).name).exists()
    ):
        return entry
    return replace(entry, model=replace(entry.model, projector=replace(projector, path=str(moved))))


def _without_lost_projector(entry: Entry) -> Entry:
    """Return the model, with its projector marked as missing if the projector's file is gone. Reads the disk."""
    projector = entry.model.projector
    if projector is None or not projector.is_usable or Path(projector.path).is_file():
        return entry
    gone = replace(projector, reason=Reason("projector_gone", {"model": entry.name, "path": projector.path}))
    return replace(entry, model=replace(entry.model, projector=gone))


def _is_named_after(name: str, stem: str) -> bool:
    """Return whether a projector's file is named after a model's, apart from the number formats at their ends."""
    words = [word for word in re.split(r"[^a-z0-9]+", name.casefold()) if word not in ("mmproj", "gguf", "f16", "bf16")]
    return bool(words) and all(word in stem.casefold() for word in words)


def _read(path: Path) -> Entry | None:
    """Return a stored entry, or None if it cannot be read, because one damaged entry must not hide the other models."""
    try:
        data = path.read_bytes()
        is_current = decode(data, _Version).format == FORMAT
        entry = decode(data, Entry) if is_current else _renewed(decode(data, _OlderEntry))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        log.warning("the entry %s cannot be read", path)
        return None
    if entry is not None and (entry.name != path.stem or not NAME.fullmatch(entry.name)):
        log.warning("the entry %s does not match its file name", path)
        return None
    return entry


def _renewed(older: _OlderEntry) -> Entry | None:
    """Convert an entry from an older version. Its hashes are still valid, and the model's facts are read from its file
    again."""
    try:
        model = model_of(read_header(Path(older.path)), older.model.name, older.model.id)
    except BadInput:
        return None
    return _with_projector(
        Entry(
            model,
            older.path,
            older.mtime_ns,
            older.tensors,
            older.builtin,
            proof=older.proof,
            sha256=older.sha256,
            ctime_ns=older.ctime_ns,
            shipped=older.shipped,
        ),
        older.model.projector.path if older.model.projector is not None else "",
    )


def _seen(path: Path) -> tuple[int, int, int]:
    """Return the total size of a model's files, the latest modification time, and the latest ctime.

    On Windows, the ctime is the creation time. Raises OSError.
    """
    stats = [part.stat() for part in part_paths(path)]
    return (
        sum(stat.st_size for stat in stats),
        max(stat.st_mtime_ns for stat in stats),
        max(stat.st_ctime_ns for stat in stats),
    )


def whole_stem(stem: str) -> str:
    """Return the stem of a file name without the part number of a split model."""
    return _PART_END.sub("", stem)


def _hashed(header: Header, path: Path, name: str, progress: Progress, *, whole: bool = False) -> Entry:
    """Hash every tensor of a file and return a new entry. The model's id is derived from the header and all tensors."""
    total = sum(tensor.n_bytes for tensor in header.tensors.values())
    done = 0

    def tell(n_bytes: int) -> None:
        nonlocal done
        done += n_bytes
        progress(done, total)

    identity = hashlib.sha256(hashlib.sha256(header.raw).digest())
    try:
        _, mtime_ns, ctime_ns = _seen(path)  # read before hashing, so that a later change is noticed
        tensors, sha256 = model_hashes(header, part_paths(path), tell, whole=whole)
    except OSError as error:
        raise BadInput("file_unreadable", path=str(path), why=os_cause(error)) from error
    for tensor in tensors.values():
        identity.update(bytes.fromhex(tensor))
    model = model_of(header, name, identity.hexdigest())
    return Entry(model, str(path), mtime_ns, tensors, sha256=sha256, ctime_ns=ctime_ns)


def name_for(stem: str) -> str:
    """Derive an easily typed model name from a file name."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("._-")[:100].rstrip("._-")
    if not name:
        return "model"
    return f"model-{name}" if _DEVICE.fullmatch(name) else name


Span = tuple[str, int, int]  # name, offset, size in bytes


def model_hashes(header: Header, paths: Sequence[Path], tell: OnBytes, *, whole: bool) -> tuple[dict[str, str], str]:
    """Return the hash of each tensor, by name, and the hash that identifies the model's file or files.

    The second hash is "" unless `whole` is set, which doubles the work. Raises OSError.
    """
    tensor_hashes: dict[str, str] = {}
    files: list[str] = []
    for path in paths:
        spans = [
            (name, tensor.offset, tensor.n_bytes)
            for name, tensor in header.tensors.items()
            if header.path_of(tensor) == str(path)
        ]
        with path.open("rb", buffering=0) as file:
            if whole:
                hashes, own = _Reading(file, tell).hashes(spans)
                files.append(own)
            else:
                hashes = {name: hash_range(file, at, size, tell) for name, at, size in spans}
        tensor_hashes |= hashes
    known = files[0] if len(files) == 1 else joint_hash(files) or ""
    return {name: tensor_hashes[name] for name in header.tensors}, known


class _Reading:
    """A hasher of a whole file and its tensors in one pass. Only overlapping tensors are read twice."""

    def __init__(self, file: BinaryIO, tell: OnBytes) -> None:
        self._file, self._tell = file, tell
        self._whole, self._place = hashlib.sha256(), 0

    def hashes(self, spans: Sequence[Span]) -> tuple[dict[str, str], str]:
        """Return the hash of each span and of the whole file. If the file ends within a span, only the existing bytes
        are hashed."""
        span_hashes: dict[str, str] = {}
        for name, offset, n_bytes in sorted(spans, key=lambda span: span[1]):
            if offset < self._place:
                span_hashes[name] = hash_range(self._file, offset, n_bytes, self._tell)
                continue
            self._go_to(offset)
            own = hashlib.sha256()
            for chunk in chunks(self._file, offset, n_bytes):
                own.update(chunk)
                self._take(chunk)
                self._tell(len(chunk))
            span_hashes[name] = own.hexdigest()
        self._go_to(os.fstat(self._file.fileno()).st_size)
        return span_hashes, self._whole.hexdigest()

    def _go_to(self, end: int) -> None:
        """Hash the bytes up to `end` that belong to no tensor, such as the header."""
        for chunk in chunks(self._file, self._place, end - self._place):
            self._take(chunk)

    def _take(self, chunk: bytes) -> None:
        self._whole.update(chunk)
        self._place += len(chunk)
