"""Named secrets of one kind, kept together where the passphrase of this machine's key is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import msgspec

from app.core.errors import Refused
from app.decoding import decode
from app.machine.paths import Home
from app.machine.secrets.keystore import FileStore, KeyringStore, open_beside


class SecretMap:
    """They are read once; then what is here is what counts. `what`: as in `api keys`."""

    def __init__(self, home: Home, what: str) -> None:
        self._home, self._what = home, what
        self._lock = asyncio.Lock()
        self._found: FileStore | KeyringStore | None = None
        self._secrets: dict[str, str] | None = None

    async def where(self) -> str:
        """Completes the sentence "The keys are kept …"."""
        return (await self._store()).where

    async def all(self) -> Mapping[str, str]:
        """Name -> secret. Raises Refused where the keyring is locked."""
        async with self._lock:
            return dict(await self._known())

    async def change(self, how: Callable[[dict[str, str]], dict[str, str]]) -> None:
        """Keep what `how` makes of them. Raises Refused, and what `how` raises."""
        async with self._lock:
            secrets = how(dict(await self._known()))
            with _locked():
                await (await self._store()).write(msgspec.json.encode(secrets).decode())
            self._secrets = secrets

    def now(self) -> Mapping[str, str]:
        """Those that were read already."""
        return self._secrets or {}

    async def _known(self) -> dict[str, str]:
        if self._secrets is None:
            with _locked():
                text = await (await self._store()).read()
            try:
                self._secrets = decode(text, dict[str, str]) if text else {}
            except ValueError:  # a new one would take the place of all that a copy could bring back
                place = await self._place()
                raise Refused("secret_unread", path=place, why="it is damaged") from None
        return self._secrets

    async def _place(self) -> str:
        store = await self._store()
        if isinstance(store, FileStore):
            return str(store.path)
        return f"{store.entry} in the system keyring"

    async def _store(self) -> FileStore | KeyringStore:
        if self._found is None:
            self._found = await open_beside(self._home, self._what)
        return self._found


@contextmanager
def _locked() -> Iterator[None]:
    """The keystore's words are about the identity; these are about the keys."""
    try:
        yield
    except Refused as error:
        if error.reason.code != "identity_locked":
            raise  # a file: that sentence names it
        raise Refused("api_keys_locked") from None
