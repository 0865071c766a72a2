"""The choices of this computer's owner. Typed; saved whole or not at all."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from app.core.errors import Damaged, DoesNotFit
from app.core.lending.policy import Rules
from app.core.reasons import os_cause
from app.decoding import decode
from app.machine.paths import write_atomically

USUAL_AT_ONCE = 32  # requests of one key at once (SAFETY.md 7)


class KeyLimits(msgspec.Struct, frozen=True, omit_defaults=True):
    """The limits of one key; None: as for all keys."""

    at_once: Annotated[int, Meta(ge=1, le=USUAL_AT_ONCE)] | None = None
    tokens_a_minute: Annotated[int, Meta(ge=0, le=1 << 30)] | None = None  # 0: any number


class Upstream(msgspec.Struct, frozen=True, omit_defaults=True):
    """Another OpenAI-compatible server that may be sent whole requests. Its key is in the keyring."""

    url: str  # up to and with /v1
    models: dict[str, str]  # name here -> name there
    cap_tokens: int  # no more than so many in all, prompts included; then nothing is sent there
    on: bool = False
    certificate: str = ""  # PEM: the server's own, where no authority vouches for it


class ApiChoice(msgspec.Struct, frozen=True, omit_defaults=True):
    """The Chat API, which other programs use."""

    on: bool = False
    port: int = 47114
    may_load: bool = False  # programs may change the model that is loaded
    ollama_open: bool = False  # Ollama's part opens without a key: most of its clients can send none
    lan: bool = False  # other computers of the network too, over TLS
    at_once: Annotated[int, Meta(ge=1, le=USUAL_AT_ONCE)] = USUAL_AT_ONCE  # of each key
    tokens_a_minute: Annotated[int, Meta(ge=0, le=1 << 30)] = 0  # of each key; 0: any number
    host_names: tuple[str, ...] = ()  # by which programs may call this computer, beside its own
    origins: tuple[str, ...] = ()  # of web pages and apps that may ask from a browser
    limits: dict[str, KeyLimits] = {}  # of single keys
    upstreams: dict[str, Upstream] = {}

    def at_once_of(self, key: str) -> int:
        """Return how many requests this key may have open."""
        own = self.limits.get(key, KeyLimits()).at_once
        return self.at_once if own is None else own

    def tokens_of(self, key: str) -> int:
        """Return how many tokens a minute this key may have; 0: any number."""
        own = self.limits.get(key, KeyLimits()).tokens_a_minute
        return self.tokens_a_minute if own is None else own


class ModelsChoice(msgspec.Struct, frozen=True, omit_defaults=True):
    """The chosen folder of downloaded models. The folder in the home needs no entry."""

    path: str = ""  # of the chosen folder; "": the one in the home
    former: tuple[str, ...] = ()  # folders chosen before that may still hold models
    owner: str = ""  # what the marker in each of our folders says
    moving: Literal["", "parts", "all"] = ""  # a move that goes on after a restart


UNCHOSEN = ModelsChoice()


ANIMALS = ("otter", "heron", "badger", "finch", "hare", "newt", "robin", "vole", "wren", "lynx")


class Pause(msgspec.Struct, frozen=True):
    """A pause of lending by hand; it outlives a restart of the node."""

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


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """The options of one start, from the command line or the app. None means the saved setting."""

    home: Path | None = None  # None: this user's default home
    name: str | None = None
    port: int | None = None  # of the household's listener; 0: any free one
    lend_bytes: int | None = None
    limit_bytes: int | None = None  # of all models here, others' and one's own
    bind: str = "0.0.0.0"  # noqa: S104  the household reaches it from other machines
    discovery: bool = True
    interfaces: tuple[str, ...] = ()  # to use besides those that join a household anyway
    threads: int | None = None  # of each worker; None: as many as are found to be best


class Choices:
    """The settings in force, and those of the next start. They differ by what this start was told."""

    def __init__(self, path: Path, now: Settings) -> None:
        self._path, self.now = path, now
        self._saving = asyncio.Lock()

    async def change(self, how: Callable[[Settings], Settings]) -> None:
        """Change the settings in force and the saved ones in the same way. Raises Damaged, or DoesNotFit when the disk
        does not take it."""
        async with self._saving:
            await asyncio.to_thread(self._save, how)
            self.now = how(self.now)

    def _save(self, how: Callable[[Settings], Settings]) -> None:
        try:
            save(self._path, how(load(self._path)))
        except OSError as error:
            raise DoesNotFit("settings_unsaved", path=str(self._path), why=os_cause(error)) from error


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
