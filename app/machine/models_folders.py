"""The folders for downloaded models: the current one, and previous ones that may still contain models."""

from __future__ import annotations

import errno
import shutil
from contextlib import suppress
from pathlib import Path

import msgspec

from app.core.errors import AppError, BadInput, DoesNotFit, Reason, Refused, Unreachable
from app.core.reasons import os_cause
from app.decoding import decode
from app.machine.paths import expand_user
from app.machine.settings import UNCHOSEN, ModelsChoice

MARKER = "poolhouse-models.json"  # distinguishes our folder from another disk that is mounted at the same path
NAME = "Poolhouse models"
MAX_MARKER_BYTES = 4096
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
MAX_NAMES = 100


class Marker(msgspec.Struct, frozen=True):
    """The content of the marker file in a models folder. Only the home with this `owner` ID stores models there."""

    owner: str
    about: str = "Poolhouse keeps models in this folder. Without this file it does not find them."
    made: bool = False  # whether Poolhouse created the folder; only then may it delete it


class ModelsFolders:
    """The folders for downloaded models. `own` is inside the home and needs no marker.

    A folder that the user chose is never recreated. If its marker is missing, the folder is considered unreachable,
    because its disk is probably not mounted.
    """

    def __init__(self, own: Path, choice: ModelsChoice = UNCHOSEN) -> None:
        self.own = own
        self.unreachable: dict[Path, Reason] = {}  # as of the last check
        self.use(choice)

    def use(self, choice: ModelsChoice) -> None:
        """Switch to the folders in `choice`."""
        self.owner = choice.owner
        self.now = Path(choice.path) if choice.path else self.own
        former = (Path(path) for path in choice.former)
        self.all = tuple(dict.fromkeys((self.now, self.own, *former)))

    def folder_of(self, path: Path) -> Path | None:
        """Return the models folder that contains `path`, or None if no models folder contains it."""
        return next((folder for folder in self.all if folder in path.parents), None)

    def why_away(self, path: Path) -> Reason | None:
        """Return why a file was unreachable when its folder was last checked, or None. Does not access the disk."""
        folder = self.folder_of(path)
        return self.unreachable.get(folder) if folder else None

    def folder_for(self, name: str) -> Path:
        """Return the reachable folder that contains a file of this name, or otherwise the folder for new files."""
        if len(self.all) == 1:
            return self.now
        reachable = (folder for folder in self.all if folder not in self.unreachable)
        return next((folder for folder in reachable if (folder / name).exists()), self.now)

    def check_reachable(self, folder: Path) -> Reason | None:
        """Return why a folder is unreachable now, or None if it is reachable. Blocks if the disk hangs."""
        if folder == self.own:
            return None
        owner = _owner_of(folder)
        if self._is_ours(owner):
            return None
        code = "models_folder_away" if owner is None else "models_folder_other"
        return Reason(code, {"folder": str(folder)})

    def ensure(self, folder: Path) -> None:
        """Create the folder if it is the one in the home. Otherwise, raise Unreachable if it cannot be reached.

        Raises OSError if the folder cannot be created.
        """
        if folder == self.own:
            folder.mkdir(parents=True, exist_ok=True)
        elif why := self.check_reachable(folder):
            raise Unreachable(why.code, **why.facts)

    def resolve_choice(self, path: str, root: Path, *, new: bool = False) -> Path:
        """Return the folder to use for a path that the user entered. Raises BadInput or Refused.

        If the folder is empty or already ours, this is the path itself, otherwise a subfolder. Nothing is created.

        root: the home. Only the default folder in it may be chosen. new: whether to accept a missing folder whose
        parent exists. Otherwise, a missing folder is treated as a typing error.
        """
        if not path:
            return self.own
        typed = expand_user(path)
        try:
            folder = typed.resolve()
            if not typed.is_absolute():
                raise BadInput("models_folder_odd", folder=path[:200])
            if folder == self.own.resolve():
                return self.own
            if folder == root.resolve() or root.resolve() in folder.parents:
                raise Refused("models_folder_inside", folder=str(folder))
            return self._in(folder, new)
        except (OSError, ValueError) as error:  # an invalid name, or a failing disk
            why = os_cause(error) if isinstance(error, OSError) else str(error)
            raise BadInput("models_folder_unusable", folder=path[:200], why=why) from error

    def claim(self, folder: Path, owner: str) -> None:
        """Mark a folder as ours by writing a marker into it, which also proves that it is writable. Raises AppError."""
        if folder == self.own:
            return
        try:
            is_new = not folder.exists()
            folder.mkdir(exist_ok=True)
            _mark(folder / MARKER, msgspec.json.format(msgspec.json.encode(Marker(owner, made=is_new))))
        except FileExistsError:
            if _owner_of(folder) != owner:
                raise Refused("models_folder_taken", folder=str(folder)) from None
            self.check_writable(folder)
        except OSError as error:
            raise _unusable(folder, error) from error

    def release(self, folder: Path) -> bool:
        """Remove our marker from a folder that contains nothing else. Return whether it was removed. Raises OSError.

        If we created the folder, it is deleted too.
        """
        if folder == self.own or self.check_reachable(folder) is not None:
            return False
        if any(entry.name != MARKER for entry in folder.iterdir()):
            return False
        marker = _marker_of(folder)
        (folder / MARKER).unlink()
        if marker is None or not marker.made:
            return True
        try:
            folder.rmdir()
        except OSError as error:  # the folder is a mount point
            if error.errno not in (errno.EBUSY, errno.EACCES, errno.EPERM):
                raise
        return True

    def _in(self, folder: Path, new: bool) -> Path:
        if new and not folder.exists() and folder.parent.is_dir():
            return folder  # `claim` will create it
        if folder.exists() and not folder.is_dir():
            raise BadInput("models_folder_file", folder=str(folder))
        if not folder.is_dir():
            missing = folder
            while new and not missing.parent.is_dir():
                missing = missing.parent
            raise BadInput("models_folder_none", folder=str(missing))
        names = (NAME, *(f"{NAME} {number}" for number in range(2, MAX_NAMES)))
        if (owner := _owner_of(folder)) is not None and not self._is_ours(owner):
            raise Refused("models_folder_taken", folder=str(folder))
        for candidate in (folder, *(folder / name for name in names)):
            if not candidate.exists() or (candidate.is_dir() and self._is_free(candidate)):
                return candidate
        raise Refused("models_folder_taken", folder=str(folder))

    def _is_free(self, folder: Path) -> bool:
        owner = _owner_of(folder)
        return self._is_ours(owner) if owner is not None else not any(folder.iterdir())

    def _is_ours(self, owner: str | None) -> bool:
        """Return whether `owner`, read from a marker, is this home.

        None means that there is no marker, and "" that it is unreadable.
        """
        return bool(owner) and owner == self.owner

    @staticmethod
    def check_writable(folder: Path) -> None:
        """Check that one of our folders is writable by creating and deleting a file. Raises AppError."""
        trial = folder / f"{MARKER}.part"
        try:
            trial.write_bytes(b"trial")
            trial.unlink()
        except OSError as error:
            _drop(trial)
            raise _unusable(folder, error) from error


def _owner_of(folder: Path) -> str | None:
    """Return the owner named in the folder's marker, "" if the marker is unreadable, or None if there is no marker."""
    marker = _marker_of(folder)
    return None if marker is None else marker.owner


def _marker_of(folder: Path) -> Marker | None:
    """Return the folder's marker, or None if there is none. The owner in an unreadable marker is ""."""
    try:
        with (folder / MARKER).open("rb") as file:
            return decode(file.read(MAX_MARKER_BYTES), Marker)
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return Marker("") if (folder / MARKER).is_file() else None


def _mark(path: Path, content: bytes) -> None:
    """Create the marker completely or not at all. Raises OSError.

    A partial marker would look like another owner's.
    """
    try:
        with path.open("xb") as file:
            file.write(content)
    except FileExistsError:
        raise
    except OSError:
        _drop(path)
        raise


def _drop(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def _unusable(folder: Path, error: OSError) -> AppError:
    if error.errno in FULL:
        free = shutil.disk_usage(folder).free if folder.is_dir() else 0
        needed = MAX_MARKER_BYTES
        return DoesNotFit("disk_full", folder=str(folder), needed_bytes=needed, free_bytes=free)
    return BadInput("models_folder_unusable", folder=str(folder), why=os_cause(error))
