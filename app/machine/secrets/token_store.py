"""The access token for the hub: kept where the key's passphrase is kept, and given only to the hub."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager

from app.core.errors import BadInput, Refused
from app.machine.paths import Home
from app.machine.secrets.keystore import FileStore, KeyringStore, open_beside

_TOKEN = re.compile(r"[A-Za-z0-9_-]{8,200}")


class TokenStore:
    """One token, or none. It is read from the keyring once."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._lock = asyncio.Lock()
        self._found: FileStore | KeyringStore | None = None
        self._read = False
        self._token: str | None = None

    async def where(self) -> str:
        """Completes the sentence "The token is kept …"."""
        async with self._lock:
            return (await self._store()).where

    async def get(self) -> str | None:
        """The token. Raises Refused where the keyring is locked."""
        async with self._lock:
            if not self._read:
                with _locked():
                    self._token = await (await self._store()).read() or None
                self._read = True
            return self._token

    async def set(self, token: str) -> None:
        """Keep a token in place of the one before. Raises BadInput, Refused."""
        token = token.strip()
        if not _TOKEN.fullmatch(token):
            raise BadInput("token_odd")
        async with self._lock:
            with _locked():
                await (await self._store()).write(token)
            self._token, self._read = token, True

    async def clear(self) -> None:
        """Forget the token. Raises Refused."""
        async with self._lock:
            with _locked():
                await (await self._store()).remove()
            self._token, self._read = None, True

    async def _store(self) -> FileStore | KeyringStore:
        """Beside the passphrase of this home's key."""
        if self._found is None:
            self._found = await open_beside(self._home, "hub token")
        return self._found


@contextmanager
def _locked() -> Iterator[None]:
    """The keystore's words are about the identity; these are about the token."""
    try:
        yield
    except Refused as error:
        if error.reason.code != "identity_locked":
            raise  # a file: that sentence names it
        raise Refused("token_locked") from None
