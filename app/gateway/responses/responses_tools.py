"""Tools of OpenAI's Responses API, each by the one name that a model calls it by. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from app.core.errors import BadInput
from app.gateway.api_request import MOST_TOOLS, Json, Tool
from app.gateway.openai.openai_requests import Name

# OpenAI's own, which no model here has; its command line for programmers sends the first with everything.
HOSTED = frozenset({"web_search", "web_search_preview", "image_generation", "tool_search"})

Own = tuple[str, str]  # a tool's namespace, or none, and its name there


class ToolGiven(msgspec.Struct, frozen=True):
    type: str = "function"
    name: Name | None = None
    description: Annotated[str, Meta(max_length=1 << 16)] | None = None
    parameters: Json | None = None
    strict: bool | None = None
    tools: Annotated[list[ToolGiven], Meta(max_length=MOST_TOOLS)] | None = None  # of a namespace

    def told(self) -> Json:
        """As a response tells it again."""
        if self.type == "namespace":
            within = [one.told() for one in self.tools or ()]
            return {"type": self.type, "name": self.name, "description": self.description or "", "tools": within}
        return {
            "type": "function",
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
            "strict": bool(self.strict),
        }


def called(namespace: object, name: str) -> str:
    """What the model calls it. Codex has a namespace for each MCP server: `mcp__NAME`, or `mcp__NAME__`."""
    return f"{namespace.rstrip('_')}__{name}" if isinstance(namespace, str) and namespace else name


def each(given: Sequence[ToolGiven]) -> tuple[tuple[Tool, ...], Mapping[str, Own]]:
    """All functions, and which one of the program's is meant by each name. Raises BadInput."""
    tools: list[Tool] = []
    meant: dict[str, Own] = {}
    for one in given:
        is_space = one.type == "namespace" and bool(one.name)
        for tool in (one.tools or ()) if is_space else (one,):
            own = (one.name or "" if is_space else "", tool.name or "")
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
