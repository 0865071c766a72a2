"""Stores for secrets, in the system's keyring or in a private file, and the choice between the two."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import hashlib
import os
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar, cast

from app.core.errors import BadInput, Reason, Refused
from app.core.reasons import os_cause
from app.machine.paths import Home, write_atomically

# Windows encrypts the file for its user. Not yet tested on Windows.

CRYPTPROTECT_UI_FORBIDDEN = 0x1  # wincrypt.h: a service must never open a dialog


class _Blob(ctypes.Structure):
    _fields_ = (("size", ctypes.c_uint32), ("data", ctypes.c_void_p))


if sys.platform == "win32":

    def _call(function: str, content: bytes) -> bytes:
        buffer = ctypes.create_string_buffer(content, len(content))
        source = _Blob(len(content), ctypes.cast(buffer, ctypes.c_void_p))
        protected = _Blob()
        call = getattr(ctypes.WinDLL("crypt32", use_last_error=True), function)
        flags = CRYPTPROTECT_UI_FORBIDDEN
        if not call(ctypes.byref(source), None, None, None, None, flags, ctypes.byref(protected)):
            raise ctypes.WinError(ctypes.get_last_error())
        try:
            return ctypes.string_at(protected.data or 0, protected.size)
        finally:
            free = ctypes.WinDLL("kernel32").LocalFree
            free.argtypes = [ctypes.c_void_p]
            free(protected.data)

else:

    def _call(function: str, content: bytes) -> bytes:
        del function
        return content


def protect(plain: bytes) -> bytes:
    """Encrypt bytes for this Windows user. Other systems return them unchanged."""
    return _call("CryptProtectData", plain)


def unprotect(protected: bytes) -> bytes:
    """Decrypt bytes that `protect` encrypted. Raises OSError if they were encrypted for another user."""
    return _call("CryptUnprotectData", protected)


T = TypeVar("T")

SERVICE = "Poolhouse"
KEYRING_SECONDS = 10.0  # an unlock dialog blocks the call until the user answers, at most for this long
SECURE_BACKENDS = (  # all other backends, such as keyrings.alt, may store secrets unencrypted
    "keyring.backends.SecretService",
    "keyring.backends.libsecret",
    "keyring.backends.kwallet",
    "keyring.backends.macOS",
    "keyring.backends.Windows",
)


class Keystore(Protocol):
    """A store for a single secret. `where` completes the sentence "The key is kept …"."""

    @property
    def where(self) -> Reason: ...
    async def read(self) -> str | None:
        """Return the secret, or None if there is none. Raises Refused."""

    async def write(self, secret: str) -> None:
        """Store the secret, replacing any previous one. Raises Refused."""

    def lost(self) -> Refused:
        """Return the error to raise if the secret is missing or wrong."""


@dataclass(frozen=True, slots=True)
class FileStore:
    """A secret in a file that only its owner can read. On Windows, the file is also encrypted for that user."""

    path: Path
    where: Reason = field(default_factory=lambda: Reason("kept_in_file"))

    async def read(self) -> str | None:
        try:
            content = await asyncio.to_thread(self.path.read_bytes)
            return unprotect(content).decode("ascii")
        except FileNotFoundError:
            return None
        except UnicodeDecodeError as error:
            raise Refused("secret_unread", path=str(self.path), why=Reason("file_damaged")) from error
        except OSError as error:
            raise Refused("secret_unread", path=str(self.path), why=os_cause(error)) from error

    def lost(self) -> Refused:
        return Refused("passphrase_lost", path=str(self.path))

    async def write(self, secret: str) -> None:
        content = protect(secret.encode("ascii"))
        try:
            await asyncio.to_thread(write_atomically, self.path, content)
        except OSError as error:
            raise Refused("secret_unwritten", path=str(self.path), why=os_cause(error)) from error

    async def remove(self) -> None:
        """Delete the secret. Raises Refused("secret_unwritten")."""
        try:
            await asyncio.to_thread(self.path.unlink, missing_ok=True)
        except OSError as error:
            raise Refused("secret_unwritten", path=str(self.path), why=os_cause(error)) from error


@dataclass(frozen=True, slots=True)
class KeyringStore:
    """A secret in an entry of the system's keyring."""

    entry: str
    where: Reason = field(default_factory=lambda: Reason("kept_in_keyring"))
    seconds: float = KEYRING_SECONDS

    async def read(self) -> str | None:
        import keyring

        return await self._ask(lambda: keyring.get_password(SERVICE, self.entry))

    def lost(self) -> Refused:
        return Refused("identity_locked")

    async def write(self, secret: str) -> None:
        import keyring

        await self._ask(lambda: keyring.set_password(SERVICE, self.entry, secret))

    async def remove(self) -> None:
        """Delete the secret. Raises Refused("identity_locked")."""
        import keyring
        from keyring.errors import PasswordDeleteError

        def delete() -> None:
            with contextlib.suppress(PasswordDeleteError):  # there was no secret
                keyring.delete_password(SERVICE, self.entry)

        await self._ask(delete)

    async def _ask(self, call: Callable[[], T]) -> T:
        from keyring.errors import KeyringError

        try:
            return await in_daemon_thread(call, self.seconds)
        except (KeyringError, TimeoutError, OSError, RuntimeError) as error:
            raise Refused("identity_locked") from error


async def in_daemon_thread(call: Callable[[], T], seconds: float) -> T:
    """Run a call that may block forever, and return its result. Raises TimeoutError, or the call's own error.

    The call runs in a daemon thread, because `asyncio.to_thread` would keep the process alive while a dialog is open.
    """
    loop = asyncio.get_running_loop()
    result: asyncio.Future[T] = loop.create_future()

    def settle(value: T | None, error: Exception | None) -> None:
        if result.done():
            return
        if error is not None:
            result.set_exception(error)
        else:
            result.set_result(cast("T", value))

    def work() -> None:
        value, failure = None, None
        try:
            value = call()
        except Exception as error:  # noqa: BLE001  top of a thread: handed to the caller whole
            failure = error
        with contextlib.suppress(RuntimeError):  # the event loop was closed while a dialog was open
            loop.call_soon_threadsafe(settle, value, failure)

    threading.Thread(target=work, name="keyring", daemon=True).start()
    async with asyncio.timeout(seconds):
        return await result


async def open_keystore(home: Home, environ: Mapping[str, str] = os.environ) -> Keystore:
    """Return the store for the passphrase of `home`: the one already in use, otherwise the best available one.

    POOLHOUSE_KEYSTORE=keyring|file overrides the choice. Raises BadInput for any other value.
    """
    file = FileStore(home.identity / "passphrase")
    ring = KeyringStore(_entry(home))
    match environ.get("POOLHOUSE_KEYSTORE", ""):
        case "file":
            return file
        case "keyring":
            return ring
        case "":
            pass
        case other:
            raise BadInput("keystore_unknown", value=other)
    if await asyncio.to_thread(file.path.exists):
        return file
    if (home.identity / "identity.pem").exists():
        return ring  # the identity was created with the keyring, so a keyring that is missing now is locked
    try:
        secure = await in_daemon_thread(_has_secure_keyring, KEYRING_SECONDS)
    except (TimeoutError, OSError, RuntimeError):
        secure = False
    return ring if secure else file


async def open_secret_store(home: Home, secret_name: str) -> FileStore | KeyringStore:
    """Return the store for another secret of this home, such as `api keys`.

    It is of the same kind as the passphrase's store.
    """
    if isinstance(await open_keystore(home), KeyringStore):
        return keyring_entry(home, secret_name)
    return FileStore(home.identity / secret_name.replace(" ", "-"))


def keyring_entry(home: Home, secret_name: str) -> KeyringStore:
    """Return the keyring entry for another secret of this home."""
    return KeyringStore(f"{_entry(home)} {secret_name}")


def _entry(home: Home) -> str:
    """Return the name of a home's keyring entry. Each home selected with --home has its own entry."""
    if home.is_default:
        return "identity"
    return "identity " + hashlib.sha256(str(home.root).encode()).hexdigest()[:16]


def _has_secure_keyring() -> bool:
    """Return whether the system's keyring encrypts its entries. If several keyrings are chained, all of them must."""
    import keyring

    active = keyring.get_keyring()
    chain = getattr(active, "backends", None) or (active,)
    return all(type(backend).__module__.startswith(SECURE_BACKENDS) for backend in chain)
