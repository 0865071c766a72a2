"""Stage files of random weights in a model's own shape: what the engine is measured on."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from app.catalog import ggml
from app.catalog.families import FAMILIES
from app.catalog.family_facts import idle_kind
from app.catalog.gguf import EMBEDDING, HEAD, HEAD_BIAS, model_of
from app.catalog.gguf_bytes import entry, header_bytes, u32_entry
from app.catalog.gguf_check import DEFAULT_ALIGNMENT, aligned, read_header
from app.catalog.layer_kinds import WINDOW, WINDOW_LAYERS
from app.catalog.legal import unproved
from app.catalog.rules import Rule
from app.catalog.shape import has_window, layer_bytes, tensor_bytes
from app.catalog.stage_tensors import ROPE_FREQS
from app.core.errors import BadInput
from app.core.model import PLACEHOLDER_ROWS, Model
from app.core.model_shape import LayerKind, ModelShape, Setting, Tensor
from backends.contract import Role

MAX_LAYER_BYTES = 1 << 30
MAX_HEAD_BYTES = 4 << 30
MAX_SHARED_BYTES = 1 << 20  # norms and rope factors

PATTERN_BYTES = 256 << 10  # of random weights, repeated: no engine looks for repetition
WRITE_BYTES = 1 << 20

# Quantised blocks are random bytes with 16-bit scales such that weights are about 1/64 and 0 on average:
# larger ones grow beyond all numbers over the layers, and very small ones are slow on some processors.
# Type -> place and value of each scale. Source of the places: ggml-common.h of llama.cpp.
_SCALES: dict[str, tuple[tuple[int, float], ...]] = {
    "Q4_0": ((0, 2**-8),),
    "Q4_1": ((0, 2**-8), (2, -7.5 * 2**-8)),
    "Q5_0": ((0, 2**-9),),
    "Q5_1": ((0, 2**-9), (2, -15.5 * 2**-9)),
    "Q8_0": ((0, 2**-12),),
    "Q2_K": ((80, 2**-10), (82, 1.5 * 2**-10)),
    "Q3_K": ((108, 2**-12),),
    "Q4_K": ((0, 2**-14), (2, 7.5 * 2**-14)),
    "Q5_K": ((0, 2**-15), (2, 15.5 * 2**-15)),
    "Q6_K": ((208, 2**-16),),
    "IQ2_XXS": ((0, 2**-12),),
    "IQ2_XS": ((0, 2**-12),),
    "IQ2_S": ((0, 2**-12),),
    "IQ3_XXS": ((0, 2**-13),),
    "IQ3_S": ((0, 2**-15),),
    "IQ1_S": ((0, 2**-9),),
    "IQ4_NL": ((0, 2**-12),),
    "IQ4_XS": ((0, 2**-16),),
    "TQ1_0": ((52, 2**-6),),
    "TQ2_0": ((64, 2**-6),),
}
# Types whose values are numbers themselves: of every `width` bytes the highest one keeps its sign bit
# and lowest bits (`kept`), and gets an exponent that makes numbers of about 1/64 (`set`).
_FLOATS: dict[str, tuple[int, int, int]] = {
    "F16": (2, 0x83, 0x24),
    "BF16": (2, 0x80, 0x3C),
    "F32": (4, 0x80, 0x3C),
}
_ONES: dict[str, bytes] = {"F32": struct.pack("<f", 1.0), "F16": struct.pack("<e", 1.0)}


def can_be_made(name: str) -> bool:
    """Whether weights of this number type can be made up."""
    return name in _SCALES or name in _FLOATS


def check(shape: ModelShape) -> None:
    """Refuse what cannot be written or would be too much, by numbers alone. Raises BadInput."""
    if shape.architecture not in FAMILIES:
        raise BadInput("whole_family", architecture=shape.architecture)
    if not FAMILIES[shape.architecture].measurable:
        raise BadInput("speed_family", architecture=shape.architecture)
    own_keys = [setting.key for setting in shape.layers[0].settings]
    for kind in shape.layers:
        _must(_known(kind.tensors), "a tensor's type or size")
        _must(0 < layer_bytes(kind) <= MAX_LAYER_BYTES, "the size of a layer")
        _must(_settings_hold(kind.settings, lists=False), "a setting of a layer")
        _must([s.key for s in kind.settings] == own_keys, "a setting of a layer")
    _must(_known(shape.shared), "a shared tensor's type or size")
    shared = sum(tensor_bytes(tensor) for tensor in shape.shared)
    _must(shared <= MAX_SHARED_BYTES, "the size of the shared tensors")
    _must(_known((shape.head,)) and tensor_bytes(shape.head) <= MAX_HEAD_BYTES, "the output matrix")
    _must(len(shape.head.dims) == 2 and shape.head.dims[0] == shape.width, "the output matrix")
    _must(_settings_hold(shape.settings, lists=True), "a setting")
    _must(all(s.key.startswith(shape.architecture + ".") for s in shape.settings), "a setting")


def mixed(shape: ModelShape, n_layers: int) -> tuple[LayerKind, ...]:
    """So many layers, of each kind as large a share as in the model."""
    total = shape.n_layers
    shares = [n_layers * kind.count / total for kind in shape.layers]
    whole = [int(share) for share in shares]
    rests = sorted(range(len(shares)), key=lambda i: (whole[i] - shares[i], i))
    for index in rests[: n_layers - sum(whole)]:
        whole[index] += 1
    return tuple(kind for kind, n in zip(shape.layers, whole, strict=True) for _ in range(n))


def write(path: Path, shape: ModelShape, layers: Sequence[LayerKind], role: Role) -> Model:
    """Write a stage of these layers and read it back as a stranger's file is read.

    role: MIDDLE, or LAST with the output matrix. The shape is a checked one. Raises BadInput, OSError.
    """
    tensors = list(_tensors(shape, layers, role))
    listed = [(t.name, t.dims, t.kind, tensor_bytes(t)) for t in tensors]
    head = header_bytes(DEFAULT_ALIGNMENT, list(_entries(shape, layers, role)), listed)
    with path.open("wb") as file:
        file.write(head)
        for tensor in tensors:
            file.write(bytes(aligned(file.tell(), DEFAULT_ALIGNMENT) - file.tell()))
            for chunk in _weights(tensor):
                file.write(chunk)
    return _read_back(path, shape, len(layers))


def file_bytes(shape: ModelShape, layers: Sequence[LayerKind], role: Role) -> int:
    """About the size of that stage's file."""
    return sum(tensor_bytes(tensor) for tensor in _tensors(shape, layers, role))


def _read_back(path: Path, shape: ModelShape, n_layers: int) -> Model:
    header = read_header(path)
    model = model_of(header, "measured", "")
    if (why := unproved(header, model.architecture)) is not None:
        raise BadInput(why.code, **why.facts)
    _must(model.width == shape.width and model.n_layers == n_layers, "its width")
    return model


def _tensors(shape: ModelShape, layers: Sequence[LayerKind], role: Role) -> Iterator[Tensor]:
    """As a cut would list them (stage_tensors.py)."""
    family, width = FAMILIES[shape.architecture], shape.width
    needs_head = Rule.F1 in family.rules
    if role is Role.LAST:
        if needs_head:
            yield Tensor(EMBEDDING, idle_kind(width), shape.head.dims)
        yield Tensor(HEAD if needs_head else EMBEDDING, shape.head.kind, shape.head.dims)
    else:
        yield Tensor(EMBEDDING, ggml.F16, (width, PLACEHOLDER_ROWS))
        if needs_head:
            yield Tensor(HEAD, ggml.F16, (width, PLACEHOLDER_ROWS))
    idle = Rule.F10 in family.rules and all(map(has_window, layers))
    for tensor in shape.shared:
        if tensor.name == HEAD_BIAS and role is not Role.LAST:
            yield Tensor(HEAD_BIAS, ggml.F32, (PLACEHOLDER_ROWS,))
        elif not (idle and tensor.name == ROPE_FREQS):
            yield tensor
    for number, layer in enumerate(layers):
        for tensor in layer.tensors:
            yield Tensor(f"blk.{number}.{tensor.name}", tensor.kind, tensor.dims)


def _entries(shape: ModelShape, layers: Sequence[LayerKind], role: Role) -> Iterator[bytes]:
    n_vocab = shape.head.dims[1] if role is Role.LAST else PLACEHOLDER_ROWS
    yield entry("general.architecture", ggml.STRING, (shape.architecture,))
    yield u32_entry("general.alignment", DEFAULT_ALIGNMENT)
    yield entry("tokenizer.ggml.model", ggml.STRING, ("no_vocab",))
    yield u32_entry(f"{shape.architecture}.block_count", len(layers))
    yield u32_entry(f"{shape.architecture}.vocab_size", n_vocab)
    family = FAMILIES[shape.architecture]
    no_window = family.window and family.window.may_go and not any(map(has_window, layers))
    for setting in shape.settings:
        if not (no_window and setting.key.endswith(f".{WINDOW}")):
            yield _entry(setting, setting.values, setting.is_list)
    for index, setting in enumerate(layers[0].settings):
        if not (no_window and setting.key.endswith(f".{WINDOW_LAYERS}")):
            values = tuple(layer.settings[index].values[0] for layer in layers)
            yield _entry(setting, values, is_list=True)


def _entry(setting: Setting, values: Sequence[object], is_list: bool) -> bytes:
    try:
        return entry(setting.key, setting.kind, values, is_list)
    except (struct.error, OverflowError):
        raise BadInput("speed_shape_odd", what="a setting") from None


def _weights(tensor: Tensor) -> Iterator[bytes]:
    """The bytes of a tensor: ones for vectors, which are factors of norms, else random weights."""
    name, _, block_bytes = ggml.TENSORS[tensor.kind]
    left = tensor_bytes(tensor)
    if len(tensor.dims) == 1 and name in _ONES:
        yield _ONES[name] * (left // block_bytes)
        return
    chunk = _pattern(tensor.kind)
    while left > 0:
        yield chunk[:left]
        left -= len(chunk)


@cache
def _pattern(kind: int) -> bytes:
    """About 1 MiB of blocks of this type; the same in every process."""
    name, _, block_bytes = ggml.TENSORS[kind]
    n_blocks = PATTERN_BYTES // block_bytes
    data = bytearray(random.Random(kind).randbytes(n_blocks * block_bytes))  # noqa: S311  no secret
    for place, scale in _SCALES.get(name, ()):
        low, high = struct.pack("<e", scale)
        data[place::block_bytes] = bytes([low]) * n_blocks
        data[place + 1 :: block_bytes] = bytes([high]) * n_blocks
    if name in _FLOATS:
        width, kept, exponent = _FLOATS[name]
        table = bytes(byte & kept | exponent for byte in range(256))
        data[width - 1 :: width] = data[width - 1 :: width].translate(table)
    return bytes(data) * (WRITE_BYTES // len(data))


def _settings_hold(settings: Sequence[Setting], *, lists: bool) -> bool:
    for setting in settings:
        if setting.kind not in ggml.SCALARS and setting.kind != ggml.STRING:
            return False
        if setting.is_list and not lists:
            return False
        if not setting.is_list and len(setting.values) != 1:
            return False
    return True


def _known(tensors: Sequence[Tensor]) -> bool:
    """Whether each is of a type that can be made up, in whole blocks."""
    return all(
        tensor.kind in ggml.TENSORS
        and can_be_made(ggml.TENSORS[tensor.kind][0])
        and tensor_bytes(tensor) > 0
        for tensor in tensors
    )


def _must(holds: bool, what: str) -> None:
    if not holds:
        raise BadInput("speed_shape_odd", what=what)
