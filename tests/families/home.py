"""Models and the stage files cut from them, as a node keeps both."""

from __future__ import annotations

from dataclasses import dataclass

from app.catalog.shelf import Entry, Shelf
from app.catalog.stages.stage_store import StageStore
from backends.contract import KvType, Layers, Role, StageConfig

SLOTS, CELLS, CONTEXT, ROWS = 2, 512, 256, 64


@dataclass(frozen=True, slots=True)
class Home:
    """A shelf, and the store of what was cut."""

    shelf: Shelf
    stages: StageStore
    kv: KvType = KvType.F16

    def config(self, entry: Entry, layers: Layers, role: Role, *, apart: bool) -> StageConfig:
        """Return the configuration with which a placement opens this run (app/node/placement/stages.py)."""
        path = entry.path
        if role is not Role.WHOLE:
            path = str(self.stages.write_stage(self.shelf.cut(entry, layers, role)))
        return StageConfig(
            "llamacpp", path, entry.path, role, layers, entry.model.width, SLOTS, CELLS, ROWS,
            threads=1, apart=apart, traits=entry.model.cuts.traits(role), any_engine=True, kv=self.kv,
        )  # fmt: skip
