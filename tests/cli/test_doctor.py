"""The doctor: its checks with and without a node, and what a failed one says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.core.check import Check
from app.machine import checks

FINE = Check("Engine", True, "llama.cpp.")


@pytest.fixture(autouse=True)
def no_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading an engine takes seconds: its own test does it."""

    async def fine() -> list[Check]:
        return [FINE]

    monkeypatch.setattr(checks, "engines", fine)


def test_it_works_when_no_node_runs(poolhouse: Any, home: Path) -> None:
    said = poolhouse("doctor")
    assert said.code == 0, said.out
    assert "The key is kept in a file only you can read." in said.out
    assert "note  Node       There is no folder" in said.out
    assert not home.exists()
    known = poolhouse("doctor", "--json").json
    assert known["ok"]
    assert [check["name"] for check in known["checks"]] == [
        "Poolhouse", "Engine", "Disk", "Memory", "Home", "Key", "Node"
    ]  # fmt: skip


def test_a_running_node_adds_its_own_checks(poolhouse: Any, answering: Any) -> None:
    lost = {"name": "Link", "ok": False, "cause": "attic-pc does not answer.", "cure": "Wake it."}
    answering({("GET", "/doctor"): {"checks": [lost]}})
    said = poolhouse("doctor")
    assert said.code == 1
    line = next(line for line in said.out.splitlines() if "Link" in line)
    assert line == "problem  Link       attic-pc does not answer. Wake it."


def test_another_version_is_a_problem(poolhouse: Any, answering: Any) -> None:
    answering({}, version="9.9")
    known = poolhouse("doctor", "--json").json
    assert known["checks"][-1]["cause"].startswith("The node runs 9.9")
    assert not known["ok"]
