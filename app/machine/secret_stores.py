"""All secrets other than the passphrase: the keys for the Chat API, upstream servers and chats, and the hub token."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import json
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from app.core.errors import BadInput, Fact, Reason, Refused
from app.decoding import decode
from app.machine.keyring_store import FileStore, KeyringStore, keyring_entry, open_keystore, open_secret_store
from app.machine.paths import Home


class SecretMap:
    """Named secrets of one kind, which are stored together and cached after the first read.

    secret_name: the kind, such as `api keys`. locked: the code of the error if the keyring is locked.
    """

    def __init__(self, home: Home, secret_name: str, locked: str = "api_keys_locked") -> None:
        self._home, self._secret_name, self._locked = home, secret_name, locked
        self._lock = asyncio.Lock()
        self._opened_store: FileStore | KeyringStore | None = None
        self._secrets: dict[str, str] | None = None

    async def where(self) -> Reason:
        """Return a reason that completes the sentence "The keys are kept …"."""
        return (await self._store()).where

    async def all(self) -> Mapping[str, str]:
        """Return all secrets by name. Raises Refused if the keyring is locked."""
        async with self._lock:
            return dict(await self._known())

    async def change(self, how: Callable[[dict[str, str]], dict[str, str]]) -> None:
        """Replace the secrets with the result of `how`, which receives the current secrets.

        Raises Refused, and any error that `how` raises.
        """
        async with self._lock:
            secrets = how(dict(await self._known()))
            with _locked(self._locked):
                await (await self._store()).write(json.dumps(secrets))  # in ASCII, as the stores require
            self._secrets = secrets

    def now(self) -> Mapping[str, str]:
        """Return the cached secrets. Before the first read, there are none."""
        return self._secrets or {}

    async def _known(self) -> dict[str, str]:
        if self._secrets is None:
            with _locked(self._locked):
                text = await (await self._store()).read()
            try:
                self._secrets = decode(text, dict[str, str]) if text else {}
            except ValueError:  # an empty map would overwrite secrets that could be restored from a backup
                place = await self._place()
                raise Refused("secret_unread", path=place, why=Reason("file_damaged")) from None
        return self._secrets

    async def _place(self) -> Fact:
        store = await self._store()
        if isinstance(store, FileStore):
            return str(store.path)
        return Reason("keyring_entry", {"entry": store.entry})

    async def _store(self) -> FileStore | KeyringStore:
        if self._opened_store is None:
            self._opened_store = await open_secret_store(self._home, self._secret_name)
        return self._opened_store


FIRST = "default"


MAX_KEYS = 16  # some keyrings limit an entry to little more than two thousand characters


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}")


class ApiKeys:
    """The named keys of the Chat API, one for each client program."""

    def __init__(self, home: Home) -> None:
        self._secrets = SecretMap(home, "api keys")

    async def where(self) -> Reason:
        """Return a reason that completes the sentence "The keys are kept …"."""
        return await self._secrets.where()

    async def known(self) -> Mapping[str, str]:
        """Return the existing keys by name. Raises Refused if the keyring is locked."""
        return await self._secrets.all()

    async def all(self) -> Mapping[str, str]:
        """Return all keys by name, after creating one if there are none. Raises Refused."""
        if not await self._secrets.all():
            await self._secrets.change(lambda keys: keys or {FIRST: _new()})
        return await self._secrets.all()

    async def make(self, name: str) -> str:
        """Create a key with this name, replacing any previous one. Raises BadInput or Refused."""
        if not _NAME.fullmatch(name):
            raise BadInput("api_key_name", name=name[:40])
        new = _new()

        def with_key(keys: dict[str, str]) -> dict[str, str]:
            keys = keys or {FIRST: _new()}
            if name not in keys and len(keys) >= MAX_KEYS:
                raise BadInput("api_keys_many", most=MAX_KEYS)
            return keys | {name: new}

        await self._secrets.change(with_key)
        return new

    async def remove(self, name: str) -> None:
        """Revoke a key. Raises BadInput or Refused."""

        def without_key(keys: dict[str, str]) -> dict[str, str]:
            if name not in keys:
                raise BadInput("api_key_unknown", name=name[:40], there=", ".join(sorted(keys)))
            if len(keys) == 1:
                raise BadInput("api_key_last", name=name)
            del keys[name]
            return keys

        await self._secrets.change(without_key)

    def owner(self, presented: str) -> str | None:
        """Return the name of the presented key, or None if no key matches. The comparison takes constant time."""
        owner_name = None
        for name, key in self._secrets.now().items():
            if hmac.compare_digest(presented.encode("utf-8", "replace"), key.encode()):
                owner_name = name
        return owner_name


def _new() -> str:
    return "ph-" + secrets.token_urlsafe(32)


_TOKEN = re.compile(r"[A-Za-z0-9_-]{8,200}")


class TokenStore:
    """The store for the hub token, which is cached after the first read."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._lock = asyncio.Lock()
        self._opened_store: FileStore | KeyringStore | None = None
        self._read = False
        self._token: str | None = None

    async def where(self) -> Reason:
        """Return a reason that completes the sentence "The token is kept …"."""
        async with self._lock:
            return (await self._store()).where

    async def get(self) -> str | None:
        """Return the token, or None if there is none. Raises Refused if the keyring is locked."""
        async with self._lock:
            if not self._read:
                with _locked("token_locked"):
                    self._token = await (await self._store()).read() or None
                self._read = True
            return self._token

    async def set(self, token: str) -> None:
        """Store a token, replacing any previous one. Raises BadInput or Refused."""
        token = token.strip()
        if not _TOKEN.fullmatch(token):
            raise BadInput("token_odd")
        async with self._lock:
            with _locked("token_locked"):
                await (await self._store()).write(token)
            self._token, self._read = token, True

    async def clear(self) -> None:
        """Delete the token. Raises Refused."""
        async with self._lock:
            with _locked("token_locked"):
                await (await self._store()).remove()
            self._token, self._read = None, True

    async def _store(self) -> FileStore | KeyringStore:
        """Return the store for the token, which has the same type as the passphrase's store."""
        if self._opened_store is None:
            self._opened_store = await open_secret_store(self._home, "hub token")
        return self._opened_store


CHAT_KEY_BYTES = 32
CHAT_KEY = "chat key"
CHAT_KEY_FILE = "chat-key"  # not in the identity folder, so that a new identity does not affect the chats
IN_KEYRING = "in the keyring"  # content of the file if the keyring holds the key


class ChatKey:
    """The key that encrypts the stored chats. It is never replaced, because those chats would become unreadable."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._file = FileStore(home.root / CHAT_KEY_FILE)
        self._lock = asyncio.Lock()

    async def where(self) -> Reason:
        """Return a reason that completes the sentence "The key is kept …". Raises Refused."""
        with _about_chats():
            return (await self._place()).where

    async def place(self) -> Reason:
        """Return the exact location of the key to show to the user: a path or a keyring entry. Raises Refused."""
        with _about_chats():
            return _place_of(await self._place())

    async def read(self) -> str | None:
        """Return the key in base64, or None if there is none. Raises Refused if the keyring is locked."""
        with _about_chats():
            key = await (await self._place()).read()
        return key if key is not None and _is_key(key) else None

    async def make(self) -> str:
        """Return the key, creating it if there is none. Raises Refused if it cannot be read or stored."""
        async with self._lock:
            known = await self.read()
            if known is not None:
                return known
            with _about_chats():
                place = await self._place()
                is_taken = await place.read() is not None  # anything that is not a key must not be overwritten
            key = base64.b64encode(secrets.token_bytes(CHAT_KEY_BYTES)).decode("ascii")
            if is_taken or not await self._is_kept(place, key):
                raise Refused("history_key_unkept", place=_place_of(place))
            return key

    async def _is_kept(self, place: FileStore | KeyringStore, key: str) -> bool:
        """Store the key, and return whether it can be read back."""
        try:
            await place.write(key)
            if isinstance(place, KeyringStore):
                await self._file.write(IN_KEYRING)
            return await self.read() == key
        except Refused:
            return False

    async def _place(self) -> FileStore | KeyringStore:
        """Return the store for the key. If there is no key yet, choose the same type of store as for the passphrase."""
        try:
            content = await self._file.read()
        except Refused:
            raise Refused("history_key_unreadable", path=str(self._file.path)) from None
        if content is None:
            in_keyring = isinstance(await open_keystore(self._home), KeyringStore)
        else:
            in_keyring = content == IN_KEYRING
        return keyring_entry(self._home, CHAT_KEY) if in_keyring else self._file


@contextmanager
def _about_chats() -> Iterator[None]:
    """Replace the keystore's errors, which mention the machine's identity, with errors about the chats."""
    try:
        yield
    except Refused as error:
        if error.reason.code == "history_key_unreadable":
            raise
        raise Refused("history_locked") from None


def _place_of(place: FileStore | KeyringStore) -> Reason:
    if isinstance(place, FileStore):
        return Reason("in_file", {"path": str(place.path)})
    return Reason("keyring_entry", {"entry": place.entry})


def _is_key(text: str) -> bool:
    try:
        return len(base64.b64decode(text, validate=True)) == CHAT_KEY_BYTES
    except (binascii.Error, ValueError):
        return False


@contextmanager
def _locked(code: str) -> Iterator[None]:
    """Replace the keystore's error `identity_locked` with Refused(code)."""
    try:
        yield
    except Refused as error:
        if error.reason.code != "identity_locked":
            raise  # an error about a file already names the file
        raise Refused(code) from None
