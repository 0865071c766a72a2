"""The keys of the Chat API: made at first use, kept where the passphrase of this machine's key is kept."""

from __future__ import annotations

import asyncio
import hmac
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import msgspec

from app.core.errors import BadInput, Refused
from app.machine.keystore import FileStore, KeyringStore, open_keystore
from app.machine.paths import Home

FIRST = "default"
MOST_KEYS = 16  # a system's keyring takes little more than two thousand letters
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}")


class ApiKeys:
    """Named keys, one for each program. They are read once; then what is here is what counts."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._lock = asyncio.Lock()
        self._found: FileStore | KeyringStore | None = None
        self._keys: dict[str, str] | None = None

    async def where(self) -> str:
        """Completes the sentence "The keys are kept …"."""
        return (await self._store()).where

    async def all(self) -> Mapping[str, str]:
        """Name -> key; the first one is made here. Raises Refused where the keyring is locked."""
        async with self._lock:
            return dict(await self._known())

    async def make(self, name: str) -> str:
        """A new key of this name, in place of the one before. Raises BadInput, Refused."""
        if not _NAME.fullmatch(name):
            raise BadInput("api_key_name", name=name[:40])
        async with self._lock:
            keys = dict(await self._known())
            if name not in keys and len(keys) >= MOST_KEYS:
                raise BadInput("api_keys_many", most=MOST_KEYS)
            await self._keep(keys | {name: _new()})
            return (await self._known())[name]

    async def remove(self, name: str) -> None:
        """Nobody gets in by this key any more. Raises BadInput, Refused."""
        async with self._lock:
            keys = dict(await self._known())
            if name not in keys:
                raise BadInput("api_key_unknown", name=name[:40], there=", ".join(sorted(keys)))
            if len(keys) == 1:
                raise BadInput("api_key_last", name=name)
            del keys[name]
            await self._keep(keys)

    def owner(self, given: str) -> str | None:
        """Whose key this is. Takes as long for a wrong one as for a right one."""
        found = None
        for name, key in (self._keys or {}).items():
            if hmac.compare_digest(given.encode("utf-8", "replace"), key.encode()):
                found = name
        return found

    async def _known(self) -> dict[str, str]:
        if self._keys is None:
            with _locked():
                text = await (await self._store()).read()
            try:
                self._keys = msgspec.json.decode(text, type=dict[str, str]) if text else {}
            except msgspec.MsgspecError:
                self._keys = {}  # nobody knows these keys any more: new ones are made
            if not self._keys:
                await self._keep({FIRST: _new()})
        return self._keys

    async def _keep(self, keys: dict[str, str]) -> None:
        with _locked():
            await (await self._store()).write(msgspec.json.encode(keys).decode())
        self._keys = keys

    async def _store(self) -> FileStore | KeyringStore:
        if self._found is None:
            keys = await open_keystore(self._home)
            if isinstance(keys, KeyringStore):
                self._found = KeyringStore(f"{keys.entry} api keys", seconds=keys.seconds)
            else:
                self._found = FileStore(self._home.identity / "api-keys")
        return self._found


def _new() -> str:
    return "ph-" + secrets.token_urlsafe(32)


@contextmanager
def _locked() -> Iterator[None]:
    """The keystore's words are about the identity; these are about the keys."""
    try:
        yield
    except Refused:
        raise Refused("api_keys_locked") from None
