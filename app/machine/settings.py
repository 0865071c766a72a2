"""The owner's settings on this computer, and functions to load and save them."""

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
from app.core.machine_names import N_GENERATED, generated_name
from app.core.reasons import os_cause
from app.decoding import decode
from app.machine.paths import write_atomically

MAX_CONCURRENT_REQUESTS = 32  # of one key (SAFETY.md 7)


class KeyLimits(msgspec.Struct, frozen=True, omit_defaults=True):
    """The limits for one API key. None means that the limit for all keys applies."""

    at_once: Annotated[int, Meta(ge=1, le=MAX_CONCURRENT_REQUESTS)] | None = None
    tokens_a_minute: Annotated[int, Meta(ge=0, le=1 << 30)] | None = None  # 0 means no limit


class Upstream(msgspec.Struct, frozen=True, omit_defaults=True):
    """Another OpenAI-compatible server to which whole requests may be sent. Its API key is in the keystore."""

    url: str  # up to and including /v1
    models: dict[str, str]  # local model name -> the server's name for it
    cap_tokens: int  # after this many tokens in total, including prompts, nothing more is sent
    on: bool = False
    chats: bool = False  # it may answer the owner's own questions, which then leave the household
    continues: bool = False  # it may continue answers that the pool cannot finish, which are then sent there
    certificate: str = ""  # the server's own certificate as PEM, if no public authority signed it


class ApiSettings(msgspec.Struct, frozen=True, omit_defaults=True):
    """The settings of the Chat API that other programs use."""

    on: bool = False
    port: int = 47114
    may_load: bool = False  # client programs may change the loaded model
    ollama_open: bool = False  # Ollama's routes need no key, since most of its clients cannot send one
    lan: bool = False  # also serves other computers on the network, over TLS
    at_once: Annotated[int, Meta(ge=1, le=MAX_CONCURRENT_REQUESTS)] = MAX_CONCURRENT_REQUESTS  # for each key
    tokens_a_minute: Annotated[int, Meta(ge=0, le=1 << 30)] = 0  # for each key; 0 means no limit
    host_names: tuple[str, ...] = ()  # additional host names by which client programs may address this computer
    origins: tuple[str, ...] = ()  # web pages and apps that may send requests from a browser
    limits: dict[str, KeyLimits] = {}  # limits of individual keys, by name
    upstreams: dict[str, Upstream] = {}

    def at_once_of(self, key: str) -> int:
        """Return how many concurrent requests are allowed for this key."""
        limit = self.limits.get(key, KeyLimits()).at_once
        return self.at_once if limit is None else limit

    def tokens_of(self, key: str) -> int:
        """Return how many tokens per minute are allowed for this key. 0 means no limit."""
        limit = self.limits.get(key, KeyLimits()).tokens_a_minute
        return self.tokens_a_minute if limit is None else limit


class ModelsChoice(msgspec.Struct, frozen=True, omit_defaults=True):
    """The folders that the user chose for downloaded models. The default folder in the home is not included."""

    path: str = ""  # the chosen folder; "" means the one in the home
    former: tuple[str, ...] = ()  # previously chosen folders that may still contain models
    owner: str = ""  # the owner ID in the marker of each of our folders
    moving: Literal["", "parts", "all"] = ""  # a move of models in progress, which continues after a restart


UNCHOSEN = ModelsChoice()

LEAST_CARD_PERCENT = 10  # less would hold hardly a layer on most cards


class GraphicsSettings(msgspec.Struct, frozen=True, omit_defaults=True):
    """The owner's limits for the graphics cards. The lending rules determine what pauses lending.

    off: the keys of the cards that must not be used. memory_percent: the share of each card's memory that all models
    together may use. card_only: whether main memory is never used together with a card, and the processor never
    computes layers of other machines. Without a usable card, nothing is then lent, but this computer's own models may
    still use the processor.
    """

    off: tuple[str, ...] = ()
    memory_percent: Annotated[int, Meta(ge=LEAST_CARD_PERCENT, le=100)] = 100
    card_only: bool = False


class EngineSettings(msgspec.Struct, frozen=True, omit_defaults=True):
    """The engine that the owner prefers to llama.cpp, and the folder that it is imported from."""

    name: Literal["", "pytorch", "apple"] = ""  # the last one is MLX; "" means llama.cpp
    folder: str = ""
    if_faster: bool = False  # only for families that it computes faster, measured with the model's own layers


class Pause(msgspec.Struct, frozen=True):
    """A manual pause of lending. It remains in effect after a restart of the node."""

    until: float | None = None  # Unix time; None means until the user resumes lending
    stopped: bool = False  # all lent memory was reclaimed immediately


class Settings(msgspec.Struct, frozen=True, omit_defaults=True):
    """The settings of one node.

    The initial name is generated, because the user's login name and the computer's host name are private. The window
    suggests the host name, which the user sees and confirms.
    """

    name: str
    lending: Rules = Rules()
    pause: Pause | None = None
    given_name: str = ""  # the name given to the last start, so that only a different one counts as a new choice
    renamed: str = ""  # the last renaming of this machine by the household that it adopted
    port: int = 0
    discovery: bool = True  # find machines nearby, and let them find this one
    interfaces: tuple[str, ...] = ()  # names of interfaces to use although they are not used by default, such as VPNs
    api: ApiSettings = ApiSettings()
    models: ModelsChoice = UNCHOSEN
    look_for_updates: bool = False  # once a day; otherwise only at the user's request
    graphics: GraphicsSettings = GraphicsSettings()
    engine: EngineSettings = EngineSettings()
    share_models: bool = False  # hosts of the household may copy the models downloaded here
    answer_household: bool = True  # other members may ask the models that are loaded here
    ask_household: bool = True  # offer the models that other hosts have loaded
    told_of_hosts: bool = False  # the user was told that questions to such models go to the hosts
    phones: bool = False  # phones and tablets with a token of their own may chat here over the local network
    keep_prompts: bool = True  # computed prompts of the household's own chats are kept on disk, encrypted
    prompt_bytes: int | None = None  # the most that they may have; None means a part of the free disk
    exact: bool = False  # loads from here use the same processor instructions on all computers, unless told otherwise


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """The options with which a node was started, from the command line or the app. None means the saved setting."""

    home: Path | None = None  # None means this user's default home
    name: str | None = None
    port: int | None = None  # of the listener for members; 0 means any free port
    lend_bytes: int | None = None
    limit_bytes: int | None = None  # for all models on this computer, the owner's and those of other machines
    bind: str = "0.0.0.0"  # noqa: S104  the household reaches it from other machines
    discovery: bool = True
    interfaces: tuple[str, ...] = ()  # used in addition to those used by default
    threads: int | None = None  # of each worker; None means the fastest number


class SettingsStore:
    """The current settings, and the settings saved for the next start.

    They differ if options were given at this start.
    """

    def __init__(self, path: Path, now: Settings) -> None:
        self._path, self.now = path, now
        self._saving = asyncio.Lock()

    async def change(self, how: Callable[[Settings], Settings]) -> None:
        """Change both the current and the saved settings. Raises Damaged, or DoesNotFit if saving fails."""
        async with self._saving:
            await asyncio.to_thread(self._save, how)
            self.now = how(self.now)

    def _save(self, how: Callable[[Settings], Settings]) -> None:
        try:
            save(self._path, how(load(self._path)))
        except OSError as error:
            raise DoesNotFit("settings_unsaved", path=str(self._path), why=os_cause(error)) from error


def load(path: Path) -> Settings:
    """Return the saved settings, or new settings with a generated name. Raises Damaged if the file is invalid."""
    try:
        return decode(path.read_bytes(), Settings)
    except FileNotFoundError:
        return Settings(generated_name(secrets.randbelow(N_GENERATED)))
    except ValueError as error:
        raise Damaged("settings_damaged", path=str(path), why=str(error)) from None


def save(path: Path, settings: Settings) -> None:
    write_atomically(path, msgspec.json.format(msgspec.json.encode(settings), indent=2))
