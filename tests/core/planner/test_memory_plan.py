"""Tests of the message if a model does not fit: each suggestion really helps."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from app.core.errors import DoesNotFit
from app.core.model import Model
from app.core.planner.memory_plan import _smaller, what_helps
from app.core.planner.placement import Candidate, Workload
from app.core.planner.plan import plan
from app.core.reasons import fact_text, said
from testbed.households import MIB, machine, model, some_household, speed


def facts(host: Candidate, lenders: list[Candidate], made: Model, work: Workload) -> dict[str, int]:
    """The proposals by their code, each with its first number."""
    return {
        reason.code: int(reason.number(next(iter(reason.facts))))
        for reason in what_helps(host, lenders, made, work)
        if reason.facts
    }


def test_each_proposal_is_enough_and_a_little_less_is_not() -> None:
    proposed: dict[str, int] = {}
    for seed in range(300):
        host, lenders, made, work = some_household(Random(seed))
        try:
            plan(host, lenders, made, work)
        except DoesNotFit:
            result = facts(host, lenders, made, work)
        else:
            continue
        for code, value in result.items():
            proposed[code] = proposed.get(code, 0) + 1
            if code == "helps_context":
                plan(host, lenders, made, replace(work, context=value))
            elif code == "helps_machine":
                new = machine("new", value / MIB, speed(0.01), lenders[0].link if lenders else None)
                assert plan(replace(host, speed=None), [*lenders, new], made, work).stages
            elif code == "helps_here":
                larger = replace(host, lends_bytes=host.lends_bytes + value, speed=None)
                assert plan(larger, lenders, made, work).stages
            else:
                assert value < made.file_bytes
                smaller = next(m for n in range(64) if (m := _smaller(made, n)).file_bytes == value)
                plan(host, lenders, smaller, work)
    assert set(proposed) == {"helps_context", "helps_here", "helps_machine", "helps_smaller"}, proposed


def test_it_says_by_how_much_and_what_would_do() -> None:
    host = machine("host", 500, speed(0.01))
    with pytest.raises(DoesNotFit) as caught:
        plan(host, [], model([100 * MIB] * 8), Workload(4096))
    assert caught.value.reason.code == "host_too_small"
    assert said(caught.value).startswith("made needs ")
    assert "host, the only machine here, has only 500.0 MiB free for models. " in said(caught.value)
    helps = fact_text(caught.value.reason.facts["what_helps"])
    assert "The model would fit if another machine lent 768.0 MiB." in helps
    assert "A version of the model with a file of at most " in helps


@pytest.mark.parametrize("boundaries", [None, ()], ids=["split", "whole"])
@pytest.mark.parametrize(
    ("past_mib", "expected"),
    [(None, "500.0 MiB free for models."), (0, "the memory limit on host"), (4000, "the memory limit on host")],
)
def test_what_bounds_the_host_is_said(boundaries: tuple[int, ...] | None, past_mib: int | None, expected: str) -> None:
    """Its memory, or the limit that its owner set; that one helps only where there is memory for it."""
    past = None if past_mib is None else past_mib * MIB
    host = replace(machine("host", 500, speed(0.01)), past_limit_bytes=past)
    made = model([100 * MIB] * 8, boundaries=boundaries)
    with pytest.raises(DoesNotFit) as caught:
        plan(host, [], made, Workload(4096))
    words = said(caught.value)
    assert expected in words
    assert "host lends" not in words
    assert "alone here, lends" not in words
    higher = [what_help for what_help in what_helps(host, [], made, Workload(4096)) if what_help.code == "helps_limit"]
    assert bool(higher) is (past_mib == 4000)
    if higher:
        assert "If the memory limit on" in words
        more = int(higher[0].number("more_bytes"))
        larger = replace(host, lends_bytes=host.lends_bytes + more)
        assert plan(larger, [], made, Workload(4096)).stages
        with pytest.raises(DoesNotFit):
            plan(replace(host, lends_bytes=host.lends_bytes + more - 1), [], made, Workload(4096))


@pytest.mark.parametrize("past_mib", [None, 4000])
@pytest.mark.parametrize("lender_mib", [0, 150, 700])
def test_what_lacks_is_the_amount_that_the_sentence_says_would_help_here(lender_mib: int, past_mib: int | None) -> None:
    """Nobody should read that 60 MiB more are needed after "Too big by 28 MiB"."""
    past = None if past_mib is None else past_mib * MIB
    host = replace(machine("host", 100, speed(0.01)), past_limit_bytes=past)
    lenders = [machine("attic", lender_mib, speed(0.01))] if lender_mib else []
    made = model([100 * MIB] * 8)
    with pytest.raises(DoesNotFit) as caught:
        plan(host, lenders, made, Workload(4096))
    helps = {what_help.code: what_help.facts for what_help in what_helps(host, lenders, made, Workload(4096))}
    here = helps.get("helps_limit") or helps.get("helps_here") or {}
    assert caught.value.reason.facts["short_bytes"] == here.get("more_bytes", 0)


def test_a_split_given_by_hand_says_what_the_host_has() -> None:
    host, made = machine("host", 0, speed(0.01)), model([100 * MIB] * 4)
    with pytest.raises(DoesNotFit) as caught:
        plan(host, [machine("attic", 2000, speed(0.01))], made, Workload(512), [1, 2, 1])
    words = said(caught.value)
    assert words.startswith("host needs ")
    assert "but has only 0 bytes" in words


def test_a_host_too_small_for_its_own_layers_is_named_though_the_pool_has_enough() -> None:
    host, made = machine("desk", 50, speed(0.01)), model([100 * MIB] * 4)
    with pytest.raises(DoesNotFit) as caught:
        plan(host, [machine("attic", 2000, speed(0.01))], made, Workload(512))
    assert caught.value.reason.code == "host_short_of_ends"
    words = said(caught.value)
    assert "only 50.0 MiB of it is on desk, which computes the first and the last layers" in words
    assert "more memory on desk, the model would fit." in words
    assert "Add machines" not in words


def test_many_small_machines_are_not_told_that_the_sum_is_too_small() -> None:
    host, made = machine("desk", 380, speed(0.01)), model([100 * MIB] * 6)
    lenders = [machine(f"attic{n}", 60, speed(0.01)) for n in range(9)]
    with pytest.raises(DoesNotFit) as caught:
        plan(host, lenders, made, Workload(512))
    assert caught.value.reason.code == "pool_in_pieces"


def test_a_shorter_context_is_named_with_its_number() -> None:
    made = replace(model([100 * MIB] * 4), kv_bytes_per_token=(1 << 16,) * 4)
    host = machine("host", 900, speed(0.01))
    with pytest.raises(DoesNotFit) as caught:
        plan(host, [], made, Workload(8192))
    assert "A context of 1,280 tokens would fit." in fact_text(caught.value.reason.facts["what_helps"])


def test_what_cannot_be_helped_asks_for_another_model() -> None:
    host = machine("host", 10, speed(0.01))
    whole = model([100 * MIB] * 4, boundaries=())
    assert [reason.code for reason in what_helps(host, [], whole, Workload(200))] == ["helps_nothing"]
