"""The check of tool calls in an answer from another machine, which may run another version or a hostile program."""

from __future__ import annotations

import secrets

import msgspec

from app.api import requests
from app.api.responses import Answer, ToolCall


def checked_calls(answer: Answer, order: requests.Ask) -> Answer:
    """Return the answer with only those calls that name an offered tool, up to the number that a request may
    contain.

    Each call gets a new ID from this machine, so that it cannot repeat the ID of an earlier call.
    """
    offered = {tool.name for tool in order.tools}
    named = [call for call in answer.calls if call.name in offered][: requests.MAX_CALLS]
    calls = [ToolCall(f"call_{secrets.token_hex(8)}", call.name, call.arguments) for call in named]
    reason = "stop" if answer.finish_reason == "calls" and not calls else answer.finish_reason
    return msgspec.structs.replace(answer, calls=calls, finish_reason=reason)
