"""Plans and loaded models: where their layers are, and how fast they answer."""

from __future__ import annotations

import msgspec

from app.core.errors import Fact, Reason
from app.core.household.link import Link
from app.core.planner.speed_estimates import Speed


class Stage(msgspec.Struct, frozen=True):
    """A run of layers on one machine."""

    machine: str
    id: str = ""
    role: str = ""
    first: int = 0
    last: int = 0  # the layer after the last one
    weight_bytes: int = 0
    kv_bytes: int = 0
    work_bytes: int = 0

    @property
    def key(self) -> str:
        """The machine's ID: names may repeat."""
        return self.id or self.machine


class MachineNeed(msgspec.Struct, frozen=True):
    """The memory that a plan takes from one machine."""

    machine: str
    id: str = ""
    needs_bytes: int = 0
    lends_bytes: int = 0

    @property
    def key(self) -> str:
        """The machine's ID: names may repeat."""
        return self.id or self.machine


class Bottleneck(msgspec.Struct, frozen=True):
    """The part of a plan that takes the largest share of a request's time."""

    part: str = ""
    machine: str = ""
    id: str = ""
    share: float = 0.0


class TimeShare(msgspec.Struct, frozen=True):
    """The time that one part of a plan takes of a request."""

    part: str = ""
    machine: str = ""
    id: str = ""
    busy_s: float = 0.0
    share: float = 0.0


class Forecast(msgspec.Struct, frozen=True):
    """The forecast speed of a plan."""

    ttft_s: float = 0.0
    decode_tok_s: float = 0.0
    together_tok_s: float = 0.0  # of all users together
    request_s: float = 0.0
    estimated: bool = False  # from the size of the model, not from measured layers
    bottleneck: Bottleneck = Bottleneck()
    shares: list[TimeShare] = []


class Alternative(msgspec.Struct, frozen=True, kw_only=True):
    """Another shape that the planner compared, with its forecast."""

    shape: str = ""
    machines: list[str] = []
    ttft_s: float = 0.0
    decode_tok_s: float = 0.0
    together_tok_s: float = 0.0
    request_s: float = 0.0
    estimated: bool = False
    bottleneck: Bottleneck = Bottleneck()
    shares: list[TimeShare] = []


class FirstToken(msgspec.Struct, frozen=True):
    """The forecast time to the first token of a long prompt."""

    prompt_tokens: int = 0
    ttft_s: float = 0.0


class Explanation(msgspec.Struct, frozen=True):
    """A reason with its sentence."""

    code: str = ""
    facts: dict[str, Fact] = {}
    sentence: str = ""

    @property
    def reason(self) -> Reason:
        return Reason(self.code, self.facts)


class PlannedMachine(msgspec.Struct, frozen=True):
    """A machine as it was measured when the plan was made."""

    machine: str = ""
    id: str = ""
    lends_bytes: int = 0
    speed: Speed | None = None
    link: Link | None = None
    token_way_s: float | None = None  # time to send it a token's hidden state
    chunk_way_s: float | None = None  # time to send it a chunk of the prompt


class PlanFacts(msgspec.Struct, frozen=True):
    """The basis of a plan: the typical request, and every machine and link."""

    prompt_tokens: int = 0
    output_tokens: int = 0
    batch_rows: int = 0
    value_bytes: float = 0.0  # of one value of a hidden state on the wire
    machines: list[PlannedMachine] = []


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A plan: which machine computes which layers, with every number behind it."""

    model: str
    shape: str = ""  # one, split or replicas
    context: int = 0
    users: int = 0
    kv: str = ""  # the format of the KV cache
    number: str = ""  # the format of hidden states on the wire
    kv_bytes: dict[str, int] = {}  # of the whole context, by format
    stages: list[Stage] = []
    machines: list[MachineNeed] = []
    reasons: list[str] = []  # the sentences of `why`
    fits: bool = True
    forecast: Forecast | None = None
    first_token: FirstToken | None = None
    alternatives: list[Alternative] = []
    why: list[Explanation] = []
    advice: list[Explanation] = []
    facts: PlanFacts = msgspec.field(name="from", default_factory=PlanFacts)

    @property
    def held(self) -> list[Stage]:
        """The stages that are not lost."""
        return self.stages


class Notice(msgspec.Struct, frozen=True):
    """The reaction to a machine that is lost or leaves."""

    state: str = ""  # reconnecting, lost, leaving, rebuilding, short or continued
    machine: str = ""
    code: str = ""
    text: str | None = None
    text_facts: Reason | None = None
    seconds: float | None = None  # that it will take, or took


class Progress(msgspec.Struct, frozen=True, omit_defaults=True):
    """A step of long work. `machine`: whose step it is; None: of no other machine."""

    step: str
    machine: str | None
    done: int
    total: int
    unit: str
    bytes_per_s: int | None = None
    seconds_left: int | None = None
    tries_left: int | None = None  # of an open pairing window


class AnswerOutcome(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The forecast of an answer beside its measured times."""

    at: float = 0.0
    model: str = ""
    machines: int = 0
    prompt_tokens: int  # that were computed
    output_tokens: int
    forecast_ttft_s: float
    ttft_s: float
    forecast_tok_s: float
    tok_s: float
    interruptions: int = 0


class Replica(msgspec.Struct, frozen=True):
    """One of several pipelines that answer for the same model."""

    machine: str = ""  # the first of its machines, which names it
    id: str = ""
    ids: list[str] = []
    state: str = ""  # ready, recovering, lost or draining
    answering: int = 0
    waiting: int = 0


class LoadedModel(Plan, frozen=True, kw_only=True):
    """A language model that is loaded, is being loaded, or was lost."""

    holders: list[str] | None = None  # IDs of the machines that hold it now; None: those of all stages
    state: str = ""  # loading, ready, recovering or lost
    stopping: bool = False  # its memory is being given back
    reason: str | None = None
    reason_facts: Reason | None = None
    recovery: Notice | None = None
    ahead: list[Stage] = []  # loaded before they are needed
    progress: dict[str, Progress] = {}  # of its loading, by machine name
    shape_ordered: str | None = None
    loaded_seconds: float = 0.0  # that loading took
    fetched_bytes: int = 0
    last_answer: AnswerOutcome | None = None
    replicas: list[Replica] = []
    tools: bool | None = None  # its chat template has tool calls; None: not read yet
    thinks: bool | None = None  # its chat template can turn thinking on
    answering: int = 0

    @property
    def held(self) -> list[Stage]:
        """The stages, without those of replicas that are lost."""
        if self.holders is None:
            return self.stages
        return [stage for stage in self.stages if stage.key in self.holders]


class LoadedEmbedder(Plan, frozen=True, kw_only=True):
    """An embedding model or reranker that is loaded."""

    state: str = ""  # loading or ready
    wished: bool = False  # loaded by a person, so it is not unloaded when idle
    ranks: bool = False  # a reranker: it scores texts
    loaded_seconds: float = 0.0
    asks: int = 0  # requests in progress
