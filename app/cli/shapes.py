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


class Bottleneck(msgspec.Struct, frozen=True):
    """What sets the pace of a placement."""

    part: str
    machine: str
    share: float = 0.0


class Forecast(msgspec.Struct, frozen=True):
    """How a placement will do."""

    ttft_s: float
    decode_tok_s: float
    together_tok_s: float
    request_s: float
    bottleneck: Bottleneck
    estimated: bool = False


class Said(msgspec.Struct, frozen=True):
    """A sentence of the planner."""

    sentence: str
    code: str = ""


class Outcome(msgspec.Struct, frozen=True):
    """One answer: how it was forecast, and how it was."""

    prompt_tokens: int
    output_tokens: int
    forecast_ttft_s: float
    ttft_s: float
    forecast_tok_s: float
    tok_s: float
    interruptions: int = 0


class Replica(msgspec.Struct, frozen=True):
    """One of several pipelines of the loaded model."""

    machine: str
    state: str = ""
    answering: int = 0
    waiting: int = 0


class Recovery(msgspec.Struct, frozen=True):
    """What is done because a machine is lost, or leaves."""

    text: str = ""


class FirstToken(msgspec.Struct, frozen=True):
    """The prompt for which the first word is forecast."""

    prompt_tokens: int


class Plan(msgspec.Struct, frozen=True):
    """A placement, and for a loaded model its state."""

    model: str
    shape: str = ""
    context: int | None = None
    users: int | None = None
    kv: str | None = None
    stages: list[Stage] = []
    machines: list[Need] = []
    reasons: list[str] = []
    fits: bool = True
    state: str = ""
    stopping: bool = False  # its memory is being given back
    reason: str | None = None
    recovery: Recovery | None = None
    number: str | None = None
    loaded_seconds: float | None = None
    fetched_bytes: int | None = None
    forecast: Forecast | None = None
    first_token: FirstToken | None = None
    last_answer: Outcome | None = None
    advice: list[Said] = []
    replicas: list[Replica] = []
    holders: list[str] | None = None  # ids of those that hold it now; None: all of its stages
    ranks: bool = False  # a reranker, which scores texts and writes none

    @property
    def held(self) -> list[Stage]:
        """Its stages, but those of replicas that are lost."""
        there = self.holders
        return [one for one in self.stages if there is None or one.key in there]


class Link(msgspec.Struct, frozen=True):
    """What is known of the path to a machine; the rest once it was measured."""

    name: str = ""
    reason: str | None = None  # why it was not measured now
    round_trip_seconds: float | None = None  # of heartbeats
    address: str | None = None
    measured_round_trip_seconds: float | None = None
    round_trip_p95_seconds: float | None = None
    jitter_seconds: float | None = None
    out_bytes_per_s: float | None = None
    in_bytes_per_s: float | None = None
    interface: str = ""
    kind: str = ""
    far_kind: str = ""
    far_interface: str = ""


class Links(msgspec.Struct, frozen=True):
    """Links that were just measured."""

    links: list[Link] = []


class Lending(msgspec.Struct, frozen=True):
    """What this machine lends."""

    state: str = "off"
    reason: str | None = None
    used_by: list[str] = []
    lent_bytes: int = 0
    used_bytes: int = 0
    own_bytes: int = 0
    resumes_in_s: float | None = None
    gives_back_in_s: float | None = None


class LendRules(msgspec.Struct, frozen=True):
    """What its owner chose."""

    on: bool = True
    memory_bytes: int | None = None
    devices: list[str] = []
    idle_s: float = 0.0
    hours: str = "always"
    battery_percent: int = 0
    programs: list[str] = []
    gpu: bool = False
    drain_s: float = 0.0
    threads: int = 0
    hot: bool = False
    hot_celsius: int = 95
    screen: bool = False
    network: bool = False
    link_mbit: int = 0
    limit_bytes: int = 0


class PowerReading(msgspec.Struct, frozen=True):
    """What the battery says."""

    percent: float
    plugged: bool


class LendReadings(msgspec.Struct, frozen=True):
    """What the rules look at, now."""

    idle_s: float | None = None
    battery: PowerReading | None = None
    programs: list[str] = []
    gpu_percent: float | None = None
    hottest_c: float | None = None
    full_screen: bool | None = None
    network: str | None = None


class LendState(msgspec.Struct, frozen=True):
    """Lending, its rules, and what they see."""

    lending: Lending
    rules: LendRules
    most_bytes: int = 0
    own_most_bytes: int = 0
    readings: LendReadings = LendReadings()


class Node(msgspec.Struct, frozen=True):
    """The node that answered."""

    id: str
    name: str
    version: str = ""
    peer_address: str | None = None
    reason: str | None = None  # why it is no part of its household any more
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


class Stranger(msgspec.Struct, frozen=True):
    """A Poolhouse nearby that is not of the household."""

    id: str  # the beginning of it
    name: str | None = None  # only while it lets a machine in
    addresses: list[str] = []
    pairing_address: str | None = None
    system: str | None = None  # as it says itself
    device: str | None = None


class Discovery(msgspec.Struct, frozen=True):
    """Whether machines nearby are looked for, and what stands in the way."""

    on: bool = False
    reason: str | None = None


class Forecasts(msgspec.Struct, frozen=True):
    """What came of forecasts so far; errors as shares, at the median."""

    answers: int = 0
    ttft_error: float | None = None
    decode_error: float | None = None


class Snapshot(msgspec.Struct, frozen=True):
    """All a node knows."""

    node: Node
    machines: dict[str, Machine] = {}
    strangers: dict[str, Stranger] = {}
    discovery: Discovery = Discovery()
    links: dict[str, Link] = {}
    links_between: dict[str, dict[str, Link]] = {}  # of others: who measured it, and the far end
    loaded: Plan | None = None
    beside: list[Plan] = []  # what else is loaded to write
    embeds: Plan | None = None  # the model of vectors beside it
    forecasts: Forecasts = Forecasts()
    pairing: Pairing | None = None
    answers: Answers = Answers()
    hosts: list[str] | None = None  # that answer for this guest


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
    has_template: bool = True
    writes: bool = True
    builtin: bool = False
    missing: str | None = None


class Offered(msgspec.Struct, frozen=True):
    """A model that a host answers with for this guest."""

    name: str
    machine: str
    quantisation: str = ""


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
    thought: str = ""
    token_ids: list[int] = []
    prompt_tokens: int = 0
    reused_tokens: int = 0
    ttft_s: float | None = None
    decode_tok_s: float | None = None
    guessed: int = 0
    guessed_right: int = 0
    finish_reason: str | None = None
    cut_by: str | None = None
    placement: list[Stage] = []
    recoveries: int = 0
    doubted: list[str] = []
    notes: list[str] = []
    stages: list[StageFigures] = []


def read(answer: object, kind: type[T]) -> T:
    """An answer of the node as a value. Raises AppError when it has another shape."""
    try:
        return msgspec.convert(answer, kind)
    except msgspec.ValidationError as error:
        raise AppError("node_fault", detail=f"its answer was not understood: {error}") from None
