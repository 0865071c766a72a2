"""Real models over three nodes, of which one or two compute on a device; and a stage that moves from it and back."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from scripts.real_models import GEMMA3, MODELS, SMOLLM2, folder, missing
from tests.cards import device
from tests.cards.card_nodes import card_of, device_environment, install_pack, until, uses_card
from tests.node.pool import TestNode, node, pair
from tests.real.asking import SPLITS, Json, ask, begun, load, opinions_of
from tests.real.words import BEGUN

FOLDER, MISSING = folder(), missing()
pytestmark = [
    pytest.mark.cards,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(bool(MISSING), reason="needs the real models: `make real` fetches them"),
]

FILES = [model.file for model in MODELS]
MEAN_GAP, AGREEMENT = 0.2, 0.85  # as for a narrow wire (tests/real/test_household.py)
N_ANSWERS, N_TOKENS = 3, 16
LENDERS_SPLIT = [8, 14, 8]  # the host, one lender, the host
STRUCK_AFTER = 4  # tokens
COMPILE_SECONDS = 900


def with_card(root: Path) -> None:
    """Give a node that will start in this folder the code that was compiled before, to save minutes."""
    shutil.copytree(device.kept_shaders(), root / "graphics", dirs_exist_ok=True)


def keep_shaders(root: Path) -> None:
    shutil.copytree(root / "graphics", device.kept_shaders(), dirs_exist_ok=True)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with device_environment():
        for file in FILES:
            device.in_a_process("tests.cards.real_case", ["shaders", file], within_s=COMPILE_SECONDS)
        yield tmp_path_factory.mktemp("real-cards")


@pytest.fixture(scope="module")
def nodes(home: Path) -> Iterator[list[TestNode]]:
    """A host without a card, and two lenders with one each."""
    with ExitStack() as stack:
        for name in ("attic", "kitchen"):
            with_card(home / name)
        made = [stack.enter_context(node(home / name, name)) for name in ("den", "attic", "kitchen")]
        for lender in made[1:]:
            pair(made[0], lender)
            install_pack(lender)
        for model in MODELS:
            done = made[0].run("import", str(FOLDER / model.file), "--name", model.file)
            assert done.returncode == 0, done.stdout + done.stderr
        yield made
        keep_shaders(home / "attic")


@pytest.mark.parametrize(
    ("file", "n_cards"), [(SMOLLM2.file, 1), (SMOLLM2.file, 2), (GEMMA3.file, 1), (GEMMA3.file, 2)]
)
async def test_a_real_model_over_devices_says_what_the_whole_would(
    nodes: list[TestNode], tmp_path: Path, file: str, n_cards: int
) -> None:
    first, middle, third, last = SPLITS[file]
    split = [first, middle, third, last] if n_cards == 2 else [first, middle + third, last]
    prompts = (await begun(FOLDER / file, *BEGUN))[:N_ANSWERS]
    async with nodes[0].client() as host:
        await load(host, file, split=split, exact=True)
        answers = [await ask(host, prompt_ids=ids, max_tokens=N_TOKENS) for ids in prompts]
    used = [worker for lender in nodes[1:] for worker in lender.workers()]
    assert len(used) == n_cards
    assert all(map(uses_card, used))
    assert [answer["notices"] for answer in answers] == [[]] * len(answers)
    pairs = [(ids, answer["token_ids"]) for ids, answer in zip(prompts, answers, strict=True)]
    opinions = await opinions_of(tmp_path, FOLDER / file, pairs)
    assert all(opinion.mean_gap < MEAN_GAP and opinion.agreement >= AGREEMENT for opinion in opinions), opinions


async def test_a_stage_moves_from_the_device_to_a_processor_and_back(home: Path, tmp_path: Path) -> None:
    """A lender is killed in mid-answer each time. What had been said stays, and what follows is the model's."""
    file = SMOLLM2.file
    prompts = await begun(FOLDER / file, BEGUN[0])
    with_card(home / "loft")
    with ExitStack() as stack:
        den = stack.enter_context(node(home / "moves", "den"))
        imported = den.run("import", str(FOLDER / file), "--name", file)
        assert imported.returncode == 0, imported.stdout + imported.stderr
        study = stack.enter_context(node(home / "study", "study"))  # has only a processor
        pair(den, study)
        with node(home / "loft", "loft") as loft:
            pair(den, loft)
            install_pack(loft)
            assert study.run("lend", "--pause", "1h").returncode == 0
            async with den.client() as host:
                await load(host, file, split=LENDERS_SPLIT, exact=True)
            assert uses_card(await loft.one_worker())
            assert study.run("lend", "--resume").returncode == 0
            to_processor = await struck(den, prompts[0], loft)
            assert to_processor["placement"][1]["machine"] == "study"
        with node(home / "loft", "loft") as loft:
            until(lambda: card_of(loft) is not None, "the card is not used again")
            back = await struck(den, prompts[0], study)
            assert back["placement"][1]["machine"] == "loft"
            assert uses_card(await loft.one_worker())
    answers = [(prompts[0], answer["token_ids"]) for answer in (to_processor, back)]
    opinions = await opinions_of(tmp_path, FOLDER / file, answers)
    assert all(opinion.mean_gap < MEAN_GAP and opinion.agreement >= AGREEMENT for opinion in opinions), opinions


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
