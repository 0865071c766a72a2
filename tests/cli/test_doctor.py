"""The doctor: its checks with and without a node, and what a failed one says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.cli import checks
from app.cli.checks import Check

ENGINES = checks.engines
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
    assert "note  Node       No Poolhouse node runs for" in said.out
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


PROBED = {"engines": [
    {"name": "llamacpp", "version": "0.3", "devices": [{"name": "CPU", "description": "A CPU"}]},
    {"name": "llamacpp", "missing": "llama.cpp cannot be loaded: no libgomp"},
    {"name": "fake", "version": "1", "devices": []},
]}  # fmt: skip


@pytest.mark.parametrize(
    ("child", "expected"),
    [
        (
            (0, json.dumps(PROBED), ""),
            [
                (True, "It starts."),
                (True, "llamacpp 0.3 on A CPU."),
                (False, "llama.cpp cannot be loaded: no libgomp."),
            ],
        ),
        (
            (1, "", "Traceback\nMemoryError: no."),
            [(False, "A worker does not start: MemoryError: no.")],
        ),
        ((0, "hello", ""), [(False, "A worker does not start: its answer was not understood.")]),
        ((-11, "", ""), [(False, "A worker does not start: it said nothing.")]),
    ],
)
async def test_what_a_worker_says_of_its_engines(
    monkeypatch: pytest.MonkeyPatch, child: Any, expected: Any
) -> None:
    async def answer(*arguments: str) -> Any:
        assert arguments == ("-m", "backends", "probe")
        return child

    monkeypatch.setattr(checks, "_child", answer)
    assert [(check.ok, check.cause) for check in await ENGINES()] == expected


def test_too_little_room_is_a_problem_and_some_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    assert checks._enough(5, 1, 4) is True
    assert checks._enough(3, 1, 4) is None
    assert checks._enough(0, 1, 4) is False


async def test_a_child_that_fails_says_its_last_line() -> None:
    code, _, err = await checks._child("-c", "import sys; sys.exit('no\\nlibgomp is missing.')")
    assert code == 1
    assert checks._last(err) == "libgomp is missing"
