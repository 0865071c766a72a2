"""What a host orders, as what it takes here: by this machine's own reading of the stage file."""

from __future__ import annotations

from pathlib import Path

from app.catalog.families.cut_boundaries import unproved_stage
from app.catalog.gguf.gguf_check import read_header
from app.catalog.gguf.model_reader import model_of
from app.catalog.stages.manifest import Manifest
from app.core.errors import BadInput
from app.core.planner.plan import work_bytes
from app.core.scheduler.threads import Threads
from app.inference.pipeline.step import Run
from app.inference.stages.stage_host import Wanted
from app.network import messages
from backends.contract import MAX_BATCH_TOKENS, Keep, Layers, Number, Role, StageConfig, keeps_apart

MAX_SLOTS, MAX_CELLS = 512, 1 << 24
NUMBERS = {"f32": Number.F32, "f16": Number.F16, "q8": Number.Q8}


def wanted_of(
    order: messages.OpenStage, path: Path, manifest: Manifest, threads: Threads
) -> Wanted:
    """Reads the file. Raises BadInput for an order that does not go with it."""
    header = read_header(path)
    model = model_of(header, order.model, manifest.model_id)
    if (why := unproved_stage(model.architecture)) is not None:
        raise BadInput(why.code, **why.facts)
    layers = _layers(order)
    role = Role.WHOLE if len(layers) == order.n_layers else Role.MIDDLE  # token ids come to WHOLE
    if model.width != order.width or model.n_layers != len(layers):
        raise BadInput("manifest_odd", what="another shape than was asked for")
    config = StageConfig(
        engine="llamacpp",
        path=str(path),
        embedding_path="",
        role=role,
        layers=layers,
        width=order.width,
        slots=order.slots,
        kv_cells=order.kv_cells,
        batch_rows=order.batch_rows,
        threads=threads.most,
        begin_threads=threads.begin,
        apart=keeps_apart(order.slots, order.kv_cells, order.context),
        traits=model.traits(role),
        kv=order.kv,
        keep=Keep(order.kept_states, order.kept_rows),
    )
    run = Run(bytes.fromhex(order.pipeline), role, order.width, NUMBERS[order.number], order.epoch)
    scores = 4 * order.slots * model.n_vocab if role is Role.WHOLE else 0
    return Wanted(
        run,
        order.context,
        config,
        layer_bytes=manifest.total_bytes,
        kv_bytes=model.kv_bytes(model.layers, order.kv_cells, order.slots, order.kv),
        work_bytes=work_bytes(order.width, order.batch_rows) + scores,
    )


def _layers(order: messages.OpenStage) -> Layers:
    sound = (
        order.first < order.last <= order.n_layers
        and 1 <= order.slots <= MAX_SLOTS
        and 1 <= order.context <= order.kv_cells <= MAX_CELLS
        and 1 <= order.batch_rows <= MAX_BATCH_TOKENS
        and order.engine == "llamacpp"
    )
    if not sound:
        raise BadInput("manifest_odd", what="sizes that cannot be")
    return Layers(order.first, order.last)
