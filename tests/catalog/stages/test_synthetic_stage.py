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

from app.catalog.gguf import tensor_types
from app.catalog.gguf.gguf_file import read_header
from app.catalog.gguf.model_reader import model_of
from app.catalog.gguf.model_shape_reader import layer_bytes, run_bytes, shape_of, uniform_runs
from app.catalog.stages import synthetic_stage
from app.core.errors import BadInput
from app.core.model import LayerKind, LayerRun, ModelShape, Setting, Tensor
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
    short, half, longest = mix.runs
    assert (len(short.kinds), len(half.kinds), len(longest.kinds)) == (1, 8, 16)
    assert sorted(longest.kinds) == [0] * 8 + [1] * 8
    assert len(mix.kinds) == len({layer_bytes(kind) for kind in mix.kinds}) == 2
    assert longest.average_layers == 16
    one_s = 16 * layer_bytes(mix.layers(short)[0]) / run_bytes(mix, longest)
    assert short.average_layers == pytest.approx(one_s)  # of a layer on average
    assert {setting.key for setting in mix.settings} >= {"llama.rope.freq_base"}
    assert [run.settings for run in mix.runs] == [()] * 3
    assert mix.head == Tensor("token_embd.weight", 14, (256, 300))


def test_it_is_small_on_the_wire_and_survives_it(mix: ModelShape) -> None:
    data = msgspec.json.encode(mix)
    assert len(data) < 4096
    assert msgspec.json.decode(data, type=ModelShape) == mix


def test_layers_beyond_the_caches_are_enough(tmp_path: Path) -> None:
    """Large layers are few, and of small ones no more than MAX_RUN_LAYERS are written."""
    matrix = Tensor("ffn_up.weight", tensor_types.F16, (4096, 4096))  # 32 MiB
    lengths = [len(run.kinds) for run in uniform_runs(LayerKind((matrix,)), 40)]
    assert lengths == [1, 3]
    small = LayerKind((replace(matrix, dims=(1024, 1024)),))
    assert [len(run.kinds) for run in uniform_runs(small, 40)] == [1, 16]
    assert [len(run.kinds) for run in uniform_runs(small, 2)] == [1, 2]
    assert [len(run.kinds) for run in uniform_runs(small, 1)] == [1]


@pytest.mark.parametrize("quant", ["F32", "F16", "Q8_0", "Q4_0", "Q4_K", "Q4_K_M"])
@pytest.mark.parametrize("role", [Role.MIDDLE, Role.LAST])
def test_what_is_written_is_what_the_cut_makes(tmp_path: Path, quant: str, role: Role) -> None:
    width = 256
    made = shape(tmp_path / "tiny.gguf", layers=4, width=width, ffn=256, quant=quant)
    synthetic_stage.check(made)
    path = tmp_path / "made.gguf"
    run = LayerRun((0, 1, 0) if len(made.kinds) > 1 else (0,) * 3, (), 3.0)
    model = synthetic_stage.write(path, made, run, role)
    assert (model.n_layers, model.width) == (3, width)
    assert model.n_vocab == (300 if role is Role.LAST else 32)
    assert model.kv_bytes_per_token == (2 * 2 * 2 * 64,) * 3
    assert path.stat().st_size == model.file_bytes


MADE_UP = synthetic_stage._SCALES.keys() | synthetic_stage._SCALE_BYTES.keys() | synthetic_stage._FLOATS.keys()


@pytest.mark.parametrize("name", sorted(MADE_UP - {"Q1_0", "Q2_0"}))  # gguf knows no such
def test_random_weights_are_ordinary_numbers(name: str) -> None:
    """Finite, about 0 on average, and neither huge nor all of them tiny: else speeds are others'."""
    kind = next(code for code, (known, *_) in tensor_types.TENSORS.items() if known == name)
    block = tensor_types.TENSORS[kind][2]
    raw = np.frombuffer(synthetic_stage._pattern(kind)[: (64 << 10) // block * block], np.uint8).reshape(1, -1)
    if name in ("F16", "F32"):
        values = raw.view(np.float16 if name == "F16" else np.float32).astype(np.float32)
    else:
        values = gguf.quants.dequantize(raw, gguf.GGMLQuantizationType(kind))
    assert np.isfinite(values).all()
    assert 0.001 < values.std() < 0.1
    assert abs(values.mean()) < 0.5 * values.std()


def test_every_pattern_is_whole_blocks_and_always_the_same() -> None:
    for kind in (1, 8, 12, 14):
        data = synthetic_stage._pattern(kind)
        assert len(data) % tensor_types.TENSORS[kind][2] == 0
        synthetic_stage._pattern.cache_clear()
        assert synthetic_stage._pattern(kind) == data


def test_all_number_types_of_weights_can_be_made_up() -> None:
    """The other types are those that an engine computes with, or plain integers."""
    rest = {"Q8_1", "Q8_K", "I8", "I16", "I32", "I64", "F64"}
    assert {name for name, *_ in tensor_types.TENSORS.values()} == MADE_UP | rest


def test_states_are_made_to_fade() -> None:
    """A decay above 0 is a growth: after a chunk of a prompt nothing finite would be left."""
    for dims in ((8,), (1, 8)):
        data = b"".join(synthetic_stage._weights(Tensor("blk.0.ssm_a", tensor_types.F32, dims)))
        assert set(np.frombuffer(data, np.float32)) == {np.float32(-0.125)}


def changed(mix: ModelShape, **tensor: Any) -> ModelShape:
    first, *rest = mix.kinds
    odd = replace(first.tensors[0], **tensor)
    return replace(mix, kinds=(replace(first, tensors=(odd, *first.tensors[1:])), *rest))


def test_what_cannot_be_is_refused_by_numbers_alone(mix: ModelShape) -> None:
    alien = Setting("qwen2.block_size", tensor_types.U32, (1,), is_list=False)
    pair = Setting("llama.x", tensor_types.U32, (1, 2), is_list=False)
    run = mix.runs[0]
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
        replace(mix, runs=(replace(run, settings=(pair,)),)),
        replace(mix, runs=(replace(run, settings=(alien,)),)),
        replace(mix, runs=(replace(run, kinds=(0, 2)),)),  # a layer that is not there
    ]
    for model_shape in odd:
        with pytest.raises(BadInput):
            synthetic_stage.check(model_shape)


def test_values_of_another_kind_are_refused_when_written(mix: ModelShape, tmp_path: Path) -> None:
    for kind, value in ((tensor_types.U32, -1), (tensor_types.U32, "x"), (tensor_types.U32, 1 << 40), (6, "x")):
        odd = replace(mix, settings=(Setting("llama.x", kind, (value,), is_list=False),))
        with pytest.raises(BadInput):
            synthetic_stage.write(tmp_path / "odd.gguf", odd, odd.runs[0], Role.MIDDLE)


TENSORS = st.builds(
    Tensor,
    st.sampled_from(["attn_q.weight", "ffn_up.weight", "attn_norm.weight", "x"]),
    st.sampled_from([0, 1, 2, 8, 12, 14, 24, 99]),
    st.lists(st.sampled_from([1, 32, 256, 512, 255, 1 << 20, 1 << 32]), min_size=1, max_size=4).map(tuple),
)
SETTINGS = st.builds(
    Setting,
    st.sampled_from(["llama.embedding_length", "llama.attention.head_count", "llama.x", "a.b"]),
    st.integers(0, 12),
    st.lists(
        st.one_of(st.integers(-(2**63), 2**63 - 1), st.floats(), st.booleans(), st.text()), min_size=1, max_size=3
    ).map(tuple),
    st.booleans(),
)
LAYERS = st.builds(LayerKind, st.lists(TENSORS, min_size=1, max_size=3).map(tuple))
RUNS = st.builds(
    LayerRun,
    st.lists(st.integers(0, 3), min_size=1, max_size=16).map(tuple),
    st.lists(SETTINGS, max_size=2).map(tuple),
    st.floats(1e-3, 1e4),
)
SHAPES = st.builds(
    ModelShape,
    st.sampled_from(["llama", "mamba", "gemma4", "qwen35"]),
    st.sampled_from([1, 32, 256, 1 << 17]),
    st.lists(SETTINGS, max_size=4).map(tuple),
    st.lists(LAYERS, min_size=1, max_size=2).map(tuple),
    st.lists(RUNS, min_size=1, max_size=3).map(tuple),
    st.lists(TENSORS, max_size=2).map(tuple),
    TENSORS,
)
NUMBER = itertools.count()


@given(made=SHAPES)
def test_no_shape_raises_anything_but_bad_input(made: ModelShape, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / f"fuzz-{next(NUMBER)}.gguf"
    try:
        synthetic_stage.check(made)
        if run_bytes(made, made.runs[0]) < 1 << 23:
            synthetic_stage.write(path, made, made.runs[0], Role.MIDDLE)
    except BadInput:
        return
    finally:
        path.unlink(missing_ok=True)


def test_a_file_that_lists_its_heads_layer_by_layer_says_so_in_each_run(tmp_path: Path, mix: ModelShape) -> None:
    key = "llama.attention.head_count_kv"
    settings = tuple(setting for setting in mix.settings if setting.key != key)
    run = LayerRun((0, 0, 1), (Setting(key, tensor_types.U32, (2,) * 3, is_list=True),), 3.0)
    made = replace(mix, settings=settings, runs=(run,))
    synthetic_stage.check(made)
    path = tmp_path / "lists.gguf"
    model = synthetic_stage.write(path, made, run, Role.MIDDLE)
    header = read_header(path)
    assert header.items(key) == (2,) * 3
    again = shape_of(header, model)
    assert [run.settings[0].values for run in again.runs] == [(2,), (2,) * 2, (2,) * 3]


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
    model_shape = shape_of(odd, model_of(odd, "tiny", ""))
    assert "llama.rope.freq_base" not in {setting.key for setting in model_shape.settings}


def test_a_family_that_is_not_proved_has_no_shape(tmp_path: Path) -> None:
    header = read_header(tiny.llama(tmp_path / "other.gguf", architecture="gpt2"))
    with pytest.raises(BadInput) as refused:
        shape_of(header, model_of(header, "tiny", ""))
    assert refused.value.reason.code == "whole_family"
