"""Per-layer metadata that cannot be, and tensors nobody knows: one sentence, and never a silently wrong stage."""

from __future__ import annotations

import re
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from app.catalog.gguf import tensor_types
from app.catalog.gguf.gguf_file import entry, read_header, u32_entry
from app.core.errors import AppError, BadInput, StageLost
from app.core.reasons import said
from backends.contract import Role, StageError
from backends.llamacpp import binding
from tests.families import proof
from tests.families.changed import rewritten
from tests.families.driven import HERE, Workers, opened
from tests.families.fixtures import families

QWEN, LFM, GEMMA, GPT = "qwen35", "lfm2", "gemma3", "gpt-oss"
HEADS = {"head_count": 4, "head_count_kv": 2}  # of glm4


def bools(key: str, *values: bool) -> bytes:
    return entry(key, tensor_types.BOOL, values, is_list=True)


def numbers(key: str, *values: int) -> bytes:
    return entry(key, tensor_types.U32, values, is_list=True)


# family, what is taken from its file, what is put in, the code of the sentence
REFUSED = {
    "too few recurrent layers listed": (
        "qwen3-5", f"{QWEN}.attention.recurrent_layers",
        bools(f"{QWEN}.attention.recurrent_layers", True, False), "gguf_odd",
    ),
    "an interval of nothing": (
        "qwen3-5", f"{QWEN}.attention.recurrent_layers {QWEN}.full_attention_interval",
        u32_entry(f"{QWEN}.full_attention_interval", 0), "gguf_odd",
    ),
    "too many heads listed": (
        "lfm2", f"{LFM}.attention.head_count_kv",
        numbers(f"{LFM}.attention.head_count_kv", *[0, 2] * 9), "gguf_odd",
    ),
    "a million heads in one layer": (
        "lfm2", f"{LFM}.attention.head_count_kv",
        numbers(f"{LFM}.attention.head_count_kv", 0, 1_000_000, 0, 2, 0, 2), "gguf_odd",
    ),
    "windows as texts": (
        "gpt-oss", f"{GPT}.attention.sliding_window_pattern",
        entry(f"{GPT}.attention.sliding_window_pattern", tensor_types.STRING, ["a"] * 5, is_list=True),
        "gguf_odd",
    ),
    "a period beyond all layers": (
        "gemma3", f"{GEMMA}.attention.sliding_window_pattern",
        u32_entry(f"{GEMMA}.attention.sliding_window_pattern", 1 << 31), "gguf_odd",
    ),
    "more layers of prediction than layers": (
        "qwen3-5", f"{QWEN}.nextn_predict_layers",
        u32_entry(f"{QWEN}.nextn_predict_layers", 99), "gguf_odd",
    ),
    "a negative number below a root": (
        "llama", "llama.attention.layer_norm_rms_epsilon",
        entry("llama.attention.layer_norm_rms_epsilon", tensor_types.F32_VALUE, (-1.0,)), "gguf_odd",
    ),
    "no number below a root": (
        "llama", "llama.attention.layer_norm_rms_epsilon",
        entry("llama.attention.layer_norm_rms_epsilon", tensor_types.F32_VALUE, (float("nan"),)), "gguf_odd",
    ),
    "no values to turn, by positions in planes": (
        "qwen3-5", f"{QWEN}.rope.dimension_count",
        u32_entry(f"{QWEN}.rope.dimension_count", 0), "gguf_odd",
    ),
    "fewer values to turn than planes": (
        "glm4-moe", "glm4moe.rope.dimension_count",
        u32_entry("glm4moe.rope.dimension_count", 2), "gguf_odd",
    ),
    "nothing to turn": (
        "cohere", "command-r.rope.dimension_count", u32_entry("command-r.rope.dimension_count", 0), "gguf_odd",
    ),
    "half a pair to turn": (
        "llama", "llama.rope.dimension_count", u32_entry("llama.rope.dimension_count", 3), "gguf_odd",
    ),
    "more experts asked than there are": (
        "mixtral", "llama.expert_used_count", u32_entry("llama.expert_used_count", 99), "gguf_odd",
    ),
    "experts asked where there are none": (
        "mixtral", "llama.expert_count", u32_entry("llama.expert_count", 0), "gguf_odd",
    ),
}  # fmt: skip


@pytest.mark.parametrize("label", REFUSED)
def test_what_cannot_be_is_refused_in_one_sentence(label: str, tmp_path: Path) -> None:
    name, gone, more, code = REFUSED[label]
    path = rewritten(families()[name].path, tmp_path / "odd.gguf", without=gone.split(), more=[more])
    with pytest.raises(BadInput) as error:
        proof.home(tmp_path).shelf.import_file(path)
    assert error.value.reason.code == code
    assert said(error.value)


def test_a_list_that_nobody_knows_keeps_a_model_whole(tmp_path: Path) -> None:
    more = [numbers("qwen3.attention.new_kind", 1, 0, 1, 0)]
    path = rewritten(families()["qwen3"].path, tmp_path / "new.gguf", more=more)
    model = proof.home(tmp_path).shelf.import_file(path).model
    assert model.cuts.boundaries == ()
    assert model.cuts.whole_reason
    assert model.cuts.whole_reason.code == "whole_variant"


@pytest.mark.parametrize("name", ["hy-v3", "qwen3-moe"])
def test_a_list_that_differs_where_none_was_proved_to_keeps_a_model_whole(name: str, tmp_path: Path) -> None:
    """The engine takes the first layer's number of experts for all layers, of a stage its own first one's."""
    family = families()[name]
    key = f"{family.architecture}.expert_used_count"
    path = rewritten(
        family.path, tmp_path / "new.gguf", without=[key],
        more=[numbers(key, 1, *[2] * (family.layers - 1))],
    )  # fmt: skip
    model = proof.home(tmp_path).shelf.import_file(path).model
    assert model.cuts.boundaries == ()
    assert model.cuts.whole_reason
    assert model.cuts.whole_reason.code == "whole_variant"


@pytest.mark.parametrize("name", ["gpt-oss", "gemma3", "llama4"])
def test_a_window_of_nothing_keeps_a_model_whole(name: str, tmp_path: Path) -> None:
    key = f"{families()[name].architecture}.attention.sliding_window"
    path = rewritten(families()[name].path, tmp_path / "new.gguf", without=[key], more=[u32_entry(key, 0)])
    model = proof.home(tmp_path).shelf.import_file(path).model
    assert model.cuts.boundaries == ()
    assert model.cuts.whole_reason
    assert model.cuts.whole_reason.code == "whole_variant"


@pytest.mark.asyncio(loop_scope="module")
async def test_one_number_may_be_listed_for_each_layer(workers: Workers, tmp_path: Path) -> None:
    """This holds even if the cut itself needs it: here rows are reordered head by head."""
    more = [numbers(f"glm4.attention.{kind}", *[n] * 4) for kind, n in HEADS.items()]
    path = rewritten(
        families()["glm4"].path, tmp_path / "new.gguf",
        without=[f"glm4.attention.{kind}" for kind in HEADS], more=more,
    )  # fmt: skip
    home = proof.home(tmp_path)
    entry = home.shelf.import_file(path)
    verdict = await proof.prove(workers, home, entry, proof.twos(entry.model)[:1])
    assert verdict.holds, verdict


# family, list, one value of it: which ends with a block that predicts a further token
LISTED = {"qwen3-5-mtp": f"{QWEN}.attention.recurrent_layers", "glm4-moe-mtp": "glm4moe.attention.head_count_kv"}


def listed(name: str, missing: int, to: Path) -> Path:
    """The family's file, whose list has a value for each block but the last `missing`."""
    header, key, n = read_header(families()[name].path), LISTED[name], families()[name].layers + 1
    value = header.entries[key]
    values = header.items(key) if value.is_array else header.items(key) * n
    assert len(values) == n
    more = [entry(key, value.kind, values[: n - missing], is_list=True)]
    return rewritten(families()[name].path, to, without=[key], more=more)


@pytest.mark.parametrize("name", LISTED)
def test_a_list_has_a_value_for_each_block_those_that_predict_among_them(name: str, tmp_path: Path) -> None:
    """llama.cpp itself takes no other number, although a token passes one layer less."""
    short = listed(name, 1, tmp_path / "short.gguf")
    with pytest.raises(BadInput) as error:
        proof.home(tmp_path).shelf.import_file(short)
    assert error.value.reason.code == "gguf_odd"
    with pytest.raises(StageError, match="wrong array length"):
        binding.load_model(str(short))


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", LISTED)
async def test_a_list_for_each_block_is_cut_like_the_layers(name: str, workers: Workers, tmp_path: Path) -> None:
    home = proof.home(tmp_path)
    whole = home.shelf.import_file(listed(name, 0, tmp_path / "whole.gguf"))
    verdict = await proof.prove(workers, home, whole, proof.twos(whole.model)[-1:])
    assert verdict.holds, verdict


@pytest.mark.asyncio(loop_scope="module")
async def test_a_list_that_contradicts_the_tensors_never_becomes_a_stage(workers: Workers, tmp_path: Path) -> None:
    """The list of recurrent layers differs from the tensors."""
    key = f"{QWEN}.attention.recurrent_layers"
    kinds = [False, True, True, True] * 2
    path = rewritten(families()["qwen3-5"].path, tmp_path / "odd.gguf", without=[key], more=[bools(key, *kinds)])
    await _refused(workers, path, tmp_path)


@pytest.mark.asyncio(loop_scope="module")
async def test_layers_that_lack_a_tensor_never_become_a_stage(workers: Workers, tmp_path: Path) -> None:
    """Dense layers where the metadata says experts."""
    key = "glm4moe.leading_dense_block_count"
    path = rewritten(families()["glm4-moe"].path, tmp_path / "odd.gguf", without=[key], more=[u32_entry(key, 0)])
    await _refused(workers, path, tmp_path)


@pytest.mark.asyncio(loop_scope="module")
async def test_a_tensor_that_nobody_knows_never_becomes_a_stage(workers: Workers, tmp_path: Path) -> None:
    again = {"blk.0.new_kind.weight": "blk.0.attn_norm.weight"}
    path = rewritten(families()["llama"].path, tmp_path / "odd.gguf", again=again)
    assert "wrong number of tensors" in await _refused(workers, path, tmp_path)


@pytest.mark.asyncio(loop_scope="module")
async def test_what_the_engine_does_not_survive_is_told_in_its_words(workers: Workers, tmp_path: Path) -> None:
    """Its own reason, not where it was compiled, nor what a debugger has to say; and the next worker is sound."""
    path = rewritten(
        families()["qwen3-5"].path, tmp_path / "odd.gguf",
        without=[f"{QWEN}.ssm.inner_size"], more=[u32_entry(f"{QWEN}.ssm.inner_size", 1)],
    )  # fmt: skip
    text = await _refused(workers, path, tmp_path, StageLost)
    assert re.search(r"and stopped\. ggml\.c:\d+: GGML_ASSERT\(.*\) failed\. Use a different model file", text)


async def _refused(workers: Workers, path: Path, folder: Path, kind: type[AppError] = BadInput) -> str:
    """Return the sentence with which the worker refuses the file. Another model can be opened afterwards."""
    home, text = proof.home(folder), ""
    for file, sound in ((path, False), (families()["llama"].path, True)):
        entry = home.shelf.import_file(file)
        layers, role = proof.runs(entry.model.n_layers, proof.twos(entry.model)[0])[0]
        assert role is Role.FIRST
        config = home.config(entry, layers, role, apart=False)
        async with AsyncExitStack() as stack:
            if sound:
                await opened(stack, workers, config, HERE)
                continue
            with pytest.raises(kind) as error:
                await opened(stack, workers, config, HERE)
            text = said(error.value)
            assert "\n" not in text
            assert str(folder) not in text
    return text
