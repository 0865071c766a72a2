"""The Chat API as its owner sees it: its state, its keys and its upstream servers."""

from __future__ import annotations

import msgspec

from app.core.errors import Reason


class KeyLimits(msgspec.Struct, frozen=True, omit_defaults=True):
    """The limits for one key. None means that the limit for all keys applies."""

    at_once: int | None = None
    tokens_a_minute: int | None = None


# What one measurement of a server may cost. It is told before the measurement.
MOST_MEASURED_TOKENS = 3_000


class StreamsSpeed(msgspec.Struct, frozen=True):
    """The measured speed of several answers at once: tokens a second of all of them together."""

    streams: int
    tok_s: float


class UpstreamSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """The measured speed of a server with one model."""

    at: float  # time of the measurement
    prompt_tokens: int  # length of the prompt to which `ttft_s` belongs
    ttft_s: float
    decode_tok_s: float  # one answer alone
    at_once: list[StreamsSpeed] = []
    spent_tokens: int = 0  # cost of the measurement

    @property
    def best(self) -> StreamsSpeed:
        """Return the number of answers at once that is fastest together."""
        alone = StreamsSpeed(1, self.decode_tok_s)
        return max(self.at_once, key=lambda speed: speed.tok_s, default=alone)


class Upstream(msgspec.Struct, frozen=True, kw_only=True):
    """Another OpenAI-compatible server that can answer requests for some models."""

    name: str
    url: str = ""
    models: dict[str, str] = {}  # local model name -> name at the upstream
    on: bool = False
    cap_tokens: int = 0
    spent_tokens: int = 0
    is_counted: bool = True
    last_contact: float | None = None
    own_certificate: bool = False
    has_key: bool | None = None  # None if the key store cannot be opened
    speeds: dict[str, UpstreamSpeed] = {}  # measured, by local model name
    chats: bool = (
        False  # whether its owner allowed that it answers questions asked in the window and by `poolhouse ask`
    )
    continues: bool = False  # whether it may continue answers that the pool cannot finish


class OtherServer(msgspec.Struct, frozen=True, kw_only=True):
    """A server that is on, as the map and the lists of models show it."""

    name: str
    models: list[str] = []  # local model names
    chats: bool = False
    continues: bool = False
    answering: int = 0  # answers in progress
    last_contact: float | None = None
    speeds: dict[str, UpstreamSpeed] = {}


class ChatApi(msgspec.Struct, frozen=True, kw_only=True):
    """The response of the `/api` routes."""

    on: bool = False
    port: int = 0
    may_load: bool = False
    ollama_open: bool = False
    lan: bool = False
    at_once: int = 0  # limit on concurrent requests of each key
    tokens_a_minute: int = 0  # limit for each key; 0 for none
    host_names: list[str] = []
    origins: list[str] = []
    limits: dict[str, KeyLimits] = {}
    upstreams: list[Upstream] = []
    listening: bool = False
    address: str | None = None
    lan_addresses: list[str] = []
    listens_at: int | None = None  # the port on which it listens
    keys: list[str] = []  # names of keys
    keys_where: str = ""
    keys_where_facts: Reason | None = None
    waiting: int = 0
    running: int = 0


class ApiKey(msgspec.Struct, frozen=True):
    """An API key and its name."""

    name: str
    key: str = ""


class ApiKeys(msgspec.Struct, frozen=True):
    """The response to `GET /api/keys`."""

    keys: list[ApiKey] = []
    where: str = ""
    where_facts: Reason | None = None


class RemoveKeyResponse(msgspec.Struct, frozen=True):
    """The response to `DELETE /api/keys/{name}`."""

    removed: str


class Certificate(msgspec.Struct, frozen=True):
    """The response to `GET /api/certificate`: the certificate that other computers use to verify the LAN server."""

    certificate: str | None = None


class Upstreams(msgspec.Struct, frozen=True):
    """The response of the `/api/upstreams` routes."""

    upstreams: list[Upstream] = []


class UpstreamTest(msgspec.Struct, frozen=True):
    """The response to `POST /api/upstreams/{name}/test`."""

    name: str
    models: list[str] = []
    missing: list[str] = []


class UpstreamMeasured(msgspec.Struct, frozen=True):
    """The response to `POST /api/upstreams/{name}/measure`."""

    name: str
    model: str
    speed: UpstreamSpeed
