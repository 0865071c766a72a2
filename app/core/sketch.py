"""A model that is not here yet, from what a catalogue says of it. Pure; every sum from it is an estimate."""

from __future__ import annotations

from app.core.errors import Reason
from app.core.model import Model

LAYERS = 32  # where nobody says: those of common models of 7 to 8 billion parameters
KV_BYTES = 4096  # of a token in a layer, f16: 8 heads of 128 values, keys and values
WIDTH, VOCABULARY = 4096, 128 << 10  # weigh little: only in the work memory


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
