"""The places of one node's files: everything is below one directory, readable by its owner only."""

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


def expanded(path: str | Path) -> Path:
    """Expand `~` to this user's home folder and `~name` to another's; an unknown name stays a file name."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


@dataclass(frozen=True, slots=True)
class Home:
    """The directory of one node (`--home DIR`), and the names inside it."""

    root: Path

    @classmethod
    def at(cls, directory: str | Path | None = None) -> Home:
        """The home in `directory`, or this user's default one. Touches no disk."""
        if directory is None:
            return cls(default_root())
        return cls(expanded(directory).resolve())

    @property
    def is_default(self) -> bool:
        """Return whether this is the home a user gets without `--home`."""
        return self.root == default_root()

    @property
    def identity(self) -> Path:
        """The certificate and its encrypted key."""
        return self.root / "identity"

    @property
    def household(self) -> Path:
        """The signed log and the remembered addresses."""
        return self.root / "household"

    @property
    def models(self) -> Path:
        """The shelf."""
        return self.root / "models"

    @property
    def downloaded(self) -> Path:
        """The records of downloads, and their files unless another folder was chosen."""
        return self.models / "files"

    @property
    def pins(self) -> Path:
        """The hashes of first downloads, where the catalogue knows none."""
        return self.models / "pins.json"

    @property
    def stages(self) -> Path:
        """The tensors and stage files cut for this machine."""
        return self.root / "stages"

    @property
    def runtime_file(self) -> Path:
        """The port and token of the running node."""
        return self.root / "runtime.json"

    @property
    def lock_file(self) -> Path:
        """The lock file of the running node."""
        return self.root / "node.lock"

    @property
    def logs(self) -> Path:
        """The log files."""
        return self.root / "logs"

    @property
    def settings_file(self) -> Path:
        """The user's choices."""
        return self.root / "settings.json"

    def create(self) -> Home:
        """Make the directories, 0700 where the system knows modes. Raises BadInput."""
        try:
            if self.root.is_file():
                raise BadInput("home_no_folder", path=str(self.root))
            for directory in (self.root, *self._inside()):
                directory.mkdir(mode=PRIVATE_DIR, parents=True, exist_ok=True)
            for directory in (self.root, self.identity, self.household):
                directory.chmod(PRIVATE_DIR)  # it may be older than this rule
        except OSError as error:
            raise BadInput("home_unusable", path=str(self.root), why=os_cause(error)) from error
        return self

    @staticmethod
    def write(path: Path, content: bytes) -> None:
        """Replace a file of this home; see `write_atomically`."""
        write_atomically(path, content)

    def _inside(self) -> tuple[Path, ...]:
        return (self.identity, self.household, self.models, self.stages, self.logs)


def default_root() -> Path:
    """Return the place where this system wants an application's data to be."""
    return Path(platformdirs.user_data_dir("poolhouse", appauthor=False)).resolve()


def guide_file() -> Path:
    """The built-in model, which comes with the app."""
    return Path(__file__).resolve().parents[2] / "resources" / "guide.gguf"


def write_atomically(path: Path, content: bytes) -> None:
    """Replace `path` by `content`: whole or not at all, 0600, and on the disk when this returns.

    Raises OSError; then the old file is untouched and nothing is left behind.
    """
    # Named apart, so that two writers never share a half-written file.
    handle, part = tempfile.mkstemp(prefix=path.name, suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:  # mkstemp made it 0600
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise
    _sync_directory(path.parent)


def _sync_directory(directory: Path) -> None:
    """A rename is safe from a power cut only when its directory is on the disk (POSIX)."""
    if os.name != "posix":
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


OURS = str(Path(__file__).resolve().parents[2])


def python_command(*arguments: str) -> list[str]:
    """Return our Python with these arguments. -P: a folder called `app` here must not be taken for ours."""
    return [sys.executable, "-P", *arguments]


def python_environment(**more: str) -> dict[str, str]:
    """Return our environment, with this package to be found first."""
    search_path = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([OURS, search_path] if search_path else [OURS]), **more}


# What is to be typed on another machine has that machine's home, and the demo has homes of its own.
_COMMAND = re.compile(
    r"`(poolhouse(?![^`]*--home)(?: (?!demo)[^`]+?)?)( --[^`]*)?`"
    r"(?![^`.]*\b(?:there|on (?:a|an admin|another|the other) machine)\b)"
)


def home_option(root: Path) -> str:
    """Return ` --home DIR`, as it is typed from any folder."""
    whole = str(root)
    return f" --home {subprocess.list2cmdline([whole]) if os.name == 'nt' else shlex.quote(whole)}"


def with_home(sentence: str, option: str) -> str:
    """The sentence with the option in each command that it names for this machine; nothing: as it is."""
    if not option:
        return sentence
    return _COMMAND.sub(lambda match: f"`{match[1]}{option}{match[2] or ''}`", sentence)
