"""The commands `poolhouse tools …`, which manage the tool servers (MCP) that chats may use."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Optional, TypeVar

import typer

from app.cli import terminal_text
from app.cli.options import HomeOption, JsonOption, read_name
from app.cli.output import Output
from app.core.errors import BadInput

if TYPE_CHECKING:
    from rich.console import RenderableType

    from app.api.tools import Server
    from app.tools.tool_service import ToolService

T = TypeVar("T")
MAX_IMPORT_BYTES = 1 << 20
STATES = {"off": "is off", "ready": "is on", "starting": "is starting", "running": "is on", "failed": "failed"}
WORDS = {"ask": "asks each time", "always": "always allowed", "never": "never allowed"}

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The name of the server.", parser=read_name)]
CommandArgument = Annotated[
    Optional[list[str]],  # noqa: UP045  typer reads it at run time
    typer.Argument(
        metavar="[COMMAND]...",
        help="The program that serves the tools, after --, with its arguments.",
        show_default=False,
    ),
]
UrlOption = Annotated[
    str, typer.Option("--url", metavar="URL", help="The server's address, if it runs elsewhere.", show_default=False)
]
EnvironmentOption = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--env",
        metavar="NAME",
        show_default=False,
        help="An environment variable for the program. Its value is taken from yours, or asked for. May be repeated.",
    ),
]
HeaderOption = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--header",
        metavar="NAME",
        show_default=False,
        help="A header to send to the address. Its value is asked for. May be repeated.",
    ),
]


def tools_group() -> typer.Typer:
    commands = typer.Typer(
        name="tools",
        help="Add tool servers (MCP), whose tools a model may call if you allow each call.",
        no_args_is_help=True,
    )
    commands.command("list")(list_servers)
    commands.command("add")(add)
    commands.command("import")(import_servers)
    commands.command("test")(try_server)
    for command in (on, off, allow, remove):
        commands.command(command.__name__)(command)
    return commands


def with_tools(home: Path | None, work: Callable[[ToolService], Awaitable[T]]) -> T:
    """Run `work` with the tool servers of a home. They have ended when this returns."""
    from app.machine.paths import Home
    from app.tools.tool_service import ToolService

    async def run() -> T:
        async with ToolService(Home.at(home).create()) as service:
            return await work(service)

    return asyncio.run(run())


def list_servers(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """List the tool servers."""
    servers = with_tools(home, lambda service: service.servers())

    def view() -> RenderableType:
        none = "There are no tool servers. `poolhouse tools add --help` shows how to add one."
        return _lines([line for server in servers.servers for line in _described(server)] or [none])

    Output(as_json).result(servers, view)


def add(
    name: NameArgument,
    command: CommandArgument = None,
    url: UrlOption = "",
    env: EnvironmentOption = None,
    header: HeaderOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a tool server. It is off at first. A program runs as you, so add only those that you trust."""
    from app.api.tools import ServerEdit
    from app.decoding import convert

    program, *arguments = command or [""]
    fields = {
        "name": name,
        "command": program,
        "arguments": arguments,
        "environment": {key: os.environ[key] if key in os.environ else _secret(key) for key in env or ()},
        "url": url,
        "headers": {key: _secret(key) for key in header or ()},
    }
    try:
        edit = convert(fields, ServerEdit)
    except ValueError as error:
        raise BadInput("usage", sentence=str(error)) from None
    with_tools(home, lambda service: service.save(edit))
    shown = terminal_text.name(name)
    cure = f"`poolhouse tools test {shown}` shows its tools, and `poolhouse tools on {shown}` turns it on"
    _say(as_json, {"added": name}, f"{shown} was added and is off. {cure}.")


def _secret(name: str) -> str:
    """Ask for a value. It is never an argument, because every program on this computer can read arguments."""
    return str(typer.prompt(f"{name} (hidden)", default="", hide_input=True, show_default=False))


def import_servers(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Another app's JSON file with mcpServers.")],
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add the tool servers in another app's JSON file. They are off at first."""
    try:
        with file.open("rb") as source:
            text = source.read(MAX_IMPORT_BYTES).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput("file_unreadable", path=str(file), why=str(error)) from None
    imported = with_tools(home, lambda service: service.import_servers(text))

    def view() -> RenderableType:
        names = ", ".join(map(terminal_text.name, imported.names))
        lines = [f"Added, and off at first: {names}."] if names else []
        return _lines([*lines, *(error.message for error in imported.refused.values())])

    Output(as_json).result(imported, view)


def try_server(name: NameArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Start a tool server and show its tools."""
    server = with_tools(home, lambda service: service.test(name))

    def view() -> RenderableType:
        lines = [f"{terminal_text.name(name)} works. Its tools:"]
        for tool in server.tools:
            about = terminal_text.line(tool.description)
            lines.append(f"  {terminal_text.name(tool.name)} ({WORDS[tool.permission]}): {about[:200]}")
        if server.n_left_out:
            lines.append(f"{server.n_left_out:,} more tools are left out because they would fill a model's context.")
        return _lines(lines)

    Output(as_json).result(server, view)


def on(name: NameArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Let chats use a tool server."""
    with_tools(home, lambda service: service.switch(name, on=True))
    shown = terminal_text.name(name)
    _say(as_json, {"on": name}, f'{shown} is on. `poolhouse ask --tools {shown} "…"` uses its tools.')


def off(name: NameArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Stop chats from using a tool server."""
    with_tools(home, lambda service: service.switch(name, on=False))
    _say(as_json, {"off": name}, f"{terminal_text.name(name)} is off.")


def allow(
    name: NameArgument,
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="The name of one of the server's tools.")],
    when: Annotated[
        Literal["ask", "always", "never"],
        typer.Argument(metavar="ask|always|never", help="When the tool may be called."),
    ],
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Choose whether you are asked before each call of a tool, or whether it is always or never allowed."""

    async def permit(service: ToolService) -> None:
        if when == "always":
            await service.test(name)  # so that what is allowed is the tool as it is now
        await service.permit(name, tool, when)

    with_tools(home, permit)
    sentence = f"The tool {terminal_text.name(tool)} of {terminal_text.name(name)}: {WORDS[when]}."
    _say(as_json, {"name": name, "tool": tool, "permission": when}, sentence)


def remove(name: NameArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Remove a tool server and its secrets."""
    with_tools(home, lambda service: service.remove(name))
    _say(as_json, {"removed": name}, f"{terminal_text.name(name)} was removed.")


def _described(server: Server) -> list[str]:
    name = terminal_text.name(server.name)
    place = terminal_text.line(server.url or " ".join([server.command, *server.arguments]))
    lines = [f"{name} {STATES[server.status]}: {place}"]
    secrets = [*server.environment, *server.headers]
    if secrets:
        lines.append(f"  Secrets: {', '.join(map(terminal_text.name, secrets))}.")
    return lines


def _lines(sentences: list[str]) -> RenderableType:
    from rich.console import Group

    return Group(*map(terminal_text.command_text, sentences))


def _say(as_json: bool, data: dict[str, str], sentence: str) -> None:
    Output(as_json).result(data, lambda: _lines([sentence]))
