"""Forecasts of how fast a placement will answer, based on measurements.

A step of the pipeline computes a chunk of a prompt, or one token of each answer in a group. It passes through the
stages one after another. Several steps are in flight, so each machine and each link works on a different step, and the
slowest of them sets the pace. With N machines, the times are:

    first token   one chunk through all stages, plus, for each further chunk, the longest time between two steps on
                  any machine or link; with N + 1 steps in flight, that is at least an (N + 1)th of the whole path
    one answer    for every token, the whole path
    U answers     in up to N groups; a round takes the whole path or, if that is longer, the time that the slowest
                  machine or link needs for all groups
    a request     the time of one request alone or, if that is longer, U times the work that the busiest machine or
                  link does for one request (the two bounds of a closed queueing network with U customers)

Plans are compared by the time of a request. The host's first and last runs are computed on the same machine, one after
the other.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace

from app.core.household.link import Link, LinkKind
from app.core.ids import MachineId
from app.core.model import Model
from app.core.planner.placement import Bottleneck, Candidate, Forecast, Part, PlannedStage, Share, Workload, pipelines
from app.core.planner.speed_estimates import Factor, Speed
from app.core.planner.stage_memory import fixed_bytes, layer_bytes_to
from backends.contract import Role

# the maximum rows of a step that costs as much per row as a decode step; larger ones cost as much as prompts (measured
# on CPUs)
FEW_ROWS = 32
# The fraction of a layer's time that the last layer saves for rows without a sampled token. Such rows skip the feed-
# forward network, which has 0.7 of the multiplications in the usual proportions of Llama models.
LAST_LAYER_SAVING = 0.7
MAX_STEPS_IN_FLIGHT = 2  # to one lender (app/inference/stages/stage_client.py)


@dataclass(frozen=True, slots=True)
class Step:
    """The work done in one step of the pipeline."""

    rows: float
    position: float  # the number of positions before the step in each of its sequences
    sampled: float  # rows for which a token is sampled


@dataclass(frozen=True, slots=True)
class Rounds:
    """The steps that a workload requires on a given number of machines."""

    machines: int
    chunks: int  # chunks of the prompt
    tokens: int  # tokens of the answer after the first
    groups: int  # groups into which the answers are divided
    crowd: float  # the number of passes over the whole path that a token takes if there are more groups than machines
    users: int
    chunk: Step
    single: Step  # a token of a single answer
    group: Step  # a token for each answer in a group

    @classmethod
    def of(cls, workload: Workload, machines: int) -> Rounds:
        users, chunks = workload.users, -(-workload.prompt // workload.batch_rows)
        groups = -(-users // min(-(-users // machines), workload.batch_rows))
        position = workload.prompt + workload.output / 2
        rows = users / groups
        return cls(
            machines=machines,
            chunks=chunks,
            tokens=workload.output - 1,
            groups=groups,
            crowd=max(1.0, groups / machines),
            users=users,
            chunk=Step(workload.prompt / chunks, (workload.prompt - workload.prompt / chunks) / 2, 0),
            single=Step(1.0, position, 1.0),
            group=Step(rows, position, rows),
        )


MANY_LAYERS = 1 << 30  # more than any model has


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a step on one machine, as a function of its number of layers.

    It includes the transfer in both directions. A graphics card computes at most `fast_layers` of them, and the
    processor any further ones.
    """

    fixed_s: float
    layer_s: float
    transfer_s: float = 0.0  # the time of the transfer there and back; 0 on the host
    link_busy_s: float = 0.0  # how long this step keeps the link busy
    fast_layers: int = MANY_LAYERS
    slow_layer_s: float = 0.0  # at least `layer_s`, so that the cost is convex

    def compute_s(self, n_layers: int) -> float:
        slow = max(0, n_layers - self.fast_layers)
        return self.fixed_s + (n_layers - slow) * self.layer_s + slow * self.slow_layer_s

    def latency_s(self, n_layers: int) -> float:
        """Return the time from the host to this machine and back, including the computation but no waiting."""
        return self.compute_s(n_layers) + self.transfer_s

    def period_s(self, n_layers: int) -> float:
        """Return the shortest possible time between two steps."""
        compute_s = self.compute_s(n_layers)
        return max(compute_s, self.link_busy_s, (compute_s + self.transfer_s) / MAX_STEPS_IN_FLIGHT)


def step_layer_s(speed: Speed, step: Step, batch_rows: int) -> float:
    """Return the seconds that one layer takes for a step."""
    rows, position = step.rows, step.position
    near = min(position, speed.window)
    if rows <= FEW_ROWS and rows < batch_rows:
        few_s = min(speed.layer_s + (rows - 1) * speed.layer_row_s, speed.chunk_s)
        seen_s = position * speed.position_s + near * speed.window_position_s
        return few_s + rows * seen_s
    seen_s = position * speed.chunk_position_s + near * speed.window_chunk_position_s
    return (speed.chunk_s + seen_s) * rows / batch_rows


def cost(machine: Candidate, step: Step, model: Model, workload: Workload, role: Role = Role.MIDDLE) -> Cost:
    """Return the cost of a step on a machine whose speed was measured.

    role: WHOLE for all layers, LAST for the host's first and last runs together, MIDDLE for a lender.
    """
    speed, link = machine.speed, machine.link
    assert speed is not None
    fixed_s = speed.step_s * (2 if role is Role.LAST else 1)
    if step.sampled and role is not Role.MIDDLE:
        fixed_s += speed.head_s + (step.sampled - 1) * speed.head_row_s
    layer_s = step_layer_s(speed, step, workload.batch_rows)
    fast, slow_s = fast_layers(machine, model, workload, role), layer_s
    if speed.processor is not None:
        slow_s = max(layer_s, step_layer_s(speed.processor, step, workload.batch_rows))
    if role is not Role.MIDDLE:
        if not step.sampled:
            fixed_s -= LAST_LAYER_SAVING * layer_s
        return Cost(fixed_s, layer_s, fast_layers=fast, slow_layer_s=slow_s)
    assert link is not None
    times = transfer_times(link, step.rows * workload.number.row_bytes(model.width))
    return Cost(fixed_s, layer_s, *times, fast, slow_s)


def fast_layers(machine: Candidate, model: Model, workload: Workload, role: Role) -> int:
    """Return how many average layers the graphics cards of a machine have room for, if it has any.

    role: as in `cost`.
    """
    if machine.card_bytes is None:
        return MANY_LAYERS
    roles = (Role.FIRST, Role.LAST) if role is Role.LAST else (role,)
    room = machine.fast_bytes - sum(fixed_bytes(each, model, workload, machine) for each in roles)
    return max(0, room * model.n_layers // max(1, layer_bytes_to(model, workload)[-1]))


def transfer_times(link: Link, n_bytes: float) -> tuple[float, float]:
    """Return the seconds that a transfer in both directions takes, and the seconds that it keeps the link busy."""
    out_s, in_s = n_bytes / link.out_bytes_per_s, n_bytes / link.in_bytes_per_s
    return link.round_trip_s + out_s + in_s, out_s + in_s if uses_wifi(link) else max(out_s, in_s)


def uses_wifi(link: Link) -> bool:
    """Return whether either end of the link uses Wi-Fi, which carries only one direction at a time."""
    return LinkKind.WIFI in (link.kind, link.far_kind)


@dataclass(frozen=True, slots=True)
class _Load:
    """The share of a placement that one machine computes."""

    machine: Candidate
    n_layers: int
    chunk: Cost
    single: Cost
    group: Cost
    head_s: float  # once per request, after its prompt

    def work_s(self, rounds: Rounds) -> float:
        """Return how long a request occupies this machine or, if that is longer, the link to it."""
        prompt_s = rounds.chunks * self.chunk.period_s(self.n_layers) + self.head_s
        decode_s = rounds.tokens * self.group.period_s(self.n_layers)
        return prompt_s + decode_s / rounds.group.rows

    def shares(self, rounds: Rounds, request_s: float) -> list[Share]:
        """Return what shares of a request's time are spent computing on this machine and using the link to it."""
        rows, whole = rounds.group.rows, request_s / rounds.users
        compute_s = rounds.chunks * self.chunk.compute_s(self.n_layers) + self.head_s
        compute_s += rounds.tokens / rows * self.group.compute_s(self.n_layers)
        transfer_s = rounds.chunks * self.chunk.transfer_s + rounds.tokens / rows * self.group.transfer_s
        key, name = self.machine.id, self.machine.name
        shares = [Share(Part.MACHINE, key, name, compute_s, min(1.0, compute_s / whole))]
        if self.machine.link is not None and transfer_s:
            shares.append(Share(Part.LINK, key, name, transfer_s, min(1.0, transfer_s / whole)))
        return shares


def forecast(
    stages: Sequence[PlannedStage], machines: Mapping[MachineId, Candidate], model: Model, workload: Workload
) -> Forecast | None:
    """Forecast the performance of these stages. Return None if one of their machines or links was not measured.

    For a prompt or an answer of unusual length, pass a workload with the actual numbers of tokens.
    """
    host = machines[stages[0].machine]
    holders = [machines[key] for key in dict.fromkeys(stage.machine for stage in stages)]
    if any(m.speed is None or (m.link is None and m is not host) for m in holders):
        return None
    parts = pipelines(stages)
    if len(parts) > 1:
        return _of_replicas(parts, machines, model, workload)
    return _of_one(stages, machines, model, workload)


def _of_one(
    stages: Sequence[PlannedStage], machines: Mapping[MachineId, Candidate], model: Model, workload: Workload
) -> Forecast:
    """Forecast a single pipeline whose machines and links were all measured."""
    host = machines[stages[0].machine]
    holders = [machines[key] for key in dict.fromkeys(stage.machine for stage in stages)]
    rounds = Rounds.of(workload, len(holders))
    layers = {m.id: sum(len(s.layers) for s in stages if s.machine == m.id) for m in holders}
    first = Role.LAST if stages[0].role is Role.FIRST else Role.WHOLE
    loads = [
        _load(machine, layers[machine.id], first if machine is host else Role.MIDDLE, rounds, model, workload)
        for machine in holders
    ]
    return _of_loads(loads, rounds)


def _load(machine: Candidate, n_layers: int, role: Role, rounds: Rounds, model: Model, workload: Workload) -> _Load:
    assert machine.speed is not None
    head_s = 0.0 if role is Role.MIDDLE else machine.speed.head_s
    chunk = cost(machine, rounds.chunk, model, workload, role)
    single = cost(machine, rounds.single, model, workload, role)
    group = cost(machine, rounds.group, model, workload, role)
    return _Load(machine, n_layers, chunk, single, group, head_s)


def _of_loads(loads: Sequence[_Load], rounds: Rounds) -> Forecast:
    """Apply the formulas in the docstring of this module."""
    chunk_s = sum(load.chunk.latency_s(load.n_layers) for load in loads)
    slowest_s = max(load.chunk.period_s(load.n_layers) for load in loads)
    ttft_s = chunk_s + sum(load.head_s for load in loads)
    ttft_s += (rounds.chunks - 1) * max(slowest_s, chunk_s / (rounds.machines + 1))
    single_s = sum(load.single.latency_s(load.n_layers) for load in loads)
    group_s = sum(load.group.latency_s(load.n_layers) for load in loads) * rounds.crowd
    round_s = max(group_s, rounds.groups * max(load.group.period_s(load.n_layers) for load in loads))
    busiest_s = max(load.work_s(rounds) for load in loads)
    request_s = max(ttft_s + rounds.tokens * group_s, rounds.users * busiest_s)
    shares = [share for load in loads for share in load.shares(rounds, request_s)]
    busiest = max((load.machine for load in loads), key=_other_load)
    return Forecast(
        ttft_s=ttft_s,
        decode_tok_s=1 / single_s,
        together_tok_s=rounds.users / round_s,
        request_s=request_s,
        shares=tuple(shares),
        bottleneck=_largest(shares),
        estimated=any(_is_estimated(load.machine) for load in loads),
        other_load=_other_load(busiest),
        busiest=busiest.name,
    )


def _other_load(machine: Candidate) -> float:
    return machine.speed.other_load if machine.speed is not None else 0.0


def _is_estimated(machine: Candidate) -> bool:
    return machine.speed is not None and machine.speed.estimated


def _largest(shares: Sequence[Share]) -> Bottleneck:
    most = max(shares, key=lambda share: share.busy_s)
    return Bottleneck(most.part, most.machine, most.name, most.share)


Parts = Sequence[Sequence[PlannedStage]]


def _of_replicas(parts: Parts, machines: Mapping[MachineId, Candidate], model: Model, workload: Workload) -> Forecast:
    """Forecast replicas, assuming that each request goes to the pipeline expected to finish it first."""
    users = users_per_pipeline(parts, machines, model, workload)
    each = [
        _of_one(part, machines, model, replace(workload, users=n)) for part, n in zip(parts, users, strict=True) if n
    ]
    quickest = min(each, key=lambda forecast: forecast.request_s)
    slowest = max(each, key=lambda forecast: forecast.request_s)
    busiest = max(each, key=lambda forecast: forecast.other_load)
    return Forecast(
        ttft_s=quickest.ttft_s,
        decode_tok_s=max(forecast.decode_tok_s for forecast in each),
        together_tok_s=sum(forecast.together_tok_s for forecast in each),
        request_s=slowest.request_s,
        shares=tuple(share for forecast in each for share in forecast.shares),
        bottleneck=slowest.bottleneck,
        estimated=any(forecast.estimated for forecast in each),
        other_load=busiest.other_load,
        busiest=busiest.busiest,
    )


def users_per_pipeline(
    parts: Parts, machines: Mapping[MachineId, Candidate], model: Model, workload: Workload
) -> list[int]:
    """Return how many users each pipeline serves.

    Users are distributed so that the slowest request is as fast as possible.
    """
    users = [0] * len(parts)
    with_one_more = [_of_one(part, machines, model, replace(workload, users=1)).request_s for part in parts]
    for _ in range(workload.users):
        place = with_one_more.index(min(with_one_more))
        users[place] += 1
        more = replace(workload, users=users[place] + 1)
        with_one_more[place] = _of_one(parts[place], machines, model, more).request_s
    return users


def whole_forecast(machine: Candidate, model: Model, workload: Workload, users: int) -> Forecast:
    """Forecast the performance of a machine that holds all layers and serves this number of users.

    For a lender, the time to transfer the request and the answer is negligible.
    """
    rounds = Rounds.of(replace(workload, users=users), 1)
    load = _load(machine, model.n_layers, Role.WHOLE, rounds, model, workload)
    return _of_loads([load], rounds)


@dataclass(frozen=True, slots=True)
class PlacementCorrection:
    """The correction of one placement's forecasts, which replaces the factors of its machines and links.

    Machines that share a computer, or whose caches can hold their layers, perform differently together than alone.
    """

    first: Factor = field(default_factory=Factor)
    decode: Factor = field(default_factory=Factor)

    def learned(self, plain: Forecast, ttft_s: float, tok_s: float) -> PlacementCorrection:
        """Return the correction after one more answer. `plain` is the answer's forecast without any factors."""
        if tok_s <= 0:
            return self
        return PlacementCorrection(
            self.first.settled(plain.ttft_s * self.first.value, ttft_s),
            self.decode.settled(self.decode.value / plain.decode_tok_s, 1 / tok_s),
        )

    def corrected(self, plain: Forecast) -> Forecast:
        """Return the forecast `plain`, corrected by the previous answers of this placement."""
        return replace(
            plain, ttft_s=plain.ttft_s * self.first.value, decode_tok_s=plain.decode_tok_s / self.decode.value
        )


@dataclass(frozen=True, slots=True)
class Corrections:
    """The correction factors of all machines and links in a household."""

    machines: Mapping[MachineId, Factor] = field(default_factory=dict)
    links: Mapping[MachineId, Factor] = field(default_factory=dict)  # by the machine at the far end

    def of(self, part: Part, machine: MachineId) -> Factor:
        """Return the factor of a machine or of the link to it, or 1 if it is unknown."""
        kept = self.links if part is Part.LINK else self.machines
        return kept.get(machine, Factor())

    def learned(self, machine: MachineId, compute_s: float, transfer_s: float, measured_s: float) -> Corrections:
        """Return the corrections after a machine has taken part in one more answer.

        compute_s, transfer_s: the forecast times for computing and for the transfer in both directions, including these
        factors. measured_s: the measured total of both. Each factor learns in proportion to its share of the forecast.
        The host has no link.
        """
        whole_s = compute_s + transfer_s
        if whole_s <= 0:
            return self
        here = self.of(Part.MACHINE, machine).learned(whole_s, measured_s, compute_s / whole_s)
        there = self.of(Part.LINK, machine).learned(whole_s, measured_s, transfer_s / whole_s)
        return Corrections(
            {**self.machines, machine: here}, {**self.links, machine: there} if transfer_s > 0 else self.links
        )

    def corrected(self, machine: Candidate) -> Candidate:
        """Return the machine with the current factors applied to its speed and link instead of the previous ones."""
        speed, link = machine.speed, machine.link
        factor = self.of(Part.MACHINE, machine.id).value
        link_factor = self.of(Part.LINK, machine.id).value
        return replace(
            machine,
            speed=speed and scaled_speed(speed, factor / machine.factor),
            link=link and scaled_link(link, link_factor / machine.link_factor),
            factor=factor,
            link_factor=link_factor,
        )

    def without(self, machines: Container[MachineId]) -> Corrections:
        """Return the corrections without the factors of these machines, for use when they have been measured again."""
        return Corrections(
            {key: factor for key, factor in self.machines.items() if key not in machines},
            {key: factor for key, factor in self.links.items() if key not in machines},
        )


def scaled_speed(speed: Speed, factor: float) -> Speed:
    """Return the speed of a machine that takes `factor` times as long for everything."""
    return replace(
        speed,
        layer_s=factor * speed.layer_s,
        layer_row_s=factor * speed.layer_row_s,
        position_s=factor * speed.position_s,
        chunk_position_s=factor * speed.chunk_position_s,
        chunk_s=factor * speed.chunk_s,
        step_s=factor * speed.step_s,
        head_s=factor * speed.head_s,
        head_row_s=factor * speed.head_row_s,
        window_position_s=factor * speed.window_position_s,
        window_chunk_position_s=factor * speed.window_chunk_position_s,
        processor=speed.processor and scaled_speed(speed.processor, factor),
    )


def scaled_link(link: Link, factor: float) -> Link:
    """Return a link on which every transfer takes `factor` times as long."""
    return replace(
        link,
        round_trip_s=factor * link.round_trip_s,
        out_bytes_per_s=link.out_bytes_per_s / factor,
        in_bytes_per_s=link.in_bytes_per_s / factor,
    )
