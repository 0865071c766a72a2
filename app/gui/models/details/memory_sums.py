"""The memory of a plan, added up: weights, KV cache and work memory of each machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QCoreApplication

from app.core.planner.verdict import Parts
from app.gui.look import formats

Json = dict[str, Any]
translate = QCoreApplication.translate


@dataclass(frozen=True, slots=True)
class Memory:
    """What one machine would hold, of what it lends."""

    name: str
    weights: int
    kv: int
    work: int
    lends: int

    @property
    def needs(self) -> int:
        return self.weights + self.kv + self.work

    @property
    def left(self) -> int:
        return max(0, self.lends - self.needs)


def memories(plan: Json) -> list[Memory]:
    """Of every machine that holds something, in the order of the plan."""
    lends = {one["id"]: one["lends_bytes"] for one in plan["machines"]}
    found: dict[str, Memory] = {}
    for stage in plan["stages"]:
        key = str(stage["id"])
        was = found.get(key) or Memory(str(stage["machine"]), 0, 0, 0, int(lends.get(key, 0)))
        found[key] = Memory(
            was.name,
            was.weights + int(stage["weight_bytes"]),
            was.kv + int(stage["kv_bytes"]),
            was.work + int(stage["work_bytes"]),
            was.lends,
        )
    return list(found.values())


def lent_bytes(plan: Json) -> int:
    """Of all machines that were considered."""
    known = (plan.get("from") or {}).get("machines") or plan["machines"]
    return sum(int(one["lends_bytes"]) for one in known)


def whole_sum(plan: Json) -> str:
    """`Weights 39.7 GiB + KV cache 2.5 GiB (8,192 tokens) + work memory 2.2 GiB = 44.4 of 57.7 GiB`."""
    parts = memories(plan)
    cells = int(plan["context"]) * int(plan["users"])
    words = translate(
        "Models",
        "Weights {weights} + KV cache {kv} for {tokens} tokens + work memory {work} = {needs} "
        "of {lends} free for models now.",
    )
    return words.format(
        weights=formats.size(sum(part.weights for part in parts)),
        kv=formats.size(sum(part.kv for part in parts)),
        tokens=formats.number(cells),
        work=formats.size(sum(part.work for part in parts)),
        needs=formats.size(sum(part.needs for part in parts)),
        lends=formats.size(lent_bytes(plan)),
    )


def short_sum(parts: Parts) -> str:
    """The same for a model that does not fit."""
    words = translate(
        "Models", "Weights {weights} + KV cache {kv} + work memory {work} = {needs}; {lends} are free for models now."
    )
    return words.format(
        weights=formats.size(parts.weight_bytes),
        kv=formats.size(parts.kv_bytes),
        work=formats.size(parts.work_bytes),
        needs=formats.size(parts.needs_bytes),
        lends=formats.size(parts.lends_bytes),
    )


def of_machine(part: Memory) -> str:
    """The same for one machine."""
    words = translate("Models", "weights {weights} + KV {kv} + work {work}, {left} left")
    return words.format(
        weights=formats.size(part.weights),
        kv=formats.size(part.kv),
        work=formats.size(part.work),
        left=formats.size(part.left),
    )
