"""`poolhouse card …`, with a node that answers."""

from __future__ import annotations

from typing import Any

import pytest

GIB = 1 << 30
BIG = {
    "key": "0000:01:00.0",
    "label": "Big card",
    "api": "CUDA",
    "total_bytes": 12 * GIB,
    "on": True,
    "computes": True,
    "celsius": 61.4,
    "busy_percent": 35.0,
    "others_percent": 3.0,
}
SMALL = {
    "key": "0000:00:02.0",
    "label": "Small card",
    "api": "Vulkan",
    "total_bytes": 2 * GIB,
    "is_integrated": True,
    "on": False,
    "reason": "It is switched off.",
}
CARDS = {"cards": [BIG, SMALL], "memory_percent": 80, "card_only": True}
LENDING = {
    "lending": {"state": "paused", "reason": "Paused: the graphics card is at 86 °C."},
    "rules": {"gpu": True, "card_celsius": 85},
    "readings": {"gpu_percent": 3.0, "card_c": 86.0},
}


def test_the_list(poolhouse: Any, answering: Any) -> None:
    answering({("GET", "/cards"): CARDS, ("GET", "/lending"): LENDING})
    said = poolhouse("card", "list")
    assert said.code == 0, said.err
    assert said.out.splitlines() == [
        "Big card (CUDA, 12.0 GiB) is in use: 61 °C, 35% busy.",
        "Small card (Vulkan, 2.0 GiB, shared with the processor) is not used. It is",
        "switched off.",
        "All models together may use at most 80% of each card's memory.",
        "Other machines may use only the graphics card. If no card can be used, nothing",
        "is lent.",
        "Lending pauses while another program uses the card (now: 3%).",
        "Lending pauses when the card reaches 85 °C.",
        "Paused: the graphics card is at 86 °C.",
    ]


def test_what_is_not_known_is_said(poolhouse: Any, answering: Any) -> None:
    big = {**BIG, "celsius": None, "busy_percent": None}
    lending = {"rules": {"gpu": True}, "readings": {}}
    answering({("GET", "/cards"): {"cards": [big]}, ("GET", "/lending"): lending})
    out = poolhouse("card", "list").out
    assert "is in use: temperature unknown, use unknown." in out
    assert "uses the card (now: unknown)." in out
    assert "at any temperature" in out
    assert "may use all of each card's memory" in out
    answering({("GET", "/cards"): {}, ("GET", "/lending"): {"rules": {"gpu": False}}})
    out = poolhouse("card", "list").out
    assert "No graphics card can be used because no engine pack detects one." in out
    assert "continues while another program uses the card" in out


@pytest.mark.parametrize(
    ("command", "order"),
    [
        (("off", "big"), {"off": ["0000:00:02.0", "0000:01:00.0"]}),
        (("off", "0000:01:00.0"), {"off": ["0000:00:02.0", "0000:01:00.0"]}),
        (("on", "small"), {"off": []}),
        (("on", "big"), {"off": ["0000:00:02.0"]}),
        (("limit", "80%"), {"memory_percent": 80}),
        (("limit", "off"), {"memory_percent": 100}),
        (("only", "on"), {"card_only": True}),
        (("only", "off"), {"card_only": False}),
    ],
)
def test_what_each_command_asks(poolhouse: Any, answering: Any, command: tuple[str, ...], order: Any) -> None:
    node = answering({("GET", "/cards"): CARDS, ("POST", "/cards"): CARDS})
    said = poolhouse("card", *command)
    assert said.code == 0, said.err
    assert node.asked[-1] == ("POST", "/cards", order)


def test_a_card_that_is_switched_off_says_when_that_applies(poolhouse: Any, answering: Any) -> None:
    answering({("GET", "/cards"): {"cards": [BIG]}, ("POST", "/cards"): {"cards": [BIG]}})
    out = " ".join(poolhouse("card", "off").out.split())
    assert "Big card is switched off. Models that you have loaded stay on it until they are loaded again." in out


@pytest.mark.parametrize("command", [("off",), ("off", "card"), ("on", "another")])
def test_a_name_that_is_not_clear_changes_nothing(poolhouse: Any, answering: Any, command: tuple[str, ...]) -> None:
    node = answering({("GET", "/cards"): CARDS})
    said = poolhouse("card", *command)
    assert said.code != 0
    assert "Big card (0000:01:00.0), Small card (0000:00:02.0)" in " ".join(said.err.split())
    assert [path for method, path, _ in node.asked if method == "POST"] == []


@pytest.mark.parametrize("typed", ["9", "101%", "much", "-5", "80.5"])
def test_a_share_that_is_none(poolhouse: Any, answering: Any, typed: str) -> None:
    node = answering({})
    assert poolhouse("card", "limit", "--", typed).code == 2
    assert node.asked == []
