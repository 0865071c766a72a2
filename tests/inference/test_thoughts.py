"""Answers of a model that thinks: what is told of its thoughts, when they are ended, what form follows them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from app.core.errors import BadInput
from app.core.recovery.recovery import Notice
from app.core.tools.reasoning import Thinking
from app.inference.pipeline.completion import THOUGHT, Completer, Delta, GenerationRequest, Summary
from app.inference.pipeline.sequence import Finish, Request, Token
from app.inference.pipeline.speed_measurement import RequestFigures
from app.inference.worker.tokenizer import TextWorker
from backends.contract import Sampling
from testbed import tiny

OPENS = (
    "{% for m in messages %}[{{ m.role }}]{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>"
    "{% endif %}{{ m.content }}{% endfor %}{% if add_generation_prompt %}[assistant]"
    "{% if enable_thinking is defined and not enable_thinking %}<think></think>{% else %}<think>{% endif %}{% endif %}"
)
LETS = OPENS.replace("{% else %}<think>{% endif %}", "{% endif %}")  # the model begins its thought
HELLO = ({"role": "user", "content": "Hi"},)
ASKED = GenerationRequest(messages=HELLO, max_tokens=200)


class Says:
    """A pipeline whose model says these words, a request after another."""

    def __init__(self, text: TextWorker, *words: str) -> None:
        self._text, self._words = text, list(words)
        self.asked: list[Request] = []

    async def generate(self, request: Request) -> AsyncGenerator[Token | Notice | Finish, None]:
        self.asked.append(request)
        reason, n_said = "stop", 0
        for token in await self._text.tokenize(self._words.pop(0), bos=False):
            n_said += 1
            ended = request.ends_with is not None and request.ends_with(token)
            yield Token(token, ((token, -0.5),) if request.sampling.likely is not None else ())
            if ended:
                break
            if n_said == request.max_tokens:
                reason = "length"
                break
        figures = RequestFigures(len(request.ids), 0, n_said, 0.0, 0.1, 10.0, ())
        yield Finish(reason, figures)


@asynccontextmanager
async def model(folder: Path, template: str, *words: str) -> AsyncIterator[tuple[Completer, Says, TextWorker]]:
    file = tiny.llama(folder / "thinks.gguf", layers=1, vocab=300, template=template)
    async with await TextWorker.open(str(file)) as text:
        sentence = Says(text, *words)
        yield Completer(text, sentence), sentence, text


async def told(completer: Completer, question: GenerationRequest) -> tuple[list[Delta], Summary]:
    deltas: list[Delta] = []
    async with aclosing(completer.answer(question)) as stream:
        async for item in stream:
            if isinstance(item, Summary):
                return deltas, item
            assert isinstance(item, Delta)
            deltas.append(item)
    raise AssertionError("an answer without its summary")


async def test_a_thought_that_the_template_opened_is_told_apart(tmp_path: Path) -> None:
    async with model(tmp_path, OPENS, "Well, hm.\n</think>\n\nYes.") as (completer, _, text):
        assert text.vocabulary.reasoning.begin == "<think>"
        deltas, whole = await told(completer, ASKED)
    assert (whole.thought, whole.text) == ("Well, hm.", "Yes.")
    assert "".join(delta.thought for delta in deltas) == whole.thought
    assert "".join(delta.text for delta in deltas) == whole.text
    ids = [token for delta in deltas for token in delta.token_ids]
    assert ids == list(whole.token_ids)
    assert 0 < whole.thought_tokens < len(ids)
    first = next(at for at, delta in enumerate(deltas) if delta.thought)
    assert first < 3  # while it comes


async def test_a_thought_that_is_cut_is_no_answer(tmp_path: Path) -> None:
    async with model(tmp_path, OPENS, "Well, hm. And so on") as (completer, _, _):
        _, whole = await told(completer, replace(ASKED, max_tokens=9))
    assert whole.text == ""
    assert whole.thought.startswith("Well")
    assert (whole.finish_reason, whole.thought_tokens) == ("length", 9)


async def test_a_bare_prompt_is_told_as_it_is(tmp_path: Path) -> None:
    async with model(tmp_path, OPENS, "<think>a</think>b") as (completer, _, _):
        _, whole = await told(completer, GenerationRequest(prompt="x", max_tokens=99))
    assert (whole.thought, whole.text) == ("", "<think>a</think>b")


async def test_a_stop_string_is_looked_for_in_the_answer_alone(tmp_path: Path) -> None:
    async with model(tmp_path, OPENS, "a.b.</think>c.d") as (completer, _, _):
        _, whole = await told(completer, replace(ASKED, stop=(".",)))
    assert (whole.thought, whole.text, whole.stop) == ("a.b.", "c", ".")


async def test_what_was_ended_and_never_begun_turns_out_to_be_a_thought(tmp_path: Path) -> None:
    async with model(tmp_path, LETS, "Hm, so.\n</think>\nYes.") as (completer, _, _):
        deltas, whole = await told(completer, ASKED)
    assert (whole.thought.strip(), whole.text) == ("Hm, so.", "Yes.")
    turned = next(at for at, delta in enumerate(deltas) if delta.was_thought)
    assert "".join(delta.text for delta in deltas[:turned]).strip() == "Hm, so."


async def test_thinking_is_turned_off_by_the_templates_own_switch(tmp_path: Path) -> None:
    async with model(tmp_path, OPENS, "Yes.", "a</think>b") as (completer, sentence, text):
        _, whole = await told(completer, replace(ASKED, thinking=Thinking(on=False, must=True)))
        off = await text.prompt(HELLO, options={"enable_thinking": False})
        assert sentence.asked[0].ids == off.ids
        assert (whole.thought, whole.text) == ("", "Yes.")
    plain = "{% for m in messages %}{{ m.content }}{% endfor %}"
    async with model(tmp_path, plain) as (completer, _, _):
        with pytest.raises(BadInput, match="thinking_never"):
            await told(completer, replace(ASKED, thinking=Thinking(on=True, must=True)))


async def test_a_thought_that_has_had_its_tokens_is_ended(tmp_path: Path) -> None:
    limited = replace(ASKED, thinking=Thinking(most_tokens=10))
    async with model(tmp_path, OPENS, "On and on and on and on", "Yes.") as (completer, sentence, text):
        deltas, whole = await told(completer, limited)
        ended = await text.tokenize("\n</think>\n\n", special=True, bos=False)
    first, second = sentence.asked
    assert whole.text == "Yes."
    assert "On and on and on and on".startswith(whole.thought)
    assert whole.thought
    assert second.ids[: len(first.ids)] == first.ids
    assert second.ids[-len(ended) :] == ended
    assert first.conversation == second.conversation is not None  # nothing is computed twice
    assert whole.thought_tokens == 10
    assert second.max_tokens == 200 - 10 - len(ended)
    assert list(whole.token_ids)[10 : 10 + len(ended)] == list(ended)
    assert "".join(delta.text for delta in deltas) == "Yes."
    assert whole.prompt_tokens == len(first.ids)


async def test_no_thought_at_all_is_left_where_none_may_be(tmp_path: Path) -> None:
    limited = replace(ASKED, thinking=Thinking(most_tokens=0))
    async with model(tmp_path, OPENS, "Yes.") as (completer, text, _):
        _, whole = await told(completer, limited)
    assert (whole.thought, whole.text, len(text.asked)) == ("", "Yes.", 1)


async def test_a_cut_thought_goes_on_with_the_tokens_it_has_left(tmp_path: Path) -> None:
    cut = {"role": "assistant", "content": "", THOUGHT: "On and on"}
    goes_on = replace(ASKED, messages=(*HELLO, cut))
    async with model(tmp_path, OPENS, " and on and on", "Yes.", "Yes.") as (completer, sentence, text):
        before = len(await text.tokenize("On and on", bos=False))
        thinking = Thinking(most_tokens=before + 3)
        _, whole = await told(completer, replace(goes_on, thinking=thinking))
        assert (whole.thought_tokens, whole.text, len(sentence.asked)) == (3, "Yes.", 2)
        _, whole = await told(completer, replace(goes_on, thinking=Thinking(most_tokens=before)))
        assert (whole.thought, whole.text, len(sentence.asked)) == ("", "Yes.", 3)


async def test_the_marks_that_we_write_for_a_model_without_a_template_end_its_answer(tmp_path: Path) -> None:
    words = "Paris.<|im_end|>\n<|im_start|>user\nWhy?"
    async with model(tmp_path, "", words, words, words) as (completer, _, _):
        deltas, whole = await told(completer, ASKED)
        assert (whole.text, whole.finish_reason, whole.stop) == ("Paris.", "stop", None)
        assert "".join(delta.text for delta in deltas) == "Paris."
        _, whole = await told(completer, replace(ASKED, stop=("<|im_end|>",)))
        assert (whole.text, whole.stop) == ("Paris.", "<|im_end|>")  # who asked for it is told
        _, raw = await told(completer, GenerationRequest(prompt="x", max_tokens=99))
        assert raw.text == words
    async with model(tmp_path, OPENS, f"</think>{words}") as (completer, _, _):
        _, whole = await told(completer, ASKED)
        assert whole.text == words  # with a template of its own they are text


async def test_what_is_left_of_the_answer_is_counted(tmp_path: Path) -> None:
    limited = replace(ASKED, max_tokens=11, thinking=Thinking(most_tokens=10))
    async with model(tmp_path, OPENS, "On and on and on and on") as (completer, text, _):
        _, whole = await told(completer, limited)
    assert (whole.text, whole.finish_reason, len(text.asked)) == ("", "length", 1)


async def test_a_form_is_kept_to_behind_the_thought(tmp_path: Path) -> None:
    formed = replace(ASKED, sampling=Sampling(grammar='root ::= "{}"'))
    async with model(tmp_path, OPENS, "Hm, {}?</think>Yes", "{}") as (completer, text, _):
        _, whole = await told(completer, formed)
    assert [request.sampling.grammar for request in text.asked] == ["", 'root ::= "{}"']
    assert (whole.thought, whole.text) == ("Hm, {}?", "{}")


async def test_a_form_is_kept_to_from_the_first_word_where_nothing_is_thought(tmp_path: Path) -> None:
    formed = replace(ASKED, sampling=Sampling(grammar='root ::= "{}"'))
    async with model(tmp_path, LETS, "Yes, of course", "{}") as (completer, text, _):
        deltas, whole = await told(completer, formed)
    assert text.asked[1].ids == text.asked[0].ids
    assert (whole.thought, whole.text) == ("", "{}")
    assert "".join(delta.text for delta in deltas) == "{}"
    off = replace(formed, thinking=Thinking(on=False))
    async with model(tmp_path, OPENS, "{}") as (completer, text, _):
        _, whole = await told(completer, off)
    assert (whole.text, len(text.asked)) == ("{}", 1)


async def test_a_cut_thought_goes_on_as_a_thought_and_a_cut_answer_as_an_answer(tmp_path: Path) -> None:
    cut = {"role": "assistant", "content": "", THOUGHT: "Well,"}
    async with model(tmp_path, OPENS, " hm.</think>Yes.", " they say") as (completer, _, _):
        _, whole = await told(completer, replace(ASKED, messages=(*HELLO, cut)))
        assert (whole.thought, whole.text) == (" hm.", "Yes.")
        answered = {**cut, "content": "Yes,"}
        _, whole = await told(completer, replace(ASKED, messages=(*HELLO, answered)))
        assert (whole.thought, whole.text) == ("", " they say")


async def test_tokens_of_thoughts_are_not_among_those_that_are_likely(tmp_path: Path) -> None:
    likely = replace(ASKED, sampling=Sampling(likely=0))
    async with model(tmp_path, OPENS, "Hm.</think>Yes.") as (completer, _, _):
        deltas, _ = await told(completer, likely)
    hidden = sum(delta.hidden_bytes for delta in deltas)
    assert hidden == len("Hm.</think>")
    assert sum(len(delta.text.encode()) for delta in deltas) == len("Yes.")
