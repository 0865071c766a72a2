"""The sizes common to all stages of a placement, and the order that opens each stage."""

from __future__ import annotations

from dataclasses import dataclass

from app.catalog.shelf import Entry
from app.core.model import Model
from app.core.planner.placement import PlannedStage
from app.inference.pipeline.step import Run
from app.machine.hardware.cores import Threads
from app.network import messages
from backends.contract import KEEP_ALL, LLAMACPP, Keep, KvType, Number, StageConfig, keeps_apart

NUMBER_NAMES = {Number.F32: "f32", Number.F16: "f16", Number.Q8: "q8"}


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of one placement."""

    number: Number
    slots: int
    kv_cells: int
    context: int
    batch_rows: int
    threads: Threads  # of this machine's worker
    kv: KvType = KvType.F16
    keep: Keep = KEEP_ALL

    def config(self, stage: PlannedStage, entry: Entry, path: str) -> StageConfig:
        """Return the order for this machine's own worker."""
        return StageConfig(
            engine=LLAMACPP,
            path=path,
            embedding_path=entry.path,
            role=stage.role,
            layers=stage.layers,
            width=entry.model.width,
            slots=self.slots,
            kv_cells=self.kv_cells,
            batch_rows=self.batch_rows,
            threads=self.threads.most,
            begin_threads=self.threads.begin,
            apart=keeps_apart(self.slots, self.kv_cells, self.context),
            traits=entry.model.cuts.traits(stage.role),
            kv=self.kv,
            keep=self.keep,
        )

    def order(self, stage: PlannedStage, model: Model, run: Run, manifest: str) -> messages.OpenStage:
        """Return the order for a lender."""
        return messages.OpenStage(
            request=0,
            pipeline=run.pipeline.hex(),
            epoch=run.epoch,
            model=model.name[:200],
            manifest=manifest,
            first=stage.layers.first,
            last=stage.layers.last,
            n_layers=model.n_layers,
            width=model.width,
            number=NUMBER_NAMES[self.number],  # type: ignore[arg-type]
            slots=self.slots,
            kv_cells=self.kv_cells,
            context=self.context,
            batch_rows=self.batch_rows,
            engine=LLAMACPP,
            kv=self.kv,
            kept_states=self.keep.marks,
            kept_rows=self.keep.least_rows,
        )
