"""Pairing on the command line: the code, the wait, the end, and Ctrl-C."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.fake_node import Failed, Lines, error

WINDOW = {"code": "042137", "address": "192.168.1.20:4243", "seconds": 120, "tries": 3}
WAITING = {"progress": {"step": "waiting", "machine": None, "done": 1, "total": 120,
                        "unit": "seconds"}}  # fmt: skip
PAIRED = {"machine": {"id": "a" * 64, "name": "attic\x1b-pc"}}


def test_json_gives_the_code_at_once(poolhouse: Any, answering: Any) -> None:
    node = answering({("POST", "/pairing"): WINDOW})
    said = poolhouse("pair", "--open", "--lender", "--json")
    assert (said.code, said.err) == (0, "")
    assert said.json == {"code": "042137", "address": "192.168.1.20:4243", "seconds": 120}
    assert node.asked == [("POST", "/pairing", {"role": "lend"})]


@pytest.mark.parametrize(
    ("options", "role"),
    [
        (["--lender"], "lend"),
        (["--lender", "--host"], "use_and_lend"),
        ([], "use_and_lend"),
        (["--admin", "--host", "--lender"], "admin"),
        (["--guest"], "guest"),
        (["--role", "use-and-lend"], "use_and_lend"),
    ],
)
def test_pair_takes_the_words_of_roles(poolhouse: Any, answering: Any, options: list[str], role: str) -> None:
    node = answering({("POST", "/pairing"): WINDOW})
    assert poolhouse("pair", "--open", "--json", *options).code == 0
    assert node.asked == [("POST", "/pairing", {"role": role})]


@pytest.mark.parametrize("options", [["--host"], ["--admin"], ["--guest", "--host"]])
def test_roles_that_a_new_machine_cannot_have(poolhouse: Any, answering: Any, options: list[str]) -> None:
    node = answering({})
    said = poolhouse("pair", "--open", *options)
    assert (said.code, node.asked) == (2, [])
    assert "A new machine gets --lender, --host --lender, --host --lender --admin, or --guest." in said.err


def test_the_machine_that_joins_does_not_choose_its_roles(poolhouse: Any, answering: Any) -> None:
    node = answering({})
    said = poolhouse("pair", "10.0.0.2:4242", "--code", "123456", "--guest")
    assert (said.code, node.asked) == (2, [])
    assert "Roles can be chosen only with --open, on the machine that opens the pairing." in said.err


def test_json_with_wait_gives_a_second_line(poolhouse: Any, answering: Any) -> None:
    wait = Lines([WAITING, {"done": PAIRED}])
    answering({("POST", "/pairing"): WINDOW, ("GET", "/pairing/wait"): wait})
    said = poolhouse("pair", "--open", "--json", "--wait")
    first, second = map(json.loads, said.out.splitlines())
    assert (first["code"], second) == ("042137", PAIRED)


def test_without_a_terminal_the_code_is_said_and_waited_for(poolhouse: Any, answering: Any) -> None:
    wait = Lines([WAITING, {"done": PAIRED}])
    node = answering({("POST", "/pairing"): WINDOW, ("GET", "/pairing/wait"): wait})
    said = poolhouse("pair", "--open")
    assert said.code == 0
    assert said.err == "Code 042137 at 192.168.1.20:4243, valid for 120 seconds.\n"
    assert said.out.startswith("Paired with attic-pc. In theory, paired machines could")
    assert node.asked[0] == ("POST", "/pairing", {"role": "use_and_lend"})


def test_of_a_guest_it_is_said_what_a_guest_may_do(poolhouse: Any, answering: Any) -> None:
    wait = Lines([WAITING, {"done": PAIRED}])
    answering({("POST", "/pairing"): WINDOW, ("GET", "/pairing/wait"): wait})
    said = " ".join(poolhouse("pair", "--open", "--guest").out.split())
    assert said.startswith("Paired with attic-pc. As a guest, it may ask your hosts' models,")
    assert "reconstruct what is typed" not in said


def test_a_window_that_closed_says_why(poolhouse: Any, answering: Any) -> None:
    sent = error("Refused", "x_unknown", "Someone entered a wrong code three times.")
    wait = Lines([{"error": sent}])
    answering({("POST", "/pairing"): WINDOW, ("GET", "/pairing/wait"): wait})
    said = poolhouse("pair", "--open")
    assert said.code == 1
    assert said.err.splitlines()[-1] == "Someone entered a wrong code three times."


def test_joining(poolhouse: Any, answering: Any) -> None:
    node = answering({("POST", "/pairing/join"): PAIRED})
    said = poolhouse("pair", "192.168.1.20:4243", "--code", "042 137")
    assert said.code == 0
    assert said.out.startswith("Paired with attic-pc. ")
    assert node.asked[0][2] == {"address": "192.168.1.20:4243", "code": "042137"}


def test_who_joins_where_its_name_is_taken_hears_its_new_one(poolhouse: Any, answering: Any) -> None:
    answering({("POST", "/pairing/join"): PAIRED | {"called": "den-pc 2"}})
    said = " ".join(poolhouse("pair", "192.168.1.20:4243", "--code", "042137").out.split())
    assert "already has this machine's name, so this one is now called den-pc 2." in said


def test_who_joins_as_a_guest_hears_what_a_guest_may_do(poolhouse: Any, answering: Any) -> None:
    answering({("POST", "/pairing/join"): PAIRED | {"guest": True}})
    said = " ".join(poolhouse("pair", "192.168.1.20:4243", "--code", "042137").out.split())
    assert said.startswith("Paired with attic-pc. This machine is a guest there: the hosts answer")


def test_a_refused_window(poolhouse: Any, answering: Any) -> None:
    sent = error("Busy", "x_unknown", "A pairing window is open already.")
    answering({("POST", "/pairing"): Failed(429, sent)})
    said = poolhouse("pair", "--open", "--json")
    assert (said.code, said.json["error"]["kind"]) == (1, "Busy")


def test_an_open_window_is_called_off(poolhouse: Any, answering: Any) -> None:
    answering({("DELETE", "/pairing"): {}})
    assert poolhouse("pair", "--close").out == "Pairing is closed.\n"
    assert poolhouse("pair", "--close", "--open").code == 2


def test_a_removed_machine_hears_that_it_must_be_reset_first(poolhouse: Any, answering: Any) -> None:
    removed = {"reason": "Removed.", "reason_facts": {"code": "removed_needs_reset", "facts": {}}}
    node = answering({("GET", "/status"): {"node": removed}})
    said = poolhouse("pair", "--code", "042137")
    assert said.code == 1
    assert said.err.startswith("This machine was removed from the household. Stop its node")
    assert [path for _, path, _ in node.asked] == ["/status"]  # it does not wait for a machine nearby
