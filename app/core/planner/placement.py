"""The data types of a plan: candidate machines, the workload, planned stages and their forecast."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from app.core.errors import Reason
from app.core.household.household import IdleCard
from app.core.household.link import Link
from app.core.ids import MachineId
from app.core.planner.speed_estimates import Speed
from backends.contract import KvType, Layers, NumberFormat, Role, is_proved


class Topology(StrEnum):
    """The distribution of a model over the machines of the household."""

    ONE_MACHINE = "one machine"
    SPLIT = "split"  # the host's first run, then lenders, then the host's last run
    # several pipelines, of which one serves each request; all hold the whole model, except that the host's may be a
    # split
    REPLICAS = "replicas"


ALL_TOPOLOGIES = frozenset(Topology)
ONE_PIPELINE = frozenset({Topology.ONE_MACHINE, Topology.SPLIT})
LEAST_SLOTS = 4  # the number of conversations that stay in the cache, even for one user
PLENTY_BYTES = 1 << 62  # more memory than any model needs


@dataclass(frozen=True, slots=True)
class Candidate:
    """A machine that could hold layers, the bytes that it lends for them now, and its measurements.

    speed: its speed with the model in question. link: the link from the host to this machine; the host has none. Both
    are None if not measured. engine: the name and version of its engine; empty if not reported yet. device: its
    processor and accelerators, as reported by the machine. doubted: its results were found to be wrong. factor,
    link_factor: the learned corrections that are already included in `speed` and `link` (`Corrections` in forecast.py).
    past_limit_bytes: for the host, how much more memory it would have without its owner's limit for all models; None if
    memory is the only limit. is_lending: whether it would lend more if memory became free. idle_card: its graphics card
    that would compute with an engine pack. card_bytes: how many of `lends_bytes` are memory of graphics cards, which
    `speed` is about; the rest is main memory, for layers that the cards have no room for and the processor computes.
    None if all memory is alike. refused_families: the families that its graphics card does not compute.
    processor_bytes: the main memory that it lends for these. missing_bytes: for each family that only some of its
    cards compute, the part of `lends_bytes` that is on the other ones. processor_family: the family in question, if no
    card computes it. measured_work: the working memory that stages of a role needed on its graphics cards with the
    model in question and the same sizes, if that was measured.
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
    link_factor: float = 1.0
    past_limit_bytes: int | None = None
    is_lending: bool = True
    idle_card: IdleCard | None = None
    card_bytes: int | None = None
    refused_families: tuple[str, ...] = ()
    processor_bytes: int = 0
    missing_bytes: tuple[tuple[str, int], ...] = ()
    processor_family: str = ""
    measured_work: tuple[tuple[Role, int], ...] = ()

    def work_on_cards(self, role: Role) -> int:
        """Return the working memory that was measured for stages of this role, or 0 if there is no measurement."""
        return dict(self.measured_work).get(role, 0)

    @property
    def fast_bytes(self) -> int:
        """Return how many bytes the machine lends of the memory that `speed` refers to."""
        return self.lends_bytes if self.card_bytes is None else min(self.card_bytes, self.lends_bytes)

    @property
    def without_overflow(self) -> Candidate:
        """Return the machine without the main memory that it offers in addition to its graphics cards."""
        return replace(self, lends_bytes=self.fast_bytes, card_bytes=None)

    def for_family(self, family: str) -> Candidate:
        """Return the machine with the memory that it lends for models of a family."""
        if missing := dict(self.missing_bytes).get(family, 0):
            card_bytes = None if self.card_bytes is None else max(0, self.card_bytes - missing)
            return replace(self, lends_bytes=max(0, self.lends_bytes - missing), card_bytes=card_bytes)
        if family not in self.refused_families:
            return self
        return replace(self, lends_bytes=self.processor_bytes, card_bytes=None, processor_family=family)

    @property
    def unproved(self) -> bool:
        """Return whether the machine reports an engine that is not known to compute parts of models correctly."""
        _, _, version = self.engine.partition(" ")
        return bool(version) and not is_proved(version)


def processor_reasons(machines: Iterable[Candidate], used: Collection[str]) -> list[Reason]:
    """Return a reason for each of the machines in use whose graphics card does not compute the model."""
    return [
        Reason("plan_on_processor", {"machine": machine.name, "family": machine.processor_family})
        for machine in machines
        if machine.id in used and machine.processor_family
    ]


@dataclass(frozen=True, slots=True)
class Workload:
    """The load for which a model is placed.

    context: positions of one sequence. users: concurrent sequences. A typical request has `prompt_tokens` and receives
    `output_tokens`, if the context is long enough.
    """

    context: int
    users: int = 1
    batch_rows: int = 64  # maximum rows of a step that contains part of a prompt
    prompt_tokens: int = 512
    output_tokens: int = 256
    number: NumberFormat = NumberFormat.F16  # the format of hidden states on the wire
    kv: KvType = KvType.F16
    exact: bool = False  # all machines use the processor instructions that common computers have
    engine: str = ""  # that the person chose (backends/contract.py); "" leaves it to the owner of each machine

    @property
    def slots(self) -> int:
        """Return how many sequences have their state in memory at the same time."""
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
    """A run of layers on one machine, with the memory that it needs there."""

    machine: MachineId
    name: str
    role: Role
    layers: Layers
    weight_bytes: int
    kv_bytes: int
    work_bytes: int
    vision_bytes: int = 0  # the part of `work_bytes` for pictures, which the processor looks at, in main memory

    @property
    def total_bytes(self) -> int:
        return self.weight_bytes + self.kv_bytes + self.work_bytes

    @property
    def card_work_bytes(self) -> int:
        """Return the working memory that each graphics card needs for the stage. None holds a projector."""
        return self.work_bytes - self.vision_bytes


class Part(StrEnum):
    """The kind of resource that limits the speed of a placement."""

    MACHINE = "machine"
    LINK = "link"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class Share:
    """The share of a request's time spent on one machine or on the link to it."""

    part: Part
    machine: MachineId
    name: str
    busy_s: float  # the time that a typical request spends here, computing or in transfer
    share: float  # the fraction of a request's time while `users` send requests at the same time, 0 to 1


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """The resource that limits the speed of a placement."""

    part: Part
    machine: MachineId
    name: str
    share: float  # as in Share; for memory, the fraction of the time that more memory would save


@dataclass(frozen=True, slots=True)
class Forecast:
    """The expected performance of a placement, based on measurements."""

    ttft_s: float  # for the typical prompt on idle machines
    decode_tok_s: float  # for a single answer
    together_tok_s: float  # for all answers together while `users` of them are decoded
    # a typical request while `users` send requests at the same time; plans are compared by this figure
    request_s: float
    shares: tuple[Share, ...]  # for each machine and link that takes part
    bottleneck: Bottleneck
    estimated: bool = False  # whether the speed of some machine is an estimate from other layers
    other_load: float = 0.0  # the largest share of a processor that other programs used during a measurement
    busiest: str = ""  # the name of the machine with that share


@dataclass(frozen=True, slots=True)
class Alternative:
    """A topology that was considered, with the forecast of its best placement."""

    topology: Topology
    machines: tuple[str, ...]  # names of the machines
    forecast: Forecast


@dataclass(frozen=True, slots=True)
class Plan:
    """A placement of all layers, in the order in which a token passes through them, and the reasons for it."""

    stages: tuple[PlannedStage, ...]
    workload: Workload
    reasons: tuple[Reason, ...]
    forecast: Forecast | None = None  # None if some part was not measured
    alternatives: tuple[Alternative, ...] = ()  # the topologies that were compared, including the chosen one
    machines: tuple[Candidate, ...] = ()  # the host and all lenders that were considered
    # the topologies from which it was chosen; a person may have restricted them
    allowed: frozenset[Topology] = ALL_TOPOLOGIES

    @property
    def host(self) -> MachineId:
        """Return the machine that hosts the model and drives its pipelines."""
        return self.machines[0].id if self.machines else self.stages[0].machine

    @property
    def parts(self) -> tuple[Plan, ...]:
        """Return a plan for each replica. A plan without replicas has a single part, which is the plan itself."""
        if self.topology is not Topology.REPLICAS:
            return (self,)
        return tuple(replace(self, stages=part, forecast=None) for part in pipelines(self.stages))

    @property
    def topology(self) -> Topology:
        if len({stage.machine for stage in self.stages}) == 1:
            return Topology.ONE_MACHINE
        return Topology.REPLICAS if len(pipelines(self.stages)) > 1 else Topology.SPLIT


def pipelines(stages: Sequence[PlannedStage]) -> tuple[tuple[PlannedStage, ...], ...]:
    """Group the stages by pipeline. A whole stage is a pipeline by itself, and a first stage begins a split."""
    parts: list[list[PlannedStage]] = []
    for stage in stages:
        if stage.role in (Role.WHOLE, Role.FIRST) or not parts:
            parts.append([])
        parts[-1].append(stage)
    return tuple(map(tuple, parts))
