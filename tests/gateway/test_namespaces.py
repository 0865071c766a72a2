"""Tools in namespaces, as Codex sends those of MCP servers: a model calls them by one name, a program hears both."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import openai
import pytest

from app.core.errors import BadInput
from app.gateway.dialects.responses_routes import ResponsesRequest as Responses
from tests.gateway.conftest import Open, opened
from tests.gateway.tool_cases import MODEL, SCHEMA, USER, hermes
from tests.node.pool import Json, node


@pytest.fixture(scope="module")
def tooled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    """Open the API with a model that supports tools, which a request loads."""
    folder = tmp_path_factory.mktemp("namespaces")
    with node(folder / "den", "den") as test_node:
        test_node.run("import", str(hermes(folder)), "--name", MODEL)
        house = opened(test_node, may_load=True)
        yield Open(test_node, house.port, house.key, model=MODEL)


@pytest.mark.long
@pytest.mark.parametrize("stream", [False, True])
def test_responses_name_the_namespace_of_a_tool(tooled: Open, stream: bool) -> None:
    """The program finds its tool by it: Codex keeps those of each MCP server in one namespace."""
    clock = {"type": "function", "name": "clock", "parameters": SCHEMA}
    request: Json = {
        "model": tooled.model, "input": [USER], "max_output_tokens": 400, "parallel_tool_calls": False,
        "tools": [{"type": "namespace", "name": "mcp__wall__", "description": "A wall.", "tools": [clock]}],
        "tool_choice": "required",
    }  # fmt: skip
    with openai.OpenAI(api_key=tooled.key, base_url=f"{tooled.base}/v1", max_retries=0) as client:
        if stream:
            events = {event.type: event for event in client.responses.create(**request, stream=True)}
            added = events["response.output_item.added"]
            done = events["response.function_call_arguments.done"]
            answer = events["response.completed"].response
            assert (added.item.namespace, added.item.name, done.name) == ("mcp__wall__", "clock", "clock")
        else:
            answer = client.responses.create(**request)
        (called,) = answer.output
        assert (called.namespace, called.name, answer.status) == ("mcp__wall__", "clock", "completed")
        assert answer.tools[0].tools[0].name == "clock"
        result = {"type": "function_call_output", "call_id": called.call_id, "output": "noon"}
        request["input"] = [USER, called.model_dump(exclude_none=True), result]
        assert client.responses.create(**request).output[0].name == "clock"


def space(name: str, *tools: str) -> Json:
    return {"type": "namespace", "name": name, "tools": [{"type": "function", "name": tool} for tool in tools]}


def test_a_tool_of_a_namespace_is_called_by_both_names() -> None:
    call = {"type": "function_call", "call_id": "a", "name": "clock", "namespace": "mcp__wall", "arguments": "{}"}
    value: Json = {
        "input": [USER, call], "tools": [space("mcp__wall", "clock", "date"), {"type": "function", "name": "clock"}],
    }  # fmt: skip
    api_request = msgspec.convert(value, Responses).to_api_request(0)
    assert [tool.name for tool in api_request.tools] == ["mcp__wall__clock", "mcp__wall__date", "clock"]
    assert (api_request.messages or ())[-1]["tool_calls"][0]["function"]["name"] == "mcp__wall__clock"


@pytest.mark.parametrize(
    ("tools", "why"),
    [
        ([space("a", "b"), {"type": "function", "name": "a__b"}], "two tools are called a__b"),
        ([space("a", *map(str, range(100))), space("b", *map(str, range(29)))], "more than 128 tools"),
        ([{"type": "namespace", "name": "a", "tools": [{"type": "custom", "name": "b"}]}], "the tool custom"),
        ([{"type": "namespace", "tools": []}], "the tool namespace"),
    ],
)  # fmt: skip
def test_tools_that_cannot_be_told_apart_are_refused(tools: list[Json], why: str) -> None:
    with pytest.raises(BadInput) as refused:
        msgspec.convert({"input": "x", "tools": tools}, Responses).to_api_request(0)
    assert why in str(refused.value.reason.facts)
