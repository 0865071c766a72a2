"""A small model writes ahead of a larger one: no answer differs for it, and none ends when it is lost."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from app.core.errors import BadInput
from app.core.speculation.draft import DraftToken
from app.core.speculation.trip_costs import TripCosts
from app.inference.pipeline import scheduler
from app.inference.pipeline.pipeline import Pipeline
from app.inference.pipeline.scheduler import PipelineConfig
from app.inference.pipeline.sequence import Finish, Request, Token
from app.inference.stages.stage_client import Run
from app.inference.stages.stage_connection import open_run, own_stage
from app.inference.worker import drafter as drafter_module
from app.inference.worker.drafter import Drafter
from app.inference.worker.worker import ONE_THREAD, Worker
from backends.contract import GREEDY, NumberFormat, Role, Sampling
from testbed import tiny
from tests.backends.cutting import config, runs
from tests.inference.pool import answer

N_TOKENS = 24
SIZES = tiny.Shape(layers=4)
FORM = PipelineConfig(slots=4, kv_cells=2048, context=512, n_vocab=SIZES.vocab)
TEXTS = [Request(tuple(range(n, n + 40)), GREEDY, N_TOKENS) for n in (5, 25, 60)]
SEEDED = [replace(text, sampling=Sampling(temperature=0.7, seed=n)) for n, text in enumerate(TEXTS)]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.llama(tmp_path_factory.mktemp("draft") / "tiny.gguf", SIZES)


@pytest.fixture(autouse=True)
def always_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check three guesses at a time, although a draft as large as its model cannot pay."""

    def depth(_costs: TripCosts, chances: Sequence[Sequence[float]], most: int, _overlap: object = None) -> int:
        return min(3, most, *map(len, chances))

    monkeypatch.setattr(TripCosts, "depth", depth)
    monkeypatch.setattr(TripCosts, "most_rows", 4)


async def drafter_of(path: Path, model: Path) -> Drafter:
    return await Drafter.open(
        path, model, n_vocab=SIZES.vocab, context=512, slots=4, threads=ONE_THREAD, limit_bytes=1 << 30
    )


@asynccontextmanager
async def pipeline(model: Path, drafter: Drafter | None, cuts: tuple[int, ...] = (1, 3)) -> AsyncIterator[Pipeline]:
    """A pipeline whose runs are all in one worker."""
    async with AsyncExitStack() as stack:
        worker = await stack.enter_async_context(await Worker.start("host"))
        stages = []
        for layers, role in runs(SIZES.layers, cuts):
            run = Run(bytes([role is Role.FIRST, role is Role.LAST, *bytes(14)]), role, SIZES.width, NumberFormat.F32)
            stage = config(model, layers, role, SIZES.width, slots=4, kv_cells=FORM.kv_cells)
            await open_run(worker, run, FORM.context, stage)
            stages.append(own_stage(worker, run, f"{layers}", f"machine {role}"))
        if drafter is not None:
            stack.push_async_callback(drafter.close)
        pipeline = await stack.enter_async_context(Pipeline(stages, FORM))
        if drafter is not None:
            pipeline.use_draft(drafter)
        yield pipeline


async def every(model: Path, drafter: Drafter | None, requests: list[Request]) -> list[tuple[list[int], Finish]]:
    async with pipeline(model, drafter) as built:
        return [await answer(built, request) for request in requests]


def n_alike(pairs: list[tuple[list[int], list[int]]]) -> int:
    """Return how many tokens are the same from the beginning: a near tie may be decided otherwise in a check."""
    return sum(
        next((n for n, (a, b) in enumerate(zip(left, right, strict=True)) if a != b), len(left))
        for left, right in pairs
    )


@pytest.mark.parametrize("requests", [TEXTS, SEEDED], ids=["greedy", "seeded"])
async def test_the_model_as_its_own_draft_changes_nothing(model: Path, requests: list[Request]) -> None:
    plain = await every(model, None, [replace(request, guesses=False) for request in requests])
    drafted = await every(model, await drafter_of(model, model), requests)
    pairs = [(left, right) for (left, _), (right, _) in zip(plain, drafted, strict=True)]
    assert n_alike(pairs) > N_TOKENS
    figures = [finish.figures for _, finish in drafted]
    assert sum(each.guessed for each in figures) > 5
    if requests is TEXTS:
        assert sum(each.guessed_right for each in figures) > 5
        assert all(0 < each.guess_runs <= each.guessed for each in figures if each.guessed)
        assert 0 < sum(each.drafted_right for each in figures) <= sum(each.guessed_right for each in figures)


async def test_answers_at_once_share_a_draft(model: Path) -> None:
    async with pipeline(model, await drafter_of(model, model)) as built:
        answers = await asyncio.gather(*(answer(built, request) for request in TEXTS))
    plain = await every(model, None, [replace(request, guesses=False) for request in TEXTS])
    assert n_alike([(left, right) for (left, _), (right, _) in zip(plain, answers, strict=True)]) > N_TOKENS
    assert all(finish.reason == "length" for _, finish in answers)


@pytest.mark.parametrize("killed_at", [1, 10])
async def test_an_answer_outlives_its_draft(model: Path, killed_at: int) -> None:
    drafter, ids = await drafter_of(model, model), []
    async with pipeline(model, drafter) as built, aclosing(built.generate(TEXTS[0])) as stream:
        async for item in stream:
            if isinstance(item, Token):
                ids.append(item.id)
            if len(ids) == killed_at:
                drafter.kill()
        assert built.lost is None
        assert not drafter.alive
        assert len((await answer(built, TEXTS[1]))[0]) == N_TOKENS
    assert len(ids) == N_TOKENS


async def test_a_draft_with_other_tokens_is_refused_with_the_reason(model: Path, tmp_path: Path) -> None:
    other = tiny.llama(tmp_path / "other.gguf", replace(SIZES, vocab=SIZES.vocab + 5))
    with pytest.raises(BadInput) as refused:
        await drafter_of(other, model)
    assert "draft_other_tokens" in str(refused.value.reason.to_json())


async def test_a_long_prompt_does_not_hold_up_the_drafts_of_others(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drafter_module, "READ_AT_ONCE", 16)
    monkeypatch.setattr(scheduler, "READ_AT_ONCE", 16)
    drafter, turns = await drafter_of(model, model), list[tuple[int, int]]()
    write = Drafter.write

    async def noted(self: Drafter, slot: int, tokens: array[int], n: int) -> list[DraftToken]:
        drafted = await write(self, slot, tokens, n)
        turns.append((slot, len(drafted)))
        return drafted

    monkeypatch.setattr(Drafter, "write", noted)
    long = Request(tuple(n % 200 + 3 for n in range(400)), GREEDY, 60)
    async with pipeline(model, drafter) as built:
        await asyncio.gather(answer(built, long), *(answer(built, request) for request in TEXTS))
    slot = next(slot for slot, _ in turns if sum(turn[0] == slot for turn in turns) >= 400 // 16)
    first_of_long = next(number for number, turn in enumerate(turns) if turn[0] == slot and turn[1])
    assert any(drafted for other, drafted in turns[:first_of_long] if other != slot)
    assert sum(turn == (slot, 0) for turn in turns[:first_of_long]) >= 400 // 16 - 2
