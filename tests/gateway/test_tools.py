"""Tools, with tiny random models whose chat templates know them: forced by grammar, told to the model, in every API."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import aiohttp
import anthropic
import ollama
import openai
import pytest

from testbed import tiny
from tests.gateway.as_recorded import compare
from tests.gateway.call_cases import call_cases
from tests.gateway.conftest import Open, opened
from tests.gateway.described_answers import check
from tests.gateway.system_cases import LLAMA3, system_cases
from tests.gateway.tool_cases import GIVEN, HERMES, MODEL, SCHEMA, USER, flat, hermes, tool, tool_cases, used
from tests.node.pool import node

Json = dict[str, Any]
N_CALLS = {"one, if it likes": 1, "one that must be": 1, "cut short": 1, "in two answers": 4}
MISTRAL = HERMES.replace("<tool_call>", "[TOOL_CALLS]").replace("</tool_call>", "")


@pytest.fixture(
    scope="module", params=[("hermes", HERMES), ("llama3", LLAMA3), ("mistral", MISTRAL)], ids=lambda p: p[0]
)
def tooled(request: pytest.FixtureRequest, house: Open, tmp_path_factory: pytest.TempPathFactory) -> Open:
    """The API with a model of this family on the shelf; asking for it loads it."""
    name, template = request.param
    folder = tmp_path_factory.mktemp(name)
    path = (
        hermes(folder) if name == MODEL else tiny.llama(folder / f"{name}.gguf", layers=2, vocab=300, template=template)
    )
    house.node.run("import", str(path), "--name", name)
    return Open(house.node, house.port, house.key, model=name)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    with node(tmp_path_factory.mktemp("tools"), "den") as test_node:
        yield opened(test_node, may_load=True)


def right(arguments: Json) -> bool:
    return arguments["zone"] in ("UTC", "CET") and isinstance(arguments["exact"], bool)


@pytest.mark.long
@pytest.mark.parametrize("stream", [False, True])
def test_openai_calls_what_is_forced(tooled: Open, stream: bool) -> None:
    with openai.OpenAI(api_key=tooled.key, base_url=f"{tooled.base}/v1", max_retries=0) as client:
        request: Json = {
            "model": tooled.model, "messages": [USER], "max_tokens": 400, "tools": [tool("clock"), tool("other")],
            "tool_choice": {"type": "function", "function": {"name": "clock"}}, "parallel_tool_calls": False,
        }  # fmt: skip
        if stream:
            chunks = [chunk.choices[0] for chunk in client.chat.completions.create(**request, stream=True)]
            pieces = [call for chunk in chunks for call in chunk.delta.tool_calls or ()]
            calls = [call for call in pieces if call.id]
            for call, piece in product(calls, pieces):
                if piece.index == call.index and not piece.id:
                    call.function.arguments += piece.function.arguments
            reason = chunks[-1].finish_reason
        else:
            choice = client.chat.completions.create(**request).choices[0]
            calls, reason = choice.message.tool_calls, choice.finish_reason
            assert choice.message.content is None
        (call,) = calls
        assert (call.function.name, reason, call.id[:5]) == ("clock", "tool_calls", "call_")
        assert right(json.loads(call.function.arguments))
        result = {
            "id": call.id,
            "type": "function",
            "function": {"name": "clock", "arguments": call.function.arguments},
        }
        later = [USER, {"role": "assistant", "content": None, "tool_calls": [result]},
                 {"role": "tool", "tool_call_id": call.id, "content": "noon"}]  # fmt: skip
        after = client.chat.completions.create(
            model=tooled.model, messages=later, tools=[tool("clock")], tool_choice="auto", max_tokens=5
        )
        assert after.usage.prompt_tokens > 100  # the tool and the call are in the prompt


def test_any_tool_may_be_called_and_several_at_once(tooled: Open) -> None:
    with openai.OpenAI(api_key=tooled.key, base_url=f"{tooled.base}/v1", max_retries=0) as client:
        choice = client.chat.completions.create(
            model=tooled.model, messages=[USER], max_tokens=700, tools=[tool("clock"), tool("other")],
            tool_choice="required", seed=1,
        ).choices[0]  # fmt: skip
    assert 1 <= len(choice.message.tool_calls) <= 8
    assert {call.function.name for call in choice.message.tool_calls} <= {"clock", "other"}
    assert len({call.id for call in choice.message.tool_calls}) == len(choice.message.tool_calls)


def test_what_came_of_several_calls_is_told_to_a_model_whose_template_takes_one(tooled: Open) -> None:
    calls = [{"id": name, "type": "function", "function": {"name": "clock", "arguments": "{}"}} for name in ("a", "b")]
    came = [{"role": "tool", "tool_call_id": call["id"], "content": "noon"} for call in calls]
    said = {"role": "assistant", "content": None, "tool_calls": calls}
    with openai.OpenAI(api_key=tooled.key, base_url=f"{tooled.base}/v1", max_retries=0) as client:
        after = client.chat.completions.create(
            model=tooled.model, messages=[USER, said, *came], tools=[tool("clock")], max_tokens=2
        )
    assert after.choices[0].finish_reason in ("stop", "length", "tool_calls")


@pytest.mark.parametrize("tooled", [("llama3", LLAMA3)], indirect=True, ids=lambda p: p[0])
def test_several_system_messages_are_told_to_a_model_whose_template_takes_one(tooled: Open) -> None:
    """Agents send several, some in the middle of a chat."""
    first, later = ({"role": "system", "content": words} for words in ("Be kind.", "Be brief."))
    also = {"role": "developer", "content": "You may not write files."}
    common: Json = {"model": tooled.model}
    with openai.OpenAI(api_key=tooled.key, base_url=f"{tooled.base}/v1", max_retries=0) as client:
        chat = client.chat.completions.create(
            messages=[first, also, USER, later], tools=[tool("clock")], max_tokens=2, **common
        )
        assert chat.usage.prompt_tokens > 20
        answer = client.responses.create(
            instructions="Be kind.", input=[also, USER, later], max_output_tokens=2, **common
        )
        assert answer.usage.input_tokens > 20
    with anthropic.Anthropic(api_key=tooled.key, base_url=tooled.base, max_retries=0) as theirs:
        request: Json = common | {"system": "Be kind.", "messages": [USER, later]}
        usage = theirs.messages.create(max_tokens=2, **request).usage
        counted = theirs.messages.count_tokens(**request)
        assert counted.input_tokens == usage.input_tokens + usage.cache_read_input_tokens
    with ollama.Client(tooled.base, headers={"Authorization": f"Bearer {tooled.key}"}) as client:
        options = {"num_predict": 2}
        assert client.chat(tooled.model, [first, later, USER, later], options=options).done


def test_a_tool_that_is_not_there_cannot_be_forced(tooled: Open) -> None:
    with (
        openai.OpenAI(api_key=tooled.key, base_url=f"{tooled.base}/v1", max_retries=0) as client,
        pytest.raises(openai.BadRequestError, match="a tool called nothing but does not define it"),
    ):
        client.chat.completions.create(
            model=tooled.model, messages=[USER], tools=[tool("clock")],
            tool_choice={"type": "function", "function": {"name": "nothing"}},
        )  # fmt: skip


@pytest.mark.parametrize("stream", [False, True])
def test_anthropic_calls_what_is_forced(tooled: Open, stream: bool) -> None:
    request: Json = {
        "model": tooled.model, "messages": [USER], "max_tokens": 400,
        "tools": [{"name": "clock", "description": "x", "input_schema": SCHEMA}],
        "tool_choice": {"type": "tool", "name": "clock", "disable_parallel_tool_use": True},
    }  # fmt: skip
    with anthropic.Anthropic(api_key=tooled.key, base_url=tooled.base, max_retries=0) as client:
        if stream:
            with client.messages.stream(**request) as events:
                answer = events.get_final_message()
        else:
            answer = client.messages.create(**request)
    (used,) = answer.content
    assert (used.type, used.name, answer.stop_reason) == ("tool_use", "clock", "tool_use")
    assert right(used.input)


@pytest.mark.parametrize("stream", [False, True])
def test_responses_call_what_is_forced(tooled: Open, stream: bool) -> None:
    request: Json = {
        "model": tooled.model, "input": USER["content"], "max_output_tokens": 400, "parallel_tool_calls": False,
        "tools": [{"type": "function", "name": "clock", "parameters": SCHEMA}],
        "tool_choice": {"type": "function", "name": "clock"},
    }  # fmt: skip
    with openai.OpenAI(api_key=tooled.key, base_url=f"{tooled.base}/v1", max_retries=0) as client:
        if stream:
            answer = list(client.responses.create(**request, stream=True))[-1].response
        else:
            answer = client.responses.create(**request)
    (called,) = answer.output
    assert (called.type, called.name, answer.status) == ("function_call", "clock", "completed")
    assert right(json.loads(called.arguments))


@pytest.mark.parametrize("tooled", [("llama3", LLAMA3)], indirect=True, ids=lambda p: p[0])
@pytest.mark.parametrize("stream", [False, True])
async def test_ollama_gets_a_call_as_described(tooled: Open, stream: bool) -> None:
    """Its API forces no call; but the form of an answer may be that of one. Beside it the model may call several."""
    call = {"type": "object", "properties": {"name": {"const": "clock"}, "parameters": SCHEMA},
            "required": ["name", "parameters"]}  # fmt: skip
    request: Json = {"model": tooled.model, "messages": [USER], "tools": [tool("clock")], "format": call}
    headers = {"Authorization": f"Bearer {tooled.key}"}
    async with (
        aiohttp.ClientSession(tooled.base, headers=headers) as http,
        http.post("/api/chat", json=request | {"stream": stream}) as answer,
    ):
        content = await answer.read()
    check("/api/chat", answer.status, content)
    parts = [ollama.ChatResponse(**json.loads(line)) for line in content.splitlines()]
    assert (len(parts) > 1, parts[-1].done, parts[-1].done_reason) == (stream, True, "stop")
    calls = [called for part in parts for called in part.message.tool_calls or ()]
    assert 1 <= len(calls) <= 8
    assert {called.function.name for called in calls} == {"clock"}
    assert all(right(called.function.arguments) for called in calls)


@pytest.mark.parametrize("tooled", [("hermes", HERMES)], indirect=True, ids=lambda p: p[0])
@pytest.mark.parametrize("name", tool_cases())
async def test_as_llama_cpps_server_answers(tooled: Open, name: str) -> None:
    headers = {"Authorization": f"Bearer {tooled.key}"}
    async with aiohttp.ClientSession(tooled.base, headers=headers) as http:
        await compare(http, name)


@pytest.mark.parametrize("tooled", [("llama3", LLAMA3)], indirect=True, ids=lambda p: p[0])
@pytest.mark.parametrize("name", system_cases("llama3"))
async def test_system_messages_as_llama_cpps_server_answers(tooled: Open, name: str) -> None:
    headers = {"Authorization": f"Bearer {tooled.key}"}
    async with aiohttp.ClientSession(tooled.base, headers=headers) as http:
        await compare(http, name)


@pytest.mark.parametrize("tooled", [("hermes", HERMES)], indirect=True, ids=lambda p: p[0])
@pytest.mark.parametrize("name", call_cases())
async def test_a_call_as_llama_cpps_server_answers(tooled: Open, name: str) -> None:
    headers = {"Authorization": f"Bearer {tooled.key}"}
    async with aiohttp.ClientSession(tooled.base, headers=headers) as http:
        comparison = await compare(http, name)
    n_calls = N_CALLS.get(name.split(": ")[1], 2)
    assert len(set(re.findall(rb"call_\w{24}", comparison))) == n_calls


@pytest.mark.parametrize("tooled", [("hermes", HERMES)], indirect=True, ids=lambda p: p[0])
def test_half_a_call_is_told_as_half_of_one(tooled: Open) -> None:
    """This matches OpenAI and Anthropic. Ollama's clients would execute the call, so they get its text."""
    key, request, few = tooled.key, {"role": "user", "content": "Call the clock!"}, 8
    common: Json = {"model": tooled.model, "temperature": 0}
    with openai.OpenAI(api_key=key, base_url=f"{tooled.base}/v1", max_retries=0) as client:
        (choice,) = client.chat.completions.create(
            messages=[request], tools=[tool("clock")], max_tokens=few, **common
        ).choices
        (call,) = choice.message.tool_calls
        half = ("clock", '{"zone": "UTC", "exact": true')
        assert (call.function.name, call.function.arguments) == half
        assert (choice.finish_reason, choice.message.content) == ("length", None)
        said = {"role": "assistant", "tool_calls": [call.model_dump()]}
        came = {"role": "tool", "tool_call_id": call.id, "content": "it was cut"}
        again = client.chat.completions.create(
            messages=[request, said, came], tools=[tool("clock")], max_tokens=2, **common
        )
        assert again.choices
        answer = client.responses.create(
            input=request["content"], tools=[flat("clock")], max_output_tokens=few, **common
        )
        (called,) = answer.output
        assert (called.name, called.arguments, called.status) == (*half, "incomplete")
        assert answer.status == "incomplete"
    with anthropic.Anthropic(api_key=key, base_url=tooled.base, max_retries=0) as client:
        message = client.messages.create(
            model=tooled.model, messages=[request], tools=[used("clock")], max_tokens=few,
            extra_body={"temperature": 0},
        )  # fmt: skip
        (use,) = message.content
        assert (use.name, use.input) == ("clock", {"zone": "UTC", "exact": True})
        assert message.stop_reason == "max_tokens"
    bearer = {"Authorization": f"Bearer {key}"}
    with ollama.Client(host=tooled.base, headers=bearer) as client:
        for stream in (False, True):
            result = client.chat(
                tooled.model, [request], tools=[tool("clock")], stream=stream,
                options={"num_predict": few, "temperature": 0},
            )  # fmt: skip
            parts = list(result) if stream else [result]
            assert not any(part.message.tool_calls for part in parts)
            assert "".join(part.message.content for part in parts).startswith("<tool_call>")
            assert parts[-1].done_reason == "length"


@pytest.mark.parametrize("tooled", [("hermes", HERMES)], indirect=True, ids=lambda p: p[0])
def test_a_model_may_call_though_its_answer_has_a_form(tooled: Open) -> None:
    """Agents that want JSON in the end send the schema in every turn."""
    request, form = {"role": "user", "content": "Call the clock!"}, {"name": "done", "schema": SCHEMA}
    odd = tool("odd")
    odd["function"]["parameters"] = {"type": "object", "properties": {"a": {"pattern": "x"}}}
    common: Json = {
        "model": tooled.model, "messages": [request], "tools": [tool("clock"), odd], "temperature": 0,
        "response_format": {"type": "json_schema", "json_schema": form}, "max_tokens": 60,
    }  # fmt: skip
    with openai.OpenAI(api_key=tooled.key, base_url=f"{tooled.base}/v1", max_retries=0) as client:
        choice = client.chat.completions.create(**common).choices[0]
        assert choice.finish_reason == "tool_calls"
        assert [json.loads(tool_call.function.arguments)["zone"] for tool_call in choice.message.tool_calls] == [
            "UTC", "CET",
        ]  # fmt: skip
        answer = client.chat.completions.create(**common | {"tool_choice": "none", "max_tokens": 400}).choices[0]
    assert (answer.finish_reason, right(json.loads(answer.message.content))) == ("stop", True)


@pytest.mark.parametrize("tooled", [("hermes", HERMES)], indirect=True, ids=lambda p: p[0])
@pytest.mark.parametrize("stream", [False, True])
def test_a_model_that_calls_twice_at_once_is_heard_once_where_that_is_asked(tooled: Open, stream: bool) -> None:
    """Covers every API that has the option, with the finish reason of a single call."""
    request, common = {"role": "user", "content": "Call the clock!"}, {"model": tooled.model}
    choice: Any
    answer: Any
    message: Any
    with openai.OpenAI(api_key=tooled.key, base_url=f"{tooled.base}/v1", max_retries=0) as client:
        once: Json = common | {"parallel_tool_calls": False, "temperature": 0}
        chat: Json = once | {"messages": [request], "tools": [tool("clock")], "max_tokens": 60}
        if stream:
            with client.chat.completions.stream(**chat) as events:
                choice = events.get_final_completion().choices[0]
        else:
            choice = client.chat.completions.create(**chat).choices[0]
        (call,) = choice.message.tool_calls
        assert (json.loads(call.function.arguments), choice.finish_reason) == (GIVEN, "tool_calls")
        form: Json = once | {"input": request["content"], "tools": [flat("clock")]}
        if stream:
            answer = list(client.responses.create(**form, stream=True))[-1].response
        else:
            answer = client.responses.create(**form)
        (called,) = answer.output
        assert (json.loads(called.arguments), answer.status) == (GIVEN, "completed")
    with anthropic.Anthropic(api_key=tooled.key, base_url=tooled.base, max_retries=0) as theirs:
        result: Json = common | {"messages": [request], "tools": [used("clock")], "max_tokens": 60}
        result["tool_choice"] = {"type": "auto", "disable_parallel_tool_use": True}
        result["extra_body"] = {"temperature": 0}
        if stream:
            with theirs.messages.stream(**result) as events:
                message = events.get_final_message()
        else:
            message = theirs.messages.create(**result)
    (use,) = message.content
    assert (use.input, message.stop_reason) == (GIVEN, "tool_use")


def test_a_model_is_swapped_only_where_that_is_allowed(tooled: Open) -> None:
    tooled.control("POST", "/api", {"may_load": False})
    try:
        with openai.OpenAI(api_key=tooled.key, base_url=f"{tooled.base}/v1", max_retries=0) as client:
            assert tooled.model in [model.id for model in client.models.list()]
            with pytest.raises(openai.NotFoundError, match="guide is not loaded"):
                client.chat.completions.create(model="guide", messages=[USER])
    finally:
        tooled.control("POST", "/api", {"may_load": True})
    with (
        anthropic.Anthropic(api_key=tooled.key, base_url=tooled.base, max_retries=0) as theirs,
        pytest.raises(anthropic.NotFoundError, match="guide is not loaded"),
    ):  # to the model that is loaded it is another number
        theirs.messages.count_tokens(model="guide", messages=[USER])
