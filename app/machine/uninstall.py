"""The removal of everything that Poolhouse stores for one home: files, secrets and autostart entries (UX.md P6)."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import errno
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from app.core.errors import AppError, Damaged, Reason, Refused
from app.core.reasons import os_cause
from app.machine import autostart
from app.machine.data_format import FILE as DATA_FORMAT_FILE
from app.machine.installation import APP, unpacked_folder
from app.machine.keyring_store import KeyringStore, keyring_entry, open_keystore
from app.machine.models_folders import MARKER, ModelsFolders
from app.machine.paths import Home
from app.machine.prompt_vault import PROMPT_KEY
from app.machine.running_node import HomeLock
from app.machine.secret_stores import CHAT_KEY, CHAT_KEY_FILE
from app.machine.settings import load
from app.machine.versions.version_lock import is_held

VERSIONS = "versions"  # of Poolhouse, installed by updates
NAMES = (  # everything that Poolhouse creates in a home; all else is left alone
    "identity", "household", "models", "stages", "kept", "engines", "added-engines", "graphics", "window", "logs",
    "measuring", "checking", "runtime.json", "restarting", DATA_FORMAT_FILE, "settings.json", "speeds.json",
    "cards.json", "card-memory.json", "engine-speeds.json", "updates.json", "tools.json", "phones.json", VERSIONS,
    CHAT_KEY_FILE,
)  # fmt: skip
_MODEL = re.compile(  # a complete model, a partial one, or one that is being moved
    r"([0-9a-f]{64}(\.gguf)?|[0-9a-f]{16}\.parts?)(\.moving)?|poolhouse-models\.json\.part"
)
ASIDE = (".old-", ".part")  # suffixes of files set aside by `reset` and of interrupted writes
DAMAGED = ".damaged"  # suffix of a .json file that could not be read
WINDOW_LOCK = "window.lock"  # may still be held by a window that erases the home as it closes
SECRETS = (
    "hub token",
    "api keys",
    "upstream keys",
    "tool servers",
    PROMPT_KEY,
    CHAT_KEY,
)  # in addition to the passphrase


@dataclass(slots=True)
class ErasureResult:
    """The result of an erasure: the number of bytes deleted, and a reason for each item that was not deleted."""

    n_bytes: int = 0
    left: list[Reason] = field(default_factory=list)


async def erase(home: Home, entry: autostart.Entry | None = None, *, keep_other_folders: bool = False) -> ErasureResult:
    """Erase a home at the user's request. The result lists everything that could not be deleted.

    keep_other_folders: leaves models in folders outside the home as they are.

    Raises Refused if the node of this home is starting, running or stopping. Also raises Refused if the folder is not
    one of our homes, because a `models` folder in it could belong to anyone.
    """
    await asyncio.to_thread(require_own, home)
    lock = HomeLock(home.lock_file)
    if await asyncio.to_thread(home.root.is_dir) and not lock.acquire():
        raise Refused("erase_while_running", home=str(home.root))
    try:
        return await _erase(home, lock, entry, keep_other_folders)
    finally:
        lock.release()


def require_own(home: Home) -> None:
    """Raise Refused if the folder is not one of our homes."""
    if not (home.is_default or _has_identity(home)):
        raise Refused("erase_no_home", path=str(home.root))


def _has_identity(home: Home) -> bool:
    """Return whether the home contains an identity, or one that `reset` set aside.

    After a reset, a home has no other identity until its node starts.
    """
    aside = home.root.glob(f"{home.identity.name}{ASIDE[0]}*")
    return any((folder / "identity.pem").exists() for folder in (home.identity, *aside))


async def _erase(home: Home, lock: HomeLock, entry: autostart.Entry | None, keep_other_folders: bool) -> ErasureResult:
    erased = ErasureResult()
    try:
        await _forget_secrets(home)
    except AppError:
        erased.left.append(Reason("erase_keyring"))
    if home.is_default:  # otherwise the entry may belong to another home
        for login_item in [entry] if entry else autostart.all_entries():
            try:
                await asyncio.to_thread(autostart.set_enabled, False, home, login_item)
            except Refused as error:
                erased.left.append(error.reason)
    if not keep_other_folders:
        await asyncio.to_thread(_delete_models, home, erased)
    await asyncio.to_thread(_delete, home.root, lock, erased)
    if home.is_default and (folder := unpacked_folder()):
        atexit.register(shutil.rmtree, folder, ignore_errors=True)  # this program runs from there
    if _runs_from(home):
        atexit.register(_delete_versions, home)
    return erased


def _runs_from(home: Home) -> bool:
    """Return whether this program belongs to a version that an update put into this home."""
    return APP.is_relative_to(home.root / VERSIONS)


def _delete_versions(home: Home) -> None:
    """Delete the versions in a home, and the home if nothing else is in it."""
    shutil.rmtree(home.root / VERSIONS, ignore_errors=True)
    with contextlib.suppress(OSError):
        home.root.rmdir()


async def _forget_secrets(home: Home) -> None:
    """Delete the secrets in the keyring. Secrets in files are deleted with the home."""
    passphrase = await open_keystore(home)
    if isinstance(passphrase, KeyringStore):
        for store in (passphrase, *(keyring_entry(home, secret_name) for secret_name in SECRETS)):
            await store.remove()


def _delete_models(home: Home, erased: ErasureResult) -> None:
    """Delete models outside the home. Only files with our naming pattern, in folders with our marker, are deleted."""
    try:
        choice = load(home.settings_file).models
    except (Damaged, OSError):
        return  # the folders are unknown without the settings
    folders = ModelsFolders(home.downloaded, choice)
    for folder in folders.all:
        if folder == folders.own:
            continue
        if folders.check_reachable(folder) is not None:
            erased.left.append(Reason("erase_away", {"folder": str(folder)}))
            continue
        try:
            for path in sorted(folder.iterdir()):
                if _MODEL.fullmatch(path.name):
                    _delete_one(path, erased)
            if not folders.release(folder):
                (folder / MARKER).unlink()  # the other files in it are not ours
        except OSError as error:
            erased.left.append(_left_behind(folder, error))


def _delete(root: Path, lock: HomeLock, erased: ErasureResult) -> None:
    """Delete the home. The lock file is deleted last, so that no node can start in the meantime."""
    for path in sorted(_own_paths(root)):
        if path.name == VERSIONS and not APP.is_relative_to(path) and any(map(is_held, path.glob("*"))):
            busy = OSError(errno.EBUSY, os.strerror(errno.EBUSY))  # such as a node of another home
            erased.left.append(_left_behind(path, busy))
        elif not APP.is_relative_to(path):  # otherwise it is deleted at the end of this program
            _delete_one(path, erased)
    with contextlib.suppress(OSError):
        (root / WINDOW_LOCK).unlink(missing_ok=True)
    try:
        lock.remove()
        if root.is_dir() and not any(root.iterdir()):
            root.rmdir()
    except OSError as error:  # the parent folder belongs to another user, so the empty home remains
        erased.left.append(_left_behind(root, error))


def _delete_one(path: Path, erased: ErasureResult) -> None:
    n_bytes = _size(path)
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    except OSError as error:
        erased.left.append(_left_behind(path, error))
    else:
        erased.n_bytes += n_bytes


def _own_paths(root: Path) -> Iterator[Path]:
    for path in root.iterdir() if root.is_dir() else ():
        aside = any(path.name.startswith(name + end) for name in NAMES for end in ASIDE)
        broken_off = path.name.endswith(".part") and path.name.startswith(NAMES)
        damaged = path.suffix == DAMAGED and path.with_suffix(".json").name in NAMES
        if path.name in NAMES or aside or broken_off or damaged:
            yield path


def _size(path: Path) -> int:
    """Return the total size of all files at or below a path. Symbolic links are not followed."""
    if path.is_symlink() or not path.is_dir():
        return path.lstat().st_size
    return sum((Path(folder) / name).lstat().st_size for folder, _, names in os.walk(path) for name in names)


def _left_behind(path: Path, error: OSError) -> Reason:
    return Reason("erase_left", {"path": str(path), "why": os_cause(error)})
