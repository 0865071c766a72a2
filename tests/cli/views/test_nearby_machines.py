"""Strangers on the command line: shown without harm, and paired with by name or by being the only one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.cli.commands import pair_command
from tests.cli.answers import MACHINES, SNAPSHOT
from tests.cli.fake_node import Failed, error

Json = dict[str, Any]
ATTIC: Json = {
    "id": "a" * 16, "name": "attic\x1b[31m pc\u202e", "addresses": ["192.168.1.21", "fd00::21"],
    "pairing_address": "192.168.1.21:4244", "protocol": 1,
}  # fmt: skip
OTHER: Json = {
    "id": "b" * 16, "name": None, "addresses": ["192.168.1.30"], "pairing_address": None, "protocol": 1,
}  # fmt: skip
PAIRED = {"machine": {"id": "a" * 64, "name": "attic-pc"}}


def snapshot(*strangers: Json, reason: str | None = None) -> Json:
    return {
        **SNAPSHOT,
        "strangers": {stranger["id"]: stranger for stranger in strangers},
        "discovery": {"on": True, "reason": reason},
    }


def test_status_shows_who_is_near_and_what_to_type(poolhouse: Any, answering: Any, home: Path) -> None:
    answering({("GET", "/status"): snapshot(OTHER, ATTIC)})
    lines = poolhouse("status").out.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("Nearby"))
    assert lines[at + 1].startswith("attic[31m pc  192.168.1.21  open for pairing")
    assert " ".join(lines[at + 2].split()) == "name unknown 192.168.1.30 not in this household"
    assert f"To join: poolhouse pair 'attic[31m pc' --home {home}" in lines
    assert not any(sign in "".join(lines) for sign in "\x1b\u202e")


def test_status_shows_what_a_machine_says_of_itself(poolhouse: Any, answering: Any) -> None:
    claims = ATTIC | {"system": "Linux", "device": "AMD\x1b EPYC"}
    answering({("GET", "/status"): snapshot(claims, OTHER)})
    lines = poolhouse("status").out.splitlines()
    assert "attic[31m pc claims to be: Linux, AMD EPYC" in lines


def test_status_says_why_nobody_is_found(poolhouse: Any, answering: Any) -> None:
    answering({("GET", "/status"): snapshot(reason="Multicast is blocked here.")})
    said = poolhouse("status")
    assert "Multicast is blocked here." in said.out
    assert "Nearby" not in said.out


def test_many_strangers_do_not_fill_the_screen(poolhouse: Any, answering: Any) -> None:
    many = [{**OTHER, "id": f"{n:016x}", "name": "x" * 500} for n in range(64)]
    answering({("GET", "/machines"): {"machines": list(MACHINES.values()), "strangers": many}})
    said = poolhouse("machines")
    assert "and 56 more" in said.out
    assert len(said.out.splitlines()) < 20
    assert max(len(line) for line in said.out.splitlines()) <= 80


def test_pair_without_address_takes_the_only_one(poolhouse: Any, answering: Any) -> None:
    node = answering({("GET", "/status"): snapshot(OTHER, ATTIC), ("POST", "/pairing/join"): PAIRED})
    said = poolhouse("pair", "--code", "123456")
    assert said.code == 0
    assert said.err == "Pairing with attic[31m pc at 192.168.1.21:4244.\n"
    assert node.asked[-1] == ("POST", "/pairing/join", {"address": "a" * 16, "code": "123456"})


def test_a_window_that_opened_just_now_is_waited_for(poolhouse: Any, answering: Any) -> None:
    heard = iter([snapshot(OTHER), snapshot(OTHER), snapshot(OTHER, ATTIC)])
    answering({("GET", "/status"): lambda _body: next(heard), ("POST", "/pairing/join"): PAIRED})
    assert poolhouse("pair", "--code", "123456").code == 0


def test_a_wrong_code_is_said_before_anybody_is_looked_for(poolhouse: Any, answering: Any) -> None:
    node = answering({("GET", "/status"): snapshot(OTHER)})
    assert "six digits" in poolhouse("pair", "--code", "12").err
    assert node.asked == []


@pytest.mark.parametrize(
    ("near", "code"), [((OTHER,), "pairing_nobody_near"), ((ATTIC, {**ATTIC, "id": "c" * 16}), "pairing_several_near")]
)
def test_pair_without_address_says_why_not(
    poolhouse: Any, answering: Any, near: tuple[Json, ...], code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair_command, "DISCOVERY_SECONDS", 0.3)
    answering({("GET", "/status"): snapshot(*near)})
    said = poolhouse("pair", "--code", "123456", "--json")
    assert (said.code, said.json["error"]["code"]) == (1, code)


def test_pair_with_a_name_is_for_the_node_to_understand(poolhouse: Any, answering: Any) -> None:
    refused = Failed(400, error("BadInput", "address_wrong", "No.", address="attic pc"))
    node = answering({("POST", "/pairing/join"): refused})
    assert poolhouse("pair", "attic pc", "--code", "123456").code == 1
    assert node.asked == [("POST", "/pairing/join", {"address": "attic pc", "code": "123456"})]
