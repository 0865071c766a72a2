"""Tests of which difference of two snapshots is worth an entry in the journal."""

from __future__ import annotations

from typing import Any

import pytest

from app.core.reasons import SENTENCES, said
from app.node.journal_events import events_between, kind_of
from tests.node.partial_snapshot import partial_snapshot

Json = dict[str, Any]
ME = {"name": "den", "this": True, "online": True, "reason": None}


def machine(name: str, *, online: bool = True, reason: str | None = None) -> Json:
    return {"name": name, "this": False, "online": online, "reason": reason}


def snapshot(loaded: Json | None = None, lending: Json | None = None, **rest: Json) -> Json:
    return {
        "machines": {"me": ME, **rest},
        "loaded": loaded,
        "node": {"lending": lending or {"state": "ready", "reason": None, "used_by": []}},
    }


def model(state: str, **more: Any) -> Json:
    return {"model": "guide", "state": state, "machines": [{}, {}], **more}


def lends(state: str, reason: str | None = None, *used_by: str) -> Json:
    return snapshot(lending={"state": state, "reason": reason, "used_by": list(used_by)})


def loads(state: str, reason: str | None = None) -> Json:
    return PLAIN | {"downloads": {"d": {"name": "phi", "state": state, "reason": reason}}}


PLAIN = snapshot()
LOW = {"state": "paused", "code": "pause_battery", "used_by": []}
BOTH = [{"machine": "den", "state": "ready"}, {"machine": "attic", "state": "ready"}]
ONE = [BOTH[0], BOTH[1] | {"state": "lost"}]
PHI = {"model": "phi", "state": "ready", "machines": [{}], "replicas": BOTH}
CASES: list[tuple[Json, Json, list[str]]] = [
    (
        snapshot(model("ready")),
        snapshot(model("ready")) | {"beside": [PHI | {"state": "loading"}]},
        ["Loading phi on this machine."],
    ),
    (
        snapshot(model("ready")) | {"beside": [PHI | {"state": "loading"}]},
        snapshot(PHI) | {"beside": [model("ready")]},
        ["phi is ready after 0.0 seconds."],
    ),
    (
        snapshot(PHI) | {"beside": [model("ready")]},
        snapshot(model("ready")),
        ["phi was unloaded, and its memory is free again."],
    ),
    (
        snapshot(model("ready")) | {"beside": [PHI]},
        snapshot(model("ready")) | {"beside": [PHI | {"replicas": ONE}]},
        ["attic no longer runs phi. The other machines continue."],
    ),
    (snapshot(PHI), snapshot(model("loading")), ["Loading guide on 2 machines."]),
    (
        snapshot(model("ready", replicas=BOTH)),
        snapshot(model("ready", replicas=ONE)),
        ["attic no longer runs guide. The other machines continue."],
    ),
    (
        snapshot(model("ready", replicas=ONE)),
        snapshot(model("ready", replicas=BOTH)),
        ["attic is running guide again."],
    ),
    (snapshot(model("ready", replicas=ONE)), snapshot(model("ready", replicas=ONE)), []),
    (PLAIN, PLAIN, []),
    (PLAIN, snapshot(a=machine("attic", online=False)), ["attic joined the household."]),
    (PLAIN, snapshot(a=machine("attic")), ["attic joined the household.", "attic connected."]),
    (snapshot(a=machine("attic")), PLAIN, ["attic was removed from the household."]),
    (snapshot(a=machine("attic")), snapshot(a=machine("attic", online=False)), ["attic disconnected."]),
    (
        snapshot(a=machine("attic")),
        snapshot(a=machine("attic", online=False, reason="It sleeps.")),
        ["attic disconnected. It sleeps."],
    ),
    (snapshot(a=machine("attic")), snapshot(a=machine("loft")), ["attic was renamed to loft."]),
    (PLAIN, snapshot(model("loading")), ["Loading guide on 2 machines."]),
    (PLAIN, snapshot(model("loading", machines=[{}])), ["Loading guide on this machine."]),
    (snapshot(model("loading")), snapshot(model("ready", loaded_seconds=1.234)), ["guide is ready after 1.2 seconds."]),
    (snapshot(model("ready")), snapshot(model("ready")), []),
    (snapshot(model("ready")), PLAIN, ["guide was unloaded, and its memory is free again."]),
    (snapshot(model("loading")), PLAIN, []),  # the load itself says why
    (
        snapshot(model("ready")),
        snapshot(model("lost", reason="It is gone.")),
        ["guide stopped unexpectedly. It is gone."],
    ),
    (
        snapshot(model("ready")),
        snapshot(model("recovering", reason="attic is gone.")),
        ["A machine running guide has disconnected. attic is gone."],
    ),
    (snapshot(model("recovering")), snapshot(model("ready")), ["guide is answering again."]),
    (
        snapshot(lending=LOW | {"reason": "Paused: on battery (48%)."}),
        snapshot(lending=LOW | {"reason": "Paused: on battery (47%)."}),
        [],
    ),
    (loads("running"), loads("done"), ["phi was downloaded."]),
    (loads("checking"), loads("failed", "No."), ["The download of phi stopped. No."]),
    (PLAIN, loads("done"), []),  # of an earlier start
    (loads("done"), loads("done"), []),
    (lends("off"), lends("ready"), ["Lending is on."]),
    (lends("ready"), lends("off"), ["Lending is off."]),
    (lends("ready"), lends("paused", "On battery."), ["Lending is paused. On battery."]),
    (lends("paused", "A."), lends("paused", "B."), ["Lending is paused. B."]),
    (lends("ready"), lends("working", None, "den"), ["den is using memory on this machine."]),
    (
        lends("working", None, "den"),
        lends("draining", "On battery.", "den"),
        ["Lending will stop after the current answer. On battery."],
    ),
    (lends("working", None, "den"), lends("ready"), ["den released its memory on this machine."]),
]


@pytest.mark.parametrize(("before", "now", "sentences"), CASES)
def test_news(before: Json, now: Json, sentences: list[str]) -> None:
    assert [said(reason) for reason in events_between(partial_snapshot(before), partial_snapshot(now))] == sentences


def test_every_entry_has_a_kind() -> None:
    assert {kind_of(code) for code in SENTENCES if code.startswith("log_")} == {"machine", "model", "lending", "node"}
