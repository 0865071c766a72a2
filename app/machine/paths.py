"""The paths of a node's files, and commands that mention their directory, which only its owner can read."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from app.core.errors import BadInput
from app.core.reasons import os_cause

PRIVATE_DIR, PRIVATE_FILE = 0o700, 0o600


def expand_user(path: str | Path) -> Path:
    """Expand `~` and `~name` to home folders. An unknown user name remains part of the file name."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


@dataclass(frozen=True, slots=True)
class Home:
    """The directory of one node (`--home DIR`), and the paths in it."""

    root: Path

    @classmethod
    def at(cls, directory: str | Path | None = None) -> Home:
        """Return the home in `directory`, or the user's default home. Does not access the disk."""
        if directory is None:
            return cls(default_root())
        return cls(expand_user(directory).resolve())

    @property
    def is_default(self) -> bool:
        """Return whether this is the home used without `--home`."""
        return self.root == default_root()

    @property
    def identity(self) -> Path:
        """The folder of the certificate and its encrypted private key."""
        return self.root / "identity"

    @property
    def household(self) -> Path:
        """The folder of the household log and the known addresses."""
        return self.root / "household"

    @property
    def models(self) -> Path:
        """The folder of the model library."""
        return self.root / "models"

    @property
    def downloaded(self) -> Path:
        """The folder for download records, and for downloaded models unless the user chose another folder."""
        return self.models / "files"

    @property
    def pins(self) -> Path:
        """The file with the hashes of models that the catalog has no hash for, pinned at their first download."""
        return self.models / "pins.json"

    @property
    def stages(self) -> Path:
        """The folder for the tensors and stage files of this machine's layers."""
        return self.root / "stages"

    @property
    def kept(self) -> Path:
        """The folder of the computed prompts, encrypted."""
        return self.root / "kept"

    @property
    def engines(self) -> Path:
        """The folder of the installed engine packs."""
        return self.root / "engines"

    @property
    def added_engines(self) -> Path:
        """The folder of PyTorch and MLX, if they are installed."""
        return self.root / "added-engines"

    @property
    def runtime_file(self) -> Path:
        """The file with the port and token of the running node."""
        return self.root / "runtime.json"

    @property
    def lock_file(self) -> Path:
        """The lock file of the running node."""
        return self.root / "node.lock"

    @property
    def logs(self) -> Path:
        """The folder of the log files."""
        return self.root / "logs"

    @property
    def settings_file(self) -> Path:
        """The file of the user's settings."""
        return self.root / "settings.json"

    def create(self) -> Home:
        """Create the directories, with mode 0700 on systems that support it. Raises BadInput."""
        try:
            if self.root.is_file():
                raise BadInput("home_no_folder", path=str(self.root))
            for directory in (self.root, *self._inside()):
                directory.mkdir(mode=PRIVATE_DIR, parents=True, exist_ok=True)
            for directory in (self.root, self.identity, self.household):
                directory.chmod(PRIVATE_DIR)  # an existing directory may have another mode
        except OSError as error:
            raise BadInput("home_unusable", path=str(self.root), why=os_cause(error)) from error
        return self

    @staticmethod
    def write(path: Path, content: bytes) -> None:
        """Replace a file of this home (see `write_atomically`)."""
        write_atomically(path, content)

    def _inside(self) -> tuple[Path, ...]:
        return (self.identity, self.household, self.models, self.stages, self.logs)


def default_root() -> Path:
    """Return the system's directory for this application's data."""
    return Path(platformdirs.user_data_dir("poolhouse", appauthor=False)).resolve()


def phone_page_folder() -> Path:
    """Return the folder with the files of the web chat for phones, which ship with the app."""
    return Path(__file__).resolve().parents[2] / "resources" / "phone"


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file completely or not at all, with mode 0600, and flush it to disk.

    Raises OSError. In this case, the old file is unchanged and no temporary file remains.
    """
    # The name is unique, so that two writers never share a partial file.
    handle, part = tempfile.mkstemp(prefix=path.name, suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:  # mkstemp creates it with mode 0600
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Flush a folder to disk. Otherwise, a power failure could undo a rename in it (POSIX)."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


OURS = str(Path(__file__).resolve().parents[2])


def python_command(*arguments: str) -> list[str]:
    """Return the command line of a Python child process.

    -P prevents it from importing a package `app` in the current directory instead of ours.
    """
    return [sys.executable, "-P", *arguments]


def python_environment(**more: str) -> dict[str, str]:
    """Return the environment of a Python child process: ours plus `more`, with our folder first in PYTHONPATH."""
    search_path = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([OURS, search_path] if search_path else [OURS]), **more}


# Commands that are meant for another machine, and the demo, use other homes.
_COMMAND = re.compile(
    r"`(poolhouse(?![^`]*--home)(?: (?!demo)[^`]+?)?)( --[^`]*)?`"
    r"(?! on (?!this\b)|[^`.]*\b(?:there|on (?:a|an admin|another|the other) machine)\b)"
)


def home_option(root: Path) -> str:
    """Return the option ` --home DIR`, quoted for the shell and valid in any folder."""
    path = str(root)
    return f" --home {subprocess.list2cmdline([path]) if os.name == 'nt' else shlex.quote(path)}"


def with_home(sentence: str, option: str) -> str:
    """Add the option, if any, to each command in the sentence that is meant to run on this machine."""
    if not option:
        return sentence
    return _COMMAND.sub(lambda match: f"`{match[1]}{option}{match[2] or ''}`", sentence)
