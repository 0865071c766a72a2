"""Answers of `poolhouse ask --tools`: each call is shown and allowed, and its result goes to the model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.cli import terminal_text
from app.cli.output import Output
from app.core.errors import AppError, BadInput, Refused
from app.core.reasons import said
from app.core.tools.call_outcomes import DENIED, MAX_ROUNDS, UNKNOWN, bounded, outcome_text
from app.core.tools.shown_values import shown_values, visible
from app.core.wire_json import error_of

if TYPE_CHECKING:
    from app.api.responses import Answer, ToolCall
    from app.api.tools import OfferedTool
    from app.tools.tool_service import ToolService

Json = dict[str, Any]
Stream = Callable[[Json], Awaitable[tuple["Answer", str]]]

MAX_RESULT_CHARACTERS = 16_000  # for the model; the window knows the context better


async def answer_with_tools(
    home: Path | None, names: Sequence[str], out: Output, body: Json, stream: Stream
) -> tuple[Answer, str]:
    """Return the last answer of a conversation in which the model may call the tools of these servers.

    `stream` sends a request and writes its answer. Raises BadInput, Refused or Unreachable.
    """
    from app.machine.paths import Home
    from app.tools.tool_service import ToolService

    async with ToolService(Home.at(home).create()) as service:
        known = {server.name: server for server in (await service.servers()).servers}
        for name in names:
            if name not in known:
                raise BadInput("tool_server_unknown", name=name)
            if not known[name].on:
                raise Refused("tool_server_off", name=name)
        offered = await service.open(names)
        for name, failure in offered.failed.items():
            error = error_of({"kind": failure.kind, "code": failure.code, "facts": failure.facts})
            if name:
                raise error
            out.note(said(error))  # there are more tools than a question can have
        rounds = _Rounds(service, {tool.name: tool for tool in offered.tools}, out)
        messages = list(body.pop("messages", None) or [{"role": "user", "content": body.pop("prompt")}])
        body = {key: value for key, value in body.items() if key not in ("prompt", "raw")}
        said_first = ""
        for _ in range(MAX_ROUNDS):
            answer, note = await stream({**body, "messages": messages, "tools": rounds.tools})
            said_first = said_first or note
            if not answer.calls:
                return answer, said_first
            out.end_line()
            messages += await rounds.carry_out(answer)
        raise Refused("tool_rounds_many", most=MAX_ROUNDS)


class _Rounds:
    """The calls of one command."""

    def __init__(self, service: ToolService, offered: dict[str, OfferedTool], out: Output) -> None:
        self._service, self._offered, self._out = service, offered, out

    @property
    def tools(self) -> list[Json]:
        return [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
            for tool in self._offered.values()
        ]

    async def carry_out(self, answer: Answer) -> list[Json]:
        """Return the messages that follow an answer: its calls and their outcomes."""
        calls = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in answer.calls]
        made: Json = {"role": "assistant", "content": answer.text, "tool_calls": calls}
        if answer.thought:
            made["thought"] = answer.thought
        results = []
        for call in answer.calls:
            content = await self._outcome(call)
            results.append({"role": "tool", "content": content, "tool_call_id": call.id})
        return [made, *results]

    async def _outcome(self, call: ToolCall) -> str:
        tool = self._offered.get(call.name)
        if tool is None:
            return UNKNOWN
        name, server = visible(tool.tool), terminal_text.name(tool.server)
        self._out.note(f"The model wants to call {name} of {server} with:")
        for line in shown_values(call.arguments) or ["(no values)"]:
            self._out.note(f"  {line}")
        if not await self._is_allowed(tool):
            self._out.note("The call was not allowed.")
            return DENIED
        try:
            result = await self._service.call(tool.server, tool.tool, call.arguments, tool.fingerprint)
        except AppError as error:
            self._out.note(said(error))
            return outcome_text(said(error), is_error=True)
        text, n_left_out = bounded(result.text, MAX_RESULT_CHARACTERS)
        self._out.note_dim(f"{server} answered after {result.seconds:.1f} s: {terminal_text.line(text)[:200]}")
        return outcome_text(
            text, is_error=result.is_error, n_pictures=result.n_pictures, n_left_out=result.n_left_out + n_left_out
        )

    async def _is_allowed(self, tool: OfferedTool) -> bool:
        """Return whether the call is allowed, after asking if necessary. If nobody can be asked, it is not."""
        if tool.permission == "always":
            return True
        if not self._out.can_ask:
            self._out.note(
                "Nobody can be asked for permission here. "
                "`poolhouse tools allow --help` shows how to always allow a tool."
            )
            return False
        from app.cli.consent import is_confirmed

        return await is_confirmed("Allow this call?")
