"""The check of tool calls in another machine's answer, whose program may be another version or a hostile one."""

from __future__ import annotations

import secrets

import msgspec

from app.api import requests
from app.api.responses import Answer, ToolCall


def checked_calls(answer: Answer, order: requests.Ask) -> Answer:
    """Return an answer with only calls of tools that were offered, at most as many as a request can repeat.

    Each gets an ID from this machine, so that none has the ID of an earlier call.
    """
    offered = {tool.name for tool in order.tools}
    named = [call for call in answer.calls if call.name in offered][: requests.MAX_CALLS]
    calls = [ToolCall(f"call_{secrets.token_hex(8)}", call.name, call.arguments) for call in named]
    reason = "stop" if answer.finish_reason == "calls" and not calls else answer.finish_reason
    return msgspec.structs.replace(answer, calls=calls, finish_reason=reason)
