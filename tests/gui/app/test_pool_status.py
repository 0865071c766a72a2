"""Tests of the status in the tray and the sidebar, beyond the model's own state."""

from __future__ import annotations

from typing import Any

import pytest

from app.core.errors import Reason
from app.gui.api.node_state import NodeState
from app.gui.app.pool_status import StatusKind, current_status
from tests.findings import tells
from tests.gui.typed_api import pool_of

HEAT = "Paused: its processor is at 95 °C."
LOADED = {
    "model": "m",
    "state": "ready",
    "machines": [{"machine": "den", "id": "a"}, {"machine": "attic", "id": "b"}],
    "stages": [{"machine": "den", "id": "a"}, {"machine": "attic", "id": "b"}],
}


def pool(machines: list[dict[str, Any]], *, lending: Any = None, **loaded: Any) -> NodeState:
    """A pool that has loaded `m`, with these changes."""
    known = {str(machine["id"]): machine for machine in machines}
    node = {"lending": lending} if lending else {}
    return pool_of({"loaded": LOADED | loaded, "machines": known, "node": node})


@pytest.mark.parametrize("state", ["draining", "paused"])
def test_a_host_says_which_lender_leaves_and_why(qapp: object, state: str) -> None:
    leaver = {"id": "b", "name": "attic", "state": state, **tells(HEAT)}
    pool_status = current_status(pool([{"id": "a", "name": "den", "this": True, "state": "ready"}, leaver]))
    assert (pool_status.kind, pool_status.sentence) == (StatusKind.PAUSED, f"attic is about to stop lending. {HEAT}")
    pool_status = current_status(pool([leaver | {"reason": None, "reason_facts": None}]))
    assert pool_status.sentence == "attic is about to stop lending."


def test_a_host_says_who_takes_over_what_a_machine_holds_that_leaves(qapp: object) -> None:
    text = "attic is leaving. It continues to compute while its layers are loaded on study (about 40 s)."
    leaver = {"id": "b", "name": "attic", "state": "draining", **tells(HEAT)}
    made = pool([leaver], recovery={"state": "leaving", **tells(text, "text")})
    assert current_status(made).sentence == f"attic is about to stop lending. {HEAT} {text}"


def test_a_model_whose_memory_an_owner_took_back_needs_no_attention(qapp: object) -> None:
    back = Reason("lend_taken_back", {"machine": "attic", "why": Reason("pause_owner")}).to_json()
    pool_status = current_status(pool([], state="lost", reason_facts=back))
    assert pool_status.kind is StatusKind.PAUSED
    assert pool_status.sentence.startswith("attic took its memory back.")
    gone = Reason("peer_offline", {"name": "attic"}).to_json()
    assert current_status(pool([], state="lost", reason_facts=gone)).kind is StatusKind.ATTENTION


@pytest.mark.parametrize("other", [{"id": "c"}, {"this": True}, {"state": "working"}])
def test_who_holds_nothing_of_it_is_not_told_of(qapp: object, other: dict[str, Any]) -> None:
    pool_status = current_status(pool([{"id": "b", "name": "attic", "state": "paused", **tells(HEAT)} | other]))
    assert pool_status.sentence.startswith("Ready. m runs on 2 machines")


def test_a_replica_that_is_lost_is_not_counted(qapp: object) -> None:
    needs = [{"machine": name} for name in ("den", "attic", "study")]
    made = pool_of({"loaded": LOADED | {"machines": needs, "holders": ["a", "b"]}})
    assert current_status(made).sentence.startswith("Ready. m runs on 2 machines")


@pytest.mark.parametrize("state", ["draining", "paused"])
def test_a_lender_says_why_it_drains_or_pauses(qapp: object, state: str) -> None:
    battery = {"code": "pause_battery_at", "facts": {"percent": 40}}
    lending = {"state": state, "code": "pause_battery_at", "reason_facts": battery, "gives_back_in_s": 12}
    pool_status = current_status(pool([], lending=lending))
    assert pool_status.kind is StatusKind.PAUSED
    assert "Paused: on battery (40%)." in pool_status.sentence


def test_a_machine_that_may_not_lend_has_not_paused(qapp: object) -> None:
    lending = {"state": "paused", "code": "lend_no_role", **tells("The household does not allow it.")}
    pool_status = current_status(pool([], lending=lending))
    assert (pool_status.kind, pool_status.sentence) == (StatusKind.IDLE, "Ready. m runs on 2 machines.")


def test_a_replica_that_is_left_alone_is_named(qapp: object) -> None:
    """One replica is on the host and one on a lender, and the lender's is left."""
    attic = {"id": "b", "name": "attic", "state": "loaded"}
    machines: list[dict[str, Any]] = [{"id": "a", "name": "den", "this": True, "state": "ready"}, attic]
    assert current_status(pool(machines, holders=["b"])).sentence == "Ready. m runs on attic."
    assert current_status(pool(machines, holders=["a"])).sentence == "Ready. m runs on this machine."


def test_a_load_that_is_stopped_is_no_longer_called_one(qapp: object) -> None:
    for state in ("loading", "ready"):
        assert current_status(pool([], state=state, stopping=True)).sentence == "Stopping m and freeing its memory."


def test_what_is_loaded_beside_is_told_as_well(qapp: object) -> None:
    states = {"a": "ready", "b": "loading", "c": "lost", "d": "recovering"}
    beside = [{"model": model, "state": state} for model, state in states.items()]
    assert current_status(pool_of({"loaded": LOADED, "beside": beside})).sentence == (
        "Ready. m runs on 2 machines. a is also ready. Also loading b. c stopped unexpectedly. A machine running d has "
        "disconnected."
    )
