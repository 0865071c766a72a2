"""Tests of the lending policy: each rule alone, separate thresholds, and no flapping."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.lending.hours import Span
from app.core.lending.policy import (
    CALM_SECONDS,
    STEP_BYTES,
    Allowed,
    Battery,
    Denied,
    LendableMemory,
    NothingLent,
    Readings,
    Rules,
    Verdict,
    executable,
    may_lend,
)

GIB = 1 << 30
ROOM = LendableMemory(4 * GIB, 32 * GIB, 16 * GIB)
NOW = Readings(1000.0, weekday=2, minute=600)


def code(verdict: Verdict) -> str:
    if isinstance(verdict, Denied):
        return verdict.why.code
    return type(verdict).__name__


def test_without_choices_it_lends_what_is_free_up_to_the_limit() -> None:
    assert may_lend(Rules(), NOW, ROOM) == Allowed(4 * GIB)
    assert may_lend(Rules(), NOW, replace(ROOM, free_bytes=3 * GIB)) == Allowed(2 * GIB)


def test_devices() -> None:
    allowed = may_lend(Rules(devices=("cpu",)), NOW, ROOM)
    assert isinstance(allowed, Allowed)
    assert allowed.has("cpu")
    assert not allowed.has("cuda:0")
    assert Allowed(1).has("anything")
    assert may_lend(Rules(devices=("cuda:0",)), NOW, ROOM) == NothingLent()


LOW = Battery(49.0, plugged=False)
CASES: list[tuple[Rules, Readings, str]] = [
    (Rules(memory_bytes=0), NOW, "NothingLent"),
    (Rules(hours=(Span((2,), 500, 601),)), NOW, "Allowed"),
    (Rules(hours=(Span((2,), 601, 700),)), NOW, "pause_hours"),
    (Rules(hours=(Span((3,)),)), NOW, "pause_hours"),
    (Rules(idle_s=300), replace(NOW, idle_s=299.0), "pause_active"),
    (Rules(idle_s=300), replace(NOW, idle_s=300.0), "Allowed"),
    (Rules(idle_s=300), replace(NOW, idle_s=None), "Allowed"),  # nobody sits here
    (Rules(), replace(NOW, idle_s=0.0), "Allowed"),
    (Rules(), replace(NOW, battery=LOW), "pause_battery"),
    (Rules(), replace(NOW, battery=Battery(50.0, False)), "Allowed"),
    (Rules(), replace(NOW, battery=Battery(3.0, True)), "Allowed"),
    (Rules(battery_percent=100), replace(NOW, battery=Battery(100.0, False)), "pause_battery"),
    (Rules(battery_percent=0), replace(NOW, battery=Battery(6.0, False)), "Allowed"),
    (Rules(programs=("Game.EXE",)), replace(NOW, programs=frozenset({"game"})), "pause_program"),
    (Rules(programs=("other",)), replace(NOW, programs=frozenset({"game"})), "Allowed"),
    (Rules(), replace(NOW, gpu_percent=30.0), "pause_gpu"),
    (Rules(), replace(NOW, hottest_c=95.0), "pause_hot"),
    (Rules(), replace(NOW, hottest_c=94.9), "Allowed"),
    (Rules(hot=False), replace(NOW, hottest_c=110.0), "Allowed"),
    (Rules(hot_celsius=70), replace(NOW, hottest_c=70.0), "pause_hot"),
    (Rules(), replace(NOW, card_c=109.0), "Allowed"),
    (Rules(card_celsius=80), replace(NOW, card_c=79.9), "Allowed"),
    (Rules(card_celsius=80), replace(NOW, card_c=80.0), "pause_card_hot"),
    (Rules(card_celsius=80), replace(NOW, card_c=None), "Allowed"),
    (Rules(), replace(NOW, lacks_card=True), "pause_no_card"),
    (Rules(), replace(NOW, lacks_card=True, tests_card=True), "pause_card_test"),
    (Rules(), replace(NOW, card_off=True), "pause_card_off"),
    (Rules(), replace(NOW, on_processor=True), "pause_card_only"),
    (Rules(), replace(NOW, full_screen=True), "pause_screen"),
    (Rules(), replace(NOW, full_screen=False), "Allowed"),
    (Rules(screen=False), replace(NOW, full_screen=True), "Allowed"),
    (Rules(), replace(NOW, network="vpn"), "Allowed"),
    (Rules(network=True), replace(NOW, network="vpn"), "pause_vpn"),
    (Rules(network=True), replace(NOW, network="metered"), "pause_metered"),
    (Rules(network=True), replace(NOW, network="free"), "Allowed"),
    (Rules(network=True), replace(NOW, network=None), "Allowed"),
    (Rules(), replace(NOW, gpu_percent=29.0), "Allowed"),
    (Rules(gpu=False), replace(NOW, gpu_percent=99.0), "Allowed"),
]


@pytest.mark.parametrize(("rules", "senses", "expected"), CASES)
def test_each_rule(rules: Rules, senses: Readings, expected: str) -> None:
    assert code(may_lend(rules, senses, ROOM)) == expected


@pytest.mark.parametrize(
    ("free", "promised", "expected", "at_once"),
    [
        (0.51, 3, "Allowed", False),
        (0.49, 3, "pause_memory", False),
        (0.12, 3, "pause_memory", True),
        (16, 4.1, "pause_less", False),
    ],
)
def test_memory(free: float, promised: float, expected: str, at_once: bool) -> None:
    room = replace(ROOM, free_bytes=int(free * GIB), promised_bytes=int(promised * GIB))
    verdict = may_lend(Rules(), NOW, room)
    assert code(verdict) == expected
    assert getattr(verdict, "at_once", False) is at_once


@pytest.mark.parametrize(("free", "expected"), [(0.51, "Allowed"), (0.49, "pause_memory")])
def test_low_main_memory_pauses_although_a_graphics_card_has_plenty(free: float, expected: str) -> None:
    room = replace(ROOM, main_total_bytes=ROOM.total_bytes, main_free_bytes=int(free * GIB))
    assert code(may_lend(Rules(), NOW, room)) == expected


def test_an_empty_battery_waits_for_no_answer() -> None:
    for percent, at_once in ((5.0, True), (6.0, False)):
        verdict = may_lend(Rules(), replace(NOW, battery=Battery(percent, False)), ROOM)
        assert isinstance(verdict, Denied)
        assert verdict.at_once is at_once


def replayed(rules: Rules, room: LendableMemory, moments: list[dict[str, Any]]) -> list[str]:
    """The verdicts on one moment after another, each with the one before."""
    verdict: Verdict | None = None
    codes = []
    for moment in moments:
        senses = replace(NOW, **{k: v for k, v in moment.items() if k != "free_bytes"})
        here = replace(room, free_bytes=moment.get("free_bytes", room.free_bytes))
        verdict = may_lend(rules, senses, here, verdict)
        codes.append(code(verdict))
    return codes


def test_a_battery_around_its_level_does_not_flap() -> None:
    levels = [51.0, 49.0, 51.0, 59.0, 60.0, 51.0, 50.0, 49.0]
    moments = [{"battery": Battery(level, False), "now_s": float(n)} for n, level in enumerate(levels)]
    said = replayed(Rules(), ROOM, moments)
    assert said == ["Allowed", *["pause_battery"] * 3, *["Allowed"] * 3, "pause_battery"]
    moments = [{"battery": LOW}, {"battery": Battery(49.0, True)}]
    assert replayed(Rules(), ROOM, moments) == ["pause_battery", "Allowed"]


def test_a_program_that_comes_and_goes_pauses_once() -> None:
    game, rules = frozenset({"game"}), Rules(programs=("game",))
    calm = CALM_SECONDS["pause_program"]
    times = [(0.0, game), (1.0, frozenset()), (calm - 0.1, game), (calm + 1, frozenset()),
             (2 * calm - 0.2, frozenset()), (2 * calm, frozenset())]  # fmt: skip
    moments = [{"now_s": now, "programs": names} for now, names in times]
    assert replayed(rules, ROOM, moments) == [*["pause_program"] * 5, "Allowed"]


def test_a_graphics_card_must_be_calm_for_a_while() -> None:
    busy = [(0.0, 40.0), (30.0, 16.0), (89.0, 14.0), (90.0, 29.0), (150.0, 1.0)]
    moments = [{"now_s": now, "gpu_percent": percent} for now, percent in busy]
    assert replayed(Rules(), ROOM, moments) == [*["pause_gpu"] * 4, "Allowed"]


def test_a_processor_must_have_cooled_down() -> None:
    heat = [(0.0, 96.0), (10.0, 85.0), (20.0, 80.0), (30.0, 79.0), (79.0, 70.0), (81.0, 70.0)]
    moments = [{"now_s": now, "hottest_c": degrees} for now, degrees in heat]
    assert replayed(Rules(), ROOM, moments) == [*["pause_hot"] * 5, "Allowed"]


def test_an_owner_chooses_what_is_too_hot() -> None:
    heat = [(0.0, 71.0), (10.0, 56.0), (20.0, 54.0), (80.0, 54.0)]
    moments = [{"now_s": now, "hottest_c": degrees} for now, degrees in heat]
    assert replayed(Rules(hot_celsius=70), ROOM, moments) == [*["pause_hot"] * 3, "Allowed"]
    for degrees in (49, 106):
        with pytest.raises(ValueError, match="cannot be"):
            Rules(hot_celsius=degrees)


def test_a_graphics_card_must_have_cooled_down() -> None:
    heat = [(0.0, 81.0), (10.0, 66.0), (20.0, 64.0), (69.0, 64.0), (70.0, 64.0)]
    moments = [{"now_s": now, "card_c": degrees} for now, degrees in heat]
    assert replayed(Rules(card_celsius=80), ROOM, moments) == [*["pause_card_hot"] * 4, "Allowed"]
    for degrees in (49, 111):
        with pytest.raises(ValueError, match="cannot be"):
            Rules(card_celsius=degrees)


def test_a_card_that_comes_and_goes_pauses_once() -> None:
    moments = [{"now_s": now, "lacks_card": lacks} for now, lacks in ((0.0, True), (14.0, False), (15.0, False))]
    assert replayed(Rules(), ROOM, moments) == ["pause_no_card", "pause_no_card", "Allowed"]


def test_memory_that_returns_must_be_enough_and_stay() -> None:
    half, whole = GIB // 2 - 1, GIB
    moments = [{"now_s": 0.0, "free_bytes": half}, {"now_s": 10.0, "free_bytes": whole - 1},
               {"now_s": 69.0, "free_bytes": whole}, {"now_s": 70.0, "free_bytes": whole}]  # fmt: skip
    assert replayed(Rules(), ROOM, moments) == [*["pause_memory"] * 3, "Allowed"]


def test_a_need_that_is_over_is_none() -> None:
    first = may_lend(Rules(), NOW, replace(ROOM, free_bytes=1))
    assert isinstance(first, Denied)
    assert first.at_once
    later = may_lend(Rules(), replace(NOW, now_s=1001.0), ROOM, first)
    assert isinstance(later, Denied)
    assert not later.at_once


@pytest.mark.parametrize(
    ("name", "short"), [("Game.exe", "game"), (r"C:\Games\DOOM.EXE", "doom"), ("/usr/bin/steam", "steam"), ("a", "a")]
)
def test_programs_are_compared_by_their_bare_name(name: str, short: str) -> None:
    assert executable(name) == short


@pytest.mark.parametrize(
    "fields",
    [{"memory_bytes": -1}, {"idle_s": -1.0}, {"battery_percent": 101}, {"drain_s": 601.0},
     {"programs": ("",)}, {"programs": ("x",) * 65}, {"programs": ("x" * 101,)}],
)  # fmt: skip
def test_rules_that_cannot_be_are_not_built(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="rules"):
        Rules(**fields)


BYTES = st.integers(0, 64 * GIB)


@given(BYTES, BYTES, BYTES, BYTES, BYTES, BYTES, BYTES)
def test_never_more_than_the_owner_said_and_never_the_reserve(
    most: int, total: int, free: int, promised: int, unloaded: int, own: int, limit: int
) -> None:
    room = LendableMemory(most, total, free, promised, unloaded, own, limit)
    assert 0 <= room.lent_bytes <= most
    assert not limit or room.lent_bytes <= max(0, limit - own)
    new = max(0, room.lent_bytes - promised)
    assert new == 0 or new <= free - unloaded - room.reserve_bytes
    assert new % STEP_BYTES == 0 or room.lent_bytes in (most, limit - own)
