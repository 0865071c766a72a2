"""The parts of a plan: candidate machines, the workload, planned stages and their forecast. Pure data."""

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
    SPLIT = "split"  # the host's first run, lenders, the host's last run
    # several pipelines, each request on one of them; all hold the whole model, except perhaps the host's
    REPLICAS = "replicas"


ALL_TOPOLOGIES = frozenset(Topology)
ONE_PIPELINE = frozenset({Topology.ONE_MACHINE, Topology.SPLIT})
LEAST_SLOTS = 4  # conversations kept warm, even for one user
PLENTY_BYTES = 1 << 62  # more memory than any model needs


@dataclass(frozen=True, slots=True)
class Candidate:
    """A machine that could hold layers, the bytes that it lends for that now, and its measurements.

    speed: its speed with the model in question. link: from the host to this machine; the host has none. Both are
    None if not measured. engine: the name and version of its engine; empty if not reported yet. device: its
    processor and other computing devices, as it reports them. doubted: its results were found to be wrong. factor,
    way_factor: the learned corrections (`Corrections` in forecast.py), already included in its speed and its link.
    past_limit_bytes: for the host, how much more memory it would have without its owner's limit for all models
    there; None if memory is the only limit. is_lending: if False, it lends nothing even if memory becomes free.
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
        """Return whether it reports an engine with which no cut has been proved to work."""
        _, _, version = self.engine.partition(" ")
        return bool(version) and not is_proved(version)


@dataclass(frozen=True, slots=True)
class Workload:
    """The load for which a model is placed.

    context: positions of one sequence. users: simultaneous sequences. A typical request has `prompt_tokens` and
    gets `output_tokens`, as far as the context allows.
    """

    context: int
    users: int = 1
    batch_rows: int = 64  # maximum rows of a step that contains part of a prompt
    prompt_tokens: int = 512
    output_tokens: int = 256
    number: Number = Number.F16  # the format of hidden states on the wire
    kv: KvType = KvType.F16

    @property
    def slots(self) -> int:
        """Return the number of sequences whose state is kept at once."""
        return max(self.users, LEAST_SLOTS)

    @property
    def prompt(self) -> int:
        """Return the prompt tokens of a typical request: at least 1, at most two thirds of the context."""
        return max(1, min(self.prompt_tokens, 2 * self.context // 3))

    @property
    def output(self) -> int:
        """Return the answer tokens of a typical request, at least 1."""
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
    """The share of a request's time spent on one machine, or on the link to it."""

    part: Part
    machine: MachineId
    name: str
    busy_s: float  # time that one typical request spends computing or in transfer
    share: float  # fraction of a request's time with `users` at once, 0 to 1


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """The part of a placement that sets its pace."""

    part: Part
    machine: MachineId
    name: str
    share: float  # as in Share; for memory, the fraction of time that more of it would save


@dataclass(frozen=True, slots=True)
class Forecast:
    """The expected performance of a placement, as far as it was measured."""

    ttft_s: float  # for the typical prompt on idle machines
    decode_tok_s: float  # of one answer alone
    together_tok_s: float  # of all answers together while `users` of them decode
    request_s: float  # a typical request while `users` send requests at once: the figure by which plans are compared
    shares: tuple[Share, ...]  # of each machine and link that takes part
    bottleneck: Bottleneck
    estimated: bool = False  # whether some machine was measured on layers other than the model's


@dataclass(frozen=True, slots=True)
class Alternative:
    """A topology that was considered, at its best."""

    topology: Topology
    machines: tuple[str, ...]  # the machines' names
    forecast: Forecast


@dataclass(frozen=True, slots=True)
class Plan:
    """A placement of all layers, in the order in which a token passes through them, with the reasons for it."""

    stages: tuple[PlannedStage, ...]
    workload: Workload
    reasons: tuple[Reason, ...]
    forecast: Forecast | None = None  # None if some part was not measured
    alternatives: tuple[Alternative, ...] = ()  # including the chosen one
    machines: tuple[Candidate, ...] = ()  # the host and all lenders that were considered
    # the topologies it was chosen from, which a person may have restricted
    allowed: frozenset[Topology] = ALL_TOPOLOGIES

    @property
    def host(self) -> MachineId:
        """Return the machine that drives the placement."""
        return self.machines[0].id if self.machines else self.stages[0].machine

    @property
    def parts(self) -> tuple[Plan, ...]:
        """Return a plan for each replica. The only part of a single-machine or split plan is the plan itself."""
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
