"""Generates stage files with random weights in the shape of a model, for measuring the engine's speed."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from app.catalog.families.family_table import FAMILIES, WINDOW_LAYERS, Rule, idle_kind, unproved_stage
from app.catalog.families.layer_metadata import WITHOUT_PREFIX
from app.catalog.gguf import tensor_types
from app.catalog.gguf.gguf_file import DEFAULT_ALIGNMENT, align_up, entry, header_bytes, read_header, u32_entry
from app.catalog.gguf.model_reader import EMBEDDING, HEAD, HEAD_BIAS, model_of
from app.catalog.gguf.model_shape_reader import layer_bytes, tensor_bytes
from app.catalog.stages.cut import ROPE_FREQS
from app.core.errors import BadInput, Reason
from app.core.model import PLACEHOLDER_ROWS, LayerRun, Model, ModelShape, Setting, Tensor
from backends.contract import Role

MAX_LAYER_BYTES = 1 << 30
MAX_HEAD_BYTES = 4 << 30
MAX_SHARED_BYTES = 1 << 20  # norms and rope factors

PATTERN_BYTES = 256 << 10  # length after which random weights repeat, which no engine takes advantage of
WRITE_BYTES = 1 << 20

# Quantized blocks are random bytes with 16-bit scales chosen so that weights are about 1/64 in size and average to 0.
# Larger weights would overflow after a few layers, and very small ones are slow on some processors. Type -> offset and
# value of each scale. Source of the offsets: ggml-common.h of llama.cpp.
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
    "Q1_0": ((0, 2**-6),),
    "Q2_0": ((0, 2**-6),),
}
# The same for scales that are not 16-bit numbers. Type -> offset, mask of the bits that stay random, and fixed bits.
_SCALE_BYTES: dict[str, tuple[tuple[int, int, int], ...]] = {
    "MXFP4": ((0, 0, 120),),  # a power of two
    "NVFP4": tuple((place, 0, 4) for place in range(4)),  # 8-bit scales, set to a small subnormal value
    # a 16-bit scale of 2^-9, with four of its bits in each byte
    "IQ1_M": ((49, 15, 0), (51, 15, 0), (53, 15, 0x80), (55, 15, 0x10)),
}
# Types without blocks. The last of every `width` bytes keeps its sign and lowest bits (`kept`), and its exponent is set
# so that values are about 1/64.
_FLOATS: dict[str, tuple[int, int, int]] = {"F16": (2, 0x83, 0x24), "BF16": (2, 0x80, 0x3C), "F32": (4, 0x80, 0x3C)}
_LETTERS = {"F32": "<f", "F16": "<e"}
# How fast a recurrent layer forgets. It must be below 0, or the state overflows within a prompt, and close to 0, or
# the state becomes so small that some processors slow down.
_DECAYS, DECAY = ("ssm_a",), -1 / 8


def can_generate(name: str) -> bool:
    """Return whether random weights of this number type can be generated."""
    return name in _SCALES or name in _SCALE_BYTES or name in _FLOATS


def check(shape: ModelShape) -> None:
    """Raise BadInput for a shape that cannot be written or would be too large. Writes nothing."""
    if (why := unproved_stage(shape.architecture)) is not None:
        raise BadInput(why.code, **why.facts)
    for kind in shape.kinds:
        _must(_known(kind.tensors), "speed_tensor")
        _must(0 < layer_bytes(kind) <= MAX_LAYER_BYTES, "speed_layer_size")
    for run in shape.runs:
        _must(max(run.kinds) < len(shape.kinds), "speed_layer")
        _must(_settings_hold(shape.architecture, run.settings), "speed_run_setting")
    _must(_known(shape.shared), "speed_shared_tensor")
    shared = sum(tensor_bytes(tensor) for tensor in shape.shared)
    _must(shared <= MAX_SHARED_BYTES, "speed_shared_size")
    _must(_known((shape.head,)) and tensor_bytes(shape.head) <= MAX_HEAD_BYTES, "speed_head")
    _must(len(shape.head.dims) == 2 and shape.head.dims[0] == shape.width, "speed_head")
    _must(_settings_hold(shape.architecture, shape.settings), "setting")


def write(path: Path, shape: ModelShape, run: LayerRun, role: Role) -> Model:
    """Write a stage file for this run of layers, and read it back with the checks for untrusted files. Raises BadInput
    or OSError.

    role: MIDDLE, or LAST to include the output matrix.
    shape: must have been accepted by `check`.
    """
    tensors = list(_tensors(shape, run, role))
    listed = [(t.name, t.dims, t.kind, tensor_bytes(t)) for t in tensors]
    head = header_bytes(DEFAULT_ALIGNMENT, list(_entries(shape, run, role)), listed)
    with path.open("wb") as file:
        file.write(head)
        for tensor in tensors:
            file.write(bytes(align_up(file.tell(), DEFAULT_ALIGNMENT) - file.tell()))
            for chunk in _weights(tensor):
                file.write(chunk)
    return _read_back(path, shape, len(run.kinds))


def file_bytes(shape: ModelShape, run: LayerRun, role: Role) -> int:
    """Return the approximate size of the file that `write` creates."""
    return sum(tensor_bytes(tensor) for tensor in _tensors(shape, run, role))


def _read_back(path: Path, shape: ModelShape, n_layers: int) -> Model:
    model = model_of(read_header(path), "measured", "")
    _must(model.architecture == shape.architecture, "speed_family")
    _must(model.width == shape.width and model.n_layers == n_layers, "speed_width")
    return model


def _tensors(shape: ModelShape, run: LayerRun, role: Role) -> Iterator[Tensor]:
    """Yield the same tensors that a stage cut out of a real model has (cut.py)."""
    family, width = FAMILIES[shape.architecture], shape.width
    needs_head = Rule.F1 in family.rules
    if role is Role.LAST:
        if needs_head:
            yield Tensor(EMBEDDING, idle_kind(width), shape.head.dims)
        yield Tensor(HEAD if needs_head else EMBEDDING, shape.head.kind, shape.head.dims)
    else:
        yield Tensor(EMBEDDING, tensor_types.F16, (width, PLACEHOLDER_ROWS))
        if needs_head:
            yield Tensor(HEAD, tensor_types.F16, (width, PLACEHOLDER_ROWS))
    idle = Rule.F10 in family.rules and _all_windows(shape, run)
    for tensor in shape.shared:
        if tensor.name == HEAD_BIAS and role is not Role.LAST:
            yield Tensor(HEAD_BIAS, tensor_types.F32, (PLACEHOLDER_ROWS,))
        elif not (idle and tensor.name == ROPE_FREQS):
            yield tensor
    for number, layer in enumerate(shape.layers(run)):
        for tensor in layer.tensors:
            yield Tensor(f"blk.{number}.{tensor.name}", tensor.kind, tensor.dims)


def _all_windows(shape: ModelShape, run: LayerRun) -> bool:
    """Return whether all layers of a run have a sliding window."""
    key = f"{shape.architecture}.{WINDOW_LAYERS}"
    listed = [setting.values for setting in (*shape.settings, *run.settings) if setting.key == key]
    return bool(listed) and all(listed[0])


def _entries(shape: ModelShape, run: LayerRun, role: Role) -> Iterator[bytes]:
    n_vocab = shape.head.dims[1] if role is Role.LAST else PLACEHOLDER_ROWS
    yield entry("general.architecture", tensor_types.STRING, (shape.architecture,))
    yield u32_entry("general.alignment", DEFAULT_ALIGNMENT)
    yield entry("tokenizer.ggml.model", tensor_types.STRING, ("no_vocab",))
    yield u32_entry(f"{shape.architecture}.block_count", len(run.kinds))
    yield u32_entry(f"{shape.architecture}.vocab_size", n_vocab)
    for setting in (*shape.settings, *run.settings):
        yield _entry(setting)


def _entry(setting: Setting) -> bytes:
    try:
        return entry(setting.key, setting.kind, setting.values, setting.is_list)
    except (struct.error, OverflowError):
        raise BadInput("speed_shape_odd", what=Reason("setting")) from None


def _weights(tensor: Tensor) -> Iterator[bytes]:
    """Yield the bytes of a tensor: a constant for decays, ones for vectors (the factors of norms), and random weights
    for all others."""
    name, _, block_bytes = tensor_types.TENSORS[tensor.kind]
    left = tensor_bytes(tensor)
    decays = tensor.name.endswith(_DECAYS)
    if name in _LETTERS and (decays or len(tensor.dims) == 1):
        value = struct.pack(_LETTERS[name], DECAY if decays else 1.0)
        yield value * (left // block_bytes)
        return
    chunk = _pattern(tensor.kind)
    while left > 0:
        yield chunk[:left]
        left -= len(chunk)


@cache
def _pattern(kind: int) -> bytes:
    """Return about 1 MiB of random blocks of this type. They are the same in every process."""
    name, _, block_bytes = tensor_types.TENSORS[kind]
    n_blocks = PATTERN_BYTES // block_bytes
    data = bytearray(random.Random(kind).randbytes(n_blocks * block_bytes))  # noqa: S311  no secret
    for place, scale in _SCALES.get(name, ()):
        low, high = struct.pack("<e", scale)
        data[place::block_bytes] = bytes([low]) * n_blocks
        data[place + 1 :: block_bytes] = bytes([high]) * n_blocks
    for place, kept, fixed in _SCALE_BYTES.get(name, ()):
        table = bytes(byte & kept | fixed for byte in range(256))
        data[place::block_bytes] = data[place::block_bytes].translate(table)
    if name in _FLOATS:
        width, kept, exponent = _FLOATS[name]
        table = bytes(byte & kept | exponent for byte in range(256))
        data[width - 1 :: width] = data[width - 1 :: width].translate(table)
    return bytes(data) * (WRITE_BYTES // len(data))


def _settings_hold(architecture: str, settings: Sequence[Setting]) -> bool:
    for setting in settings:
        if not setting.key.startswith(f"{architecture}.") and setting.key not in WITHOUT_PREFIX:
            return False
        if setting.kind not in tensor_types.SCALARS and setting.kind != tensor_types.STRING:
            return False
        if not setting.is_list and len(setting.values) != 1:
            return False
    return True


def _known(tensors: Sequence[Tensor]) -> bool:
    """Return whether all tensors consist of whole blocks of types that can be generated."""
    return all(
        tensor.kind in tensor_types.TENSORS
        and can_generate(tensor_types.TENSORS[tensor.kind][0])
        and tensor_bytes(tensor) > 0
        for tensor in tensors
    )


def _must(holds: bool, claim: str) -> None:
    if not holds:
        raise BadInput("speed_shape_odd", what=Reason(claim))
