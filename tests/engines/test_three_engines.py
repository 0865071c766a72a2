"""One model on llama.cpp, PyTorch and MLX at once, in every order, also in workers of their own."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest

from app.catalog.shelf import Entry
from backends.contract import APPLE, LLAMACPP, PYTORCH, Layers, Role, StageConfig
from tests.engines.parity import answered, apart, configs, in_float32, opened, repeated, same_tokens
from tests.families import proof
from tests.families.driven import Workers
from tests.families.fixtures import families
from tests.families.home import Home

ENGINES = (LLAMACPP, PYTORCH, APPLE)
WITHIN = 5e-5  # of the largest logit, in float32
WITHIN_WORKERS = 2e-2  # between workers, whose caches and wire have halves


@pytest.mark.parametrize("name", ["llama", "qwen3"])
def test_three_engines_compute_one_model_in_every_order(name: str, tmp_path: Path) -> None:
    """Three stages in all orders, and four that begin and end with llama.cpp."""
    home = proof.home(tmp_path)
    entry = home.shelf.import_file(in_float32(families()[name].path, tmp_path / "F32.gguf"))
    prompts = proof.prompts(entry.model.n_vocab)
    with opened(configs(home, entry, (), [LLAMACPP])) as stages:
        known = answered(stages, prompts)
    for engines in (*permutations(ENGINES), (LLAMACPP, PYTORCH, APPLE, LLAMACPP)):
        cuts = tuple(range(1, len(engines)))
        with opened(configs(home, entry, cuts, engines)) as stages:
            scores = repeated(stages, known)
        assert same_tokens(known.scores, scores), engines
        assert apart(known.scores, scores) <= WITHIN, engines


@pytest.mark.parametrize("engines", [(LLAMACPP, APPLE, PYTORCH), (APPLE, LLAMACPP, APPLE)], ids="-".join)
def test_workers_compute_with_three_engines(engines: tuple[str, ...], pytorch: str, tmp_path: Path) -> None:
    """A process for each stage, by the driver of the node: the tokens of llama.cpp alone."""
    asyncio.run(_in_workers(engines, pytorch, tmp_path))


async def _in_workers(engines: tuple[str, ...], folder: str, tmp_path: Path) -> None:
    home = MixedHome(proof.home(tmp_path), engines, folder)
    entry = home.shelf.import_file(families()["llama"].path)
    async with Workers() as workers:
        verdict = await proof.prove(workers, home, entry, [(1, 3)])  # type: ignore[arg-type]
    assert verdict.tokens_equal
    assert verdict.largest <= WITHIN_WORKERS


class MixedHome:
    """A home whose stages are on the engines named, in order of their roles; whole models are llama.cpp's."""

    def __init__(self, home: Home, engines: tuple[str, ...], folder: str) -> None:
        self._home, self._folder = home, folder
        self._engines = dict(zip((Role.FIRST, Role.MIDDLE, Role.LAST), engines, strict=True))
        self.shelf = home.shelf

    def config(self, entry: Entry, layers: Layers, role: Role, *, apart: bool) -> StageConfig:
        config = self._home.config(entry, layers, role, apart=apart)
        engine = self._engines.get(role, LLAMACPP)
        return config if engine == LLAMACPP else replace(config, engine=engine, library=self._folder)
