"""The pipeline on the fake engine: right tokens, whatever the cut, the company and the end."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from app.core.errors import AppError, BadInput, Busy, StageLost
from app.core.recovery.recovery import Notice
from app.inference.pipeline import sequence
from app.inference.pipeline.pipeline import Pipeline
from app.inference.pipeline.sequence import Finish, Request, Token
from app.inference.worker.worker import Worker
from backends.contract import NumberFormat, Sampling
from backends.frames import FrameKind
from tests.inference.pool import N_LAYERS, N_VOCAB, answer, cuts, pool, request, runs_in_one, shape

PROMPT = "The quick brown fox jumps over the lazy dog, again and again, until it is tired of it all."
CUTS = [
    tuple(b - a for a, b in itertools.pairwise((0, *edges, N_LAYERS)))
    for n in (2, 3, 4)
    for edges in itertools.combinations(range(1, N_LAYERS), n - 1)
]


def kinds_sent(worker: Worker) -> list[int]:
    """The kinds of all frames that the worker is sent from now on."""
    kinds: list[int] = []
    send = worker.send

    def note(data: bytes, n_rows: int = 0) -> None:
        kinds.append(data[3])
        send(data, n_rows)

    worker.send = note  # type: ignore[method-assign]
    return kinds


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, list[int]]:
    """Greedy answers of one machine, each alone, by prompt."""

    async def ask() -> dict[str, list[int]]:
        async with pool(N_LAYERS) as built:
            prompts = [PROMPT, "hello", "x" * 200]
            return {text: (await answer(built.pipeline, request(text, 40)))[0] for text in prompts}

    return asyncio.run(ask())


def test_the_cuts_are_all_there_are() -> None:
    assert len(CUTS) == 7 + 21 + 35
    assert all(sum(len(layers) for _, layers in cuts(*sizes)) == N_LAYERS for sizes in CUTS)


async def test_split_equals_whole_at_every_cut(undisturbed: dict[str, list[int]]) -> None:
    """All cuts into 2, 3 and 4 runs, for speed in one worker."""
    async with await Worker.start("worker") as worker:
        for sizes in CUTS:
            async with runs_in_one(worker, *sizes) as pipeline:
                ids, _ = await answer(pipeline, request(PROMPT, 8))
            assert ids == undisturbed[PROMPT][:8], sizes


@pytest.mark.many(keep=2)
@pytest.mark.parametrize("sizes", [(1, 7), (1, 6, 1), (3, 2, 3), (1, 1, 5, 1), (2, 3, 2, 1)])
async def test_split_equals_whole_on_several_machines(
    sizes: tuple[int, ...], undisturbed: dict[str, list[int]]
) -> None:
    async with pool(*sizes) as built:
        assert (await answer(built.pipeline, request(PROMPT, 8)))[0] == undisturbed[PROMPT][:8]


@pytest.mark.parametrize("number", [NumberFormat.F32, NumberFormat.F16, NumberFormat.Q8])
async def test_every_number_type_on_the_wire(number: NumberFormat, undisturbed: dict[str, list[int]]) -> None:
    async with pool(2, 4, 2, number=number) as built:
        assert (await answer(built.pipeline, request(PROMPT, 8)))[0] == undisturbed[PROMPT][:8]


async def test_what_is_measured() -> None:
    async with pool(2, 4, 2) as built:
        _, finish = await answer(built.pipeline, request(PROMPT, 20))
    figures = finish.figures
    assert finish.reason == "length"
    assert (figures.prompt_tokens, figures.reused_tokens, figures.answer_tokens) == (90, 0, 20)
    assert 0 < figures.queued_s < figures.ttft_s
    assert figures.decode_tok_s > 0
    n_steps = 2 + 19
    assert [stage.steps for stage in figures.stages] == [n_steps] * 3
    assert all(stage.busy_s > 0 for stage in figures.stages)
    n_rows = 90 + 19
    assert figures.stages[1].bytes_out == n_steps * 48 + n_rows * NumberFormat.F16.row_bytes(8)
    assert figures.stages[1].bytes_in == figures.stages[1].bytes_out


async def test_end_tokens_end_an_answer_and_are_not_told(undisturbed: dict[str, list[int]]) -> None:
    whole = undisturbed["hello"]
    end = whole[5]
    async with pool(2, 4, 2) as built:
        ids, finish = await answer(built.pipeline, request("hello", 40, end=[end]))
    assert (ids, finish.reason) == (whole[: whole.index(end)], "stop")


async def test_a_lone_answer_passes_last_and_first_run_in_one_trip(undisturbed: dict[str, list[int]]) -> None:
    async with pool(2, 4, 2) as built:
        kinds = kinds_sent(built.host)
        assert (await answer(built.pipeline, request("hello", 40)))[0] == undisturbed["hello"]
    # all but the prompt's way in and the last token's way out
    assert (kinds.count(FrameKind.FOLLOW), kinds.count(FrameKind.STEP)) == (39, 2)


@pytest.mark.many(keep=2)
@pytest.mark.parametrize("cut_at", range(1, 8))
async def test_a_conversation_goes_on_after_any_end(cut_at: int, undisturbed: dict[str, list[int]]) -> None:
    """The first run had begun with the token after the end: it forgets it."""
    whole = undisturbed["hello"]
    end = whole[cut_at]
    known = [3 + byte for byte in b"hello"] + whole[: whole.index(end)]
    async with pool(2, 4, 2) as built:
        query = request("hello", 40, end=[end], conversation="c")
        assert (await answer(built.pipeline, query))[0] == whole[: whole.index(end)]
        again = request([*known, 7], 12, conversation="c")
        ids, finish = await answer(built.pipeline, again)
        assert finish.figures.reused_tokens >= len(known) - 1
    async with pool(N_LAYERS) as alone:
        assert ids == (await answer(alone.pipeline, request([*known, 7], 12)))[0]


async def test_others_join_an_answer_that_was_alone(undisturbed: dict[str, list[int]]) -> None:
    async with pool(2, 4, 2) as built:
        first = asyncio.gather(answer(built.pipeline, request("hello", 40)))
        await asyncio.sleep(0.05)
        results = await asyncio.gather(*(answer(built.pipeline, request(text, 40)) for text in (PROMPT, "x" * 200)))
        assert [ids for ids, _ in (*await first, *results)] == [
            undisturbed["hello"], undisturbed[PROMPT], undisturbed["x" * 200],
        ]  # fmt: skip


async def test_the_context_ends_an_answer() -> None:
    async with pool(2, 4, 2, form=shape(context=32)) as built:
        ids, finish = await answer(built.pipeline, request("x" * 20, 100))
    assert (len(ids), finish.reason) == (12, "length")


async def test_a_seed_gives_the_same_answer_again() -> None:
    sampling = Sampling(temperature=5.0, top_k=0, top_p=1.0, min_p=0.0, seed=7)
    async with pool(2, 4, 2) as built:
        first, _ = await answer(built.pipeline, request("hello", 20, sampling=sampling))
        again, _ = await answer(built.pipeline, request("hello", 20, sampling=sampling))
        greedy, _ = await answer(built.pipeline, request("hello", 20))
    assert first == again != greedy


@pytest.mark.many(keep=1)
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_sixteen_come_and_go_and_each_says_what_it_says_alone(seed: int) -> None:
    chance = random.Random(seed)
    requests = [request([chance.randrange(3, 259) for _ in range(chance.randrange(1, 180))], 24) for _ in range(16)]
    async with pool(N_LAYERS, form=shape(slots=1)) as built:
        alone = [(await answer(built.pipeline, query))[0] for query in requests]

    async def one(pipeline: Pipeline, query: Request, leaves_at: int) -> list[int]:
        ids: list[int] = []
        await asyncio.sleep(chance.random() * 0.05)
        async with aclosing(pipeline.generate(query)) as stream:
            async for item in stream:
                if isinstance(item, Finish) or len(ids) == leaves_at:
                    break
                assert isinstance(item, Token)
                ids.append(item.id)
        return ids

    async with pool(2, 3, 2, 1, form=shape(slots=6)) as built:
        leaving = [chance.choice((24, 24, chance.randrange(24))) for _ in requests]
        jobs = [one(built.pipeline, *pair) for pair in zip(requests, leaving, strict=True)]
        together = await asyncio.gather(*jobs)
        assert built.pipeline.lost is None
    for ids, at, whole in zip(together, leaving, alone, strict=True):
        assert ids == whole[:at]


async def test_cancel_at_every_token(undisturbed: dict[str, list[int]]) -> None:
    """This includes before the first token, and in the middle of the prompt. Others are not affected."""
    async with pool(2, 4, 2, form=shape(slots=2)) as built:
        other = asyncio.gather(answer(built.pipeline, request("hello", 40)))
        for n_read in range(20):
            async with aclosing(built.pipeline.generate(request("x" * 200, 40))) as stream:
                for index in range(n_read):
                    item = await anext(stream)
                    assert isinstance(item, Token)
                    assert item.id == undisturbed["x" * 200][index]
        for _ in range(8):
            lost = asyncio.ensure_future(  # noqa: TID251  cancelled from outside, as a caller may be
                answer(built.pipeline, request(PROMPT, 40))
            )
            await asyncio.sleep(0.001)
            lost.cancel()
            await asyncio.wait([lost])
        assert (await other)[0][0] == undisturbed["hello"]
        for text, whole in undisturbed.items():
            assert (await answer(built.pipeline, request(text, 40)))[0] == whole
        await until_idle(built.pipeline)


async def test_an_answer_whose_reader_leaves_gives_its_slot_back_at_once() -> None:
    async with pool(2, 4, 2, paths=["fake:seconds_per_layer=0.001"]) as built:
        async with aclosing(built.pipeline.generate(request("x", 400))) as stream:
            await anext(stream)
        await until_idle(built.pipeline)
        assert built.pipeline.figures()[0].steps < 100  # of 400 tokens


async def read_on(stream: AsyncGenerator[Token | Notice | Finish, None]) -> None:
    async for _ in stream:
        pass


async def until_idle(pipeline: Pipeline) -> None:
    async with asyncio.timeout(60):
        while pipeline.n_running or pipeline.n_waiting:  # noqa: ASYNC110  seen from outside
            await asyncio.sleep(0.01)


async def test_a_later_turn_computes_only_what_is_new() -> None:
    turn = [3 + byte for byte in PROMPT.encode()]
    async with pool(2, 4, 2) as built:
        said, first = await answer(built.pipeline, request(turn, 10, conversation="mine"))
        later = [*turn, *said, *(3 + byte for byte in b"and then?")]
        rows = built.pipeline.figures()[1].bytes_out
        ids, second = await answer(built.pipeline, request(later, 10, conversation="mine"))
        rows = built.pipeline.figures()[1].bytes_out - rows
        fresh, other = await answer(built.pipeline, request(later, 10, conversation="another"))
        edited, third = await answer(built.pipeline, request([*turn[:50], 7, 8, 9], 10, conversation="mine"))
        alone, _ = await answer(built.pipeline, request([*turn[:50], 7, 8, 9], 10))
    assert first.figures.reused_tokens == other.figures.reused_tokens == 0
    assert second.figures.reused_tokens == len(turn) + 9  # the tenth token was never an input
    assert rows == 10 * 48 + (10 + 9) * NumberFormat.F16.row_bytes(8)
    assert ids == fresh
    assert third.figures.reused_tokens == 50
    assert edited == alone


async def test_conversations_give_way_when_the_kv_cache_is_short() -> None:
    async with pool(2, 4, 2, form=shape(kv_cells=300)) as built:
        await answer(built.pipeline, request("x" * 200, 10, conversation="a"))
        alone, _ = await answer(built.pipeline, request("y" * 200, 10, conversation="b"))
        _, finish = await answer(built.pipeline, request("x" * 200, 10, conversation="a"))
        both = await asyncio.gather(*(answer(built.pipeline, request("y" * 200, 10)) for _ in range(3)))
    assert finish.figures.reused_tokens == 0
    assert all(ids == alone for ids, _ in both)


BAD: list[tuple[Request, str]] = [
    (request([], 5), "prompt_empty"),
    (request("x" * 1024, 5), "prompt_too_long"),
    (request([N_VOCAB], 5), "token_unknown"),
    (request([-1], 5), "token_unknown"),
    (request([1], 5, sampling=Sampling(logit_bias=((N_VOCAB, 1.0),))), "bias_unknown"),
    (request("x", 0), "max_tokens_low"),
    (request("x", 5, sampling=Sampling(temperature=float("nan"))), "sampling_odd"),
    (request("x", 5, sampling=Sampling(top_k=1 << 40)), "sampling_odd"),
    (request("x", 5, sampling=Sampling(logit_bias=((3, float("inf")),))), "sampling_odd"),
    (request("x", 5, sampling=Sampling(logit_bias=((3, 1e300),))), "sampling_odd"),
]


async def test_bad_requests_are_refused_before_anything_is_computed() -> None:
    async with pool(2, 4, 2) as built:
        for query, code in BAD:
            with pytest.raises(BadInput) as raised:
                await answer(built.pipeline, query)
            assert raised.value.reason.code == code
        assert built.pipeline.figures()[0].steps == 0
        assert len((await answer(built.pipeline, request("x" * 1023, 5)))[0]) == 1


async def test_a_sampler_that_cannot_be_made_ends_only_its_own_request() -> None:
    async with pool(2, 4, 2) as built:
        sampling = Sampling(temperature=0.0, grammar="no grammar at all")
        with pytest.raises(BadInput):
            await answer(built.pipeline, request("x", 5, sampling=sampling))
        assert len((await answer(built.pipeline, request("x", 5)))[0]) == 5


async def test_a_prompt_too_long_is_told_with_both_numbers() -> None:
    async with pool(N_LAYERS) as built:
        with pytest.raises(BadInput) as raised:
            await answer(built.pipeline, request("x" * 2000, 5))
    assert raised.value.reason.facts == {"tokens": 2000, "context": 1024}


async def test_a_full_queue_says_when_to_try_again() -> None:
    async with pool(2, 4, 2, form=shape(slots=1, max_waiting=2)) as built:
        async with aclosing(built.pipeline.generate(request("x", 500))) as stream:
            await anext(stream)
            waiting = [asyncio.gather(answer(built.pipeline, request("y", 5))) for _ in range(2)]
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            with pytest.raises(Busy) as raised:
                await answer(built.pipeline, request("z", 5))
            assert raised.value.reason.facts["waiting"] == 2
            assert [(queued_request.place, queued_request.seconds) for queued_request in built.pipeline.line()] == [
                (1, None),
                (2, None),
            ]
            assert raised.value.reason.number("seconds") >= 1
        assert all(len(ids) == 5 for [(ids, _)] in await asyncio.gather(*waiting))


async def steps_at_rest(pipeline: Pipeline) -> int:
    """Return the number of steps of its first stage once it is idle."""
    before, steps = -1, pipeline.figures()[0].steps
    for _ in range(30):
        if steps == before:
            break
        await asyncio.sleep(0.3)
        before, steps = steps, pipeline.figures()[0].steps
    return steps


@pytest.mark.long
async def test_a_slow_reader_stops_only_its_own_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.inference.pipeline.scheduler.UNREAD_S", 600.0)
    async with pool(2, 4, 2) as built:
        async with aclosing(built.pipeline.generate(request("x", 900))) as stream:
            await anext(stream)
            await answer(built.pipeline, request("y", 400))
            steps = await steps_at_rest(built.pipeline)
            assert steps <= 400 + 1 + sequence.MAX_UNREAD + 10
            for _ in range(50):  # reads on: so does the sequence
                await anext(stream)
            assert await steps_at_rest(built.pipeline) == steps + 50
            monkeypatch.setattr("app.inference.pipeline.scheduler.UNREAD_S", 0.3)
            await until_idle(built.pipeline)
            with pytest.raises(Busy) as raised:
                await read_on(stream)
        assert raised.value.reason.code == "reader_slow"


async def test_closing_the_pipeline_ends_every_answer() -> None:
    async with pool(2, 4, 2, form=shape(slots=1)) as built:
        futures = [asyncio.gather(answer(built.pipeline, request("x", 900))) for _ in range(3)]
        await asyncio.sleep(0.05)
    ended = await asyncio.gather(*futures, return_exceptions=True)
    assert [error.reason.code for error in ended if isinstance(error, AppError)] == ["pipeline_closed"] * 3
    with pytest.raises(StageLost):
        await answer(built.pipeline, request("x", 1))


async def test_how_long_a_token_takes_on_each_machine_is_known_once_it_is_warm() -> None:
    slow = ["fake:", "fake:seconds_per_layer=0.005", "fake:"]
    async with pool(2, 4, 2, paths=slow) as built:
        assert built.pipeline.steps_s() == {}
        await answer(built.pipeline, request("hello", 30))
        [(_, step_s)] = built.pipeline.steps_s().items()  # no machine of this pool has an id
        assert 0.02 <= step_s < 1.0
