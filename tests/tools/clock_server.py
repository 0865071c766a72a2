"""A tool server with a clock that notes its calls: `python clock_server.py FILE [RESULT [SECONDS]]`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool

SCHEMA = {"type": "object", "properties": {"zone": {"enum": ["UTC", "CET"]}, "exact": {"type": "boolean"}}}
RESULT = sys.argv[2] if len(sys.argv) > 2 and not sys.argv[2].startswith("--") else "noon"
SECONDS = float(sys.argv[3]) if len(sys.argv) > 3 and sys.argv[3][0].isdigit() else 0.0


async def listed(context: Any, params: Any) -> ListToolsResult:
    return ListToolsResult(tools=[Tool(name="clock", description="Tells the time.", input_schema=SCHEMA)])


def note(zone: str) -> None:
    with Path(sys.argv[1]).open("a") as notes:
        notes.write(f"{zone}\n")


async def called(context: Any, params: Any) -> CallToolResult:
    zone = params.arguments["zone"]
    note(zone)
    await asyncio.sleep(SECONDS)
    return CallToolResult(content=[TextContent(type="text", text=f"{RESULT} in {zone}")])


async def main() -> None:
    server = Server("clock", on_list_tools=listed, on_call_tool=called)
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


asyncio.run(main())
