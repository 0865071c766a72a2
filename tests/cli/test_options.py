"""Tests of the values that people type, and their meaning."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from app.cli.commands.demo_command import even_split
from app.cli.options import read_code, read_counts, read_duration, read_size
from app.cli.program import build
from app.core.errors import BadInput


@pytest.mark.parametrize(
    ("typed", "n_bytes"),
    [
        ("2GiB", 2 << 30),
        ("512 MiB", 512 << 20),
        ("1.5g", 3 << 29),
        ("64k", 64 << 10),
        ("0", 0),
        ("7B", 7),
        ("4294967296", 4 << 30),
    ],
)
def test_sizes(typed: str, n_bytes: int) -> None:
    assert read_size(typed) == n_bytes


@pytest.mark.parametrize("typed", ["", "GiB", "-1", "2GB", "1e9", "2 XiB", "２GiB ", "1", "1000"])
def test_what_is_no_size(typed: str) -> None:
    with pytest.raises(typer.BadParameter):
        read_size(typed)


@pytest.mark.parametrize(("typed", "seconds"), [("90s", 90), ("1.5h", 5400), ("2 d", 172800), ("0", 0)])
def test_times(typed: str, seconds: float) -> None:
    assert read_duration(typed) == seconds


@pytest.mark.parametrize(("typed", "why"), [("5", "5m or 5h"), ("soon", "no"), ("-1h", "not a time")])
def test_what_is_no_time(typed: str, why: str) -> None:
    with pytest.raises(typer.BadParameter, match=why):
        read_duration(typed)


def test_lists_and_codes() -> None:
    assert read_counts("5, 6,5") == [5, 6, 5]
    assert read_code(" 123-456 ") == "123456"
    for wrong in ("", "5,", "a", "-1,2"):
        with pytest.raises(typer.BadParameter):
            read_counts(wrong)
    for wrong in ("12345", "1234567", "12345x", "１２３４５６"):
        with pytest.raises(typer.BadParameter):
            read_code(wrong)


@pytest.mark.parametrize("machines", range(2, 8))
def test_an_even_split_uses_every_layer_and_leaves_no_run_empty(machines: int) -> None:
    for n_layers in range(3, machines + 1):
        with pytest.raises(BadInput):
            even_split(n_layers, machines)
    for n_layers in range(machines + 1, 50):
        is_even(even_split(n_layers, machines), n_layers, machines)


def is_even(split: list[int] | None, n_layers: int, machines: int) -> None:
    assert split is not None
    assert sum(split) == n_layers
    assert len(split) == machines + 1
    assert min(split) >= 1
    shares = [split[0] + split[-1], *split[1:-1]]
    assert max(shares) - min(shares) <= 1
    assert abs(split[0] - split[-1]) <= 1


def test_one_machine_splits_nothing() -> None:
    assert even_split(12, 1) is None


def test_every_command_takes_home_and_json() -> None:
    def lacking(name: str, command: Any) -> list[str]:
        if below := getattr(command, "commands", None):
            return [text for word, each in below.items() for text in lacking(f"{name} {word}", each)]
        options = {option for parameter in command.params for option in parameter.opts}
        return [f"{name} {option}" for option in ("--home", "--json") if option not in options]

    assert lacking("poolhouse", typer.main.get_command(build())) == []
