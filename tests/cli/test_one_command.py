"""Tests of options before a command."""

from __future__ import annotations

from typing import Any

import pytest

from app.cli.entry_point import with_options_after_command


@pytest.mark.parametrize(
    ("values", "read"),
    [
        (["status"], ["status"]),
        (["status", "--home", "X"], ["status", "--home", "X"]),
        (["--home", "X", "status"], ["status", "--home", "X"]),
        (["--home=X", "--json", "machines"], ["machines", "--home=X", "--json"]),
        (["--json", "ask", "--", "--home"], ["ask", "--json", "--", "--home"]),
        (["--home", "X"], ["--home", "X"]),  # the window
        (["--home"], ["--home"]),
        (["--home", "X", "--hidden"], ["--home", "X", "--hidden"]),
        (["--json", "--version"], ["--json", "--version"]),
        ([], []),
        (["--home", "X", "api", "on", "--json"], ["api", "on", "--home", "X", "--json"]),
        (["--home", "X", "api", "--help"], ["api", "--help"]),
        (["--home", "X", "api"], ["api"]),
        (["api", "--home", "X"], ["api"]),
        (["api", "--home", "X", "key", "anna"], ["api", "key", "--home", "X", "anna"]),
        (["--json", "api", "--home=X", "on"], ["api", "on", "--json", "--home=X"]),
        (["api", "on", "--home", "X"], ["api", "on", "--home", "X"]),
    ],
)
def test_options_before_the_command(values: list[str], read: list[str]) -> None:
    assert with_options_after_command(values, {"api"}) == read


def test_json_before_the_command(poolhouse: Any, answering: Any) -> None:
    answering({("GET", "/machines"): {"machines": []}})
    assert poolhouse("--json", "machines").json["machines"] == []


@pytest.mark.parametrize("group", ["api", "upstream", "chats"])
def test_a_home_alone_lists_what_the_command_can_do(poolhouse: Any, group: str) -> None:
    plain = poolhouse(group, at_home=False)
    assert f"Usage: poolhouse {group}" in plain.out + plain.err
    assert poolhouse(group) == plain


def test_home_before_a_command_of_two_words(poolhouse: Any, answering: Any) -> None:
    answering({("POST", "/api"): {"on": False, "listening": False}})
    assert poolhouse("--json", "api", "off").json["listening"] is False
