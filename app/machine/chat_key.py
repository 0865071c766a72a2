"""The key of the encrypted chats: made once at random, kept in the keyring or in a private file."""

from __future__ import annotations

import asyncio
import base64
import binascii
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from app.core.errors import Reason, Refused
from app.machine.keystore import FileStore, KeyringStore, entry_beside, open_keystore
from app.machine.paths import Home

KEY_BYTES = 32
WHAT = "chat key"
FILE = "chat-key"  # not with the identity: a new identity leaves the chats as they are
IN_KEYRING = "in the keyring"  # what stands in the file then


class ChatKey:
    """A key that is there is never replaced: what was encrypted with it could not be read any more."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._file = FileStore(home.root / FILE)
        self._lock = asyncio.Lock()

    async def where(self) -> Reason:
        """Completes the sentence "The key is kept …". Raises Refused."""
        with _named():
            return (await self._place()).where

    async def place(self) -> Reason:
        """The very place, so that a person can find it: a path, or an entry. Raises Refused."""
        with _named():
            return _place_of(await self._place())

    async def read(self) -> str | None:
        """Return the key in base64; None where there is none. Raises Refused where the keyring is locked."""
        with _named():
            kept = await (await self._place()).read()
        return kept if kept is not None and _is_key(kept) else None

    async def make(self) -> str:
        """The key; made if there is none. Raises Refused where it cannot be read or kept."""
        async with self._lock:
            known = await self.read()
            if known is not None:
                return known
            with _named():
                place = await self._place()
                taken = await place.read() is not None  # by what is no key: nobody overwrites it
            made = base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode("ascii")
            if taken or not await self._is_kept(place, made):
                raise Refused("history_key_unkept", place=_place_of(place))
            return made

    async def _is_kept(self, place: FileStore | KeyringStore, key: str) -> bool:
        """Write the key; return whether it is there when it is read again."""
        try:
            await place.write(key)
            if isinstance(place, KeyringStore):
                await self._file.write(IN_KEYRING)
            return await self.read() == key
        except Refused:
            return False

    async def _place(self) -> FileStore | KeyringStore:
        """Return the store that holds the key; before there is one, the store that holds this machine's passphrase."""
        try:
            kept = await self._file.read()
        except Refused:
            raise Refused("history_key_unreadable", path=str(self._file.path)) from None
        if kept is None:
            in_keyring = isinstance(await open_keystore(self._home), KeyringStore)
        else:
            in_keyring = kept == IN_KEYRING
        return entry_beside(self._home, WHAT) if in_keyring else self._file


@contextmanager
def _named() -> Iterator[None]:
    """The keystore's words are about the identity; these are about the chats."""
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
        return len(base64.b64decode(text, validate=True)) == KEY_BYTES
    except (binascii.Error, ValueError):
        return False
