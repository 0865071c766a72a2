"""The tool calls of an answer, as they are kept with a chat, and the messages that they become in a prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from app.core.tools.call_outcomes import DENIED, INTERRUPTED, STOPPED, UNKNOWN, outcome_text

# done: the tool answered. failed: the app could not call it or got no answer, and `result` is the app's own sentence.
# interrupted: stopped while the tool was at work, so that it may have been carried out.
CallState = Literal["waiting", "running", "interrupted", "done", "failed", "denied", "unknown"]
TOOLS = "tools"  # the key of a message's details


class CallRecord(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A call that a model made. `name` is the tool's name in the prompt, `arguments` a JSON object as text."""

    id: str
    name: str
    arguments: str
    server: str = ""
    tool: str = ""
    fingerprint: str = ""  # of the tool as it was offered
    state: CallState = "waiting"
    result: str = ""
    is_error: bool = False
    n_pictures: int = 0
    n_left_out: int = 0
    seconds: float = 0.0

    @property
    def is_over(self) -> bool:
        """Return whether the call has an outcome that the model can be told."""
        return self.state in ("done", "failed", "denied", "unknown")

    @property
    def waits(self) -> bool:
        """Return whether the user must decide about the call."""
        return self.state in ("waiting", "interrupted")

    @property
    def outcome(self) -> str:
        """The text that the model reads."""
        match self.state:
            case "done":
                return outcome_text(
                    self.result, is_error=self.is_error, n_pictures=self.n_pictures, n_left_out=self.n_left_out
                )
            case "failed":
                return outcome_text(self.result, is_error=True)
            case "running" | "interrupted":
                return INTERRUPTED
            case "denied":
                return DENIED
            case "unknown":
                return UNKNOWN
        return STOPPED


class CallRound(msgspec.Struct, frozen=True, kw_only=True):
    """The calls that a model made at once, after this many characters of the answer's text and thought."""

    at: int
    thought_at: int = 0
    calls: tuple[CallRecord, ...] = ()

    @property
    def is_over(self) -> bool:
        return all(call.is_over for call in self.calls)


def rounds_of(details: Mapping[str, Any]) -> tuple[CallRound, ...]:
    """Return the rounds of calls in a message's details. Invalid ones are left out as a whole."""
    stored = details.get(TOOLS)
    if not stored:
        return ()
    try:
        return msgspec.convert(stored, tuple[CallRound, ...])
    except msgspec.ValidationError:
        return ()


def with_rounds(details: Mapping[str, Any], rounds: Sequence[CallRound]) -> dict[str, Any]:
    """Return details with these rounds of calls, as JSON values."""
    return {**details, TOOLS: msgspec.to_builtins(list(rounds))}


def with_call(rounds: Sequence[CallRound], changed: CallRecord) -> tuple[CallRound, ...]:
    """Return the rounds with a call of the last one replaced by its changed record. Earlier rounds are over."""
    *earlier, last = rounds
    calls = tuple(changed if call.id == changed.id else call for call in last.calls)
    return (*earlier, msgspec.structs.replace(last, calls=calls))


def prompt_bodies(text: str, thought: str, rounds: Sequence[CallRound]) -> list[dict[str, Any]]:
    """Return an answer with its calls and their results as messages of a request.

    The text after the last round is a message of its own. If there is none, the results are the last messages.
    """
    bodies: list[dict[str, Any]] = []
    at = thought_at = 0
    for round_ in rounds:
        calls = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in round_.calls]
        part = _answer(text[at : round_.at], thought[thought_at : round_.thought_at])
        bodies.append({**part, "tool_calls": calls})
        bodies += [{"role": "tool", "content": call.outcome, "tool_call_id": call.id} for call in round_.calls]
        at, thought_at = round_.at, round_.thought_at
    if text[at:].strip() or thought[thought_at:].strip() or not rounds:
        bodies.append(_answer(text[at:], thought[thought_at:]))
    return bodies


def _answer(text: str, thought: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **({"thought": thought} if thought.strip() else {})}


def characters(rounds: Sequence[CallRound]) -> int:
    """Return the length of the calls and their results in a prompt."""
    return sum(len(call.arguments) + len(call.outcome) for round_ in rounds for call in round_.calls)
