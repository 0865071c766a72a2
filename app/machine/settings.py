"""What the owner of this computer has chosen. Typed, saved whole or not at all."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from pathlib import Path

import msgspec

from app.core.errors import Damaged, DoesNotFit
from app.core.lending.policy import Rules
from app.decoding import decode
from app.machine.api_settings import ApiChoice
from app.machine.models_settings import UNCHOSEN, ModelsChoice
from app.machine.paths import write_atomically

ANIMALS = ("otter", "heron", "badger", "finch", "hare", "newt", "robin", "vole", "wren", "lynx")


class Pause(msgspec.Struct, frozen=True):
    """Lending is paused by hand; it outlives a restart of the node."""

    until: float | None = None  # seconds since 1970; None: until somebody resumes it
    stopped: bool = False  # it was stopped at once


class Settings(msgspec.Struct, frozen=True, omit_defaults=True):
    """One node's settings. The name is never the login or host name: those are private."""

    name: str
    lending: Rules = Rules()
    pause: Pause | None = None
    given_name: str = ""  # what a start was told last: only another one counts as a new choice
    renamed: str = ""  # the household's last renaming of this machine that was taken over
    port: int = 0
    discovery: bool = True  # find machines nearby, and be found
    interfaces: tuple[str, ...] = ()  # by name: VPNs and the like, which are left out unasked
    api: ApiChoice = ApiChoice()
    models: ModelsChoice = UNCHOSEN
    look_for_updates: bool = False  # once a day; else only when a person asks
    share_models: bool = False  # hosts of the household may copy what was downloaded here


class Choices:
    """The settings in force, and those of the next start. They differ by what this start was told."""

    def __init__(self, path: Path, now: Settings) -> None:
        self._path, self.now = path, now
        self._saving = asyncio.Lock()

    async def change(self, how: Callable[[Settings], Settings]) -> None:
        """Change both the same way. Raises Damaged, or DoesNotFit when the disk does not take it."""
        async with self._saving:
            await asyncio.to_thread(self._save, how)
            self.now = how(self.now)

    def _save(self, how: Callable[[Settings], Settings]) -> None:
        try:
            save(self._path, how(load(self._path)))
        except OSError as error:
            why = error.strerror or str(error)
            raise DoesNotFit("settings_unsaved", path=str(self._path), why=why) from error


def load(path: Path) -> Settings:
    """The saved settings, or new ones with a friendly name. Raises Damaged for an unreadable file."""
    try:
        return decode(path.read_bytes(), Settings)
    except FileNotFoundError:
        return Settings(f"{secrets.choice(ANIMALS)}-{secrets.randbelow(900) + 100}")
    except ValueError as error:
        raise Damaged("settings_damaged", path=str(path), why=str(error)) from None


def save(path: Path, settings: Settings) -> None:
    write_atomically(path, msgspec.json.format(msgspec.json.encode(settings), indent=2))
