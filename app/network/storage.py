"""What the network needs of this computer: two directories, whole files, one secret."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from app.core.errors import Refused

Write = Callable[[Path, bytes], None]
"""Replace a file: whole or not at all, private, on the disk when it returns. Raises OSError."""


class Place(Protocol):
    """The home of a node, as far as the network knows it (app/machine/paths.py)."""

    @property
    def identity(self) -> Path: ...
    @property
    def household(self) -> Path: ...
    def create(self) -> object: ...
    def write(self, path: Path, content: bytes) -> None:
        """See `Write`."""


class Keystore(Protocol):
    """Keeps the passphrase of the key (app/machine/secrets/keystore.py)."""

    async def read(self) -> str | None:
        """The secret, or None where there is none. Raises Refused("identity_locked")."""

    async def write(self, secret: str) -> None:
        """Keep `secret` in place of what was there. Raises Refused."""

    def lost(self) -> Refused:
        """What a person is told when the secret is gone, or is not the right one."""
