"""The service for the tool servers of this home, which changes, starts and calls them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import msgspec

from app.api.requests import MAX_TOOLS as MAX_OFFERED
from app.api.responses import SentError
from app.api.tools import (
    CallResult,
    Imported,
    Offered,
    OfferedTool,
    Permission,
    Server,
    ServerEdit,
    Servers,
    ServerStatus,
    ServerTool,
)
from app.core.errors import AppError, BadInput, Refused
from app.core.reasons import said
from app.machine.paths import Home
from app.tools.server_link import END_SECONDS, ListedTool, ServerLink
from app.tools.server_store import ServerStore, StoredPermission, StoredServer, foreign_servers

NAME_CHARACTERS = 64  # of a tool as models know it
MAX_OFFERED_BYTES = 1 << 20  # of all schemas: a question is refused with more
_UNUSABLE = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass
class _Running:
    link: ServerLink
    task: asyncio.Task[None]


class ToolService:
    """The tool servers. `changed` is called whenever what `servers` returns has changed.

    Use it as an async context manager. Leaving the context ends all servers.
    """

    def __init__(self, home: Home, changed: Callable[[], None] = lambda: None) -> None:
        self._store = ServerStore(home)
        self._changed = changed
        self._running: dict[str, _Running] = {}
        self._tested: dict[str, tuple[ListedTool, ...]] = {}  # of servers that were tested and have ended since
        self._opening = asyncio.Lock()
        self._group = asyncio.TaskGroup()

    async def __aenter__(self) -> ToolService:
        await self._group.__aenter__()
        return self

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        await self._end(list(self._running))
        await self._group.__aexit__(None, None, None)

    # Changes

    async def servers(self) -> Servers:
        """Return all servers and their states. Raises BadInput or Refused."""
        stored = await self._store.all()
        return Servers([self._described(name, stored[name]) for name in sorted(stored, key=str.casefold)])

    async def save(self, edit: ServerEdit, was: str = "") -> None:
        """Add or change a server. Raises BadInput, Refused or DoesNotFit."""
        await self._store.save(edit, was)
        await self._forget([was, edit.name])
        self._changed()

    async def remove(self, name: str) -> None:
        """Forget a server. Raises BadInput, Refused or DoesNotFit."""
        await self._store.remove(name)
        await self._forget([name])
        self._changed()

    async def switch(self, name: str, *, on: bool) -> None:
        """Choose whether chats may use a server. Raises BadInput or DoesNotFit."""
        await self._store.change(name, lambda stored: msgspec.structs.replace(stored, on=on))
        if not on:
            await self._end([name])
        self._changed()

    async def permit(self, name: str, tool: str, permission: Permission, shown: str = "") -> None:
        """Set what the user allows a tool to do. `shown` is the fingerprint of the tool that the user saw.

        Raises BadInput, Refused or DoesNotFit.
        """
        listed = next((known for known in self._tools(name) if known.name == tool), None)
        kept = StoredPermission(permission, listed.fingerprint if listed else "")
        if permission == "always" and listed is None:
            raise BadInput("tool_gone", name=name, tool=tool[:100])
        if permission == "always" and shown and kept.fingerprint != shown:
            raise Refused("tool_changed", name=name, tool=tool[:100])

        def changed(stored: StoredServer) -> StoredServer:
            kept_tools = {key: value for key, value in stored.tools.items() if key != tool}
            tools = kept_tools if permission == "ask" else {**kept_tools, tool: kept}
            return msgspec.structs.replace(stored, tools=tools)

        await self._store.change(name, changed)
        self._changed()

    async def import_servers(self, text: str) -> Imported:
        """Add the servers in another app's file. All are off at first. Raises BadInput."""
        edits, refused = foreign_servers(text)
        names: list[str] = []
        for edit in edits:
            try:
                await self._store.save(edit)
                names.append(edit.name)
            except (BadInput, Refused) as error:
                refused[edit.name] = error
        self._changed()
        return Imported(names, {name: sent(error) for name, error in refused.items()})

    # Use

    async def test(self, name: str) -> Server:
        """Restart a server, and return it with its tools. Raises the AppError that explains why it did not start."""
        await self._end([name])
        stored = await self._opened(name)
        if not stored.on:  # it was started for this only
            described = self._described(name, stored)
            tools = self._running[name].link.tools
            await self._end([name])
            self._tested[name] = tools
            self._changed()
            return described
        return self._described(name, stored)

    async def open(self, names: Sequence[str]) -> Offered:
        """Start the servers that a chat uses, and return their tools. Servers that are off are left out.

        `failed` has an entry without a name if there are more tools than a question can have.
        """
        stored = await self._store.all()
        usable = [name for name in dict.fromkeys(names) if name in stored and stored[name].on]
        results = await asyncio.gather(*(self._refreshed(name) for name in usable), return_exceptions=True)
        failed: dict[str, SentError] = {}
        tools: list[OfferedTool] = []
        for name, result in zip(usable, results, strict=True):
            if isinstance(result, AppError):
                failed[name] = sent(result)
            elif isinstance(result, BaseException):
                raise result
            else:
                tools += [tool for tool in _offered(name, self._permitted(name, result)) if tool.permission != "never"]
        few = _few(tools)
        if n_left_out := len(tools) - len(few):
            failed[""] = sent(Refused("tools_many", count=n_left_out, most=MAX_OFFERED))
        return Offered(unique(few), failed)

    async def call(self, name: str, tool: str, arguments: str, shown: str = "") -> CallResult:
        """Call a tool. The user has allowed the call. Raises BadInput, Refused or Unreachable."""
        stored = (await self._store.all()).get(name)
        if stored is None or not stored.on:
            raise Refused("tool_server_off", name=name)
        kept = stored.tools.get(tool)
        if kept is not None and kept.permission == "never":
            raise Refused("tool_forbidden", name=name, tool=tool[:100])
        await self._opened(name)
        return await self._running[name].link.call(tool, arguments, shown)

    async def _refreshed(self, name: str) -> StoredServer:
        """Start a server, or list its tools again. Raises the same errors as `_opened`."""
        running = self._running.get(name)
        if running is not None and running.link.is_running:
            await running.link.refresh()
        return await self._opened(name)

    async def _opened(self, name: str) -> StoredServer:
        """Start a server if it is not running. Raises the AppError that explains why it could not be started."""
        async with self._opening:
            known = await self._store.known(name)
            running = self._running.get(name)
            if running is not None and not running.link.server.starts_like(known):  # another process changed it
                await self._forget([name])
                running = None
            if running is None or running.task.done():
                link = ServerLink(known, self._changed)
                task = self._group.create_task(link.run(), name="tool server")
                running = self._running[name] = _Running(link, task)
                self._changed()
        await running.link.started()
        return known.stored

    async def _forget(self, names: Sequence[str]) -> None:
        """End these servers, whose settings have changed, and forget their tools."""
        await self._end(names)
        for name in names:
            self._tested.pop(name, None)

    async def _end(self, names: Iterable[str]) -> None:
        """End these servers, and wait until they have ended."""
        ending = [self._running.pop(name) for name in dict.fromkeys(names) if name in self._running]
        for running in ending:
            running.link.close()
        if tasks := [running.task for running in ending]:
            _, late = await asyncio.wait(tasks, timeout=END_SECONDS)
            for task in late:
                task.cancel()

    # What is told of them

    def _tools(self, name: str) -> tuple[ListedTool, ...]:
        running = self._running.get(name)
        if running is not None and running.link.tools:
            return running.link.tools
        return self._tested.get(name, ())

    def _permitted(self, name: str, stored: StoredServer) -> list[ServerTool]:
        return [_with_permission(tool, stored.tools.get(tool.name)) for tool in self._tools(name)]

    def _described(self, name: str, stored: StoredServer) -> Server:
        running = self._running.get(name)
        link = running.link if running is not None else None
        status: ServerStatus = "ready" if stored.on else "off"
        if link is not None and link.error is not None:
            status = "failed"
        elif link is not None and not (running is not None and running.task.done()):
            status = "running" if link.is_running else "starting"
        return Server(
            name=name,
            command=stored.command,
            arguments=list(stored.arguments),
            environment=list(stored.environment),
            url=stored.url,
            headers=list(stored.headers),
            on=stored.on,
            status=status,
            error=sent(link.error) if link is not None and link.error is not None else None,
            tools=self._permitted(name, stored),
            n_left_out=link.n_left_out if link is not None else 0,
        )


def sent(error: AppError) -> SentError:
    """Return an error in the form in which it is sent."""
    return SentError(type(error).__name__, error.reason.code, error.reason.facts, said(error))


def unique(tools: Iterable[OfferedTool]) -> list[OfferedTool]:
    """Return the tools with names that models can use. A name that several tools have is preceded by the server's."""
    tools = list(tools)
    plain = [_UNUSABLE.sub("_", tool.tool)[:NAME_CHARACTERS] for tool in tools]
    names: set[str] = set()
    named: list[OfferedTool] = []
    for tool, short in zip(tools, plain, strict=True):
        long = f"{_UNUSABLE.sub('_', tool.server)}_{short}"[:NAME_CHARACTERS]
        name = long if plain.count(short) > 1 else short
        number, free = 2, name
        while free in names:
            free = f"{name[: NAME_CHARACTERS - 4]}_{number}"
            number += 1
        names.add(free)
        named.append(msgspec.structs.replace(tool, name=free))
    return named


def _few(tools: Sequence[OfferedTool]) -> list[OfferedTool]:
    """Return the first tools, as many as one question can have."""
    few: list[OfferedTool] = []
    n_bytes = 0
    for tool in tools:
        n_bytes += len(msgspec.json.encode(tool.parameters))
        if len(few) < MAX_OFFERED and n_bytes <= MAX_OFFERED_BYTES:
            few.append(tool)
    return few


def _with_permission(tool: ListedTool, kept: StoredPermission | None) -> ServerTool:
    changed = kept is not None and kept.permission == "always" and kept.fingerprint != tool.fingerprint
    return ServerTool(
        name=tool.name,
        description=tool.description,
        parameters=tool.parameters,
        permission="ask" if kept is None or changed else kept.permission,
        fingerprint=tool.fingerprint,
        changed=changed,
    )


def _offered(server: str, tools: Iterable[ServerTool]) -> list[OfferedTool]:
    return [
        OfferedTool(
            name=tool.name,
            server=server,
            tool=tool.name,
            description=tool.description,
            parameters=tool.parameters,
            permission=tool.permission,
            fingerprint=tool.fingerprint,
        )
        for tool in tools
    ]
