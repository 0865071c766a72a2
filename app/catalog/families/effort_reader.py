"""Estimates the effort of computing a model's layers from its metadata and the sizes of its tensors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import prod

from app.catalog.families.family_table import FAMILIES, STATE_VALUE_BYTES, WINDOW, kv_cache_layers, window_layers
from app.catalog.families.layer_metadata import metadata_key, n_blocks, number
from app.catalog.gguf import tensor_types
from app.catalog.gguf.gguf_file import Header
from app.catalog.gguf.model_reader import EXPERTS, head_tensor, layer_of
from app.catalog.gguf.model_shape_reader import uniform_runs
from app.catalog.stages.synthetic_stage import can_generate
from app.core.errors import BadInput
from app.core.model import LayerKind, Model, ModelShape, Setting, Tensor
from app.core.planner.speed_estimates import Effort, Experts

BIAS = ".bias"  # biases are added, not multiplied; those of experts form a matrix with one row per expert
INDEXER = "attention.indexer.top_k"  # present if attention reads only positions that an indexer selects

USUAL_WINDOW = 4096  # for files that do not state the size, such as Gemma 2's

# The stand-in layer has the sizes of Llama 3.2 1B: too large for CPU caches, yet quick to write.
WIDTH, FFN, HEADS, KV_HEADS, VOCABULARY, LAYERS = 2048, 8192, 32, 8, 32768, 16
_CODES = {name: code for code, (name, _, _) in tensor_types.TENSORS.items()}


def effort_of(header: Header, model: Model) -> Effort:
    """Return the effort of an average layer of a model.

    Raises BadInput if the effort cannot be determined, for example because the family is not proved to split.
    """
    if model.architecture not in FAMILIES:
        raise BadInput("unforecast_family", architecture=model.architecture)
    if model.cuts.whole_reason and model.cuts.whole_reason.code != "whole_one_layer":
        raise BadInput("unforecast_family", architecture=model.architecture)
    if metadata_key(header, INDEXER) in header.entries:
        raise BadInput("unforecast_indexer", architecture=model.architecture)
    n = model.n_layers
    dense, experts = [0.0, 0.0], [0.0, 0.0]
    for name, tensor in header.tensors.items():
        layer = layer_of(name)
        if layer is not None and layer < n:
            sums = experts if EXPERTS in name else dense
            sums[0] += tensor.n_bytes / n
            is_matrix = len(tensor.shape) > 1 and not name.endswith(BIAS)
            sums[1] += prod(tensor.shape) / n if is_matrix else 0
    full, near, window = _positions(header, model)
    head = head_tensor(header)
    return Effort(
        n_bytes=dense[0],
        weights=dense[1],
        position=full / n,
        head_bytes=head.n_bytes,
        head_weights=prod(head.shape),
        experts=_experts(header, model, *experts),
        window=window,
        window_position=near / n,
        state_values=sum(model.state_bytes) / STATE_VALUE_BYTES / n,
        state_bytes=sum(model.state_bytes) / n,
    )


def main_kind(header: Header, model: Model) -> str:
    """Return the number type that accounts for most bytes in the layers' matrices."""
    kinds: Counter[int] = Counter()
    for name, tensor in header.tensors.items():
        layer = layer_of(name)
        if layer is not None and layer < model.n_layers and len(tensor.shape) > 1:
            kinds[tensor.kind] += tensor.n_bytes
    return tensor_types.TENSORS[kinds.most_common(1)[0][0]][0]


def kind_of(quantization: str) -> str:
    """Return the number type of most weights in a quantization mix, derived from its name, such as Q4_K for Q4_K_M."""
    plain = quantization.upper().removeprefix("UD-").removesuffix("_MOE")
    names = sorted(_CODES, key=len, reverse=True)
    return next((name for name in names if plain.startswith(name)), "Q4_K")


def stand_in_shape(kind: str) -> ModelShape:
    """Return the shape of a plain Llama layer, which is measured instead of a model that cannot be measured. `kind` is
    the number type of its matrices."""
    code = _CODES[kind] if kind in _CODES and can_generate(kind) else _CODES["Q8_0"]
    kv = WIDTH // HEADS * KV_HEADS
    matrices = {
        "attn_q": (WIDTH, WIDTH),
        "attn_k": (WIDTH, kv),
        "attn_v": (WIDTH, kv),
        "attn_output": (WIDTH, WIDTH),
        "ffn_gate": (WIDTH, FFN),
        "ffn_up": (WIDTH, FFN),
        "ffn_down": (FFN, WIDTH),
    }
    norms = ("attn_norm", "ffn_norm")
    layer = [Tensor(f"{norm}.weight", tensor_types.F32, (WIDTH,)) for norm in norms]
    layer += [Tensor(f"{matrix}.weight", code, dims) for matrix, dims in matrices.items()]
    values = {
        "context_length": 8192,
        "embedding_length": WIDTH,
        "feed_forward_length": FFN,
        "attention.head_count": HEADS,
        "attention.head_count_kv": KV_HEADS,
    }
    settings = [Setting(f"llama.{key}", tensor_types.U32, (n,), is_list=False) for key, n in values.items()]
    settings.append(Setting("llama.attention.layer_norm_rms_epsilon", tensor_types.F32_VALUE, (2**-16,), is_list=False))
    kind_of_layer = LayerKind(tuple(layer))
    return ModelShape(
        "llama",
        WIDTH,
        tuple(settings),
        (kind_of_layer,),
        uniform_runs(kind_of_layer, LAYERS),
        (Tensor("output_norm.weight", tensor_types.F32, (WIDTH,)),),
        Tensor("token_embd.weight", _CODES["Q6_K"], (WIDTH, VOCABULARY)),
    )


def stand_in_effort(shape: ModelShape) -> Effort:
    """Return the effort of the layer described by a `stand_in_shape`."""
    layer, head = shape.kinds[0].tensors, shape.head
    return Effort(
        n_bytes=_bytes(layer),
        weights=sum(prod(tensor.dims) for tensor in layer if len(tensor.dims) > 1),
        position=2 * WIDTH,
        head_bytes=_bytes((head,)),
        head_weights=prod(head.dims),
    )


def _bytes(tensors: Iterable[Tensor]) -> int:
    return sum(tensor_types.tensor_bytes(tensor.kind, tensor.dims) or 0 for tensor in tensors)


def _experts(header: Header, model: Model, n_bytes: float, weights: float) -> Experts | None:
    """Return the experts of an average layer, or None if there are none. Raises BadInput if it is unknown how many are
    used per row."""
    if not n_bytes:
        return None
    n, key = number(header, "expert_count"), metadata_key(header, "expert_used_count")
    listed = header.integers(key, n_blocks(header), 0, 1 << 16) or ()
    some = [count for count in listed[: model.n_layers] if count > 0]
    used = sum(some) / len(some) if some else 0
    if not 0 < used <= n:
        raise BadInput("unforecast_experts", architecture=model.architecture)
    return Experts(n, used, n_bytes, weights)


def _positions(header: Header, model: Model) -> tuple[float, float, int]:
    """Return the multiplications per earlier position, summed separately over layers with full attention and layers
    with a sliding window. The third value is the window size."""
    family, blocks = FAMILIES[model.architecture], n_blocks(header)
    heads = header.integers(metadata_key(header, "attention.head_count"), blocks, 0, 1 << 16) or ()
    default = model.width // max(1, *heads, 1)
    lengths = [number(header, f"attention.{part}_length", default) for part in ("key", "value")]
    each = [count * sum(lengths) for count in heads[: model.n_layers]]
    near = window_layers(header, family) or (False,) * model.n_layers
    there = kv_cache_layers(header, family)
    full_sum = sum(n for n, has, w in zip(each, there, near, strict=True) if has and not w)
    near_sum = sum(n for n, has, w in zip(each, there, near, strict=True) if has and w)
    return full_sum, near_sum, number(header, WINDOW, USUAL_WINDOW) if near_sum else 0
