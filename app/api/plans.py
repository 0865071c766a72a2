"""Plans and loaded models: the placement of their layers and the speed of their answers."""

from __future__ import annotations

from typing import Self

import msgspec

from app.core.errors import Fact, Reason
from app.core.household.link import Link
from app.core.planner.forecast_range import spread_of
from app.core.planner.speed_estimates import FORECAST_CODES, Speed
from app.core.reasons import said


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
    card: str = ""  # the graphics card on which it is loaded; empty for the processor and before it is loaded

    @property
    def key(self) -> str:
        """Return the ID of the machine, because names are not unique."""
        return self.id or self.machine


class MachineNeed(msgspec.Struct, frozen=True):
    """The memory that a plan needs on one machine."""

    machine: str
    id: str = ""
    needs_bytes: int = 0
    lends_bytes: int = 0

    @property
    def key(self) -> str:
        """Return the ID of the machine, because names are not unique."""
        return self.id or self.machine


class Bottleneck(msgspec.Struct, frozen=True):
    """The resource that limits the speed of a plan."""

    part: str = ""
    machine: str = ""
    id: str = ""
    share: float = 0.0


class TimeShare(msgspec.Struct, frozen=True):
    """The share of a request's time that is spent on one machine or link of a plan."""

    part: str = ""
    machine: str = ""
    id: str = ""
    busy_s: float = 0.0
    share: float = 0.0


class Forecast(msgspec.Struct, frozen=True):
    """The forecast speed of a plan."""

    ttft_s: float = 0.0
    decode_tok_s: float = 0.0
    together_tok_s: float = 0.0  # of all users' answers together
    request_s: float = 0.0
    estimated: bool = False  # based on the size of the model, not on measured layers
    bottleneck: Bottleneck = Bottleneck()
    shares: list[TimeShare] = []
    spread: float = 1.0  # the factor by which an answer may be faster or slower than these figures
    disturbed: str = ""  # the name of the machine that other programs kept busy while it was measured
    too_busy: bool = False  # they used so much of it that the forecast cannot be right, so none is shown


class Alternative(msgspec.Struct, frozen=True, kw_only=True):
    """Another topology that the planner compared, and its forecast."""

    shape: str = ""
    machines: list[str] = []
    ttft_s: float = 0.0
    decode_tok_s: float = 0.0
    together_tok_s: float = 0.0
    request_s: float = 0.0
    estimated: bool = False
    bottleneck: Bottleneck = Bottleneck()
    shares: list[TimeShare] = []
    spread: float = 1.0  # as in Forecast
    disturbed: str = ""
    too_busy: bool = False


class FirstToken(msgspec.Struct, frozen=True):
    """The forecast time to the first token of a long prompt."""

    prompt_tokens: int = 0
    ttft_s: float = 0.0


class Explanation(msgspec.Struct, frozen=True):
    """A reason and its sentence."""

    code: str = ""
    facts: dict[str, Fact] = {}
    sentence: str = ""

    @property
    def reason(self) -> Reason:
        return Reason(self.code, self.facts)


class PlannedMachine(msgspec.Struct, frozen=True):
    """A machine and the measurements on which a plan is based."""

    machine: str = ""
    id: str = ""
    lends_bytes: int = 0
    speed: Speed | None = None
    link: Link | None = None
    token_way_s: float | None = None  # time to send it a token's hidden state
    chunk_way_s: float | None = None  # time to send it a chunk of the prompt


class PlanFacts(msgspec.Struct, frozen=True):
    """The basis of a plan: the typical request, and the measurements of every machine and link."""

    prompt_tokens: int = 0
    output_tokens: int = 0
    batch_rows: int = 0
    value_bytes: float = 0.0  # the size of one value of a hidden state on the wire
    machines: list[PlannedMachine] = []


class ServerSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """Another server that has the whole model, and what was measured there. The figures are None if nothing was."""

    name: str
    measured_at: float | None = None
    ttft_s: float | None = None
    decode_tok_s: float | None = None
    streams: int | None = None  # answers at once that are fastest together
    together_tok_s: float | None = None


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A plan of which machine computes which layers, with all the numbers on which it is based."""

    model: str
    shape: str = ""  # one, split or replicas
    context: int = 0
    users: int = 0
    kv: str = ""  # the format of the KV cache
    number: str = ""  # the format of hidden states on the wire
    exact: bool = False  # all computers use the same processor instructions
    kv_bytes: dict[str, int] = {}  # for the whole context, by format
    stages: list[Stage] = []
    machines: list[MachineNeed] = []
    reasons: list[str] = []  # the sentences for `why`
    fits: bool = True
    forecast: Forecast | None = None
    first_token: FirstToken | None = None
    alternatives: list[Alternative] = []
    why: list[Explanation] = []
    advice: list[Explanation] = []
    facts: PlanFacts = msgspec.field(name="from", default_factory=PlanFacts)
    too_small: bool = False  # too small for a forecast that could be right, so none is shown
    servers: list[ServerSpeed] = []  # other servers that are on and have this model

    def as_shown(self) -> Self:
        """Return the plan as people see it.

        It has no forecast if the model was too small, or a machine too busy, for a forecast that could be right.
        """
        none = Reason("unforecast_small")
        if not self.too_small:
            if self.forecast is None or not self.forecast.too_busy:
                return self
            none = Reason("unforecast_busy", {"machine": self.forecast.disturbed})
        why = [reason for reason in self.why if reason.code not in FORECAST_CODES]
        if not any(reason.code.startswith("unforecast_") for reason in why):
            why.append(Explanation(none.code, none.facts, said(none)))
        reasons = [reason.sentence for reason in why]
        return msgspec.structs.replace(
            self, forecast=None, first_token=None, alternatives=[], why=why, reasons=reasons, advice=[]
        )

    @property
    def held(self) -> list[Stage]:
        """Return the stages that have not been lost."""
        return self.stages


class Notice(msgspec.Struct, frozen=True):
    """One step in the recovery from the loss or departure of a machine."""

    state: str = ""  # reconnecting, lost, leaving, rebuilding, short or continued
    machine: str = ""
    code: str = ""
    text: str | None = None
    text_facts: Reason | None = None
    seconds: float | None = None  # how long it will take, or how long it took


class Progress(msgspec.Struct, frozen=True, omit_defaults=True):
    """The progress of one step of a long operation. `machine` is None unless the step runs on another machine."""

    step: str
    machine: str | None
    done: int
    total: int
    unit: str
    bytes_per_s: int | None = None
    seconds_left: int | None = None
    tries_left: int | None = None  # tries left for an open pairing window


class AnswerOutcome(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The forecast and the measured times of an answer."""

    at: float = 0.0
    model: str = ""
    machines: int = 0
    prompt_tokens: int  # prompt tokens that were computed, not reused
    output_tokens: int
    forecast_ttft_s: float
    ttft_s: float
    forecast_tok_s: float
    tok_s: float
    interruptions: int = 0
    other_load: float | None = None  # share of the host's processor that other programs used; None if not known

    @property
    def spread(self) -> float:
        """The factor by which the answer could be faster or slower than its forecast and still be as forecast."""
        return spread_of(self.forecast_tok_s, estimated=False)


class Replica(msgspec.Struct, frozen=True):
    """One of several pipelines that serve the same model."""

    machine: str = ""  # the first machine of the pipeline, which names it
    id: str = ""
    ids: list[str] = []
    state: str = ""  # ready, recovering, lost or draining
    answering: int = 0
    waiting: int = 0


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """The last time that layers of a loaded model were moved without a request from the user."""

    text: str
    text_facts: Reason
    at: float  # Unix time
    undoable: bool = False  # whether `POST /undo-move` can move them back
    undoing: bool = False  # whether they are moving back
    problem: str | None = None  # why they could not be moved back
    problem_facts: Reason | None = None


class LoadedModel(Plan, frozen=True, kw_only=True):
    """A language model that is loaded, is being loaded, or was lost."""

    holders: list[str] | None = None  # IDs of the machines that hold it now; None for those of all stages
    state: str = ""  # loading, ready, recovering or lost
    stopping: bool = False  # its memory is being released
    reason: str | None = None
    reason_facts: Reason | None = None
    recovery: Notice | None = None
    ahead: list[Stage] = []  # stages loaded before they are needed
    progress: dict[str, Progress] = {}  # the progress of loading, by machine name
    shape_ordered: str | None = None
    draft_ordered: str | None = None  # the draft model that was asked for, or "auto"
    loaded_seconds: float = 0.0  # the time that loading took
    fetched_bytes: int = 0
    last_answer: AnswerOutcome | None = None
    replicas: list[Replica] = []
    tools: bool | None = None  # whether its chat template supports tool calls; None if not read yet
    thinks: bool | None = None  # whether its chat template can turn reasoning on
    vision: bool = False  # whether it looks at pictures
    picture_tokens: int = 0  # the most that a picture takes of its context; 0 if unknown
    blind_reason: str | None = None  # why not, although it has a projector
    blind_reason_facts: Reason | None = None
    answering: int = 0
    moved: Move | None = None
    stays: bool = False  # whether layers move only after a loss, because the user undid a move

    def as_shown(self) -> Self:
        shown = super().as_shown()
        return shown if shown is self else msgspec.structs.replace(shown, last_answer=None)

    @property
    def can_answer(self) -> bool:
        """Return whether the model can answer now, perhaps after it has recovered."""
        return self.state in ("ready", "recovering")

    @property
    def held(self) -> list[Stage]:
        """Return the stages, without those of lost replicas."""
        if self.holders is None:
            return self.stages
        return [stage for stage in self.stages if stage.key in self.holders]


class LoadedEmbedder(Plan, frozen=True, kw_only=True):
    """A loaded embedding model or reranker."""

    state: str = ""  # loading or ready
    wished: bool = False  # a person loaded it, so it is not unloaded when idle
    ranks: bool = False  # whether it is a reranker, which scores texts
    loaded_seconds: float = 0.0
    asks: int = 0  # requests in progress
