"""A real model over three nodes with llama.cpp, PyTorch and MLX, and a part of it that moves from one to another."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from scripts.real_models import SMOLLM2, folder, missing
from tests.engines.torch_folder import torch_folder
from tests.node.pool import TestNode, node, pair, paired
from tests.real.asking import Json, ask, begun, load, opinions_of
from tests.real.words import BEGUN

FOLDER, FILE = folder(), SMOLLM2.file
pytestmark = pytest.mark.timeout(900)
needs_models = pytest.mark.skipif(bool(missing()), reason="needs the real models: `make real` fetches them")
MEAN_GAP, AGREEMENT = 0.2, 0.85  # as for a narrow wire (tests/real/test_household.py)
SPLIT, LENDERS_SPLIT = [8, 7, 7, 8], [8, 14, 8]
N_ANSWERS, N_TOKENS, STRUCK_AFTER = 3, 16, 4


def prefer(lender: TestNode, engine: str) -> None:
    done = lender.run("engine", "prefer", engine, str(torch_folder()), within_s=120)
    assert done.returncode == 0, done.stdout + done.stderr


def imported(host: TestNode) -> None:
    done = host.run("import", str(FOLDER / FILE), "--name", FILE)
    assert done.returncode == 0, done.stdout + done.stderr


def stages_of(host: TestNode) -> list[str]:
    """Return the engines or cards that the host knows of, stage by stage."""
    return [stage["card"] for stage in host.control("GET", "/status")["loaded"]["stages"]]


def uses(worker: psutil.Process, library: str) -> bool:
    return any(library in mapped.path for mapped in worker.memory_maps())


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[TestNode]]:
    """A host with llama.cpp, and two lenders, one with PyTorch and one with MLX."""
    with paired(tmp_path_factory.mktemp("engines"), "den", "attic", "kitchen", lend="2GiB") as made:
        prefer(made[1], "pytorch")
        prefer(made[2], "mlx")
        imported(made[0])
        yield made


@needs_models
async def test_a_real_model_over_three_engines_says_what_the_whole_would(nodes: list[TestNode], tmp_path: Path) -> None:
    den, attic, kitchen = nodes
    prompts = (await begun(FOLDER / FILE, *BEGUN))[:N_ANSWERS]
    async with den.client() as host:
        await load(host, FILE, split=SPLIT)
        answers = [await ask(host, prompt_ids=ids, max_tokens=N_TOKENS) for ids in prompts]
    assert stages_of(den) == ["", "PyTorch 2.13.0", "MLX 0.32.4", ""]
    assert uses(await attic.one_worker(), "libtorch")
    assert uses(await kitchen.one_worker(), "libmlx")
    assert [answer["notices"] for answer in answers] == [[]] * len(answers)
    pairs = [(ids, answer["token_ids"]) for ids, answer in zip(prompts, answers, strict=True)]
    opinions = await opinions_of(tmp_path, FOLDER / FILE, pairs)
    assert all(opinion.mean_gap < MEAN_GAP and opinion.agreement >= AGREEMENT for opinion in opinions), opinions


@needs_models
def test_the_engine_is_chosen_for_one_load(nodes: list[TestNode]) -> None:
    den = nodes[0]
    split = ",".join(map(str, SPLIT))
    for engine, engines in (("llama.cpp", ["", "", "", ""]), ("pytorch", ["", "PyTorch 2.13.0", "MLX 0.32.4", ""])):
        done = den.run("load", FILE, "--split", split, "--engine", engine, within_s=180)
        assert done.returncode == 0, done.stdout + done.stderr
        assert stages_of(den) == engines  # MLX is what kitchen's owner chose, and PyTorch is not there
        assert "as you chose" in done.stdout


@needs_models
async def test_a_host_computes_with_its_engine_too(nodes: list[TestNode], tmp_path: Path) -> None:
    den = nodes[0]
    prompts = await begun(FOLDER / FILE, BEGUN[0])
    prefer(den, "pytorch")
    try:
        async with den.client() as host:
            await load(host, FILE, split=LENDERS_SPLIT)
            answer = await ask(host, prompt_ids=prompts[0], max_tokens=N_TOKENS)
        assert stages_of(den)[::2] == ["PyTorch 2.13.0"] * 2
        assert any(uses(worker, "libtorch") for worker in den.workers())
        assert "PyTorch 2.13.0" in den.run("status").stdout
    finally:
        assert den.run("engine", "prefer", "llama.cpp").returncode == 0
    opinions = await opinions_of(tmp_path, FOLDER / FILE, [(prompts[0], answer["token_ids"])])
    assert opinions[0].mean_gap < MEAN_GAP
    assert opinions[0].agreement >= AGREEMENT


@needs_models
async def test_an_engine_that_vanishes_leaves_its_stages_to_llama_cpp(nodes: list[TestNode], tmp_path: Path) -> None:
    den, attic, _ = nodes
    link = tmp_path / "engine"
    link.symlink_to(str(torch_folder()))
    done = attic.run("engine", "prefer", "pytorch", str(link), within_s=120)
    assert done.returncode == 0, done.stdout + done.stderr
    link.unlink()
    try:
        async with den.client() as host:
            await load(host, FILE, split=SPLIT)
            assert len((await ask(host, prompt_ids=[1, 2, 3], max_tokens=4, ignore_end=True))["token_ids"]) == 4
        assert "PyTorch 2.13.0" not in stages_of(den)
        assert "log_node_engine" in json.dumps(attic.control("GET", "/journal"))
    finally:
        prefer(attic, "pytorch")


@needs_models
async def test_exact_numbers_are_llama_cpps(nodes: list[TestNode]) -> None:
    den = nodes[0]
    async with den.client() as host:
        await load(host, FILE, split=SPLIT, exact=True)
    assert stages_of(den) == [""] * 4


@needs_models
async def test_a_stage_moves_from_one_engine_to_another(tmp_path: Path) -> None:
    """The lender with PyTorch is killed in mid-answer. What had been said stays, and MLX computes what follows."""
    prompts = await begun(FOLDER / FILE, BEGUN[0])
    with node(tmp_path / "den", "den") as den, node(tmp_path / "study", "study") as study:
        imported(den)
        pair(den, study)
        prefer(study, "mlx")
        with node(tmp_path / "loft", "loft") as loft:
            pair(den, loft)
            prefer(loft, "pytorch")
            assert study.run("lend", "--pause", "1h").returncode == 0
            async with den.client() as host:
                await load(host, FILE, split=LENDERS_SPLIT)
            assert stages_of(den)[1].startswith("PyTorch")
            assert study.run("lend", "--resume").returncode == 0
            answer = await struck(den, prompts[0], loft)
        assert answer["placement"][1]["machine"] == "study"
        assert stages_of(den)[1].startswith("MLX")
    opinions = await opinions_of(tmp_path, FOLDER / FILE, [(prompts[0], answer["token_ids"])])
    assert opinions[0].mean_gap < MEAN_GAP
    assert opinions[0].agreement >= AGREEMENT


async def struck(den: TestNode, prompt: list[int], victim: TestNode) -> Json:
    """Return an answer during which a lender was killed."""
    times: list[float] = []

    def strike(n_tokens: int) -> None:
        if n_tokens >= STRUCK_AFTER and not times:
            times.append(time.monotonic())
            victim.process.kill()

    async with den.client() as host:
        answer = await ask(host, strike, prompt_ids=prompt, max_tokens=N_TOKENS, ignore_end=True)
    assert times
    assert answer["recoveries"] == 1
    assert len(answer["token_ids"]) == N_TOKENS
    return answer


@needs_models
def test_too_little_memory_leaves_the_stage_to_llama_cpp(tmp_path: Path) -> None:
    """PyTorch itself does not fit into what is lent, but the layers do."""
    with paired(tmp_path, "den", "attic", lend="400MiB") as (den, attic):
        prefer(attic, "pytorch")
        imported(den)
        den.work("/load", {"model": FILE, "measure": False, "split": LENDERS_SPLIT})
        assert stages_of(den) == [""] * 3
        journal = json.dumps(attic.control("GET", "/journal"))
    assert "PyTorch 2.13.0 could not compute a part of a model" in journal
    assert "lend_too_large" in journal


def test_an_engine_that_is_not_there_is_not_used(tmp_path: Path) -> None:
    with node(tmp_path / "den", "den") as den:
        missing_folder = den.run("engine", "prefer", "pytorch", str(tmp_path / "nowhere"))
        assert missing_folder.returncode == 1
        assert "There is no folder" in missing_folder.stderr
        empty = tmp_path / "empty"
        empty.mkdir()
        refused = den.run("engine", "prefer", "mlx", str(empty), within_s=120)
        assert refused.returncode == 1
        assert "MLX: not used. Its test failed: MLX cannot be loaded" in refused.stdout
        assert "Traceback" not in refused.stdout
        assert "MLX: not used." in den.run("engine", "list").stdout
        assert den.run("engine", "prefer", "llama.cpp").stdout.strip() == "llama.cpp computes here."
        assert den.run("engine", "prefer", "tensorflow").returncode == 1
