"""The node's answers as typed values. Unknown fields are passed over, missing ones have a meaning."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from app.core.errors import AppError

T = TypeVar("T")
Run = tuple[int, int]  # first layer, and the one after the last


class Machine(msgspec.Struct, frozen=True):
    """One machine of the household."""

    id: str
    name: str
    this: bool = False
    online: bool = False
    state: str = "offline"
    reason: str | None = None
    device: str | None = None
    total_bytes: int | None = None
    lent_bytes: int | None = None
    used_bytes: int | None = None
    roles: list[str] = []
    address: str | None = None
    layers: list[Run] = []


class Stage(msgspec.Struct, frozen=True):
    """A run of layers on one machine."""

    machine: str
    first: int
    last: int
    id: str = ""
    role: str = ""
    weight_bytes: int = 0
    kv_bytes: int = 0
    work_bytes: int = 0

    @property
    def key(self) -> str:
        """What tells machines apart: names may repeat."""
        return self.id or self.machine


class Need(msgspec.Struct, frozen=True):
    """What a placement takes from one machine."""

    machine: str
    id: str = ""
    needs_bytes: int = 0
    lends_bytes: int = 0

    @property
    def key(self) -> str:
        return self.id or self.machine


class Plan(msgspec.Struct, frozen=True):
    """A placement, and for a loaded model its state."""

    model: str
    shape: str = ""
    context: int | None = None
    users: int | None = None
    stages: list[Stage] = []
    machines: list[Need] = []
    reasons: list[str] = []
    fits: bool = True
    state: str = ""
    reason: str | None = None
    number: str | None = None
    loaded_seconds: float | None = None
    fetched_bytes: int | None = None


class Link(msgspec.Struct, frozen=True):
    """What is known of the path to a machine."""

    round_trip_seconds: float | None = None
    address: str | None = None


class Lending(msgspec.Struct, frozen=True):
    """What this machine lends."""

    state: str = "off"
    reason: str | None = None


class Node(msgspec.Struct, frozen=True):
    """The node that answered."""

    id: str
    name: str
    version: str = ""
    peer_address: str | None = None
    lending: Lending = Lending()


class Pairing(msgspec.Struct, frozen=True):
    """An open pairing window."""

    address: str = ""
    seconds_left: float = 0
    tries_left: int = 0


class Answers(msgspec.Struct, frozen=True):
    """How many answers are under way."""

    running: int = 0
    waiting: int = 0


class Snapshot(msgspec.Struct, frozen=True):
    """All a node knows."""

    node: Node
    machines: dict[str, Machine] = {}
    links: dict[str, Link] = {}
    loaded: Plan | None = None
    pairing: Pairing | None = None
    answers: Answers = Answers()


class Model(msgspec.Struct, frozen=True):
    """A model on the shelf."""

    name: str
    architecture: str = ""
    quantisation: str = ""
    n_layers: int = 0
    n_vocab: int | None = None
    context_length: int | None = None
    file_bytes: int = 0
    parameters: int | None = None
    splits: bool = True
    whole_reason: str | None = None
    builtin: bool = False


class StageFigures(msgspec.Struct, frozen=True):
    """What one stage did for one answer. `machine` is its id or its name."""

    machine: str
    first: int
    last: int
    busy_s: float = 0.0
    wait_s: float = 0.0
    bytes_in: int = 0
    bytes_out: int = 0
    steps: int = 0


class Answer(msgspec.Struct, frozen=True):
    """A finished answer and its figures."""

    model: str = ""
    text: str = ""
    token_ids: list[int] = []
    prompt_tokens: int = 0
    reused_tokens: int = 0
    ttft_s: float | None = None
    decode_tok_s: float | None = None
    finish_reason: str | None = None
    placement: list[Stage] = []
    recoveries: int = 0
    stages: list[StageFigures] = []


def read(answer: object, kind: type[T]) -> T:
    """An answer of the node as a value. Raises AppError when it has another shape."""
    try:
        return msgspec.convert(answer, kind)
    except msgspec.ValidationError as error:
        raise AppError("node_fault", detail=f"its answer was not understood: {error}") from None
