"""Seeded random households for tests of the planner, and a brute-force search through all placements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, pairwise, permutations
from random import Random

from app.core.household.link import Link, LinkKind
from app.core.ids import MachineId
from app.core.model import Cuts, Model, RunRules, Weights, reachable_boundaries
from app.core.planner.forecast import forecast, scaled_speed, whole_forecast
from app.core.planner.placement import Candidate, PlannedStage, Workload
from app.core.planner.speed_estimates import Speed
from app.core.planner.stage_memory import split_stages
from backends.contract import Layers

MIB = 1 << 20


def model(layers: list[int], boundaries: tuple[int, ...] | None = None, width: int = 4096) -> Model:
    """Return a model whose layers have these sizes in bytes."""
    n = len(layers)
    return Model(
        id="0" * 64,
        name="made",
        architecture="llama",
        n_layers=n,
        width=width,
        n_vocab=32000,
        context_length=8192,
        weights=Weights(
            layer_bytes=tuple(layers), embedding_bytes=20 * MIB, head_bytes=25 * MIB, tied=False, shared_bytes=1024
        ),
        cuts=Cuts(boundaries=tuple(range(1, n)) if boundaries is None else boundaries),
        kv_bytes_per_token=(1024,) * n,
        file_bytes=sum(layers) + 45 * MIB,
        quantization="Q4_K_M",
        license="",
        has_template=True,
    )


def speed(layer_s: float, *, chunk: float = 35.0, step_s: float = 0.0005) -> Speed:
    """Return the speed of a machine that needs `chunk` times as long for a chunk of the prompt as for a token."""
    return Speed(
        layer_s=layer_s,
        layer_row_s=0.35 * layer_s,
        position_s=2e-5 * layer_s,
        chunk_s=chunk * layer_s,
        chunk_position_s=2e-4 * layer_s,
        step_s=step_s,
        head_s=3 * layer_s,
        head_row_s=layer_s,
    )


def link(round_trip_s: float = 0.0005, bytes_per_s: float = 100e6, kind: LinkKind = LinkKind.ETHERNET) -> Link:
    return Link(
        round_trip_s, 2 * round_trip_s, 0.1 * round_trip_s, bytes_per_s, 0.9 * bytes_per_s,
        "eth0", kind, 1500, None,
    )  # fmt: skip


def machine(name: str, lends_mib: float, speed: Speed | None, link: Link | None = None) -> Candidate:
    return Candidate(MachineId(f"{name:0>64}"), name, int(lends_mib * MIB), speed, link)


def some_speed(chance: Random) -> Speed:
    layer_s = 10 ** chance.uniform(-3.5, -1.5)
    measured = speed(layer_s, chunk=chance.uniform(5, 50), step_s=10 ** chance.uniform(-4.5, -2))
    return Speed(
        measured.layer_s, measured.layer_row_s * chance.uniform(0.2, 2.5), measured.position_s, measured.chunk_s,
        measured.chunk_position_s, measured.step_s, measured.head_s * chance.uniform(0.2, 2), measured.head_row_s,
    )  # fmt: skip


def with_card(chance: Random, machine: Candidate) -> Candidate:
    """Return the machine with a graphics card that holds a part of its memory. Its processor is slower."""
    if machine.speed is None or chance.random() < 0.4:
        return machine
    slower = scaled_speed(machine.speed, 10 ** chance.uniform(0, 1.5))
    return replace(
        machine,
        speed=replace(machine.speed, processor=slower),
        card_bytes=int(machine.lends_bytes * chance.uniform(0, 1.1)),
    )


def some_link(chance: Random) -> Link:
    kind = chance.choice([LinkKind.WIFI, LinkKind.ETHERNET])
    return link(10 ** chance.uniform(-4, -1.5), 10 ** chance.uniform(5.5, 8.5), kind)


def some_model(chance: Random, most_layers: int) -> Model:
    n = chance.randint(2, most_layers)
    layers = [chance.choice([100, 100, 115, 180]) * MIB for _ in range(n)]
    if chance.random() < 0.4:
        layers = [100 * MIB] * n
    boundaries = tuple(range(1, n))
    if chance.random() < 0.3:
        boundaries = tuple(edge for edge in boundaries if chance.random() < 0.7) or (1,)
    return _with_kinds(chance, model(layers, boundaries)) if chance.random() < 0.15 else model(layers, boundaries)


def _with_kinds(chance: Random, made: Model) -> Model:
    """Return the model with layers of two kinds. Each run must contain at least one of each."""
    kinds = [chance.random() < 0.6 for _ in range(made.n_layers)]
    groups = tuple(tuple(layer for layer, has in enumerate(kinds) if has is kind) for kind in (True, False))
    rules = RunRules(groups, forbidden_lengths=(chance.randint(1, 3),) if chance.random() < 0.3 else ())
    legal = reachable_boundaries(made.cuts.boundaries, made.n_layers, rules)
    return replace(made, cuts=Cuts(legal, rules=rules)) if legal else made


def some_household(
    chance: Random, most_machines: int = 4, most_layers: int = 8, *, cards: bool = False
) -> tuple[Candidate, list[Candidate], Model, Workload]:
    """Return a random host, lenders, a model and a workload. They are small enough to try all placements.

    The amount of memory varies from scarce to ample. cards: give some machines graphics cards.
    """
    made = some_model(chance, most_layers)
    n_machines = chance.randint(1, most_machines)
    plenty = chance.choice([0.8, 1.2, 1.5, 2.0, 4.0])
    each = plenty * sum(made.weights.layer_bytes) / MIB / n_machines
    lenders = [
        machine(f"m{n}", 120 + each * chance.uniform(0.3, 1.7), some_speed(chance), some_link(chance))
        for n in range(1, n_machines)
    ]
    host = machine("m0", 280 + each * chance.uniform(0.3, 1.7), some_speed(chance))
    if cards:
        host, *lenders = (with_card(chance, made_one) for made_one in (host, *lenders))
    work = Workload(
        context=chance.choice([64, 1024, 4096]),
        users=chance.choice([1, 1, 2, 3, 5, 9, 150]),
        batch_rows=chance.choice([32, 64]),
        prompt_tokens=chance.choice([1, 40, 512, 2000]),
        output_tokens=chance.choice([1, 32, 256]),
    )
    return host, lenders, made, work


def every_split(
    host: Candidate, lenders: list[Candidate], made: Model, work: Workload
) -> Iterator[tuple[PlannedStage, ...]]:
    """Yield all valid splits, whether they fit or not."""
    for n in range(1, len(lenders) + 1):
        for chosen in permutations(lenders, n):
            for cuts in combinations(made.cuts.boundaries, n + 1):
                edges = (0, *cuts, made.n_layers)
                if made.may_cut(tuple(Layers(*pair) for pair in pairwise(edges))):
                    yield split_stages([host, *chosen, host], edges, made, work)


def fits(stages: tuple[PlannedStage, ...], machines: dict[MachineId, Candidate]) -> bool:
    held = dict.fromkeys(machines, 0)
    for stage in stages:
        held[stage.machine] += stage.total_bytes
    return all(held[key] <= machines[key].lends_bytes for key in machines)


def least_request_s(host: Candidate, lenders: list[Candidate], made: Model, work: Workload) -> float | None:
    """Return the shortest forecast duration of all placements that fit, found by brute force, or None if none fits."""
    machines = {candidate.id: candidate for candidate in [host, *lenders]}
    times: list[float] = []
    whole = split_stages([host], (0, made.n_layers), made, work)
    if fits(whole, machines):
        times.append(whole_forecast(host, made, work, work.users).request_s)
    forecasts: dict[tuple[tuple[MachineId, int], ...], float] = {}  # the layers decide, not the order of the lenders
    for stages in every_split(host, lenders, made, work):
        if fits(stages, machines):
            held: dict[MachineId, int] = {}
            for stage in stages:
                held[stage.machine] = held.get(stage.machine, 0) + len(stage.layers)
            key = tuple(sorted(held.items()))
            if key not in forecasts:
                known = forecast(stages, machines, made, work)
                assert known is not None
                forecasts[key] = known.request_s
    return min([*times, *forecasts.values()], default=None)
