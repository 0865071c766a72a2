"""Metadata made absurd by chance: a sentence before anything is loaded, or stages that are sound files themselves."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random

import pytest

from app.catalog.families.layer_metadata import FOR_ALL, PER_LAYER, WITHOUT_PREFIX, is_per_layer
from app.catalog.gguf import tensor_types
from app.catalog.gguf.gguf_file import Header, align_up, entry, header_bytes, read_header
from app.catalog.gguf.model_reader import model_of
from app.catalog.stages.cut import cut
from app.core.errors import AppError
from app.core.model import Model
from app.core.reasons import said
from app.node.planning.speed_measurer import speed_basis
from backends.contract import Layers, Role
from tests.families import proof
from tests.families.changed import rewritten
from tests.families.driven import Workers
from tests.families.fixtures import families

SEED, N_FILES, N_COMPUTED = 20_261, 400, 30
COUNTED = (tensor_types.U32, tensor_types.BOOL)
AS_IT_IS = ("block_count", "context_length", "vocab_size")  # another number of these is no question
KINDS = (*tensor_types.SCALARS, tensor_types.STRING)
# what decides where a model is cut and how, beside the lists
DECIDING = (
    "block_count", "nextn_predict_layers", "embedding_length", "attention.sliding_window",
    "full_attention_interval", "leading_dense_block_count", "interleave_moe_layer_step",
    "attention.key_length", "attention.value_length", "rope.dimension_count", "expert_count",
    "ssm.conv_kernel", "ssm.inner_size", "kda.head_dim", "shortconv.l_cache", "embedding_scale",
    "attention.shared_kv_layers", "attention.indexer.top_k",
)  # fmt: skip
AFTER_PREFIX = (*PER_LAYER, *FOR_ALL, *DECIDING)


@cache
def header_of(name: str) -> Header:
    return read_header(families()[name].path)


def absurd_value(chance: Random, kind: int, n_layers: int) -> object:
    """Return a value of this kind, mostly at some limit."""
    if kind == tensor_types.STRING:
        return chance.choice(("", "x", "\0", "9" * 300))
    letter, n_bytes = tensor_types.SCALARS[kind]
    if letter in "fd":
        return chance.choice((0.0, -1.0, 3.5, 1e30, float("nan"), float("inf")))
    if letter == "?":
        return chance.random() < 0.5
    signed = letter.islower()
    low = -(1 << (8 * n_bytes - 1)) if signed else 0
    high = (1 << (8 * n_bytes - signed)) - 1
    near = (0, 1, 2, -1, n_layers - 1, n_layers, n_layers + 1, 513, 1 << 30, low, high)
    return max(low, min(high, chance.choice(near)))


def absurd_entry(chance: Random, key: str, n_layers: int) -> bytes | None:
    """One value or a list, of any kind and length; None: it is missing."""
    kind = chance.choice(KINDS)
    match chance.choice(("gone", "one", "list", "list")):
        case "gone":
            return None
        case "one":
            return entry(key, kind, (absurd_value(chance, kind, n_layers),))
        case _:
            usual = (n_layers,) * 4
            n = chance.choice((0, 1, n_layers - 1, n_layers + 1, 2 * n_layers, 513, *usual))
            values = [absurd_value(chance, kind, n_layers) for _ in range(n)]
            return entry(key, kind, values, is_list=True)


def absurd(chance: Random, header: Header, to: Path) -> list[str]:
    """A file of this header with one to three entries made absurd, and zeros for its tensors; the keys."""
    architecture = header.text("general.architecture")
    n_layers = header.integer(f"{architecture}.block_count", 1, 512)
    entries = {key: header.raw[value.start : value.end] for key, value in header.entries.items()}
    own = [key for key in entries if key.startswith(f"{architecture}.")]
    other = [*(f"{architecture}.{name}" for name in AFTER_PREFIX), *sorted(WITHOUT_PREFIX)]
    keys = [chance.choice(chance.choice((own, other))) for _ in range(chance.choice((1, 1, 2, 3)))]
    for key in keys:
        made = absurd_entry(chance, key, n_layers)
        if made is None:
            entries.pop(key, None)
        else:
            entries[key] = made
    tensors = [(name, tensor.shape, tensor.kind, tensor.n_bytes) for name, tensor in header.tensors.items()]
    head = header_bytes(header.alignment, list(entries.values()), tensors)
    n_bytes = align_up(len(head), header.alignment)
    for *_, tensor_bytes in tensors:
        n_bytes = align_up(n_bytes + tensor_bytes, header.alignment)
    write(to, head, n_bytes)
    return keys


def write(to: Path, head: bytes, n_bytes: int) -> None:
    with to.open("wb") as file:
        file.write(head)
        file.truncate(n_bytes)


def check_stages(path: Path, chance: Random) -> int:
    """Cut it, once in two and once more if it may be; how many stages came of it. Raises AppError."""
    header = read_header(path)
    model = model_of(header, "odd", "0" * 64)
    check_forecast(header, model)
    hashes = dict.fromkeys(header.tensors, "0" * 64)
    cuts = [group for group in (proof.twos(model), proof.threes(model)) if group]
    runs = [run for group in cuts for run in proof.runs(model.n_layers, chance.choice(group))]
    for layers, role in runs:
        made = cut(model, header, hashes, layers, role)
        write(stage := path.with_name("stage.gguf"), made.manifest.header, made.manifest.total_bytes)
        check_stage(read_header(stage), model, layers, role)
    return len(runs)


def check_forecast(header: Header, model: Model) -> None:
    """Check that a measurement exists, or is refused with a sentence."""
    with suppress(AppError):
        speed_basis(header, model)


def check_stage(stage: Header, model: Model, layers: Layers, role: Role) -> None:
    """Check that the stage is a valid file that describes its own run."""
    assert role is not Role.WHOLE
    assert stage.integer(f"{model.architecture}.block_count", 1, 512) == len(layers)
    for key, value in stage.entries.items():
        assert not is_per_layer(stage, key) or value.count == len(layers), key


@pytest.mark.long
def test_400_absurd_files_are_refused_in_a_sentence_or_cut_soundly(tmp_path: Path) -> None:
    path, ends = tmp_path / "odd.gguf", Counter[str]()
    names = [name for name, family in families().items() if family.layers <= 12]
    for turn in range(N_FILES):
        chance = Random(SEED + turn)
        name = chance.choice(names)
        print(f"seed {SEED + turn}:", name, absurd(chance, header_of(name), path))
        ends[end_of(path, chance)] += 1
    assert min(ends["cut"], ends["whole"], ends["gguf_odd"]) > N_FILES / 20, ends


def plausible(chance: Random, name: str, to: Path) -> str:
    """The family's file with one or two whole numbers or flags said otherwise: as others might say them, or nearly."""
    header = header_of(name)
    architecture = header.text("general.architecture")
    kinds = {key: value.kind for key, value in header.entries.items() if value.kind in COUNTED}
    own = [key for key in kinds if key.startswith(f"{architecture}.") and not key.endswith(AS_IT_IS)]
    other = [f"{architecture}.{part}" for part in AFTER_PREFIX if part != "block_count"]
    keys = {chance.choice(chance.choice((own, own, other))) for _ in range(chance.choice((1, 2)))}
    more = []
    for key in sorted(keys):
        kind = kinds.get(key, tensor_types.U32)
        base = int(header.items(key)[0]) if key in header.entries else chance.randrange(5)
        near = [base, base, base, 0, 1, base + 1, max(0, base - 1), 2 * base, base // 2]
        values = [chance.choice(near) for _ in range(families()[name].layers)]
        match chance.choice(("gone", "one", "alike", "list")):
            case "one":
                more.append(entry(key, kind, values[:1]))
            case "alike":
                more.append(entry(key, kind, [base] * len(values), is_list=True))
            case "list":
                more.append(entry(key, kind, values, is_list=True))
    rewritten(families()[name].path, to, without=sorted(keys), more=more)
    return f"{name} without {sorted(keys)}, with {more}"


@pytest.mark.asyncio(loop_scope="module")
async def test_what_the_engine_takes_is_cut_rightly_or_not_at_all(workers: Workers, tmp_path: Path) -> None:
    """Computed whole and in two, as a proved family is; most are refused by the pre-check or the engine."""
    path, ends = tmp_path / "odd.gguf", Counter[str]()
    names = [name for name, family in families().items() if family.layers <= 12]
    for turn in range(N_COMPUTED):
        chance = Random(SEED + turn)
        said_so = plausible(chance, chance.choice(names), path)
        home = proof.home(tmp_path / f"{turn}")
        try:
            entry = home.shelf.import_file(path)
            cuts = proof.twos(entry.model)
            verdict = await proof.prove(workers, home, entry, cuts and [chance.choice(cuts)])
        except AppError as error:
            ends[error.reason.code] += 1
        else:
            assert verdict.holds, f"seed {SEED + turn}: {said_so}: {verdict}"
            ends["cut" if verdict.cuts else "whole"] += 1
    assert min(ends["cut"], ends["whole"], ends["gguf_odd"]) > 0, ends


def end_of(path: Path, chance: Random) -> str:
    """The code of its sentence, or what became of it."""
    try:
        return "cut" if check_stages(path, chance) else "whole"
    except AppError as error:
        if "\n" in said(error):
            raise
        return error.reason.code
