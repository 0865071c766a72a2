"""What may stand before a command."""

from __future__ import annotations

from typing import Any

import pytest

from app.cli.main import behind_the_command


@pytest.mark.parametrize(
    ("given", "read"),
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
    ],
)
def test_options_before_the_command(given: list[str], read: list[str]) -> None:
    assert behind_the_command(given) == read


def test_json_before_the_command(poolhouse: Any, answering: Any) -> None:
    answering({("GET", "/machines"): {"machines": []}})
    assert poolhouse("--json", "machines").json == {"machines": []}
