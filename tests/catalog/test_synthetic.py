"""The shape of a model and stage files made from it: what a stranger sends is bounded, what is written opens."""

from __future__ import annotations

import itertools
import math
import struct
from pathlib import Path
from typing import Any

import gguf
import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from app.catalog import ggml, synthetic
from app.catalog.gguf import model_of
from app.catalog.gguf_check import read_header
from app.catalog.shape import layer_bytes, mean_layer_bytes, shape_of
from app.core.errors import BadInput
from app.core.model_shape import LayerKind, ModelShape, Setting, Tensor
from backends.contract import Role
from testbed import tiny


def shape(path: Path, **changes: Any) -> ModelShape:
    header = read_header(tiny.llama(path, **changes))
    return shape_of(header, model_of(header, "tiny", ""))


@pytest.fixture(scope="module")
def mix(tmp_path_factory: pytest.TempPathFactory) -> ModelShape:
    """A Q4_K_M of 16 layers: two kinds of layers, eight of each."""
    folder = tmp_path_factory.mktemp("mix")
    return shape(folder / "mix.gguf", layers=16, width=256, ffn=256, quant="Q4_K_M")


def test_a_mix_has_its_kinds_of_layers(mix: ModelShape) -> None:
    assert [kind.count for kind in mix.layers] == [8, 8]
    assert len({layer_bytes(kind) for kind in mix.layers}) == 2
    assert mix.n_layers == 16
    assert mean_layer_bytes(mix) == sum(map(layer_bytes, mix.layers)) / 2
    assert {setting.key for setting in mix.settings} >= {"llama.rope.freq_base"}
    assert mix.head == Tensor("token_embd.weight", 14, (256, 300))


def test_it_is_small_on_the_wire_and_survives_it(mix: ModelShape) -> None:
    data = msgspec.json.encode(mix)
    assert len(data) < 4096
    assert msgspec.json.decode(data, type=ModelShape) == mix


@pytest.mark.parametrize("n_layers", [1, 2, 3, 5, 16, 17])
def test_a_trial_has_the_kinds_in_their_shares(mix: ModelShape, n_layers: int) -> None:
    chosen = synthetic.mixed(mix, n_layers)
    assert len(chosen) == n_layers
    counts = [chosen.count(kind) for kind in mix.layers]
    assert abs(counts[0] - counts[1]) == n_layers % 2


@pytest.mark.parametrize("quant", ["F32", "F16", "Q8_0", "Q4_0", "Q4_K", "Q4_K_M"])
@pytest.mark.parametrize("role", [Role.MIDDLE, Role.LAST])
def test_what_is_written_is_what_the_cut_makes(tmp_path: Path, quant: str, role: Role) -> None:
    width = 256
    made = shape(tmp_path / "tiny.gguf", layers=4, width=width, ffn=256, quant=quant)
    synthetic.check(made)
    path = tmp_path / "made.gguf"
    model = synthetic.write(path, made, synthetic.mixed(made, 3), role)
    assert (model.n_layers, model.width) == (3, width)
    assert model.n_vocab == (300 if role is Role.LAST else 32)
    assert model.kv_bytes_per_token == (2 * 2 * 2 * 64,) * 3
    assert path.stat().st_size == model.file_bytes


@pytest.mark.parametrize("name", sorted(synthetic._SCALES.keys() | synthetic._FLOATS.keys()))
def test_random_weights_are_ordinary_numbers(name: str) -> None:
    """Finite, about 0 on average, and neither huge nor all of them tiny: else speeds are others'."""
    kind = next(code for code, (known, *_) in ggml.TENSORS.items() if known == name)
    block = ggml.TENSORS[kind][2]
    raw = np.frombuffer(synthetic._pattern(kind)[: (64 << 10) // block * block], np.uint8).reshape(
        1, -1
    )
    if name in ("F16", "F32"):
        values = raw.view(np.float16 if name == "F16" else np.float32).astype(np.float32)
    else:
        values = gguf.quants.dequantize(raw, gguf.GGMLQuantizationType(kind))
    assert np.isfinite(values).all()
    assert 0.001 < values.std() < 0.1
    assert abs(values.mean()) < 0.5 * values.std()


def test_every_pattern_is_whole_blocks_and_always_the_same() -> None:
    for kind in (1, 8, 12, 14):
        data = synthetic._pattern(kind)
        assert len(data) % ggml.TENSORS[kind][2] == 0
        synthetic._pattern.cache_clear()
        assert synthetic._pattern(kind) == data


def changed(mix: ModelShape, **tensor: Any) -> ModelShape:
    first, *rest = mix.layers
    odd = replace(first.tensors[0], **tensor)
    return replace(mix, layers=(replace(first, tensors=(odd, *first.tensors[1:])), *rest))


def test_what_cannot_be_is_refused_by_numbers_alone(mix: ModelShape) -> None:
    alien = Setting("qwen2.block_size", ggml.U32, (1,), is_list=False)
    pair = Setting("llama.x", ggml.U32, (1, 2), is_list=False)
    list_of_layer = replace(mix.layers[0], settings=(replace(pair, is_list=True),))
    odd: list[ModelShape] = [
        replace(mix, architecture="mamba"),
        changed(mix, kind=200),
        changed(mix, kind=24),  # whole numbers: no weights
        changed(mix, dims=(255, 256)),  # no whole blocks
        changed(mix, dims=(1 << 20, 1 << 20)),  # 576 GiB
        replace(mix, shared=(Tensor("output_norm.weight", 0, (1 << 28,)),)),
        replace(mix, head=Tensor("token_embd.weight", 1, (256, 1 << 30))),
        replace(mix, head=Tensor("token_embd.weight", 1, (512, 300))),
        replace(mix, head=Tensor("token_embd.weight", 1, (256,))),
        replace(mix, settings=(*mix.settings, alien)),
        replace(mix, settings=(pair,)),
        replace(mix, settings=(replace(pair, kind=11, values=("a",)), replace(pair, kind=9))),
        replace(mix, layers=(list_of_layer,)),
        replace(mix, layers=(replace(mix.layers[0], settings=(pair,)), mix.layers[1])),
    ]
    for one in odd:
        with pytest.raises(BadInput):
            synthetic.check(one)


def test_values_of_another_kind_are_refused_when_written(mix: ModelShape, tmp_path: Path) -> None:
    for kind, value in ((ggml.U32, -1), (ggml.U32, "x"), (ggml.U32, 1 << 40), (6, "x")):
        odd = replace(mix, settings=(Setting("llama.x", kind, (value,), is_list=False),))
        with pytest.raises(BadInput):
            synthetic.write(tmp_path / "odd.gguf", odd, odd.layers, Role.MIDDLE)


TENSORS = st.builds(
    Tensor,
    st.sampled_from(["attn_q.weight", "ffn_up.weight", "attn_norm.weight", "x"]),
    st.sampled_from([0, 1, 2, 8, 12, 14, 24, 99]),
    st.lists(st.sampled_from([1, 32, 256, 512, 255, 1 << 20, 1 << 32]), min_size=1, max_size=4).map(
        tuple
    ),
)
SETTINGS = st.builds(
    Setting,
    st.sampled_from(["llama.embedding_length", "llama.attention.head_count", "llama.x", "a.b"]),
    st.integers(0, 12),
    st.lists(
        st.one_of(st.integers(-(2**63), 2**63 - 1), st.floats(), st.booleans(), st.text()),
        min_size=1,
        max_size=3,
    ).map(tuple),
    st.booleans(),
)
LAYERS = st.builds(
    LayerKind,
    st.integers(1, 512),
    st.lists(TENSORS, min_size=1, max_size=3).map(tuple),
    st.lists(SETTINGS, max_size=1).map(tuple),
)
SHAPES = st.builds(
    ModelShape,
    st.sampled_from(["llama", "mamba"]),
    st.sampled_from([1, 32, 256, 1 << 17]),
    st.lists(SETTINGS, max_size=4).map(tuple),
    st.lists(LAYERS, min_size=1, max_size=2).map(tuple),
    st.lists(TENSORS, max_size=2).map(tuple),
    TENSORS,
)
NUMBER = itertools.count()


@given(made=SHAPES)
def test_no_shape_raises_anything_but_bad_input(
    made: ModelShape, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / f"fuzz-{next(NUMBER)}.gguf"
    try:
        synthetic.check(made)
        if mean_layer_bytes(made) < 1 << 22:
            synthetic.write(path, made, synthetic.mixed(made, 2), Role.MIDDLE)
    except BadInput:
        return
    finally:
        path.unlink(missing_ok=True)


KEYS_AND_VALUES = ("attn_k.weight", "attn_v.weight")


def test_settings_that_are_one_for_each_layer_belong_to_the_layers(
    tmp_path: Path, mix: ModelShape
) -> None:
    """A file that lists its heads layer by layer: the list is taken apart and put together again."""
    per_layer = Setting("llama.attention.head_count_kv", ggml.U32, (1,), is_list=False)
    rest = tuple(s for s in mix.settings if s.key != per_layer.key)
    layers = tuple(
        replace(kind, tensors=tuple(map(_narrow, kind.tensors)), settings=(per_layer,))
        for kind in mix.layers
    )
    made = replace(mix, settings=rest, layers=layers)
    synthetic.check(made)
    path = tmp_path / "lists.gguf"
    model = synthetic.write(path, made, synthetic.mixed(made, 4), Role.MIDDLE)
    header = read_header(path)
    assert header.items(per_layer.key) == (1,) * 4
    assert model.kv_bytes_per_token == (256,) * 4
    again = shape_of(header, model)
    assert [kind.settings for kind in again.layers] == [(per_layer,)] * 2
    assert [kind.count for kind in again.layers] == [2, 2]


def test_each_layer_has_its_own_value_in_the_list(tmp_path: Path, mix: ModelShape) -> None:
    """And who reads it sees that they differ, which no family whose layers are all alike was proved with."""
    key = "llama.attention.head_count_kv"
    rest = tuple(s for s in mix.settings if s.key != key)
    one, two = (Setting(key, ggml.U32, (n,), is_list=False) for n in (1, 2))
    first, second = mix.layers
    layers = (
        replace(first, tensors=tuple(map(_narrow, first.tensors)), settings=(one,)),
        replace(second, settings=(two,)),
    )
    made = replace(mix, settings=rest, layers=layers)
    synthetic.check(made)
    path = tmp_path / "lists.gguf"
    with pytest.raises(BadInput, match="whole_variant"):
        synthetic.write(path, made, synthetic.mixed(made, 5), Role.MIDDLE)
    found = read_header(path).items(key)
    assert found == tuple(kind.settings[0].values[0] for kind in synthetic.mixed(made, 5))
    assert sorted(found) in ([1, 1, 1, 2, 2], [1, 1, 2, 2, 2])


def _narrow(tensor: Tensor) -> Tensor:
    """With one head for keys and values."""
    return replace(tensor, dims=(256, 64)) if tensor.name in KEYS_AND_VALUES else tensor


def test_what_no_speed_depends_on_stays_at_home(tmp_path: Path) -> None:
    """Long lists and numbers that JSON does not have are not sent."""
    path = tiny.llama(tmp_path / "tiny.gguf")
    header = read_header(path)
    raw = bytearray(header.raw)
    base = header.entries["llama.rope.freq_base"]
    raw[base.data : base.data + 4] = struct.pack("<f", math.inf)
    odd = type(header)(
        header.path, header.version, bytes(raw), header.entries, header.tensors,
        header.alignment, header.file_bytes,
    )  # fmt: skip
    found = shape_of(odd, model_of(odd, "tiny", ""))
    assert "llama.rope.freq_base" not in {setting.key for setting in found.settings}


def test_a_family_that_is_not_proved_has_no_shape(tmp_path: Path) -> None:
    header = read_header(tiny.llama(tmp_path / "other.gguf", architecture="gpt2"))
    with pytest.raises(BadInput) as refused:
        shape_of(header, model_of(header, "tiny", ""))
    assert refused.value.reason.code == "whole_family"
