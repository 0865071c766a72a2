"""A model that is not here yet, from what a catalogue says of it. Pure; every sum from it is an estimate."""

from __future__ import annotations

from app.core.errors import Reason
from app.core.model import Model
from app.core.planner.layer_effort import Effort, Experts

LAYERS = 32  # where nobody says: those of common models of 7 to 8 billion parameters
KV_BYTES = 4096  # of a token in a layer, f16: 8 heads of 128 values, keys and values
WIDTH, VOCABULARY = 4096, 128 << 10  # weigh little: only in the work memory
KV_VALUE_BYTES = 2
DENSE_SHARE = 1 / 3  # of the weights that a token takes in a model of experts: attention, what is shared
EXPERTS = 128  # of a layer, where nobody says; few or many, as large a share is read
QUERIES = 4  # heads of queries for one of keys and values, in today's models


def sketched(
    name: str,
    architecture: str,
    file_bytes: int,
    n_layers: int | None,
    kv_bytes_per_token: int | None,
    context_length: int,
    *,
    splits: bool,
) -> Model:
    """All layers alike, and all of the file in them. kv_bytes_per_token: of all layers."""
    layers = n_layers or LAYERS
    family = Reason("whole_family", {"architecture": architecture}) if architecture else None
    kv = -(-kv_bytes_per_token // layers) if kv_bytes_per_token else KV_BYTES
    return Model(
        id="",
        name=name,
        architecture=architecture,
        n_layers=layers,
        width=WIDTH,
        n_vocab=VOCABULARY,
        context_length=context_length,
        layer_bytes=(-(-file_bytes // layers),) * layers,
        embedding_bytes=0,
        head_bytes=0,
        tied=True,
        shared_bytes=0,
        kv_bytes_per_token=(kv,) * layers,
        file_bytes=file_bytes,
        quantisation="",
        licence="",
        has_template=False,
        boundaries=tuple(range(1, layers)) if splits else (),
        whole_reason=None if splits else family,
    )


def sketched_effort(model: Model, parameters: int | None, active: int | None, bytes_per_weight: float) -> Effort:
    """What a layer of a sketched model asks. Where nobody says how many weights it has, its bytes tell.

    active: weights that a token takes, in a model of experts. The output matrix is among the layers.
    """
    n_bytes = sum(model.layer_bytes) / model.n_layers
    weights = parameters / model.n_layers if parameters else n_bytes / bytes_per_weight
    share = active / parameters if active and parameters else 1.0
    position = model.kv_bytes_per_token[0] / KV_VALUE_BYTES * QUERIES
    if share >= 1:
        return Effort(n_bytes, weights, position, 0.0, 0.0)
    dense = share * DENSE_SHARE
    rest = 1 - dense
    experts = Experts(EXPERTS, EXPERTS * (share - dense) / rest, rest * n_bytes, rest * weights)
    return Effort(dense * n_bytes, dense * weights, position, 0.0, 0.0, experts)
