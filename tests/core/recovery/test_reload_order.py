"""A placement is ordered again as it lies: its machines, its counts, and how it is kept and sent."""

from __future__ import annotations

from typing import Any

import pytest

from app.core.bench import has_same_layers, is_still_loaded, load_request_on, load_requests_like

Json = dict[str, Any]


def stage(machine: str, first: int, last: int) -> Json:
    return {"id": machine, "machine": f"{machine}-pc", "first": first, "last": last}


LOADED: Json = {
    "model": "m", "context": 512, "users": 2, "kv": "q8_0", "number": "q8", "shape": "split",
    "state": "ready", "stages": [stage("d", 0, 1), stage("a", 1, 3), stage("d", 3, 4)],
}  # fmt: skip
KEPT: Json = {"model": "m", "context": 512, "users": 2, "kv": "q8_0", "number": "q8", "measure": False}


def test_a_split_is_the_planner_s_own_or_told_by_its_counts() -> None:
    planned, result = load_requests_like(LOADED, ["d", "a", "k"])
    assert planned == KEPT | {"without": ["k"], "shape": "split"}
    assert result == KEPT | {"without": ["k"], "split": [1, 2, 1], "by_program": True}


def test_a_split_that_a_person_chose_stays_theirs() -> None:
    _, result = load_requests_like(LOADED | {"why": [{"code": "plan_forced"}]}, ["d", "a", "k"])
    assert "by_program" not in result


def test_of_a_split_beside_whole_ones_its_counts_are_told() -> None:
    stages = [*LOADED["stages"], stage("k", 0, 4)]
    planned, result = load_requests_like(LOADED | {"shape": "replicas", "stages": stages}, ["d", "a", "k"])
    assert planned == KEPT | {"without": [], "shape": "replicas"}
    assert result == planned | {"split": [1, 2, 1], "by_program": True}


@pytest.mark.parametrize(("shape", "word"), [("one machine", "one"), ("replicas", "replicas")])
def test_whole_models_have_no_counts(shape: str, word: str) -> None:
    loaded = LOADED | {"shape": shape, "stages": [stage("d", 0, 4)]}
    assert load_requests_like(loaded, ["d", "a"]) == (KEPT | {"without": ["a"], "shape": word},)


def test_what_a_node_does_not_tell_is_not_asked_for() -> None:
    loaded = {"model": "m", "context": None, "shape": "new", "stages": [stage("d", 0, 4)]}
    assert load_requests_like(loaded, ["d"]) == ({"model": "m", "measure": False, "without": []},)


def test_other_machines_may_be_named() -> None:
    assert load_request_on(LOADED, ["d", "a", "k"], ["d"]) == KEPT | {"without": ["a", "k"]}


def test_the_same_are_the_same_layers_on_the_same_machines() -> None:
    assert has_same_layers(LOADED, {"stages": LOADED["stages"]})
    assert not has_same_layers(LOADED, {"stages": LOADED["stages"][:1]})
    swapped = [stage("d", 0, 1), stage("k", 1, 3), stage("d", 3, 4)]
    assert not has_same_layers(LOADED, {"stages": swapped})


@pytest.mark.parametrize(
    "now",
    [
        None,
        LOADED | {"state": "loading"},
        LOADED | {"kv": "f16"},
        LOADED | {"context": 36},
        LOADED | {"stages": LOADED["stages"][:1]},
    ],
)
def test_what_changed_is_no_longer_as_it_was(now: Json | None) -> None:
    assert not is_still_loaded(LOADED, now)
    assert is_still_loaded(LOADED, LOADED | {"forecast": None})
