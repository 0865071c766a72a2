"""The keys of the Chat API, kept where the passphrase of this machine's key is kept. It opens with one at least."""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Mapping

from app.core.errors import BadInput
from app.machine.paths import Home
from app.machine.secrets.secret_map import SecretMap

FIRST = "default"
MOST_KEYS = 16  # a system's keyring takes little more than two thousand letters
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}")


class ApiKeys:
    """Named keys, one for each program."""

    def __init__(self, home: Home) -> None:
        self._kept = SecretMap(home, "api keys")

    async def where(self) -> str:
        """Completes the sentence "The keys are kept …"."""
        return await self._kept.where()

    async def known(self) -> Mapping[str, str]:
        """Name -> key, of those that there are. Raises Refused where the keyring is locked."""
        return await self._kept.all()

    async def all(self) -> Mapping[str, str]:
        """As `known`; where there is none, the first one is made. Raises Refused."""
        if not await self._kept.all():
            await self._kept.change(lambda keys: keys or {FIRST: _new()})
        return await self._kept.all()

    async def make(self, name: str) -> str:
        """A new key of this name, in place of the one before. Raises BadInput, Refused."""
        if not _NAME.fullmatch(name):
            raise BadInput("api_key_name", name=name[:40])
        new = _new()

        def with_it(keys: dict[str, str]) -> dict[str, str]:
            keys = keys or {FIRST: _new()}
            if name not in keys and len(keys) >= MOST_KEYS:
                raise BadInput("api_keys_many", most=MOST_KEYS)
            return keys | {name: new}

        await self._kept.change(with_it)
        return new

    async def remove(self, name: str) -> None:
        """Nobody gets in by this key any more. Raises BadInput, Refused."""

        def without_it(keys: dict[str, str]) -> dict[str, str]:
            if name not in keys:
                raise BadInput("api_key_unknown", name=name[:40], there=", ".join(sorted(keys)))
            if len(keys) == 1:
                raise BadInput("api_key_last", name=name)
            del keys[name]
            return keys

        await self._kept.change(without_it)

    def owner(self, given: str) -> str | None:
        """Whose key this is. Takes as long for a wrong one as for a right one."""
        found = None
        for name, key in self._kept.now().items():
            if hmac.compare_digest(given.encode("utf-8", "replace"), key.encode()):
                found = name
        return found


def _new() -> str:
    return "ph-" + secrets.token_urlsafe(32)
