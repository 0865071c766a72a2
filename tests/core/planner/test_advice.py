"""Tests of the most helpful advice, whose numbers are those of the plan with only that change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.core.errors import Reason
from app.core.household.household import IdleCard
from app.core.household.link import LinkKind
from app.core.planner.advice import advise, by_cable
from app.core.planner.placement import Candidate, Part, Topology, Workload
from app.core.planner.plan import plan
from app.core.reasons import said
from testbed.households import MIB, link, machine, model, speed

MODEL = model([100 * MIB] * 16, width=4096)
WORK = Workload(1024)
AIR = replace(link(0.009, 6e6), kind=LinkKind.ETHERNET, far_kind=LinkKind.WIFI)


def advice(host: Candidate, lenders: list[Candidate], work: Workload = WORK) -> tuple[Reason, ...]:
    return advise(host, lenders, MODEL, work, plan(host, lenders, MODEL, work))


def test_a_cable_for_a_machine_on_wifi() -> None:
    host, study = machine("host", 1000, speed(0.002)), machine("Study PC", 1900, speed(0.002), AIR)
    first = advice(host, [study])[0]
    assert first.code == "advice_wifi_rate"
    wired = replace(study, link=by_cable(AIR))
    now, then = (plan(host, [candidate], MODEL, WORK).forecast for candidate in (study, wired))
    assert now is not None
    assert then is not None
    assert first.facts["now_tok_s"] == pytest.approx(now.decode_tok_s)
    assert first.facts["with_tok_s"] == pytest.approx(then.decode_tok_s)
    assert said(first).startswith("Study PC is on Wi-Fi (43 Mbit/s, 9.0 ms). Over a cable, this model would run at ")


def test_the_host_is_named_when_only_it_is_on_wifi() -> None:
    here = replace(AIR, kind=LinkKind.WIFI, far_kind=LinkKind.ETHERNET)
    reasons = advice(machine("host", 1000, speed(0.002)), [machine("study", 1900, speed(0.002), here)])
    assert said(reasons[0]).startswith("host is on Wi-Fi")


def test_a_slow_cable() -> None:
    slow = link(0.0003, 1e6)
    reasons = advice(machine("host", 1000, speed(0.002)), [machine("study", 1900, speed(0.002), slow)])
    assert reasons[0].code == "advice_link_rate"
    assert reasons[0].facts["megabits"] == pytest.approx(8 * 0.9)


def test_memory_on_the_quick_machine() -> None:
    host, attic = machine("host", 800, speed(0.002)), machine("attic", 1800, speed(0.02), link())
    first = advice(host, [attic])[0]
    assert first.code == "advice_memory_rate"
    assert first.facts["machine"] == "host"
    more = int(first.number("more_bytes"))
    enough = replace(host, lends_bytes=host.lends_bytes + more)
    known = plan(enough, [attic], MODEL, WORK).forecast
    assert known is not None
    assert known.decode_tok_s == pytest.approx(first.number("with_tok_s"))


def test_the_best_comes_first() -> None:
    host = machine("host", 800, speed(0.002))
    lenders = [machine(f"m{n}", 500 + 100 * n, speed(0.01 * n), AIR) for n in range(1, 5)]
    reasons = advice(host, lenders)
    assert len(reasons) == 2
    gains = [reason.number("with_tok_s") for reason in reasons]
    assert gains == sorted(gains, reverse=True)


def test_no_advice_where_nothing_helps_or_nothing_is_known() -> None:
    assert advice(machine("host", 5000, speed(0.002)), []) == ()
    assert advice(machine("host", 5000, None), []) == ()
    host, attic = machine("host", 1500, speed(0.002)), machine("attic", 1500, speed(0.002), link())
    forced = plan(host, [attic], MODEL, WORK, [1, 8, 7])
    assert advise(host, [attic], MODEL, WORK, forced) == ()


def test_a_split_that_was_asked_for_is_not_advised_away() -> None:
    """The host holds all of it sooner: no memory and no cable is what keeps that from it."""
    slow = link(0.02, 2e6)
    host, attic = machine("host", 5000, speed(0.002)), machine("attic", 5000, speed(0.02), slow)
    only_split = frozenset({Topology.SPLIT})
    placed = plan(host, [attic], MODEL, WORK, topologies=only_split)
    assert placed.topology is Topology.SPLIT
    alone = plan(host, [attic], MODEL, WORK)
    assert alone.topology is Topology.ONE_MACHINE
    assert placed.forecast is not None
    assert alone.forecast is not None
    assert alone.forecast.request_s < 0.9 * placed.forecast.request_s
    assert placed.forecast.bottleneck.part is not Part.MEMORY
    (cable,) = advise(host, [attic], MODEL, WORK, placed)
    assert cable.code.startswith("advice_link")
    wired = replace(attic, link=by_cable(slow))
    then = plan(host, [wired], MODEL, WORK, topologies=only_split).forecast
    assert then is not None
    value = cable.facts.get("with_tok_s", cable.facts.get("with_s"))
    assert value in (then.decode_tok_s, then.request_s)


def test_a_good_link_stays_as_it_is() -> None:
    good = link(0.0002, 200e6)
    assert by_cable(good) == good


def test_a_cable_is_no_better_than_what_an_owner_allows() -> None:
    held = AIR.limited_to(1.25e6)
    assert by_cable(held).out_bytes_per_s == 1.25e6
    assert by_cable(AIR.limited_to(50e6)).out_bytes_per_s == 50e6


def test_a_card_without_its_pack_is_named_before_any_cable() -> None:
    card = IdleCard("NVIDIA GeForce RTX 3060", "CUDA 13")
    host, study = machine("host", 1000, speed(0.002)), machine("Study PC", 1900, speed(0.002), AIR)
    unused = machine("attic", 1, speed(0.1), link())
    reasons = advice(host, [replace(study, idle_card=card), replace(unused, idle_card=card)])
    without_cards = [reason.code for reason in advice(host, [study, unused])]
    assert [reason.code for reason in reasons] == ["advice_card", *without_cards][:3]
    assert said(reasons[0]).startswith("Study PC has a graphics card (NVIDIA GeForce RTX 3060) that is not used.")
    assert "the engine pack for CUDA 13" in said(reasons[0])
