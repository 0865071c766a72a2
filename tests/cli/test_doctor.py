"""The doctor: its checks with and without a node, and what a failed one says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.cli import checks
from app.cli.checks import Check
from app.core.policy import Battery
from app.machine.engines import Device, Engine

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


GPU = Device("CUDA0", "NVIDIA RTX 3060", "gpu", "CUDA", 8 << 30, 12 << 30)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (
            Engine(
                "llamacpp", "0.3", features=["AVX2", "FMA"], devices=[Device("CPU", kind="cpu")]
            ),
            [(True, "llamacpp 0.3 on A CPU with AVX2, FMA.")],
        ),
        (
            Engine("llamacpp", "0.3", devices=[GPU]),
            [
                (True, "llamacpp 0.3 on A CPU."),
                (True, "NVIDIA RTX 3060 by CUDA: 8.0 GiB of 12.0 GiB are free."),
            ],
        ),
        (
            Engine("llamacpp", missing="llama.cpp cannot be loaded: no libgomp"),
            [(False, "llamacpp: llama.cpp cannot be loaded: no libgomp.")],
        ),
        (
            Engine("llamacpp", missing="no answer within 30 seconds"),
            [(False, "llamacpp: no answer within 30 seconds.")],
        ),
    ],
)
async def test_what_a_worker_says_of_its_engines(
    monkeypatch: pytest.MonkeyPatch, found: Engine, expected: Any
) -> None:
    async def answer() -> list[Engine]:
        return [found]

    monkeypatch.setattr(checks, "probe_all", answer)
    monkeypatch.setattr(checks, "processor_name", lambda: "A CPU")
    assert [(check.ok, check.cause) for check in await ENGINES()] == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (None, []),
        (Battery(43, plugged=False), [(None, "On battery, 43 % left.")]),
        (Battery(43, plugged=True), [(True, "Plugged in.")]),
    ],
)
def test_power_is_told_where_there_is_a_battery(
    monkeypatch: pytest.MonkeyPatch, found: Battery | None, expected: Any
) -> None:
    monkeypatch.setattr(checks, "battery", lambda: found)
    assert [(check.ok, check.cause) for check in checks.power()] == expected


def test_too_little_room_is_a_problem_and_some_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    assert checks._enough(5, 1, 4) is True
    assert checks._enough(3, 1, 4) is None
    assert checks._enough(0, 1, 4) is False
