"""Calls whose signs are control tokens, in the order in which tokens come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import aclosing
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import msgspec
import pytest

from app.api.chat_api import UpstreamSpeed
from app.api.requests import Ask
from app.api.responses import Answer
from app.core.errors import AppError, BadInput, Busy, Unreachable
from app.gateway.access.token_budget import TokenBudget
from app.gateway.answer_service import AnswerReader, AnswerService, Caller, _conversation
from app.gateway.api_request import AnswerEnd, ApiRequest, CallDone, Json, Piece, TextPiece, Tool, text_of
from app.gateway.dialects.responses_routes import ResponsesRequest as Responses
from app.gateway.error_responses import ApiDialect, error_body, status_of
from app.gateway.fair_queue import USUAL_S
from app.gateway.metrics import Metrics
from app.gateway.servers.member_server import MemberRoutes
from app.gateway.upstreams.upstream_dialect import request_body
from app.gateway.upstreams.upstreams import UpstreamChoice, Upstreams
from app.inference.pipeline.completion import Delta, TokenReader
from app.inference.worker.tokenizer import Detokenizer
from app.machine.settings import Upstream
from app.node.control.answer_conversion import AnswerPart
from app.node.models.loaded_models import LoadedModels
from app.node.placement.placement import Placement
from tests.core.call_formats import FORMATS
from tests.gateway.test_fair_queue import all_had_a_turn

T = TypeVar("T")
ARGUMENTS = '{"name": "clock", "arguments": {"zone": "UTC"}}'
QWEN = "<function=clock>\n<parameter=zone>\nUTC\n</parameter>\n</function>\n"
DONE = Answer(finish_reason="stop", prompt_tokens=3, token_ids=[1], ttft_s=0.1, decode_tok_s=5.0)


class Answerer:
    """A model of a family, with these control tokens."""

    def __init__(self, style: str, **control: int) -> None:
        self.call_format = FORMATS.get(style)
        self._control = control

    async def control_token(self, name: str) -> int | None:
        return self._control.get(name.strip("<>[]/").lower() + ("_end" if "/" in name else ""))


async def heard(style: str, tokens: list[tuple[int, str]], **control: int) -> list[Any]:
    talk = AnswerReader(ApiRequest("m", (), tools=(Tool("clock", "", {}),)), 0)
    signs = await talk.prepare(cast("Placement", SimpleNamespace(completer=Answerer(style, **control))))
    reader = TokenReader(Detokenizer([], signs), ())
    pieces: list[Any] = []
    for token, text in tokens:
        reader.push(token)
        pieces += talk.read(Delta(text + reader.deltas((token,), ())[0].text, (token,)))
    return pieces + talk.end(DONE, 0.5)


@pytest.mark.parametrize(
    ("style", "tokens", "control"),
    [
        ("hermes", [(7, ""), (1, ARGUMENTS), (8, "")], {"tool_call": 7, "tool_call_end": 8}),
        ("hermes", [(7, "<tool_call>"), (1, ARGUMENTS), (8, "</tool_call>")], {}),
        ("mistral", [(9, ""), (1, f"[{ARGUMENTS}]")], {"tool_calls": 9}),
        ("ministral", [(9, ""), (1, "clock"), (8, ""), (1, '{"zone": "UTC"}')], {"tool_calls": 9, "args": 8}),
        (
            "ministral",
            [(9, ""), (1, "clock"), (7, ""), (1, "a1b2c3d4e"), (8, ""), (1, '{"zone": "UTC"}')],
            {"tool_calls": 9, "call_id": 7, "args": 8},
        ),
        ("qwen_coder", [(7, ""), (1, QWEN), (8, "")], {"tool_call": 7, "tool_call_end": 8}),
        (
            "glm",
            [(7, ""), (1, "clock"), (3, ""), (1, "zone"), (4, ""), (5, ""), (1, "UTC"), (6, ""), (8, "")],
            {"tool_call": 7, "tool_call_end": 8, "arg_key": 3, "arg_key_end": 4, "arg_value": 5, "arg_value_end": 6},
        ),
        ("llama3", [(9, ""), (1, ARGUMENTS)], {"|python_tag|": 9}),
        (
            "kimi",
            [(2, ""), (3, ""), (1, "functions.clock:0"), (4, ""), (1, '{"zone": "UTC"}'), (5, ""), (6, "")],
            {
                "|tool_calls_section_begin|": 2,
                "|tool_call_begin|": 3,
                "|tool_call_argument_begin|": 4,
                "|tool_call_end|": 5,
                "|tool_calls_section_end|": 6,
            },
        ),
    ],
)
async def test_a_call_is_found(style: str, tokens: list[tuple[int, str]], control: Json) -> None:
    called, end = await heard(style, tokens, **control)
    assert isinstance(called, CallDone)
    assert isinstance(end, AnswerEnd)
    assert (called.name, called.arguments, end.reason) == ("clock", '{"zone": "UTC"}', "calls")
    assert end.queued_s == 0.5


async def test_a_model_whose_calls_nobody_can_read_writes_text() -> None:
    """The call is refused with a sentence later, and must not fail in another way here."""
    said, _ = await heard("", [(1, "It is noon.")])
    assert said == TextPiece(0, "It is noon.")


async def test_text_stays_text() -> None:
    said, end = await heard("mistral", [(1, "It is noon.")])
    assert (said, end.reason) == (TextPiece(0, "It is noon."), "stop")


def test_a_conversation_is_what_begins_alike_for_one_program() -> None:
    system, user = {"role": "system", "content": "s"}, {"role": "user", "content": "u"}
    later = (system, user, {"role": "assistant", "content": "a"}, user)
    key, another = Caller("key", "r"), Caller("another", "r")
    first = _conversation(ApiRequest("m", (system, user)), key)
    assert _conversation(ApiRequest("m", later), Caller("key", "r2")) == first
    rest = [
        _conversation(ApiRequest("m", (system, user)), another),
        _conversation(ApiRequest("m", (system, user)), replace(key, program="of a guest")),
        _conversation(ApiRequest("m", (system, user), user="anna"), key),
        _conversation(ApiRequest("m", (user,)), key),
        _conversation(ApiRequest("m", prompt="u"), key),
    ]
    assert len({first, *rest}) == 6


async def test_the_pool_is_told_one_system_message_and_an_upstream_what_was_asked() -> None:
    item = {"role": "developer", "content": "b"}, {"role": "user", "content": "c"}
    api_request = Responses(instructions="a", input=list(item)).to_api_request(0)
    entry = SimpleNamespace(name="m", model=SimpleNamespace(id="1" * 64))
    completer = SimpleNamespace(call_format=None)
    running = SimpleNamespace(entry=entry, context=512, completer=completer)
    question = await Pool().answering._generation_request(api_request, Caller("", ""), 0, cast("Placement", running))
    assert question.messages == [{"role": "system", "content": "a\n\nb"}, item[1]]
    sent = [message["content"] for message in request_body(api_request, "m", 0, 9)["messages"]]
    assert sent == ["a", "b", "c"]


class Pool:
    """A pool with one slot, which answers with a word, and an upstream that does too, or cannot."""

    def __init__(self, fails: AppError | None = None) -> None:
        self.running = SimpleNamespace(
            entry=SimpleNamespace(name="m", model=SimpleNamespace(id="1" * 64)), slots=1, is_ready=True, completer=True
        )
        self.loaded = LoadedModels()
        self.loaded.add(cast("Any", self.running))
        self.n_asks, self._fails, self._keys = 0, fails, count()
        choice = {"barn": Upstream("https://x/v1", {"m": "theirs", "only": "there", "man": "x"}, 100, on=True)}
        self.upstreams = Upstreams(lambda: choice, cast("Any", None), Path("none"), lambda _: None)
        self.upstreams.answer = self._there  # type: ignore[method-assign, assignment]
        self.budget = TokenBudget(lambda _: 9, lambda: 0.0)
        models = cast("Any", SimpleNamespace(named=self._unknown))
        self.answering = AnswerService(cast("Any", self), models, lambda: False, Metrics(), self.budget, self.upstreams)

    async def _unknown(self, name: str, loaded: Collection[str] | None) -> None:
        if loaded == ["m"] and "many".startswith(name):
            raise BadInput("model_inexact", name=name, there="many")
        raise BadInput("model_unknown", name=name, there="m")

    async def answer(self, expected: str, ask: object, *, may_load: bool) -> AsyncGenerator[AnswerPart, None]:
        assert not may_load
        yield Delta("here", (1,))
        yield DONE

    async def _there(
        self,
        chosen: UpstreamChoice,
        api_request: ApiRequest,
        index: int,
        request: str,
        on_cost: Callable[[int], None] = lambda _: None,
        forwarded_by: Sequence[str] = (),
    ) -> AsyncGenerator[Piece, None]:
        if self._fails is not None:
            raise self._fails
        try:
            yield TextPiece(index, f"there, by {chosen.model}")
        finally:
            on_cost(9)

    async def says(self, api_request: ApiRequest, *passed: str, caller: Caller | None = None) -> tuple[str, str]:
        caller = caller or Caller(f"key {next(self._keys)}", "r", forwarded_by=passed)
        pieces = [piece async for piece in self.answering.answer(api_request, caller)]
        return "".join(p.text for p in pieces if isinstance(p, TextPiece)), caller.origin.upstream


async def test_who_leaves_what_an_upstream_says_has_had_its_tokens() -> None:
    pool = Pool()
    caller = Caller("leaves", "r")
    async with aclosing(pool.answering.answer(ApiRequest("only", prompt="x"), caller)) as pieces:
        await anext(pieces)
        assert caller.origin.n_upstreams_tried == 1
        pool.budget.check("leaves")
    with pytest.raises(Busy, match="api_tokens_minute"):
        pool.budget.check("leaves")


async def test_a_caller_of_loaded_models_alone_goes_to_no_upstream_and_loads_nothing() -> None:
    pool = Pool()
    pool.answering._may_load = lambda: True  # `Pool.answer` checks that nothing is loaded all the same
    caller = Caller("phone", "r", only_loaded=True)
    async with asyncio.TaskGroup() as group, pool.answering.queue.turn("other"):
        assert await pool.says(ApiRequest("m", prompt="x")) == ("there, by theirs", "barn")
        waiting = group.create_task(pool.says(ApiRequest("m", prompt="x"), caller=caller), name="waits")
        await all_had_a_turn()
        pool.running.is_ready = False  # it is unloaded while this waits
    assert await waiting == ("here", "")
    with pytest.raises(BadInput, match="model_unknown"):
        await pool.says(ApiRequest("only", prompt="x"), caller=caller)


async def test_who_waited_while_others_of_its_key_used_its_tokens_up_is_told_so() -> None:
    """Otherwise all requests that are sent at once would pass."""
    pool, api_request = Pool(), ApiRequest("m", prompt="x")
    pool.upstreams.spent["barn"] = 100
    async with asyncio.TaskGroup() as group, pool.answering.queue.turn("other"):
        asking = [
            group.create_task(told(pool.says(api_request, caller=Caller(key, "r"))), name=key)
            for key in ("spends", "rests")
        ]
        await all_had_a_turn()
        pool.budget.spend("spends", 9)
    late, other = (task.result() for task in asking)
    assert isinstance(late, Busy)
    assert late.reason.code == "api_tokens_minute"
    assert other == ("here", "")
    assert pool.answering.queue.n_running == 0


async def test_so_is_a_guest_s_own_window() -> None:
    pool = Pool()
    routes = MemberRoutes(pool.answering, pool.budget, cast("Any", pool), cast("Any", None), lambda: "den")

    async def ask() -> list[AnswerPart]:
        return [part async for part in routes._answer(Ask(prompt="x"), Caller("guest 1", "r"))]

    async with asyncio.TaskGroup() as group, pool.answering.queue.turn("other"):
        asking = group.create_task(told(ask()), name="asks")
        await all_had_a_turn()
        pool.budget.spend("guest 1", 9)
    late = asking.result()
    assert isinstance(late, Busy)
    assert late.reason.code == "api_tokens_minute"


async def told(answer: Awaitable[T]) -> T | AppError:
    try:
        return await answer
    except AppError as error:
        return error


async def test_who_answers_depends_on_room_and_on_the_model() -> None:
    pool, api_request = Pool(), ApiRequest("m", ({"role": "user", "content": "x"},))
    assert await pool.says(api_request) == ("here", "")
    async with pool.answering.queue.turn("other"):  # the pool is full
        assert await pool.says(api_request) == ("there, by theirs", "barn")
        biased = replace(api_request, sampling=replace(api_request.sampling, logit_bias=((5, 1.0),)))
        async with asyncio.TaskGroup() as group:
            for text in (pool.says(biased), pool.says(api_request, pool.upstreams.node_mark)):
                waiting = group.create_task(text, name="another token there, or sent on from here")
                await all_had_a_turn()
                assert not waiting.done()
                waiting.cancel()
    assert await pool.says(api_request) == ("here", "")
    assert await pool.says(replace(api_request, model="only:latest")) == ("there, by there", "barn")
    assert await pool.answering.resolve("only") == "only"
    pool.upstreams.spent["barn"] = 100
    with pytest.raises(BadInput, match="upstream_spent"):
        await pool.answering.resolve("only")


def test_the_owner_s_own_answers_have_their_slots_and_programs_have_one_at_least() -> None:
    pool = Pool()
    for slots, own, room in ((4, 0, 4), (4, 1, 3), (4, 3, 1), (4, 4, 1), (4, 9, 1), (1, 0, 1)):
        pool.running.slots, pool.n_asks = slots, own
        assert pool.answering._free_slots("m") == room
        pool.answering.queue._running["m"] = 2  # of programs: they are among those who ask
        pool.n_asks += 2
        assert pool.answering._free_slots("m") == room
        pool.answering.queue._running["m"] = 0


async def test_who_names_no_model_is_counted_for_the_one_that_answers() -> None:
    """Another became the first while the question waited: its turn takes nothing from the one before."""
    pool = Pool()
    queue, newer = pool.answering.queue, SimpleNamespace(**vars(pool.running))
    newer.entry = SimpleNamespace(name="n", model=SimpleNamespace(id="2" * 64))
    pool.running.n_requests = newer.n_requests = 0
    result = list[tuple[str, int, int]]()

    async def ask(model: str) -> None:
        async with pool.answering.turn("k", model) as name:
            result.append((name, queue.n_running_by("m"), queue.n_running_by("n")))

    async with asyncio.TaskGroup() as group, pool.answering.turn("other", "m"):
        for model in ("default", "m"):
            group.create_task(ask(model), name=model)
        await all_had_a_turn()
        assert (result, queue.n_waiting) == ([], 2)
        pool.loaded.add(cast("Any", newer))
        queue.admit()  # there is room for who names none
        await all_had_a_turn()
        assert result == [("n", 1, 1)]
    assert result[1:] == [("m", 1, 0)]
    assert (queue.n_running, queue.n_waiting) == (0, 0)


async def test_half_a_name_replaces_nothing_and_is_no_model_to_a_client() -> None:
    """Half a name is a 404, as in OpenAI's, Anthropic's and Ollama's APIs. A server with a model of exactly this name
    answers it."""
    pool = Pool()
    with pytest.raises(BadInput, match="model_inexact") as refused:
        await pool.answering.resolve("ma")
    assert status_of(refused.value) == 404
    said = error_body(ApiDialect.OPENAI, refused.value, "r")["error"]
    assert (said["type"], said["code"]) == ("invalid_request_error", "model_not_found")
    assert error_body(ApiDialect.ANTHROPIC, refused.value, "r")["error"]["type"] == "not_found_error"
    assert list(error_body(ApiDialect.OLLAMA, refused.value, "r")) == ["error"]
    assert await pool.answering.resolve("man") == "man"


@pytest.mark.parametrize(
    "error",
    [
        Busy("upstream_busy", name="barn", seconds=1),
        BadInput("upstream_refused", name="barn", why="the cat is too long"),
    ],
)
async def test_who_cannot_answer_leaves_it_to_the_pool_if_that_has_the_model(
    error: AppError, caplog: pytest.LogCaptureFixture
) -> None:
    pool, api_request, caller = Pool(error), ApiRequest("m", prompt="x"), Caller("waits", "r")
    async with asyncio.TaskGroup() as group, pool.answering.queue.turn("other"):
        waiting = group.create_task(pool.says(api_request, caller=caller), name="wait for the pool")
        await all_had_a_turn()
        assert not waiting.done()
        assert not caller.origin.n_upstreams_tried  # the stream of it may say that it lives
    assert waiting.result() == ("here", "")
    assert error.reason.code in caplog.text
    assert "the cat" not in caplog.text  # what a server says may repeat what it was asked
    with pytest.raises(type(error)):
        await pool.says(replace(api_request, model="only"))


def test_a_content_is_text_or_refused() -> None:
    assert text_of(None) == ""
    assert text_of([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]) == "a\nb"
    said = [{"type": "refusal", "refusal": "I may not."}]  # as OpenAI's models say so
    assert text_of(said, ("text", "refusal")) == "I may not."
    with pytest.raises(BadInput, match="api_content_unsupported"):
        text_of(said)


def test_what_was_not_loaded_is_no_fault_of_the_program_that_asks() -> None:
    error = BadInput("last_load_failed", model="m", why="No engine.")
    assert status_of(error) == 422
    assert "`guide`" in str(error_body(ApiDialect.OPENAI, error, "r"))


async def test_a_measured_upstream_answers_only_where_it_begins_sooner_than_the_pool() -> None:
    pool, api_request = Pool(), ApiRequest("m", prompt="x")
    speed = UpstreamSpeed(at=0.0, prompt_tokens=1, ttft_s=USUAL_S - 1, decode_tok_s=9.0)
    pool.answering.speed_of = lambda name, model: speed if (name, model) == ("barn", "m") else None
    assert pool.answering.queue.expected_wait_s("m") == 0.0
    assert await pool.says(api_request) == ("here", "")
    pool.answering.queue._usual_s = USUAL_S  # it follows how long answers take
    async with pool.answering.queue.turn("other"):
        assert pool.answering.queue.expected_wait_s("m") == USUAL_S
        assert await pool.says(api_request) == ("there, by theirs", "barn")
    speed = msgspec.structs.replace(speed, ttft_s=USUAL_S + 1)
    async with asyncio.TaskGroup() as group, pool.answering.queue.turn("other"):
        waiting = group.create_task(pool.says(api_request), name="waits")
        await all_had_a_turn()
    assert await waiting == ("here", "")
    speed = msgspec.structs.replace(speed, ttft_s=0.1)
    pool.upstreams._answering["barn"] = 1  # as many as gain something there
    async with asyncio.TaskGroup() as group, pool.answering.queue.turn("other"):
        waiting = group.create_task(pool.says(api_request), name="waits")
        await all_had_a_turn()
    assert await waiting == ("here", "")


async def test_an_upstream_that_ends_in_mid_answer_is_followed_by_the_pool() -> None:
    pool, api_request = Pool(), ApiRequest("m", prompt="x", max_tokens=9)

    async def ends(*_: object) -> AsyncGenerator[Piece, None]:
        yield TextPiece(0, "there, ")
        raise Unreachable("upstream_failed", name="barn", why="it hung up")

    pool.answering._answer_there = ends  # type: ignore[method-assign, assignment]
    caller = Caller("key", "r")
    async with asyncio.TaskGroup() as group, pool.answering.queue.turn("other"):
        waiting = group.create_task(pool.says(api_request, caller=caller), name="goes on")
        await all_had_a_turn()
    assert (await waiting)[0] == "there, here"
    assert caller.origin.with_pool
    with pytest.raises(Unreachable):  # the pool lacks this one
        await pool.says(ApiRequest("only", prompt="x"))
