"""The Chat API for other programs, as its owner manages it: state, keys and upstream servers."""

from __future__ import annotations

import msgspec

from app.core.errors import Reason


class KeyLimits(msgspec.Struct, frozen=True, omit_defaults=True):
    """The limits of one key. None means the limit of all keys."""

    at_once: int | None = None
    tokens_a_minute: int | None = None


class Upstream(msgspec.Struct, frozen=True, kw_only=True):
    """Another OpenAI-compatible server that answers for some models."""

    name: str
    url: str = ""
    models: dict[str, str] = {}  # local model name -> name at the upstream
    on: bool = False
    cap_tokens: int = 0
    spent_tokens: int = 0
    is_counted: bool = True
    last_contact: float | None = None
    own_certificate: bool = False
    has_key: bool | None = None  # None: the key store cannot be opened


class ChatApi(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of the `/api` routes."""

    on: bool = False
    port: int = 0
    may_load: bool = False
    ollama_open: bool = False
    lan: bool = False
    at_once: int = 0  # requests of each key
    tokens_a_minute: int = 0  # of each key; 0: any number
    host_names: list[str] = []
    origins: list[str] = []
    limits: dict[str, KeyLimits] = {}
    upstreams: list[Upstream] = []
    listening: bool = False
    address: str | None = None
    lan_addresses: list[str] = []
    listens_at: int | None = None  # the port
    keys: list[str] = []  # names
    keys_where: str = ""
    keys_where_facts: Reason | None = None
    waiting: int = 0
    running: int = 0


class ApiKey(msgspec.Struct, frozen=True):
    """A key and its name."""

    name: str
    key: str = ""


class ApiKeys(msgspec.Struct, frozen=True):
    """Answer of `GET /api/keys`."""

    keys: list[ApiKey] = []
    where: str = ""
    where_facts: Reason | None = None


class KeyRemoved(msgspec.Struct, frozen=True):
    """Answer of `DELETE /api/keys/{name}`."""

    removed: str


class Certificate(msgspec.Struct, frozen=True):
    """Answer of `GET /api/certificate`: the certificate by which other computers verify the LAN server."""

    certificate: str | None = None


class Upstreams(msgspec.Struct, frozen=True):
    """Answer of the `/api/upstreams` routes."""

    upstreams: list[Upstream] = []


class UpstreamTest(msgspec.Struct, frozen=True):
    """Answer of `POST /api/upstreams/{name}/test`."""

    name: str
    models: list[str] = []
    missing: list[str] = []
