"""The benchmark's model has the promised size, and its header is one the catalog reads."""

from __future__ import annotations

import math
from pathlib import Path

from app.catalog.gguf.gguf_file import read_header
from app.catalog.gguf.model_reader import model_of
from bench.make_model import BENCH, make, parameters


def test_its_size_is_about_three_quarters_of_a_billion() -> None:
    assert 0.75e9 <= parameters(BENCH) <= 0.8e9


def test_the_parameters_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "bench.gguf"
    made = make(path, layers=1)
    header = read_header(path)
    assert made == sum(math.prod(tensor.shape) for tensor in header.tensors.values())
    model = model_of(header, "bench", "0" * 64)
    assert (model.n_layers, model.width, model.n_vocab) == (1, 2048, 32_000)
    assert [file.name for file in tmp_path.iterdir()] == ["bench.gguf"]
