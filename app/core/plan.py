"""Who holds which layers. Pure: same facts in, same answer out; no clock, no network.

For now memory alone decides: one machine if the model fits there, otherwise the fewest lenders, filled
evenly. The host holds the first and the last run, so that tokens, text and logits never leave it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from app.core.errors import BadInput, DoesNotFit, Reason
from app.core.ids import MachineId
from app.core.model import Model
from backends.contract import Layers, Role

STAGE_HEADER_BYTES = 1 << 20  # metadata and names of tensors in a stage's file, with some to spare
WORK_FLOOR_BYTES = 64 << 20  # an engine's own buffers and code, measured on small models
WORK_ROW_VALUES = 24  # float32 values of a layer's width that live at once for each row of a step


@dataclass(frozen=True, slots=True)
class Candidate:
    """A machine that could hold layers, and how many bytes it lends for that now."""

    id: MachineId
    name: str
    lends_bytes: int


@dataclass(frozen=True, slots=True)
class Workload:
    """What the model is loaded for. `context`: positions of one sequence; `users`: sequences at once."""

    context: int
    users: int = 1
    batch_rows: int = 64


@dataclass(frozen=True, slots=True)
class PlannedStage:
    """One run of layers on one machine, with the memory it takes there."""

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


@dataclass(frozen=True, slots=True)
class Plan:
    """A placement of all layers, in the order a token travels, and why it is so."""

    stages: tuple[PlannedStage, ...]
    workload: Workload
    reasons: tuple[Reason, ...]

    @property
    def shape(self) -> str:
        return "one machine" if len({stage.machine for stage in self.stages}) == 1 else "split"


def plan(
    host: Candidate,
    lenders: Sequence[Candidate],
    model: Model,
    workload: Workload,
    split: Sequence[int] | None = None,
) -> Plan:
    """Place the model. `split` forces the layers of each run: host's first, lenders in order, host's last.

    Raises DoesNotFit with the bytes that are missing, BadInput for a split that cannot be.
    """
    if split is not None:
        return _forced(host, lenders, model, workload, split)
    alone = _stage(host, Role.WHOLE, Layers(0, model.n_layers), model, workload)
    if alone.total_bytes <= host.lends_bytes:
        fits = Reason("plan_fits_host", {"machine": host.name})
        return Plan((alone,), workload, (fits, *_why_whole(model)))
    if not model.boundaries:
        raise DoesNotFit("whole_too_big", model=model.name, machine=host.name,
                         need_bytes=alone.total_bytes, free_bytes=host.lends_bytes)  # fmt: skip
    ranked = sorted(lenders, key=lambda lender: (-lender.lends_bytes, lender.name, lender.id))
    for n_lenders in range(1, len(ranked) + 1):
        stages = _balanced(host, ranked[:n_lenders], model, workload)
        if stages:
            reason = Reason("plan_split", {"machine": host.name, "machines": n_lenders + 1})
            return Plan(stages, workload, (reason,))
    lent = host.lends_bytes + sum(lender.lends_bytes for lender in lenders)
    raise DoesNotFit("pool_too_small", model=model.name, need_bytes=alone.total_bytes,
                     lent_bytes=lent, machines=1 + len(lenders))  # fmt: skip


def work_bytes(width: int, batch_rows: int) -> int:
    """What an engine needs beside weights and KV to compute steps of `batch_rows` rows."""
    return WORK_FLOOR_BYTES + 4 * batch_rows * width * WORK_ROW_VALUES


def _stage(
    machine: Candidate, role: Role, layers: Layers, model: Model, workload: Workload
) -> PlannedStage:
    cells = workload.context * workload.users
    header = 0 if role is Role.WHOLE else STAGE_HEADER_BYTES
    logits = workload.users * model.n_vocab if role in (Role.LAST, Role.WHOLE) else 0
    return PlannedStage(
        machine.id,
        machine.name,
        role,
        layers,
        weight_bytes=model.stage_bytes(layers, role) + header,
        kv_bytes=model.kv_bytes(layers, cells),
        work_bytes=work_bytes(model.width, workload.batch_rows) + 4 * logits,
    )


def _runs(n_runs: int) -> list[Role]:
    return [Role.WHOLE] if n_runs == 1 else [Role.FIRST, *[Role.MIDDLE] * (n_runs - 2), Role.LAST]


def _why_whole(model: Model) -> tuple[Reason, ...]:
    return (model.whole_reason,) if model.whole_reason else ()


def _forced(
    host: Candidate,
    lenders: Sequence[Candidate],
    model: Model,
    workload: Workload,
    split: Sequence[int],
) -> Plan:
    _check_split(lenders, model, split)
    holders = [host] if len(split) == 1 else [host, *lenders[: len(split) - 2], host]
    edges = [sum(split[:n]) for n in range(len(split) + 1)]
    stages = tuple(
        _stage(holder, role, Layers(first, last), model, workload)
        for holder, role, (first, last) in zip(
            holders, _runs(len(split)), pairwise(edges), strict=True
        )
    )
    for machine in dict.fromkeys(holders):
        need = sum(stage.total_bytes for stage in stages if stage.machine == machine.id)
        if need > machine.lends_bytes:
            raise DoesNotFit("machine_too_small", machine=machine.name, need_bytes=need,
                             free_bytes=machine.lends_bytes)  # fmt: skip
    return Plan(stages, workload, (Reason("plan_forced"),))


def _check_split(lenders: Sequence[Candidate], model: Model, split: Sequence[int]) -> None:
    shown = ",".join(map(str, split))
    if any(n < 1 for n in split) or sum(split) != model.n_layers:
        raise BadInput("split_sum", split=shown, sum=sum(split), layers=model.n_layers)
    if len(split) - 2 > len(lenders):
        raise BadInput("split_lenders", split=shown, need=len(split) - 2, have=len(lenders))
    if len(split) > 1 and not model.boundaries:
        raise BadInput("split_family", architecture=model.architecture)
    edges = [sum(split[:n]) for n in range(1, len(split))]
    for edge in edges:
        if edge not in model.boundaries:
            raise BadInput("split_boundary", split=shown, layer=edge)


def _balanced(
    host: Candidate, lenders: Sequence[Candidate], model: Model, workload: Workload
) -> tuple[PlannedStage, ...]:
    """The legal cuts that fill the fullest machine least, or () when none fits. The host's first run
    is as short as it may be: its last run carries the head, and one long run beats two short ones."""
    start = min(model.boundaries)
    first = _stage(host, Role.FIRST, Layers(0, start), model, workload)
    best: dict[int, tuple[float, tuple[PlannedStage, ...]]] = {start: (0.0, (first,))}
    for lender in lenders:
        reached: dict[int, tuple[float, tuple[PlannedStage, ...]]] = {}
        for begin, (fullest, stages) in best.items():
            for end in (edge for edge in model.boundaries if edge > begin):
                stage = _stage(lender, Role.MIDDLE, Layers(begin, end), model, workload)
                fill = max(fullest, stage.total_bytes / max(lender.lends_bytes, 1))
                if fill <= 1.0 and (end not in reached or fill < reached[end][0]):
                    reached[end] = (fill, (*stages, stage))
        best = reached
    return _with_last(host, best, model, workload)


def _with_last(
    host: Candidate,
    best: dict[int, tuple[float, tuple[PlannedStage, ...]]],
    model: Model,
    workload: Workload,
) -> tuple[PlannedStage, ...]:
    chosen: tuple[float, tuple[PlannedStage, ...]] = (1.0, ())
    for end, (fullest, stages) in best.items():
        last = _stage(host, Role.LAST, Layers(end, model.n_layers), model, workload)
        on_host = stages[0].total_bytes + last.total_bytes
        fill = max(fullest, on_host / max(host.lends_bytes, 1))
        if fill <= 1.0 and (not chosen[1] or fill < chosen[0]):
            chosen = (fill, (*stages, last))
    return chosen[1]
