"""The model of vectors on the command line: shown in status, unloaded by its name."""

from __future__ import annotations

from typing import Any

from tests.cli.answers import SNAPSHOT


def test_unload_of_one_and_of_both(poolhouse: Any, answering: Any) -> None:
    node = answering({("POST", "/unload"): {"unloaded": "guide", "also": ["bert"]}})
    assert poolhouse("unload").out == "guide is unloaded. bert is unloaded.\n"
    assert node.asked[-1][2] == {"model": None}
    node = answering({("POST", "/unload"): {"unloaded": None, "also": []}})
    assert poolhouse("unload", "bert").out == "bert was not loaded.\n"
    assert node.asked[-1][2] == {"model": "bert"}


def test_status_names_the_model_of_vectors(poolhouse: Any, answering: Any) -> None:
    stage = {"machine": "den-pc", "id": "1" * 64, "role": "whole", "first": 0, "last": 12}
    vectors = {"model": "bert", "state": "loading", "stages": [stage]}
    answering({("GET", "/status"): SNAPSHOT | {"embeds": vectors}})
    assert "bert · vectors for programs, loading" in poolhouse("status").out
    answering({("GET", "/status"): SNAPSHOT | {"embeds": {**vectors, "state": "ready"}}})
    said = poolhouse("status").out
    assert "bert · vectors for programs\n" in said
    judge = {**vectors, "model": "judge", "state": "ready", "ranks": True}
    answering({("GET", "/status"): SNAPSHOT | {"embeds": judge}})
    assert "judge · ranks texts for programs\n" in poolhouse("status").out
    assert "12 layers" in said or "1-12" in said or "1–12" in said
