"""The engine packs installed in one home, and the choice of a pack for each back end."""

from __future__ import annotations

import logging
import os
import platform
import re
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Annotated

import msgspec
import psutil
from msgspec import Meta

from app.core.errors import AppError, BadInput, Reason, Refused
from app.core.reasons import os_cause
from app.machine.engine_packs.manifest import Manifest, installed_name, matching, unfit
from app.machine.engine_packs.pack_reader import copy_pack, manifest_hash, read_manifest, verify_files
from app.machine.engine_packs.pack_writer import write_archive
from app.machine.hardware.engines import Device
from app.machine.json_state import read_json_or_default
from app.machine.paths import PRIVATE_DIR, sync_folder, write_atomically

log = logging.getLogger(__name__)

STATE = "engines.json"
PART = ".part-"  # a pack that is being copied or deleted
_SYSTEMS = {"linux": "linux", "darwin": "macos", "win32": "windows"}
_PROCESSORS = {"amd64": "x86_64", "x64": "x86_64", "aarch64": "arm64"}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,250}")

Name = Annotated[str, Meta(max_length=260)]


class Tested(msgspec.Struct, frozen=True):
    """The result of a pack's last self-test: the devices that it found, or the reason why it failed."""

    devices: Annotated[list[Device], Meta(max_length=64)] = []
    failure: Reason | None = None


class Choice(msgspec.Struct, frozen=True):
    """The pack used for a back end, and the one used before it; "" for none."""

    current: Name = ""
    previous: Name = ""


class Origin(msgspec.Struct, frozen=True):
    """The machine of the household that a pack was copied from, and the Unix time of the copy."""

    machine: Annotated[str, Meta(max_length=64)]  # its ID
    name: Annotated[str, Meta(max_length=64)]
    at: float


class _State(msgspec.Struct, frozen=True):
    choices: Annotated[dict[Name, Choice], Meta(max_length=64)] = {}
    tested: Annotated[dict[Name, Tested], Meta(max_length=256)] = {}
    origins: Annotated[dict[Name, Origin], Meta(max_length=256)] = {}


class InstalledPack(msgspec.Struct, frozen=True):
    """An installed pack. `problem` is the reason why it cannot be used, or None."""

    name: str
    manifest: Manifest | None = None  # None if it cannot be read
    is_current: bool = False
    is_previous: bool = False
    tested: Tested | None = None
    problem: Reason | None = None
    sha256: str = ""  # of its manifest, which has the hashes of all other files
    origin: Origin | None = None

    @property
    def is_whole(self) -> bool:
        """Return whether the files match the manifest and the pack fits this computer.

        A failed self-test does not count.
        """
        return self.problem is None or (self.tested is not None and self.problem == self.tested.failure)

    @property
    def backend(self) -> str:
        """Return the name of the pack's back end."""
        return self.manifest.backend if self.manifest else self.name.partition("-")[0]


class PackStore:
    """The packs in a folder of the home. Its methods block, and only one of them changes the store at a time.

    A new pack is renamed into place once all its bytes are checked and on disk. It is checked again before every use,
    but hashes are computed again only if a file may have changed.
    """

    def __init__(self, folder: Path, system: str = "", engine_version: str = "") -> None:
        """Use the packs in `folder`, which is created by the first installation."""
        self._folder = folder
        self._system = system or this_system()
        self._engine_version = engine_version or this_engine()
        self._lock = threading.RLock()
        self._verified: dict[str, tuple[int, ...]] = {}  # signatures of files whose hashes were correct

    def packs(self) -> list[InstalledPack]:
        """Return all installed packs, sorted by back end.

        The current pack of each comes first, then the others by age.
        """
        with self._lock:
            state = self._state()
            packs = [self._describe(name, state) for name in self._names()]
        return sorted(packs, key=lambda pack: (pack.backend, not pack.is_current, not pack.is_previous, pack.name))

    def find(self, typed: str) -> InstalledPack:
        """Return the pack named `typed`, or the only pack whose name begins with `typed`. Raises BadInput."""
        with self._lock:
            names = matching(self._names(), typed)
            if len(names) != 1:
                code = "pack_ambiguous" if names else "pack_not_installed"
                raise BadInput(code, pack=typed)
            return self._describe(names[0], self._state())

    def install(self, source: Path) -> InstalledPack:
        """Copy a pack from a folder or an archive into the store. It is not used until `use` is called.

        Installing the same build again changes nothing. Raises BadInput, Refused, Damaged or DoesNotFit.
        """
        with self._lock:
            self._clean()
            part = self._new_part()
            try:
                manifest = copy_pack(source, part, self._require_fit)
                name, _ = self._place(part, manifest)
            finally:
                shutil.rmtree(part, ignore_errors=True)
            return self._describe(name, self._state())

    def adopt(self, copied: Path, origin: Origin) -> InstalledPack:
        """Move a pack that was copied from another machine into the store, after checking all of its bytes again.

        copied: a folder on the same disk. It no longer exists afterwards. Raises BadInput, Refused or Damaged.
        """
        with self._lock:
            manifest = read_manifest(copied, copied.name)
            self._require_fit(manifest)
            if error := verify_files(copied, manifest):
                raise error
            name, is_new = self._place(copied, manifest)
            if is_new:
                state = self._state()
                self._write(msgspec.structs.replace(state, origins={**state.origins, name: origin}))
            shutil.rmtree(copied, ignore_errors=True)
            return self._describe(name, self._state())

    def export(self, name: str, place: Path, is_stopped: Callable[[], bool] = lambda: False) -> InstalledPack:
        """Write an installed pack as an archive, after checking all of its files again.

        An existing file is replaced. is_stopped: called often; writing stops once it returns True.
        Raises BadInput, Refused or Damaged.
        """
        with self._lock:
            pack = self.find(name)
            if damage := self.verify(pack.name):
                raise damage
        assert pack.manifest is not None  # otherwise `verify` has returned an error
        try:  # without the lock, because a large pack takes a minute
            write_archive(self._folder / pack.name, place, pack.manifest.name, is_stopped)
        except OSError as error:
            raise Refused("pack_not_exported", file=str(place), why=os_cause(error)) from error
        return pack

    def path_of(self, pack: InstalledPack, file: str) -> Path:
        """Return the path of a file of an installed pack."""
        return self._folder / pack.name / file

    def note_test(self, name: str, tested: Tested) -> InstalledPack:
        """Record the result of a self-test. If the current pack of a back end has failed, it is no longer used."""
        with self._lock:
            state = self._state()
            self._write(msgspec.structs.replace(state, tested={**state.tested, name: tested}))
            return self._describe(name, self._state())

    def use(self, name: str) -> InstalledPack:
        """Make a pack the current one for its back end. Raises Refused or Damaged if it cannot be used."""
        with self._lock:
            pack = self.find(name)
            if pack.problem is not None:
                raise _refusal(pack.problem)
            if not pack.is_current:
                state = self._state()
                old = state.choices.get(pack.backend, Choice())
                self._choose(state, pack.backend, Choice(pack.name, old.current))
            return self.find(pack.name)

    def roll_back(self, backend: str) -> InstalledPack:
        """Make the previous pack of a back end the current one again. Raises Refused or Damaged."""
        with self._lock:
            state = self._state()
            choice = state.choices.get(backend, Choice())
            if not choice.previous or choice.previous not in self._names():
                raise Refused("pack_no_previous", backend=backend)
            previous = self._describe(choice.previous, state)
            if previous.problem is not None:
                raise _refusal(previous.problem)
            self._choose(state, backend, Choice(choice.previous, choice.current))
            return self.find(choice.previous)

    def remove(self, name: str) -> str:
        """Delete a pack and return its name.

        If it was current, its back end has no pack afterwards. Raises BadInput.
        """
        with self._lock:
            pack = self.find(name)
            state = self._state()
            choices = {
                backend: Choice(*("" if kept == pack.name else kept for kept in (choice.current, choice.previous)))
                for backend, choice in state.choices.items()
            }
            part = self._new_part()
            try:
                (self._folder / pack.name).rename(part / pack.name)  # at once, so that no half of it remains
            except OSError as error:
                raise Refused("pack_not_removed", pack=pack.name, why=os_cause(error)) from error
            finally:
                shutil.rmtree(part, ignore_errors=True)
            self._verified.pop(pack.name, None)
            self._write(msgspec.structs.replace(state, choices=choices))
            return pack.name

    def verify(self, name: str) -> AppError | None:
        """Check all files of a pack again.

        Return the error for the first that differs from the manifest, or None.
        """
        with self._lock:
            pack = self.find(name)
            self._verified.pop(pack.name, None)
            try:
                manifest = read_manifest(self._folder / pack.name, pack.name)
            except AppError as error:
                return error
            return self._check(pack.name, manifest)

    def libraries(self) -> dict[str, Path]:
        """Return the absolute paths of the current packs' libraries, keyed by back end.

        Packs that are damaged, do not fit this computer or failed their self-test are left out.
        """
        current = [pack for pack in self.packs() if pack.is_current and pack.problem is None]
        return {backend: path for pack in current for backend, path in self.libraries_of(pack).items()}

    def libraries_of(self, pack: InstalledPack) -> dict[str, Path]:
        """Return the absolute paths of a pack's libraries, keyed by back end."""
        folder = (self._folder / pack.name).resolve()
        names = pack.manifest.backend_names() if pack.manifest else {}
        return {backend: folder / path for backend, path in names.items()}

    def _describe(self, name: str, state: _State) -> InstalledPack:
        tested = state.tested.get(name)
        try:
            manifest, sha256 = read_manifest(self._folder / name, name), manifest_hash(self._folder / name)
        except AppError as error:
            return InstalledPack(name, problem=error.reason)
        choice = state.choices.get(manifest.backend, Choice())
        problem = unfit(manifest, self._system, self._engine_version)
        if problem is None and (difference := self._check(name, manifest)):
            problem = difference.reason
        if problem is None and tested is not None:
            problem = tested.failure
        current, previous, origin = choice.current == name, choice.previous == name, state.origins.get(name)
        return InstalledPack(name, manifest, current, previous, tested, problem, sha256, origin)

    def _place(self, part: Path, manifest: Manifest) -> tuple[str, bool]:
        """Move a checked pack to its final folder, unless an undamaged copy is already installed.

        Return the pack's name, and whether it was moved. Raises Refused.
        """
        sha256 = manifest_hash(part)
        name = installed_name(manifest, sha256)
        for there in self._names():
            if manifest_hash(self._folder / there) == sha256:
                name = there  # perhaps under the name that an earlier version gave it
                if self._check(there, manifest) is None:
                    return there, False
        with _writing(self._folder):
            shutil.rmtree(self._folder / name, ignore_errors=True)  # damaged
            part.rename(self._folder / name)
            sync_folder(self._folder)
        self._verified[name] = _signature(self._folder / name, manifest)
        self._forget_test(name)
        return name, True

    def _check(self, name: str, manifest: Manifest) -> AppError | None:
        signature = _signature(self._folder / name, manifest)
        error = verify_files(self._folder / name, manifest, hashes=self._verified.get(name) != signature)
        if error is None:
            self._verified[name] = signature
        return error

    def _require_fit(self, manifest: Manifest) -> None:
        if reason := unfit(manifest, self._system, self._engine_version):
            raise _refusal(reason)

    def _names(self) -> list[str]:
        try:
            return sorted(
                path.name
                for path in self._folder.iterdir()
                if _NAME.fullmatch(path.name) and path.is_dir() and not path.is_symlink()
            )
        except FileNotFoundError:
            return []
        except OSError as error:
            log.warning("the engine packs in %s cannot be read: %s", self._folder, error)
            return []

    def _state(self) -> _State:
        return read_json_or_default(self._folder / STATE, _State, "the choice of engine packs")

    def _choose(self, state: _State, backend: str, choice: Choice) -> None:
        self._write(msgspec.structs.replace(state, choices={**state.choices, backend: choice}))

    def _forget_test(self, name: str) -> None:
        state = self._state()
        if name in state.tested:
            kept = {other: tested for other, tested in state.tested.items() if other != name}
            self._write(msgspec.structs.replace(state, tested=kept))

    def _write(self, state: _State) -> None:
        names = set(self._names())
        state = _State(
            state.choices,
            {name: tested for name, tested in state.tested.items() if name in names},
            {name: origin for name, origin in state.origins.items() if name in names},
        )
        with _writing(self._folder):
            write_atomically(self._folder / STATE, msgspec.json.encode(state))

    def _new_part(self) -> Path:
        with _writing(self._folder):
            self._folder.mkdir(mode=PRIVATE_DIR, parents=True, exist_ok=True)
            part = self._folder / f"{PART}{os.getpid()}"
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(mode=PRIVATE_DIR)
        return part

    def _clean(self) -> None:
        """Delete the remains of interrupted installations and removals, unless their process is still running."""
        for path in self._folder.glob(f"{PART}*"):
            process = path.name.removeprefix(PART)
            if not process.isdecimal() or int(process) == os.getpid() or not psutil.pid_exists(int(process)):
                shutil.rmtree(path, ignore_errors=True)


def _refusal(reason: Reason) -> Refused:
    return Refused(reason.code, **reason.facts)


def this_system() -> str:
    """Return this operating system and processor in the form used in pack names, such as `linux-x86_64`."""
    machine = platform.machine().lower()
    return f"{_SYSTEMS.get(sys.platform, sys.platform)}-{_PROCESSORS.get(machine, machine)}"


def this_engine() -> str:
    """Return the version of the installed engine."""
    return metadata.version("llama-cpp-python")


def _signature(folder: Path, manifest: Manifest) -> tuple[int, ...]:
    """Return numbers that change if a file of a pack is replaced or written to."""
    numbers: list[int] = []
    for file in manifest.files:
        try:
            stat = (folder / file.path).stat()
        except OSError:
            numbers.append(-1)
        else:
            numbers += (stat.st_ino, stat.st_size, stat.st_mtime_ns)
    return tuple(numbers)


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Within this context, raise Refused if the folder cannot be written."""
    try:
        yield
    except OSError as error:
        raise Refused("packs_not_written", folder=str(folder), why=os_cause(error)) from error
