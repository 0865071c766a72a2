"""Tests of the choice between the best code for each processor and the code that all computers have in common."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from backends.contract import CPU_VARIANT, EXACT
from tests.node.pool import TestNode, paired


def variants(nodes: list[TestNode]) -> dict[str, set[str]]:
    """Return what the workers of each node were told to prefer."""
    return {node.name: {worker.environ()[CPU_VARIANT] for worker in node.workers()} for node in nodes}


def test_a_model_is_loaded_exactly_on_all_computers_or_on_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CPU_VARIANT, "")  # elsewhere, all tests are exact
    with paired(tmp_path, "den", "attic") as nodes:
        order = {"model": "guide", "split": [1, 6, 1], "measure": False}
        for exact in (True, False):
            loaded = nodes[0].work("/load", {**order, "exact": exact})["loaded"]
            assert loaded["exact"] is exact
            assert ("same processor instructions" in json.dumps(loaded["reasons"])) is exact
            used = variants(nodes)
            assert used["attic"] == {EXACT if exact else ""}
            assert (EXACT in used["den"]) is exact
        nodes[0].control("POST", "/settings", {"exact": True})  # for loads that leave it open
        assert nodes[0].control("GET", "/status")["exact"] is True
        assert nodes[0].work("/load", order)["loaded"]["exact"] is True
        assert variants(nodes)["attic"] == {EXACT}
