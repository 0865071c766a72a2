"""OpenAI's Responses API requests, read into an ApiRequest: its core, without stored responses. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from app.core.errors import BadInput
from app.gateway.api_request import MAX_SEED, MOST_TOOLS, USUAL, ApiRequest, Json, Tool, limit_of, text_of, thought_with
from app.gateway.dialects.openai_requests import (
    FREE,
    Count,
    Fraction,
    Name,
    Temperature,
    as_given,
    assistant,
    check_calls,
    given,
    schema_asked,
    thinking_asked,
    tool_choice,
    whole_calls,
)

# OpenAI's own, which no model here has; its command line for programmers sends the first with everything.
HOSTED = frozenset({"web_search", "web_search_preview", "image_generation", "tool_search"})

Own = tuple[str, str]  # a tool's namespace, or none, and its name there

TEXTS = ("input_text", "output_text", "text", "refusal")


class ToolGiven(msgspec.Struct, frozen=True):
    type: str = "function"
    name: Name | None = None
    description: Annotated[str, Meta(max_length=1 << 16)] | None = None
    parameters: Json | None = None
    strict: bool | None = None
    tools: Annotated[list[ToolGiven], Meta(max_length=MOST_TOOLS)] | None = None  # of a namespace

    def as_json(self) -> Json:
        """Return the tool as a response repeats it."""
        if self.type == "namespace":
            within = [tool.as_json() for tool in self.tools or ()]
            return {"type": self.type, "name": self.name, "description": self.description or "", "tools": within}
        return {
            "type": "function",
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
            "strict": bool(self.strict),
        }


def called(namespace: object, name: str) -> str:
    """Return the model's name for a tool. Codex has a namespace for each MCP server: `mcp__NAME`, or `mcp__NAME__`."""
    return f"{namespace.rstrip('_')}__{name}" if isinstance(namespace, str) and namespace else name


def each(items: Sequence[ToolGiven]) -> tuple[tuple[Tool, ...], Mapping[str, Own]]:
    """Return all functions, and the program's own function behind each name. Raises BadInput."""
    tools: list[Tool] = []
    meant: dict[str, Own] = {}
    for item in items:
        is_space = item.type == "namespace" and bool(item.name)
        for tool in (item.tools or ()) if is_space else (item,):
            own = (item.name or "" if is_space else "", tool.name or "")
            if tool.type != "function" or not tool.name:
                raise BadInput("api_unsupported", what=f"the tool {tool.type[:40]}", field="tools")
            name = called(*own)
            if meant.setdefault(name, own) != own:
                raise BadInput("bad_request", why=f"two tools are called {name[:100]}", field="tools")
            description = tool.description or ""
            tools.append(Tool(name, description, tool.parameters or {}, tool.strict))
    if len(tools) > MOST_TOOLS:
        raise BadInput("bad_request", why=f"there are more than {MOST_TOOLS} tools", field="tools")
    return tuple(tools), meant


class Text(msgspec.Struct, frozen=True):
    format: Json | None = None
    verbosity: Any = None


class Reasoning(msgspec.Struct, frozen=True):
    effort: str | None = None


class ResponsesRequest(msgspec.Struct, frozen=True, kw_only=True):
    input: str | Annotated[list[Json], Meta(min_length=1, max_length=4096)]
    model: str = ""
    instructions: str | None = None
    stream: bool | None = None
    temperature: Temperature = None
    top_p: Fraction = None
    max_output_tokens: Count = None
    text: Text | None = None
    tools: Annotated[list[ToolGiven], Meta(max_length=MOST_TOOLS)] | None = None
    tool_choice: str | Json | None = None
    parallel_tool_calls: bool | None = None
    user: Annotated[str, Meta(max_length=1000)] | None = None
    metadata: Annotated[dict[str, str], Meta(max_length=16)] | None = None  # only told again
    reasoning: Reasoning | None = None
    service_tier: Any = None
    prompt_cache_key: Any = None
    safety_identifier: Any = None
    previous_response_id: str | None = None
    conversation: Any = None
    background: bool | None = None

    def wish(self, chance: int) -> ApiRequest:
        """Return the request in the common vocabulary. Raises BadInput."""
        for name in ("previous_response_id", "conversation", "background"):
            if getattr(self, name):
                raise BadInput("api_unsupported", what=name, field=name)
        choice = tool_choice(self.tool_choice, lambda named: named)
        form = self.text.format if self.text else None
        sampling = given(USUAL, temperature=self.temperature, top_p=self.top_p)
        return ApiRequest(
            model=self.model,
            messages=whole_calls(self._messages()),
            sampling=replace(sampling, seed=chance % (MAX_SEED + 1)),
            max_tokens=limit_of(self.max_output_tokens),
            schema=schema_asked(form, lambda response_format: response_format, "text.format", "text"),
            tools=() if choice == "none" else each(self.own_tools)[0],
            must_call=choice if choice not in FREE else None,
            calls_in_pieces=bool(self.stream),
            many_calls=self.parallel_tool_calls,
            thinking=thinking_asked(None, self.reasoning.effort if self.reasoning else None, None),
            user=self.user or "",
            further=self._further(),
        )

    @property
    def own_tools(self) -> list[ToolGiven]:
        """Return the tools that the program runs itself."""
        return [tool for tool in self.tools or () if tool.type not in HOSTED]

    def _further(self) -> Json:
        """Return the other fields under their names in OpenAI's chats."""
        form = self.text.format if self.text else None
        if form and form.get("type") == "json_schema":
            rest = {name: value for name, value in form.items() if name != "type"}
            form = {"type": "json_schema", "json_schema": rest}
        fields = {
            "response_format": form,
            "verbosity": self.text and self.text.verbosity,
            "reasoning_effort": self.reasoning and self.reasoning.effort,
        }
        same = "temperature", "top_p", "service_tier", "prompt_cache_key", "safety_identifier"
        kept = as_given(self, *same)
        return kept | {name: value for name, value in fields.items() if value is not None}

    def _messages(self) -> tuple[Json, ...]:
        messages: list[Json] = []
        if self.instructions:
            messages.append({"role": "system", "content": self.instructions})
        if isinstance(self.input, str):
            return (*messages, {"role": "user", "content": self.input})
        thought = ""
        for item in self.input:
            if item.get("type") == "reasoning":
                thought = _thought(item)
            for message in map(partial(_with_thought, thought), _item(item)):
                thought = ""
                # what one turn says and calls is one message: templates want it together, some refuse two in a row
                if messages and "tool_calls" in message and messages[-1]["role"] == "assistant":
                    calls = [*messages[-1].get("tool_calls", ()), *message["tool_calls"]]
                    check_calls(calls)
                    messages[-1] = message | messages[-1] | {"tool_calls": calls}
                else:
                    messages.append(message)
        if thought:  # it was cut within it, and goes on there
            messages.append(thought_with({"role": "assistant", "content": ""}, thought))
        return tuple(messages)


def _with_thought(thought: str, message: Json) -> Json:
    """Return the message with the thought that preceded it."""
    return thought_with(message, thought) if message["role"] == "assistant" else message


def _thought(item: Json) -> str:
    """Return the text of a reasoning item. An encrypted one cannot be read."""
    parts = [*(item.get("content") or ()), *(item.get("summary") or ())]
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "\n\n".join(text for text in texts[:64] if isinstance(text, str))


def _item(item: Json) -> list[Json]:
    """Return an item of the input as messages for a chat template."""
    match item:
        case {"type": "function_call", "name": str(name), "arguments": str(arguments)}:
            name = called(item.get("namespace"), name)
            return [assistant("", [(str(item.get("call_id", "")), name, arguments)])]
        case {"type": "function_call_output"}:
            output = text_of(item.get("output"), TEXTS)
            return [{"role": "tool", "content": output, "tool_call_id": str(item.get("call_id", ""))}]
        case {"type": "reasoning"}:
            return []  # a part of the next message
        case {"role": "system" | "developer"}:
            return [{"role": "system", "content": text_of(item.get("content"), TEXTS)}]
        case {"role": "user" | "assistant" as role}:
            return [{"role": role, "content": text_of(item.get("content"), TEXTS)}]
    raise BadInput("api_content_unsupported", kind=str(item.get("type") or item.get("role"))[:40])
