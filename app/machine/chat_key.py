"""The key of the encrypted chats: made once by the system's chance, kept where this machine's passphrase is."""

from __future__ import annotations

import asyncio
import base64
import binascii
import secrets

from app.core.errors import Refused
from app.machine.keystore import open_beside
from app.machine.paths import Home

KEY_BYTES = 32
WHAT = "chat key"


class ChatKey:
    """A key that is there is never replaced: what was encrypted with it could not be read any more."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._lock = asyncio.Lock()

    async def where(self) -> str:
        """Completes the sentence "The key is kept …"."""
        return (await open_beside(self._home, WHAT)).where

    async def read(self) -> str | None:
        """In base64; None where there is none. Raises Refused where the keyring is locked."""
        place = await open_beside(self._home, WHAT)
        try:
            kept = await place.read()
        except Refused:
            raise Refused("history_locked") from None
        return kept if kept is not None and _is_key(kept) else None

    async def make(self) -> str:
        """The key; made if there is none. Raises Refused where it cannot be read or kept."""
        async with self._lock:
            place = await open_beside(self._home, WHAT)
            known = await self.read()
            if known is not None:
                return known
            made = base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode("ascii")
            try:
                if await place.read() is not None:  # something that is no key: nobody overwrites it
                    raise Refused("history_key_unkept", where=place.where)
                await place.write(made)
            except Refused:
                raise Refused("history_key_unkept", where=place.where) from None
            if await self.read() != made:
                raise Refused("history_key_unkept", where=place.where)
            return made


def _is_key(text: str) -> bool:
    try:
        return len(base64.b64decode(text, validate=True)) == KEY_BYTES
    except (binascii.Error, ValueError):
        return False
