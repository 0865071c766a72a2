"""The doctor: its checks with and without a node, and what a failed one says."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from app.core.diagnostics import Check
from app.core.errors import Reason
from app.machine import checks
from app.machine.keyring_store import FileStore
from app.machine.paths import Home
from app.network import identity
from tests.findings import finding

FINE = finding("Engine", True, "llama.cpp.")


@pytest.fixture(autouse=True)
def no_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading an engine takes seconds: its own test does it."""

    async def fine() -> list[Check]:
        return [FINE]

    monkeypatch.setattr(checks, "engines", fine)


def test_it_works_when_no_node_runs(poolhouse: Any, home: Path) -> None:
    home.mkdir()
    said = poolhouse("doctor")
    assert said.code == 0, said.out
    assert "note  Node       No Poolhouse node is running for" in said.out
    assert not list(home.iterdir())
    known = poolhouse("doctor", "--json").json
    assert known["ok"]
    assert [check["name"] for check in known["checks"]] == [
        "Poolhouse", "Node", "Engine", "Sandbox", "Disk", "Memory", "Home", "Key"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("file", "name", "sentence"),
    [
        ("settings.json", "Settings", "Delete the file to start with default settings."),
        ("identity/identity.pem", "Identity", "is damaged. Restore a backup, "),
        ("identity/passphrase", "Identity", "is missing or wrong. Restore a backup, "),
        ("household/household.json", "Household", "is damaged. Restore a backup, "),
    ],
)
def test_what_keeps_a_node_from_starting_is_found_without_one(
    poolhouse: Any, home: Path, monkeypatch: pytest.MonkeyPatch, file: str, name: str, sentence: str
) -> None:
    monkeypatch.setenv("POOLHOUSE_KEYSTORE", "file")
    there = Home.at(home).create()
    asyncio.run(identity.load_or_create(there, FileStore(there.identity / "passphrase")))
    assert poolhouse("doctor", "--json").json["ok"]
    (home / file).write_text("{")
    said = poolhouse("doctor", "--json")
    (result,) = [check for check in said.json["checks"] if check["ok"] is False]
    assert said.code == 1
    assert result["name"] == name
    assert str(home / file) in result["cause"]
    assert sentence in result["cause"]
    assert (home / file).read_text() == "{"


def test_a_secret_that_cannot_be_read_is_told_once(poolhouse: Any, home: Path) -> None:
    there = Home.at(home).create()
    asyncio.run(identity.load_or_create(there, FileStore(there.identity / "passphrase")))
    (there.identity / "passphrase").write_bytes(b"\xff")
    known = poolhouse("doctor", "--json").json["checks"]
    assert [check["name"] for check in known if check["ok"] is False] == ["Key"]


def test_a_running_node_adds_its_own_checks(poolhouse: Any, answering: Any) -> None:
    lost = {
        "name": "Link",
        "ok": False,
        "cause_facts": Reason("peer_stopped", {"name": "attic-pc"}).to_json(),
        "cure_facts": Reason("cure_model_lost").to_json(),
    }
    answering({("GET", "/doctor"): {"checks": [lost]}})
    said = poolhouse("doctor")
    assert said.code == 1
    line = next(line for line in said.out.splitlines() if "Link" in line)
    assert line == "problem  Link       attic-pc stopped responding. Load the model again."


def test_another_version_is_a_problem(poolhouse: Any, answering: Any) -> None:
    answering({}, version="9.9")
    known = poolhouse("doctor", "--json").json
    assert known["checks"][1]["cause"].startswith("The node is running Poolhouse 9.9")
    assert not known["ok"]
