"""The tool calls of an answer, as they are kept with a chat."""

from __future__ import annotations

import pytest

from app.core.tools.call_outcomes import DENIED, INTERRUPTED, STOPPED, UNKNOWN
from app.core.tools.chat_calls import CallRecord, CallRound, CallState, with_call


def test_a_call_of_an_earlier_round_is_never_replaced() -> None:
    denied = CallRecord(id="1", name="pay", arguments="{}", state="denied")
    done = CallRecord(id="1", name="clock", arguments="{}", state="done", result="noon")
    rounds = (CallRound(at=0, calls=(denied,)), CallRound(at=1, calls=(CallRecord(id="1", name="c", arguments="{}"),)))
    assert [round_.calls for round_ in with_call(rounds, done)] == [(denied,), (done,)]


@pytest.mark.parametrize(
    ("state", "over", "waits", "outcome"),
    [
        ("waiting", False, True, STOPPED),
        ("running", False, False, INTERRUPTED),
        ("interrupted", False, True, INTERRUPTED),
        ("done", True, False, "noon"),
        ("failed", True, False, "Error: noon"),
        ("denied", True, False, DENIED),
        ("unknown", True, False, UNKNOWN),
    ],
)
def test_the_model_is_told_what_came_of_a_call(state: CallState, over: bool, waits: bool, outcome: str) -> None:
    call = CallRecord(id="1", name="clock", arguments="{}", state=state, result="noon")
    assert (call.is_over, call.waits, call.outcome) == (over, waits, outcome)
