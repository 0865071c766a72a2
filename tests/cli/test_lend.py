"""`poolhouse lend`, `rename`, `roles` and `remove`: what is asked of the node, and what is read."""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path
from typing import Any

import pytest

from app.api.snapshot import LendingState
from app.cli.commands import lend_command
from app.cli.output import Output
from app.decoding import convert
from tests.cli.fake_node import Failed, error, has_all_of

Json = dict[str, Any]
GIB = 1 << 30
RULES: Json = {
    "memory_bytes": 4 * GIB, "devices": [], "idle_s": 0.0, "hours": "always", "battery_percent": 50,
    "programs": ["game.exe"], "gpu": True, "drain_s": 30.0,
}  # fmt: skip
LENDING: Json = {
    "state": "working", "reason": None, "used_by": ["den-pc"], "lent_bytes": 4 * GIB,
    "used_bytes": GIB, "resumes_in_s": None, "gives_back_in_s": None,
}  # fmt: skip
READINGS: Json = {"idle_s": None, "battery": None, "programs": [], "gpu_percent": None}
SHOWN: Json = {
    "lending": LENDING, "rules": RULES, "most_bytes": 4 * GIB, "readings": READINGS
}  # fmt: skip


def test_lend_shows_each_rule_with_its_reading(poolhouse: Any, answering: Any) -> None:
    readings = {"idle_s": 12.0, "battery": {"percent": 48.3, "plugged": False},
                "programs": ["game"], "gpu_percent": 3.0, "hottest_c": 61.2,
                "full_screen": False, "network": "vpn", "card_c": 66.6}  # fmt: skip
    rules = {
        **RULES,
        "idle_s": 300.0,
        "hours": "mon-fri 18:00-08:00",
        "threads": 4,
        "link_mbit": 1000,
        "hot": True,
        "screen": True,
        "network": True,
        "card_celsius": 85,
    }
    answering({("GET", "/lending"): {**SHOWN, "rules": rules, "readings": readings}})
    assert poolhouse("lend").out == TABLE


TABLE = """\
Lending 1.0 GiB to den-pc.

Memory     at most 4.0 GiB for others
Devices    all
Idle       lends after being idle for 5 min (now: 12 s)
Hours      mon-fri 18:00-08:00
Battery    on battery, lends only above 50% (now: 48%, on battery)
Programs   pauses while one of these runs: game.exe (running: game)
Graphics   pauses while another program keeps it busy (now: 3%)
Card heat  pauses from 85 °C of a card that computes (now: 67 °C)
Heat       pauses while the processor is above 95 °C (now: 61 °C)
Screen     pauses while a program is full screen (now: no)
Network    pauses on a VPN or a metered network (now: VPN)
Link       uses at most 1,000 Mbit/s of the network each way
Threads    uses at most 4 threads of the processor
Answers    may take 30 s to finish before a pause
"""


def test_memory_is_told_with_what_the_own_model_takes(poolhouse: Any, answering: Any) -> None:
    lending = {**LENDING, "own_bytes": GIB}
    answering({("GET", "/lending"): {**SHOWN, "lending": lending, "own_most_bytes": 8 * GIB}})
    assert poolhouse("lend").out.splitlines()[2:4] == [
        "Memory    at most 4.0 GiB for others",
        "Own use   your own models may use 8.0 GiB here; yours use 1.0 GiB now",
    ]
    for limit, why in ((0, "no more is free"), (2 * GIB, "the limit leaves no more")):
        fewer = {**SHOWN, "lending": {**lending, "lent_bytes": GIB}, "rules": {**RULES, "limit_bytes": limit}}
        answering({("GET", "/lending"): fewer})
        text = f"Memory    at most 4.0 GiB for others; 1.0 GiB now, as {why}"
        assert poolhouse("lend").out.splitlines()[2] == text
    off = {**RULES, "on": False}
    answering({("GET", "/lending"): {**SHOWN, "lending": lending, "rules": off}})
    assert poolhouse("lend").out.splitlines()[2] == "Memory    nothing"


def test_without_choices_and_readings(poolhouse: Any, answering: Any) -> None:
    rules = {**RULES, "memory_bytes": None, "idle_s": 60.0, "battery_percent": 0, "programs": [],
             "gpu": False, "devices": ["cpu"]}  # fmt: skip
    answering({("GET", "/lending"): {**SHOWN, "rules": rules}})
    lines = poolhouse("lend").out.splitlines()
    assert lines[2:9] == [
        "Memory    at most 4.0 GiB (half of the memory that was free at start) for others",
        "Devices   cpu",
        "Idle      lends after being idle for 1 min (not reported by this system)",
        "Hours     always",
        "Battery   lends at any battery level",
        "Programs  none pauses lending",
        "Graphics  lends even while another program keeps it busy",
    ]


def test_a_limit_below_half_of_the_memory_is_not_called_half(poolhouse: Any, answering: Any) -> None:
    rules = {**RULES, "memory_bytes": None, "limit_bytes": 4 * GIB}
    answering({("GET", "/lending"): {**SHOWN, "rules": rules}})
    assert poolhouse("lend").out.splitlines()[2] == "Memory    at most 4.0 GiB (the limit for all models) for others"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"state": "ready"}, "Ready: others may use 4.0 GiB."),
        (
            {"state": "draining", "reason": "Paused by the owner.", "gives_back_in_s": 12},
            "Finishing answers for den-pc, which takes at most 12 s. Paused by the owner.",
        ),
        (
            {"state": "paused", "reason": "Paused by the owner.", "resumes_in_s": 3600},
            "Paused by the owner until 18:30.",
        ),
        (
            {"state": "paused", "reason": "Paused by the owner.", "resumes_in_s": 599},
            "Paused by the owner until 17:39:59.",
        ),
        (
            {"state": "paused", "reason": "Paused by the owner.", "resumes_in_s": 600},
            "Paused by the owner until 17:40.",
        ),
        (
            {"state": "draining", "reason": "Paused by the owner.", "gives_back_in_s": 12, "resumes_in_s": 3600},
            "Finishing answers for den-pc, which takes at most 12 s. Paused by the owner until 18:30.",
        ),
        ({"state": "lending"}, "Lending 1.0 GiB to den-pc."),
        ({"state": "paused", "reason": "Paused: running on battery."}, "Paused: running on battery."),
        ({"state": "off", "reason": None}, "Lends nothing."),
    ],
)
def test_the_headline(changes: Json, sentence: str) -> None:
    shown = convert({**SHOWN, "lending": {**LENDING, **changes}}, LendingState)
    now = dt.datetime(2026, 11, 21, 17, 30, tzinfo=dt.UTC)
    assert lend_command.headline(shown, now) == sentence


@pytest.mark.parametrize(
    ("typed", "body"),
    [
        (("--memory", "off"), {"memory_bytes": 0}),
        (("--card-hot", "85 °C"), {"card_celsius": 85}),
        (("--card-hot", "off"), {"card_celsius": 0}),
        (("--memory", "half"), {"memory_bytes": None}),
        (("--memory", "1.5GiB", "--idle", "5m"), {"memory_bytes": 3 * GIB // 2, "idle_s": 300.0}),
        (("--limit", "4GiB"), {"limit_bytes": 4 * GIB}),
        (("--limit", "off"), {"limit_bytes": 0}),
        (("--schedule", "sat"), {"hours": "sat"}),
        (("--battery", "30", "--drain", "1m"), {"battery_percent": 30, "drain_s": 60.0}),
        (("--not-with", "b", "--not-with", "GAME.exe"), {"programs": ["game.exe", "b"]}),
        (("--with", "Game.EXE"), {"programs": []}),
        (("--device", "cpu"), {"devices": ["cpu"]}),
        (("--device", "all"), {"devices": []}),
        (("--despite-gpu",), {"gpu": False}),
        (("--threads", "4", "--despite-heat"), {"threads": 4, "hot": False}),
        (("--hot", "80", "--despite-full-screen"), {"hot_celsius": 80, "screen": False}),
        (("--pause-on-metered",), {"network": True}),
        (("--pause-for-gpu",), {"gpu": True}),
        (("--link", "50"), {"link_mbit": 50}),
        (("--link", " 100 Mbit/s"), {"link_mbit": 100}),
        (("--link", "OFF"), {"link_mbit": 0}),
    ],
)
def test_rules_are_asked_for(poolhouse: Any, answering: Any, typed: tuple[str, ...], body: Json) -> None:
    node = answering({("GET", "/lending"): SHOWN, ("POST", "/lending"): SHOWN})
    assert has_all_of(poolhouse("lend", *typed, "--json").json, SHOWN)
    assert node.asked == [("GET", "/lending", {}), ("POST", "/lending", body)]


@pytest.mark.parametrize(
    ("typed", "path", "body"),
    [
        (("--pause",), "/lending/pause", {}),
        (("--pause", "1h"), "/lending/pause", {"seconds": 3600.0}),
        (("--stop",), "/lending/pause", {"at_once": True}),
        (("--resume",), "/lending/resume", {}),
    ],
)
def test_pauses(poolhouse: Any, answering: Any, typed: tuple[str, ...], path: str, body: Json) -> None:
    node = answering({("GET", "/lending"): SHOWN, ("POST", path): SHOWN})
    assert poolhouse("lend", *typed).code == 0
    assert node.asked[-1] == ("POST", path, body)


@pytest.mark.parametrize(
    "typed",
    [("1h",), ("--pause", "--resume"), ("--pause", "soon"), ("--idle", "5 weeks"),
     ("--battery", "101"), ("--memory", "much"), ("--stop", "1h"), ("--link", "fast"),
     ("--card-hot", "49"), ("--card-hot", "warm"), ("--link", "-5"), ("--link", "1" * 7)],
)  # fmt: skip
def test_what_makes_no_sense_is_not_asked(poolhouse: Any, answering: Any, typed: tuple[str, ...]) -> None:
    node = answering({})
    said = poolhouse("lend", *typed)
    assert (said.code, said.out) == (2, "")
    assert node.asked == []


def test_a_limit_that_is_no_whole_number_is_said_so(poolhouse: Any, answering: Any) -> None:
    answering({})
    said = " ".join(poolhouse("lend", "--link", "0.5").err.split())
    assert said == "'0.5' is not a whole number of Mbit/s below a million. Write it like 50, or off."


def test_a_program_that_was_never_named(poolhouse: Any, answering: Any) -> None:
    answering({("GET", "/lending"): SHOWN})
    said = poolhouse("lend", "--with", "other")
    assert said.code == 1
    assert said.err == "other is not one of the programs that pause lending: game.exe.\n"


def test_rename_and_roles(poolhouse: Any, answering: Any) -> None:
    node = answering({
        ("POST", "/machines/a%2Fb/name"): {"renamed": {"id": "x", "name": "loft", "was": "a/b"}},
        ("POST", "/machines/loft/roles"): {"machine": {"id": "x", "name": "loft", "roles": ["host", "lender"]}},
    })  # fmt: skip
    assert poolhouse("rename", "a/b", "loft").out == "a/b is now called loft.\n"
    assert poolhouse("roles", "loft", "--lender", "--host").out == "Roles of loft: host, lender.\n"
    assert [body for _, _, body in node.asked] == [{"name": "loft"}, {"roles": ["host", "lender"]}]
    assert poolhouse("roles", "loft", "--guest").code == 0
    assert node.asked[-1][2] == {"roles": ["guest"]}
    answering({("POST", "/machines/loft/roles"): {"machine": {"id": "x", "name": "loft", "roles": ["guest"]}}})
    output = poolhouse("roles", "loft", "--guest").out
    assert output.startswith("Roles of loft: guest. Its memory is free again.")
    assert "Models that it loaded on other machines are unloaded." in " ".join(output.split())
    assert poolhouse("roles", "loft").code == 2


def test_a_machine_that_gave_wrong_numbers_is_used_again(poolhouse: Any, answering: Any) -> None:
    result = {"used_again": {"id": "x", "name": "attic"}}
    node = answering({("POST", "/machines/attic/use-again"): result})
    assert poolhouse("use-again", "attic").out == "attic is used again.\n"
    assert poolhouse("use-again", "attic", "--json").json == result
    assert [path for _, path, _ in node.asked] == ["/machines/attic/use-again"] * 2


@pytest.mark.parametrize("command", [("remove", "attic-pc"), ("rm", "small"), ("reset",), ("erase",)])
def test_where_nobody_can_be_asked_nothing_is_removed(poolhouse: Any, answering: Any, command: tuple[str, ...]) -> None:
    there = {
        ("GET", "/machines/attic-pc"): {"machine": {"id": "x", "name": "attic-pc"}},
        ("GET", "/models/small"): {"model": {"name": "small"}},
    }
    node = answering(there)
    said = poolhouse(*command)
    assert (said.code, said.out) == (1, "")
    if command[0] not in ("reset", "erase"):  # refused first while the node runs
        assert said.err == ("Cannot ask for confirmation (no terminal, or --json). Add --yes to confirm.\n")
    assert all(method == "GET" for method, _, _ in node.asked)


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (("remove", "attic"), "There is no machine called attic."),
        (("rm", "nothing"), "There is no model called nothing. Available: guide."),
        (("rm", "guide"), "guide is part of the app and cannot be removed."),
    ],
)
def test_what_is_not_there_needs_no_consent(
    poolhouse: Any, answering: Any, command: tuple[str, ...], sentence: str
) -> None:
    """The same holds for what stays in any case: --yes would only be answered with that."""
    no_machine = Failed(404, error("BadInput", "said_by_node", sentence, sentence=sentence))
    guide = {"model": {"name": "guide", "builtin": True}}
    node = answering({
        ("GET", "/machines/attic"): no_machine, ("GET", "/models/nothing"): no_machine,
        ("GET", "/models/guide"): guide,
    })  # fmt: skip
    said = poolhouse(*command)
    assert (said.code, said.out, said.err) == (1, "", sentence + "\n")
    assert {method for method, _, _ in node.asked} == {"GET"}


@pytest.mark.parametrize("command", ["reset", "erase"])
def test_a_folder_that_is_not_there_needs_no_consent(poolhouse: Any, tmp_path: Path, command: str) -> None:
    said = poolhouse(command, "--home", str(tmp_path / "none"), at_home=False)
    assert said.code == 1
    assert "--yes" not in said.err
    assert "none" in said.err
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(("typed", "requested"), [("y\n", 1), ("n\n", 0), ("", 0)])
def test_a_person_is_asked(
    poolhouse: Any, answering: Any, monkeypatch: pytest.MonkeyPatch, typed: str, requested: int
) -> None:
    types(monkeypatch, typed)
    node = answering({
        ("GET", "/models/small"): {"model": {"name": "small"}},
        ("DELETE", "/models/small"): {"removed": "small", "freed_bytes": 0},
    })  # fmt: skip
    assert poolhouse("rm", "small").code == (0 if requested else 130)
    assert [method for method, _, _ in node.asked] == ["GET", "DELETE"][: 1 + requested]


def types(monkeypatch: pytest.MonkeyPatch, typed: str) -> None:
    """A person at a terminal."""
    import io

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(Output, "is_live", True)
    monkeypatch.setattr(sys, "stdin", Terminal(typed))


def test_who_is_asked_hears_whom_an_id_means(poolhouse: Any, answering: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    types(monkeypatch, "n\n")
    answering({("GET", "/machines/0a1b2c"): {"machine": {"id": "0a1b2c3d", "name": "attic-pc"}}})
    said = poolhouse("remove", "0a1b2c")
    assert said.code == 130
    assert "Remove attic-pc from the household?" in said.out + said.err


@pytest.mark.parametrize(("option", "query"), [("--keep-added", "keep"), ("--remove-added", "remove")])
def test_what_becomes_of_machines_that_a_removed_one_added(
    poolhouse: Any, answering: Any, option: str, query: str
) -> None:
    answer = {"removed": {"id": "x", "name": "attic"}, "also_removed": ["loft", "barn"]}
    node = answering({("DELETE", f"/machines/attic?added={query}"): answer})
    said = poolhouse("remove", "attic", "--yes", option)
    assert said.out == "attic is no longer part of the household. Also removed: loft, barn.\n"
    assert len(node.asked) == 1
