"""Stages on the device in real, confined workers: opened, killed, opened again, and refused."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from app.catalog.shelf import Entry
from app.core.errors import AppError, Reason, StageLost
from app.core.reasons import said
from app.inference.stages.stage_connection import OPEN_S
from app.inference.worker.worker import Worker
from backends.contract import StageConfig
from tests.cards.device import VULKAN0, kept_shaders, on_device
from tests.cards.worker_pipeline import Placed, opened, placed, start
from tests.families import proof
from tests.families.fixtures import families
from tests.families.home import Home
from tests.inference.pool import answer, request

CPU = ""
PROMPT = tuple(range(5, 45))
N_TOKENS = 24
MOST_WORDS = 300


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return proof.home(tmp_path)


@pytest.fixture
def entry(home: Home) -> Entry:
    return home.shelf.import_file(families()["llama"].path)


def whole(home: Home, entry: Entry, device: str = VULKAN0) -> StageConfig:
    """Return the stage of the whole model, with steps of one row only: they compile for a quarter of the time."""
    (run,) = proof.runs(entry.model.n_layers, ())
    return replace(on_device(home.config(entry, *run, apart=False), device), batch_rows=1)


async def test_a_cold_cache_is_filled_by_the_confined_worker(home: Home, entry: Entry, tmp_path: Path) -> None:
    shaders = tmp_path / "shaders"
    shaders.mkdir()
    seconds = []
    for name in ("cold", "warm"):
        began = time.monotonic()
        async with await start(name, home, entry, shaders) as worker:
            _, answered = await opened(worker, whole(home, entry))
        seconds.append(time.monotonic() - began)
        assert answered.device_bytes > 0  # and not on the processor
        assert any(path.is_file() for path in shaders.rglob("*"))
    print(f"cold {seconds[0]:.1f} s, warm {seconds[1]:.1f} s")
    assert seconds[0] < OPEN_S
    assert seconds[1] < seconds[0]


async def test_a_worker_killed_in_mid_answer_is_replaced(home: Home, entry: Entry) -> None:
    cuts, devices = (1, 3), (CPU, VULKAN0, CPU)
    async with placed(home, entry, cuts, devices) as made:
        expected, _ = await answer(made.pipeline, request(PROMPT, N_TOKENS))
        assert [bool(each.device_bytes) for each in made.opened] == [False, True, False]
    async with placed(home, entry, cuts, devices) as made:
        with pytest.raises(StageLost):
            await _killed_in_mid_answer(made)
        assert made.workers["lender"].died is not None
    async with placed(home, entry, cuts, devices) as made:
        assert (await answer(made.pipeline, request(PROMPT, N_TOKENS)))[0] == expected
    async with placed(home, entry, cuts, (CPU, CPU, CPU)) as made:  # moved to the processor
        assert (await answer(made.pipeline, request(PROMPT, N_TOKENS)))[0] == expected


async def _killed_in_mid_answer(made: Placed) -> None:
    async for _ in made.pipeline.generate(request(PROMPT, N_TOKENS)):
        made.workers["lender"].kill(Reason("worker_closed", {"worker": "lender"}))
        await made.workers["lender"].wait_dead()


async def refusal(worker: Worker, config: StageConfig) -> str:
    """Return the sentence with which a worker refuses a stage on a device. It must be one line without folders."""
    with pytest.raises(AppError) as refused:
        await opened(worker, config)
    assert refused.value.reason.code == "device_unusable"
    sentence = said(refused.value)
    assert "\n" not in sentence
    assert len(sentence) < MOST_WORDS
    return sentence


async def test_a_confined_worker_without_a_code_cache_uses_no_device(home: Home, entry: Entry) -> None:
    async with await start("worker", home, entry, None) as worker:
        assert "may not use a graphics card" in await refusal(worker, whole(home, entry))
        _, answered = await opened(worker, whole(home, entry, CPU))  # it still computes on the processor
        assert answered.device_bytes == 0


def missing(vulkan: Path) -> Path:
    return vulkan.with_name("libggml-none.so")


def garbage(vulkan: Path) -> Path:
    broken = vulkan.with_name("libggml-broken.so")
    broken.write_bytes(b"garbage" * 100)
    return broken


def cut_short(vulkan: Path) -> Path:
    half = vulkan.with_name("libggml-half.so")
    shutil.copyfile(vulkan, half)
    with half.open("r+b") as file:
        file.truncate(vulkan.stat().st_size // 2)
    return half


@pytest.mark.parametrize(("broken", "words"), [(missing, "No such file"), (garbage, "invalid ELF header")])
async def test_a_library_that_cannot_be_loaded_is_refused(
    home: Home, entry: Entry, broken: Callable[[Path], Path], words: str
) -> None:
    there = home.stages.folder / "libggml-vulkan.so"  # a folder that the worker may read
    shutil.copyfile(whole(home, entry).library, there)
    config = replace(whole(home, entry), library=str(broken(there)))
    async with await start("worker", home, entry, kept_shaders()) as worker:
        sentence = await refusal(worker, config)
        assert words in sentence
        assert str(home.stages.folder) not in sentence


async def test_half_a_library_ends_the_worker_with_a_sentence(home: Home, entry: Entry) -> None:
    """The system's loader crashes on it. An engine pack with such a library is refused earlier, by its hash."""
    there = home.stages.folder / "libggml-vulkan.so"
    shutil.copyfile(whole(home, entry).library, there)
    config = replace(whole(home, entry), library=str(cut_short(there)))
    async with await start("worker", home, entry, kept_shaders()) as worker:
        with pytest.raises(StageLost, match="worker_crashed") as lost:
            await opened(worker, config)
    assert "\n" not in said(lost.value)


async def test_a_missing_device_is_refused_by_name(home: Home, entry: Entry) -> None:
    async with await start("worker", home, entry, kept_shaders()) as worker:
        assert "Vulkan7" in await refusal(worker, whole(home, entry, "Vulkan7"))
        _, answered = await opened(worker, whole(home, entry))  # the worker has survived
        assert answered.device_bytes > 0
