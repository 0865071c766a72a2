"""The parts of a plan: candidate machines, the workload, planned stages and their forecast. Pure facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from app.core.errors import Reason
from app.core.household.link import Link
from app.core.ids import MachineId
from app.core.planner.speed_estimates import Speed
from backends.contract import KvType, Layers, Number, Role, is_proved


class Topology(StrEnum):
    """The arrangement of a model in the household."""

    ONE_MACHINE = "one machine"
    SPLIT = "split"  # host's first run, lenders, host's last run
    REPLICAS = "replicas"  # several pipelines, each request to one of them; all whole but the host's, maybe


ALL_TOPOLOGIES = frozenset(Topology)
ONE_PIPELINE = frozenset({Topology.ONE_MACHINE, Topology.SPLIT})
LEAST_SLOTS = 4  # conversations kept warm, even for one user
PLENTY_BYTES = 1 << 62  # memory that is no limit


@dataclass(frozen=True, slots=True)
class Candidate:
    """A machine that could hold layers, how many bytes it lends for that now, and what was measured.

    speed: of the model in question there. link: from the host to this machine; the host has none.
    None: not measured. engine: what computes there, with its version; empty: it did not say yet.
    device: its processor and what else computes, as it says. doubted: its numbers were found wrong.
    factor, way_factor: the learned corrections (`Corrections` in forecast.py), already part of its speed and its link.
    past_limit_bytes: of the host, how much more it would have without the limit that its owner set for all models
    there; None: no limit bounds it, but its memory. is_lending: else it lends nothing, whatever is given back there.
    """

    id: MachineId
    name: str
    lends_bytes: int
    speed: Speed | None = None
    link: Link | None = None
    engine: str = ""
    device: str = ""
    doubted: bool = False
    factor: float = 1.0
    way_factor: float = 1.0
    past_limit_bytes: int | None = None
    is_lending: bool = True

    @property
    def unproved(self) -> bool:
        """Return whether no cut was proved with the engine that it reports."""
        _, _, version = self.engine.partition(" ")
        return bool(version) and not is_proved(version)


@dataclass(frozen=True, slots=True)
class Workload:
    """The load that a model is placed for.

    `context`: positions of one sequence. `users`: simultaneous sequences. A typical request has `prompt_tokens` and
    gets
    `output_tokens`, as far as the context allows.
    """

    context: int
    users: int = 1
    batch_rows: int = 64  # rows of a step with prompt in it, at most
    prompt_tokens: int = 512
    output_tokens: int = 256
    number: Number = Number.F16  # of hidden states on the wire
    kv: KvType = KvType.F16

    @property
    def slots(self) -> int:
        """Sequences whose state is kept at once."""
        return max(self.users, LEAST_SLOTS)

    @property
    def prompt(self) -> int:
        """Tokens of the prompt of a typical request: at most two thirds of the context, at least 1."""
        return max(1, min(self.prompt_tokens, 2 * self.context // 3))

    @property
    def output(self) -> int:
        """Tokens of its answer, at least 1."""
        return max(1, min(self.output_tokens, self.context - self.prompt))


@dataclass(frozen=True, slots=True)
class PlannedStage:
    """One run of layers on one machine, with the memory it needs there."""

    machine: MachineId
    name: str
    role: Role
    layers: Layers
    weight_bytes: int
    kv_bytes: int
    work_bytes: int

    @property
    def total_bytes(self) -> int:
        return self.weight_bytes + self.kv_bytes + self.work_bytes


class Part(StrEnum):
    """A part of a placement that can set its pace."""

    MACHINE = "machine"
    LINK = "link"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class Share:
    """The share of a request's time that is due to one machine, or to the link to it."""

    part: Part
    machine: MachineId
    name: str
    busy_s: float  # of one typical request: computing, or on the way
    share: float  # of the time of a request at `users` at once, 0 to 1


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """The part of a placement that sets its pace."""

    part: Part
    machine: MachineId
    name: str
    share: float  # as in Share; for memory: of the time that more of it would save


@dataclass(frozen=True, slots=True)
class Forecast:
    """The expected performance of a placement, as far as it was measured."""

    ttft_s: float  # of the typical prompt, in an idle pool
    decode_tok_s: float  # one answer alone
    together_tok_s: float  # all answers, while `users` of them decode
    request_s: float  # a typical request while `users` ask at once: what plans are compared by
    shares: tuple[Share, ...]  # of each machine and link that takes part
    bottleneck: Bottleneck
    estimated: bool = False  # some machine was measured on other layers than the model's


@dataclass(frozen=True, slots=True)
class Alternative:
    """A topology that was considered, at its best."""

    topology: Topology
    machines: tuple[str, ...]  # their names
    forecast: Forecast


@dataclass(frozen=True, slots=True)
class Plan:
    """A placement of all layers, in the order a token travels, and why it is so."""

    stages: tuple[PlannedStage, ...]
    workload: Workload
    reasons: tuple[Reason, ...]
    forecast: Forecast | None = None  # None: not all of it was measured
    alternatives: tuple[Alternative, ...] = ()  # the chosen one among them
    machines: tuple[Candidate, ...] = ()  # the host and all lenders that were considered
    allowed: frozenset[Topology] = ALL_TOPOLOGIES  # of these it was chosen: a person may have named one

    @property
    def host(self) -> MachineId:
        """Return the machine that drives it."""
        return self.machines[0].id if self.machines else self.stages[0].machine

    @property
    def parts(self) -> tuple[Plan, ...]:
        """Return a plan for each replica. A plan for one machine or a split is its own only part."""
        if self.topology is not Topology.REPLICAS:
            return (self,)
        return tuple(replace(self, stages=part, forecast=None) for part in pipelines(self.stages))

    @property
    def topology(self) -> Topology:
        if len({stage.machine for stage in self.stages}) == 1:
            return Topology.ONE_MACHINE
        return Topology.REPLICAS if len(pipelines(self.stages)) > 1 else Topology.SPLIT


def pipelines(stages: Sequence[PlannedStage]) -> tuple[tuple[PlannedStage, ...], ...]:
    """Return the stages of each pipeline. A whole stage is a pipeline by itself; a first stage begins a split."""
    parts: list[list[PlannedStage]] = []
    for stage in stages:
        if stage.role in (Role.WHOLE, Role.FIRST) or not parts:
            parts.append([])
        parts[-1].append(stage)
    return tuple(map(tuple, parts))
