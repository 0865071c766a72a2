"""Text, chat template and answers: what is told, when it stops, what a later turn reuses."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from app.core.errors import BadInput
from app.core.reasons import said
from app.inference.pipeline import completion
from app.inference.pipeline.completion import Completer, Delta, GenerationRequest, Summary, TokenReader
from app.inference.worker import tokenizer as text_module
from app.inference.worker.tokenizer import Detokenizer, Message, Prompt, TextWorker
from backends import worker_orders
from backends.contract import GREEDY, JsonScalar, LocalTime
from backends.templates.sandboxed_rendering import render
from backends.worker.service import SHORT_CHARS
from testbed import tiny
from tests.inference.pool import pool, shape

TAKES_TURNS = (  # as the templates of Gemma 2 and of Mistral 7B
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Roles must alternate!') }}{% endif %}[{{ m.role }}]{{ m.content }}{% endfor %}"
)
HELLO: Sequence[Message] = ({"role": "user", "content": "Hello. Who are you?"},)


@asynccontextmanager
async def answerer(path: str = "fake:", **sizes: int) -> AsyncIterator[Completer]:
    async with await TextWorker.open("fake:") as text, pool(2, 4, 2, paths=[path], form=shape(**sizes)) as built:
        yield Completer(text, built.pipeline)


async def ask(completer: Completer, question: GenerationRequest) -> tuple[list[Delta], Summary]:
    deltas: list[Delta] = []
    async with aclosing(completer.answer(question)) as stream:
        async for item in stream:
            if isinstance(item, Summary):
                return deltas, item
            assert isinstance(item, Delta)
            deltas.append(item)
    raise AssertionError("an answer without its summary")


async def test_an_answer_and_its_summary() -> None:
    async with answerer() as completer:
        deltas, summary = await ask(completer, GenerationRequest(messages=HELLO, max_tokens=30))
    assert "".join(delta.text for delta in deltas) == summary.text
    assert [token for delta in deltas for token in delta.token_ids] == list(summary.token_ids)
    assert len(summary.token_ids) == 30
    assert summary.text.isascii()
    assert (summary.finish_reason, summary.cut_by) == ("length", "max_tokens")
    assert summary.ttft_s > 0
    assert summary.decode_tok_s > 0
    assert [stage.name for stage in summary.stages][1] == "lender-1"


async def test_what_was_before_the_pipeline_counts_from_when_the_question_came() -> None:
    async with answerer() as completer:
        _, at_once = await ask(completer, GenerationRequest(messages=HELLO, max_tokens=2))
        waited = GenerationRequest(messages=HELLO, max_tokens=2, came_at=time.monotonic() - 1000)
        _, later = await ask(completer, waited)
    assert 0 < at_once.before_s < 1000 <= later.before_s


async def test_what_was_computed_of_a_prompt_is_told_however_it_ends() -> None:
    values = list[int]()
    first = GenerationRequest(prompt_ids=(5,) * 200, max_tokens=2, conversation="c", read=values.append)
    async with answerer() as completer:
        _, whole = await ask(completer, first)
        assert values == [whole.prompt_tokens - whole.reused_tokens] == [200]
        async with aclosing(completer.answer(replace(first, prompt_ids=(5,) * 300))) as stream:
            await anext(stream)
        assert len(values) == 2
        assert 100 <= values[1] < 200  # the rest was in memory still


async def test_the_three_ways_to_ask_are_one() -> None:
    async with await TextWorker.open("fake:") as text:
        rendered = await text.render(HELLO)
        ids, output, *_ = await text.prompt(HELLO)
        assert output == rendered
    assert rendered == "<|im_start|>user\nHello. Who are you?<|im_end|>\n<|im_start|>assistant\n"
    async with answerer() as completer:
        _, summary = await ask(completer, GenerationRequest(messages=HELLO, max_tokens=9))
        _, two = await ask(completer, GenerationRequest(prompt_ids=ids, max_tokens=9))
        _, raw = await ask(completer, GenerationRequest(prompt=rendered, max_tokens=9))
        assert summary.token_ids == two.token_ids
        assert raw.prompt_tokens > summary.prompt_tokens  # a bare prompt cannot name control tokens
        for bad in (GenerationRequest(), GenerationRequest(messages=HELLO, prompt="x")):
            with pytest.raises(BadInput):
                await ask(completer, bad)
        with pytest.raises(BadInput):
            await ask(completer, GenerationRequest(prompt="x", stop=("x",) * 9))


async def test_a_cut_answer_is_continued() -> None:
    begun: list[Message] = [*HELLO, {"role": "assistant", "content": "I am"}]
    async with await TextWorker.open("fake:") as text:
        before = (await text.prompt(HELLO)).ids
        ids = (await text.prompt(begun)).ids
        assert ids[: len(before)] == before
        assert b"".join(text.pieces[number] for number in ids[len(before) :]) == b"I am"


async def test_stop_strings_end_an_answer_and_are_not_told() -> None:
    async with answerer() as completer:
        _, whole = await ask(completer, GenerationRequest(prompt="Hello", max_tokens=40))
        for first in range(3, 30, 4):
            stop = whole.text[first : first + 3]
            deltas, cut = await ask(completer, GenerationRequest(prompt="Hello", max_tokens=40, stop=(stop,)))
            assert cut.text == whole.text[: whole.text.index(stop)]
            assert "".join(delta.text for delta in deltas) == cut.text
            assert cut.finish_reason == "stop"
            assert len(cut.token_ids) == whole.text.index(stop) + 3
        _, none = await ask(completer, GenerationRequest(prompt="Hello", max_tokens=40, stop=("\n\n",)))
        assert none.text == whole.text


async def test_a_partial_stop_string_at_the_end_is_told() -> None:
    async with answerer() as completer:
        _, whole = await ask(completer, GenerationRequest(prompt="Hello", max_tokens=10))
        question = GenerationRequest(prompt="Hello", max_tokens=10, stop=(whole.text[-2:] + "\0",))
        deltas, cut = await ask(completer, question)
    assert cut.text == whole.text == "".join(delta.text for delta in deltas)
    assert cut.finish_reason == "length"


async def test_end_tokens_are_heeded_unless_a_benchmark_says_no() -> None:
    async with answerer("fake:length=30") as completer:
        _, short = await ask(completer, GenerationRequest(prompt="Hello", max_tokens=60))
        _, long = await ask(completer, GenerationRequest(prompt="Hello", max_tokens=60, ignore_end=True))
        _, full = await ask(completer, GenerationRequest(prompt="Hello", max_tokens=9_999, ignore_end=True))
    assert (short.finish_reason, short.cut_by) == ("stop", None)
    assert (full.finish_reason, full.cut_by) == ("length", "context")
    assert len(full.token_ids) < 9_999
    assert len(short.token_ids) < 30
    assert len(long.token_ids) == 60
    assert long.text.startswith(short.text)


async def test_a_second_turn_prefills_only_what_is_new() -> None:
    async with answerer() as completer:
        question = GenerationRequest(messages=HELLO, max_tokens=20, conversation="mine")
        _, first = await ask(completer, question)
        turns = [*HELLO, {"role": "assistant", "content": first.text}, {"role": "user", "content": "Why?"}]
        _, second = await ask(completer, GenerationRequest(messages=turns, max_tokens=20, conversation="mine"))
        _, fresh = await ask(completer, GenerationRequest(messages=turns, max_tokens=20))
    assert second.reused_tokens == first.prompt_tokens + 19
    assert fresh.reused_tokens == 0
    assert second.token_ids == fresh.token_ids


# the text worker


async def test_a_text_is_counted() -> None:
    async with answerer() as completer:
        assert await completer.count("") == 0
        assert await completer.count("abc") == 3


async def test_tokens_and_pieces() -> None:
    async with await TextWorker.open("fake:") as text:
        ids = await text.tokenize("grüß dich 🏊", bos=False)
        detokenizer = text.detokenizer()
        assert "".join(map(detokenizer.push, ids)) == "grüß dich 🏊"
        assert text.vocabulary.end_tokens == (1,)
        assert text.pieces[1] == b""


async def test_a_vocabulary_that_cannot_be_opened_leaves_no_process() -> None:
    before = len(psutil.Process().children())
    with pytest.raises(BadInput) as raised:
        await TextWorker.open("fake:nonsense")
    assert said(raised.value)
    assert len(psutil.Process().children()) == before


async def test_text_too_long_is_refused() -> None:
    async with await TextWorker.open("fake:") as text:
        with pytest.raises(BadInput) as raised:
            await text.tokenize("x" * ((1 << 20) + 1))
        assert raised.value.reason.code == "text_too_long"
        cut = {"role": "assistant", "content": "x" * (1 << 20)}  # alone it might pass
        with pytest.raises(BadInput) as raised:
            await text.prompt((*HELLO, cut))
        assert raised.value.reason.code == "text_too_long"
        own = {"role": "user", "content": "x" * ((1 << 20) + 1)}  # no fault of the template
        for call in (text.prompt, text.render):
            with pytest.raises(BadInput) as raised:
                await call((own,))
            assert raised.value.reason.code == "text_too_long"
            worker = text.worker  # nor are these, and nobody else's text waits for a new one
            with pytest.raises(BadInput) as raised:
                await call(HELLO, [{"description": "x" * (1 << 19)}] * 2)
            assert raised.value.reason.code == "text_too_long"
            with pytest.raises(BadInput) as raised:
                await call((*HELLO, own | {"content": "", "tool_calls": [own]}))
            assert raised.value.reason.code == "text_too_long"
            assert text.worker is worker
        assert len((await text.prompt(HELLO)).ids) > 1  # what came after the refusal went astray


@pytest.mark.parametrize(("times", "answers"), [(1, 1), (SHORT_CHARS, 2)])
async def test_a_prompt_wakes_the_worker_once_and_a_short_one_the_node_too(
    monkeypatch: pytest.MonkeyPatch, times: int, answers: int
) -> None:
    messages = [{"role": "user", "content": times * "hi"}]
    async with await TextWorker.open("fake:") as text:
        assert text.worker is not None
        routes = Counter[str]()
        for way in ("send", "_received"):
            pass_on = getattr(text.worker, way)

            def counted(data: bytes, way: str = way, pass_on: Callable[[bytes], None] = pass_on) -> None:
                routes[way] += 1
                pass_on(data)

            monkeypatch.setattr(text.worker, way, counted)
        ids = (await text.prompt(messages)).ids
        assert routes == {"send": 1, "_received": answers}
        assert ids == await text.tokenize(await text.render(messages), special=True)


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
async def test_a_template_that_never_ends_is_stopped_and_text_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the worker cannot stop itself: here it is stopped from outside."""
    monkeypatch.setattr(text_module, "RENDER_S", 0.3)
    async with await TextWorker.open("fake:") as text:
        assert text.worker is not None
        stopped = text.worker.pid
        os.kill(stopped, signal.SIGSTOP)
        with pytest.raises(BadInput) as raised:
            await text.render(HELLO)
        assert raised.value.reason.code == "template_slow"
        assert not psutil.pid_exists(stopped)
        assert (await text.tokenize("a", bos=False)) == (3 + ord("a"),)


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
async def test_who_leaves_while_a_template_works_takes_no_time_of_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_module, "RENDER_S", 0.3)
    async with await TextWorker.open("fake:") as text, asyncio.TaskGroup() as group:
        assert text.worker is not None
        stopped = text.worker.pid
        os.kill(stopped, signal.SIGSTOP)
        leaves = group.create_task(text.render(HELLO), name="leaves")
        await asyncio.sleep(0.05)
        leaves.cancel()
        assert await text.render(HELLO)
        assert not psutil.pid_exists(stopped)  # it was watched to its end all the same
        assert await text.render(HELLO)


async def test_a_template_that_allocates_too_much_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_module, "RENDER_BYTES", -(1 << 40))
    async with await TextWorker.open("fake:") as text:
        assert text.worker is not None
        if sys.platform != "win32":
            os.kill(text.worker.pid, signal.SIGSTOP)
        with pytest.raises(BadInput) as raised:
            await text.render(HELLO)
        assert raised.value.reason.code == "template_large"
        assert await text.render(HELLO) if sys.platform == "win32" else True


def test_orders_are_what_the_worker_knows() -> None:
    assert worker_orders.decode_order(worker_orders.encode(worker_orders.Render(request=1, messages=())))


async def test_how_likely_each_token_was_is_told_when_asked() -> None:
    async with answerer() as completer:
        plain, result = await ask(completer, GenerationRequest(messages=HELLO, max_tokens=12))
        sampling = replace(GREEDY, likely=3)
        deltas, summary = await ask(completer, GenerationRequest(messages=HELLO, max_tokens=12, sampling=sampling))
    assert summary.token_ids == result.token_ids  # asking changes nothing
    assert not any(delta.likely for delta in plain)
    for delta in deltas:
        chosen, *best = delta.likely
        assert chosen == best[0]  # greedy: the likeliest was taken
        assert len(best) == 3
        assert [log for _, log in best] == sorted((log for _, log in best), reverse=True)
    assert "".join(delta.likely[0][0].decode() for delta in deltas) == summary.text


async def test_a_template_is_given_the_tools() -> None:
    tool = {"type": "function", "function": {"name": "clock", "parameters": {"type": "object"}}}
    call = {"type": "function", "function": {"name": "clock", "arguments": {"zone": "UTC"}}}
    messages: list[Message] = [*HELLO, {"role": "assistant", "content": "", "tool_calls": [call]}]
    template = (
        "{% for t in tools %}[{{ t.function.name }}]{% endfor %}{% for m in messages %}"
        "{{ m.role }}{% for c in m.tool_calls or [] %}<tool_call>{{ c.function.arguments | tojson }}"
        "{% endfor %}{% endfor %}"
    )
    assert render(template, messages, tools=[tool]) == '[clock]userassistant<tool_call>{"zone": "UTC"}'
    async with await TextWorker.open("fake:") as text:
        assert text.vocabulary.calls is None
        assert (await text.prompt(messages, (tool,))).ids  # one that knows none is none the worse


async def test_a_template_is_told_options_and_when_the_chat_began(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """All the way to the worker, and with the clocks of this machine whatever the worker's are."""
    template = "{{ strftime_now('%Y-%m-%d %H:%M') }} {{ enable_thinking }} {{ messages|length }}"
    monkeypatch.setattr(text_module, "local_time", lambda: LocalTime(86_400.0, -3600))
    model = tiny.llama(tmp_path / "tiny.gguf", layers=1, vocab=300, template=template)
    async with await TextWorker.open(str(model)) as text:
        options: dict[str, JsonScalar] = {"enable_thinking": False, "messages": "mine"}
        reports = await text.prompt(HELLO, options=options, begun_at=LocalTime(86_400.0, 5400))
        assert reports.text == "1970-01-02 01:30 False 1"
        assert (await text.prompt(HELLO, options=options)).text == "1970-01-01 23:00 False 1"
        assert await text.render(HELLO, options=options) == "1970-01-01 23:00 False 1"
        deep: Any = {"enable_thinking": [True]}
        for bad in (deep, {"x": "y" * 5000}, {str(at): at for at in range(100)}):
            with pytest.raises(BadInput) as refused:
                await text.prompt(HELLO, options=bad)
            assert refused.value.reason.code == "template_option_bad"


async def test_an_answer_says_how_a_model_without_a_template_was_asked(tmp_path: Path) -> None:
    model = tiny.llama(tmp_path / "tiny.gguf", layers=1, vocab=300, template="")
    request = GenerationRequest(messages=HELLO, max_tokens=2)
    async with await TextWorker.open(str(model)) as text, pool(2, 4, 2, paths=["fake:"], form=shape()) as built:
        assert (await text.prompt(HELLO)).text.startswith("<|im_start|>user\nHello.")
        _, summary = await ask(Completer(text, built.pipeline), request)
        assert summary.notes == ("template_none",)
        _, raw = await ask(Completer(text, built.pipeline), GenerationRequest(prompt="Hello", max_tokens=2))
        assert raw.notes == ()
    async with answerer() as completer:
        _, summary = await ask(completer, request)
        assert summary.notes == ()


@pytest.mark.parametrize("template", [TAKES_TURNS, "{{ raise_exception('Only odd chats') }}"])
async def test_what_a_template_refuses_is_told_in_words_or_refused_in_its_own(tmp_path: Path, template: str) -> None:
    model = tiny.llama(tmp_path / "tiny.gguf", layers=1, vocab=300, template=template)
    messages: list[Message] = [{"role": "system", "content": "Be kind."}, *HELLO]
    async with await TextWorker.open(str(model)) as text:
        if template == TAKES_TURNS:
            reports = await text.prompt(messages)
            assert (reports.text, reports.folded) == ("[user]Be kind.\nHello. Who are you?", ("system",))
            return
        with pytest.raises(BadInput) as refused:
            await text.prompt(messages)
        assert refused.value.reason.code == "template_objects"
        assert "Only odd chats" in said(refused.value.reason)


async def test_a_question_carries_them(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = list[tuple[object, object]]()

    async def prompt(*_: object, options: object, begun_at: object, apart: object) -> Prompt:
        assert apart == ()
        seen.append((options, begun_at))
        return Prompt((1, 2), "")

    async with answerer() as completer:
        monkeypatch.setattr(completer._text, "prompt", prompt)
        at = LocalTime(5.0, 60)
        question = GenerationRequest(messages=HELLO, template_options={"thinking": True}, begun_at=at)
        await completer.prompt_tokens(question)
        assert seen.pop() == ({"thinking": True}, at)


def test_a_conversation_keeps_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    """A later turn must begin with the same text even on another day."""
    days = iter(range(100))
    monkeypatch.setattr(completion, "local_time", lambda: LocalTime(86_400.0 * next(days)))
    known = completion.StartTimes(most=2)

    def day(conversation: str | None, turns: int) -> float:
        messages = [*HELLO, {"role": "assistant", "content": "I am"}, *HELLO] * (turns - 1)
        request = GenerationRequest(messages=messages or HELLO, conversation=conversation)
        return known.of(request).epoch_seconds / 86_400

    assert [day("a", 1), day("a", 2), day("a", 3)] == [0, 0, 0]
    assert day("a", 1) == 1  # the same words, asked anew on another day
    assert [day("b", 1), day(None, 1), day("a", 2), day("c", 1)] == [2, 3, 1, 4]
    assert day("b", 2) == 5  # forgotten for those that came since
    assert known.of(GenerationRequest(messages=HELLO, begun_at=LocalTime(7.0))) == LocalTime(7.0)


async def test_a_control_token_is_known_by_its_name() -> None:
    async with answerer() as completer:
        assert await completer.control_token("<|im_start|>") == 2
        assert await completer.control_token("a") is None  # it has a text
        assert await completer.control_token("two words") is None
        assert await completer.control_token("<|im_start|>") == 2  # remembered


def test_a_control_token_that_counts_as_text_stands_where_it_came() -> None:
    """Text held back before it, because it might begin a stop string, is sent first."""
    pieces = [b"<|end|>", b'{"a": 1}', b" "]
    reader = TokenReader(Detokenizer([b"", *pieces[1:]], {0: pieces[0]}), ["}\n"])
    reports = [reader.push(token) or reader.deltas((token,), ())[0].text for token in (1, 0, 2)]
    assert reports == ['{"a": 1', "}<|end|>", " "]
