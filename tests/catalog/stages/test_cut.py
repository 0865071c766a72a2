"""A cut model says exactly what the whole model says; a stage holds its layers and no more."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.catalog.gguf.gguf_file import read_header
from app.catalog.gguf.model_reader import model_of
from app.catalog.shelf import Entry
from app.catalog.stages import cut as cutting
from app.core.errors import BadInput, Damaged
from backends.contract import Hidden, Layers, Logits, Role, Segment, Stage, StageConfig, Tokens
from tests.catalog.conftest import Home
from tests.catalog.raw import array, number, small, string

PROMPT = [3 + (11 * index) % 250 for index in range(70)]
N_LAYERS, FEW, MANY = 5, 8, 32
EVERY_CUT = [cuts for n in (1, 2, 3) for cuts in combinations(range(1, N_LAYERS), n)]


def runs(n_layers: int, *cuts: int) -> list[tuple[Layers, Role]]:
    ends = [0, *cuts, n_layers]
    roles = [Role.FIRST, *[Role.MIDDLE] * (len(cuts) - 1), Role.LAST] if cuts else [Role.WHOLE]
    pairs = pairwise(ends)
    return [(Layers(*pair), role) for pair, role in zip(pairs, roles, strict=True)]


def load(home: Home, entry: Entry, layers: Layers, role: Role) -> Stage:
    from backends.llamacpp.stage import LlamaStage

    whole = role is Role.WHOLE
    path = entry.path if whole else str(home.stages.write_stage(home.shelf.cut(entry, layers, role)))
    width = entry.model.width
    return LlamaStage(StageConfig("llamacpp", path, entry.path, role, layers, width, 1, 256, 64, threads=1))


def answer(stages: Sequence[Stage], n_decoded: int = FEW) -> list[NDArray[np.float32]]:
    """Logits after a prompt in two chunks and after each of some greedy tokens."""
    seen: list[NDArray[np.float32]] = []
    pos = 0
    for part in (PROMPT[:64], PROMPT[64:], *[None] * n_decoded):
        ids = part or [int(seen[-1].argmax())]
        batch: Any = Tokens((Segment(0, len(ids), pos),), ids)
        for stage in stages:
            batch = stage.forward(batch, [0])
            assert isinstance(batch, Hidden | Logits)
        assert isinstance(batch, Logits)
        seen.append(np.frombuffer(batch.rows, np.float32).copy())
        pos += len(ids)
    return seen


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(("quant", "width"), [("F16", 64), ("Q8_0", 64), ("Q4_K_M", 256)])
def test_cut_stages_say_what_the_whole_says(home: Home, quant: str, width: int, tied: bool) -> None:
    shape = {"layers": 5, "width": width, "ffn": 256, "quant": quant, "tied": tied, "seed": 3}
    entry = home.add("m", **shape)
    with ExitStack() as stack:

        def pipeline(*cuts: int) -> list[Stage]:
            stages = [load(home, entry, *run) for run in runs(5, *cuts)]
            return [stack.enter_context(closing(stage)) for stage in stages]

        said = answer(pipeline())
        assert np.std(said[-1]) > 0.1
        for cuts in ((1,), (4,), (1, 4), (2, 3, 4)):
            assert np.array_equal(answer(pipeline(*cuts)), said), f"cut at {cuts}"
        sent = str(home.stages.write_stage(home.shelf.cut(entry, Layers(0, 5), Role.WHOLE)))
        there = load(home, replace(entry, path=sent), Layers(0, 5), Role.WHOLE)
        assert np.array_equal(answer([stack.enter_context(closing(there))]), said)
        known = [key for key in read_header(Path(sent)).entries if key.startswith("tokenizer.")]
        assert known == ["tokenizer.ggml.model"]  # nothing to read text with


def test_every_cut_into_two_three_and_four_gives_the_bits_of_the_whole(home: Home) -> None:
    entry = home.add("m", layers=N_LAYERS, quant="Q8_0", seed=5)
    loaded: dict[tuple[Layers, Role], Stage] = {}
    with ExitStack() as stack:

        def said(*cuts: int) -> list[NDArray[np.float32]]:
            expected = runs(N_LAYERS, *cuts)
            for run in expected:
                if run not in loaded:
                    loaded[run] = stack.enter_context(closing(load(home, entry, *run)))
                loaded[run].forget(0)
            return answer([loaded[run] for run in expected], MANY)

        whole = said()
        for cuts in EVERY_CUT:
            assert np.array_equal(said(*cuts), whole), f"cut at {cuts}"


def test_what_a_stage_file_holds(home: Home) -> None:
    entry = home.add("m", layers=6)
    whole = read_header(Path(entry.path))
    for layers, role in runs(6, 2, 4):
        cut = home.shelf.cut(entry, layers, role)
        header = read_header(home.stages.write_stage(cut))
        assert header.integer("llama.block_count", 1, 99) == 2
        assert [key for key in header.entries if key.startswith("tokenizer.")] == ["tokenizer.ggml.model"]
        rows = 300 if role is Role.LAST else 32
        assert header.tensors["token_embd.weight"].shape == (64, rows)
        assert header.integer("llama.vocab_size", 1, 999) == rows
        assert "output.weight" not in header.tensors
        assert "llama.rope.freq_base" in header.entries
        assert {name for name in header.tensors if name.startswith("blk.")} == {
            name.replace("blk.0", f"blk.{index}")
            for name in whole.tensors
            if name.startswith("blk.0.")
            for index in (0, 1)
        }
        weights = sum(tensor.n_bytes for tensor in header.tensors.values())
        assert weights == entry.model.stage_bytes(layers, role)
        assert model_of(header, "stage", "0" * 64).n_layers == 2


def test_per_layer_arrays_are_sliced_by_their_key_alone(tmp_path: Path) -> None:
    """Another list of the same length stays whole, even in a family whose layers may differ by such a list."""
    more = [
        array("xielu.alpha_n", 6, 2, struct.pack("<ff", 0.5, 0.25)),
        array("apertus.rope.dimension_sections", 4, 2, struct.pack("<II", 7, 8)),
        number("general.alignment", 64),
        string("general.description", "x" * 1000),
    ]
    raw = small(more=more, architecture="apertus")
    raw.entries.append(string("tokenizer.chat_template", "{{ x }}"))
    data = raw.bytes()
    path = tmp_path / "a.gguf"
    path.write_bytes(data + bytes(64))
    with pytest.raises(BadInput):  # its tensors lie at multiples of 32
        read_header(path)
    raw.entries.remove(more[2])
    path.write_bytes(raw.bytes())
    header = read_header(path)
    hashes = dict.fromkeys(header.tensors, "0" * 64)
    model = model_of(header, "a", "0" * 64)
    for layers, role, value in ((Layers(0, 1), Role.FIRST, 0.5), (Layers(1, 2), Role.LAST, 0.25)):
        cut = cutting.cut(model, header, hashes, layers, role)
        stage = tmp_path / "stage.gguf"
        stage.write_bytes(cut.manifest.header + bytes(cut.manifest.total_bytes))
        result = read_header(stage)
        assert result.items("xielu.alpha_n") == (value,)
        assert result.items("apertus.rope.dimension_sections") == (7, 8)
        assert "general.description" not in result.entries


@pytest.mark.parametrize(
    ("layers", "role"),
    [
        (Layers(0, 3), Role.WHOLE),
        (Layers(1, 4), Role.WHOLE),
        (Layers(0, 4), Role.FIRST),
        (Layers(0, 2), Role.MIDDLE),
        (Layers(1, 2), Role.FIRST),
        (Layers(1, 2), Role.LAST),
        (Layers(2, 4), Role.MIDDLE),
        (Layers(2, 5), Role.LAST),
    ],
)
def test_an_illegal_cut_is_refused(home: Home, layers: Layers, role: Role) -> None:
    entry = home.add("m", layers=4)
    with pytest.raises(BadInput) as error:
        home.shelf.cut(entry, layers, role)
    assert error.value.reason.code == "cut_illegal"


def test_a_family_that_is_not_proved_is_never_cut(tmp_path: Path) -> None:
    raw = small(more=[array("llama.other", 4, 2, struct.pack("<II", 7, 8))])
    path = tmp_path / "strange.gguf"
    path.write_bytes(raw.bytes())
    header = read_header(path)
    with pytest.raises(BadInput) as error:
        cutting.cut(model_of(header, "strange", "0" * 64), header, {}, Layers(0, 1), Role.FIRST)
    assert error.value.reason.code == "whole_variant"


def test_a_source_that_shrinks_or_goes_is_said(home: Home) -> None:
    entry = home.add("m", layers=4)
    cut = home.shelf.cut(entry, Layers(2, 4), Role.LAST)
    with home.stages.receive(cut.manifest) as receiver:
        data = Path(entry.path).read_bytes()
        Path(entry.path).write_bytes(data[: len(data) // 2])
        with pytest.raises(Damaged):
            list(cutting.read_pieces(cut, receiver.wants))
        Path(entry.path).unlink()
        with pytest.raises(Damaged):
            list(cutting.read_pieces(cut, receiver.wants))
