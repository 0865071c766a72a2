"""What the owner chose of the Chat API: on, where, for whom, how much, and which other servers may help."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

USUAL_AT_ONCE = 32  # requests of one key at once (SAFETY.md 7)


class KeyLimits(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of one key; None: as for all keys."""

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
        """How many requests this key may have open."""
        own = self.limits.get(key, KeyLimits()).at_once
        return self.at_once if own is None else own

    def tokens_of(self, key: str) -> int:
        """How many tokens a minute this key may have; 0: any number."""
        own = self.limits.get(key, KeyLimits()).tokens_a_minute
        return self.tokens_a_minute if own is None else own
