"""What the owner of this computer has chosen. Typed, saved whole or not at all."""

from __future__ import annotations

import secrets
from pathlib import Path

import msgspec

from app.core.errors import Damaged
from app.machine.paths import write_atomically

ANIMALS = ("otter", "heron", "badger", "finch", "hare", "newt", "robin", "vole", "wren", "lynx")


class Settings(msgspec.Struct, frozen=True, omit_defaults=True):
    """One node's settings. The name is never the login or host name: those are private."""

    name: str
    lend_bytes: int | None = None  # None: half of the memory that is free at start
    port: int = 0


def load(path: Path) -> Settings:
    """The saved settings, or new ones with a friendly name. Raises Damaged for an unreadable file."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Settings)
    except FileNotFoundError:
        return Settings(f"{secrets.choice(ANIMALS)}-{secrets.randbelow(900) + 100}")
    except msgspec.MsgspecError as error:
        raise Damaged("settings_damaged", path=str(path), why=str(error)) from None


def save(path: Path, settings: Settings) -> None:
    write_atomically(path, msgspec.json.format(msgspec.json.encode(settings), indent=2))
