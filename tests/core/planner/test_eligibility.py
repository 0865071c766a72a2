"""Machines whose engine is one with which no cut was proved hold no part of a model, and the plan says why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.core.errors import AppError, BadInput, DoesNotFit, StageLost
from app.core.ids import MachineId
from app.core.planner.placement import Candidate
from app.core.planner.plan import eligible_machines
from app.core.reasons import said
from backends.contract import PROVED_ENGINES, is_proved

GOOD = f"llamacpp {PROVED_ENGINES[0]}"
DEN, ATTIC, SHED = (Candidate(MachineId(c * 64), c, 1, engine=GOOD) for c in "das")
OLD = Candidate(MachineId("o" * 64), "old", 1, engine="llamacpp 0.3.35")


def test_a_lender_with_another_engine_is_left_out_and_named() -> None:
    known = eligible_machines(DEN, [ATTIC, OLD, SHED])
    assert known.lenders == (ATTIC, SHED)
    (why,) = known.reasons
    assert why.code == "left_out_engine"
    assert said(why).startswith("old is not used because its engine is llama-cpp-python 0.3.35")


def test_a_host_with_another_engine_shares_nothing() -> None:
    known = eligible_machines(OLD, [ATTIC, SHED])
    assert known.lenders == ()
    assert [why.code for why in known.reasons] == ["plan_engine"]


def test_who_has_not_said_its_engine_takes_part() -> None:
    """Its worker refuses by itself; the name without a version is what is told until the engine was asked."""
    silent = [Candidate(MachineId("x" * 64), "x", 1, engine=name) for name in ("", "llamacpp")]
    assert eligible_machines(DEN, silent).lenders == tuple(silent)


def test_an_error_names_whose_engine_stood_in_the_way() -> None:
    known, small = eligible_machines(DEN, [OLD]), DoesNotFit("helps_nothing")
    error = known.explain(small)
    assert isinstance(error, DoesNotFit)
    assert said(error).startswith("old cannot run any layers because its engine is llama-cpp-python 0.3.35")
    assert said(error).endswith(said(small))


@pytest.mark.parametrize("error", [BadInput("helps_nothing"), StageLost("helps_nothing")])
def test_an_error_with_another_cause_stays_as_it_is(error: AppError) -> None:
    assert eligible_machines(DEN, [ATTIC]).explain(error) is error
    assert eligible_machines(DEN, [OLD]).explain(StageLost("stage_gone")).reason.code == "stage_gone"


@pytest.mark.parametrize(
    ("version", "proved"),
    [(PROVED_ENGINES[0], True), (f"{PROVED_ENGINES[0]}+cu124", True), ("0.3.35", False),
     ("0.3.3", False), ("", False)],
)  # fmt: skip
def test_a_version_is_proved_or_not(version: str, proved: bool) -> None:
    assert is_proved(version) is proved


def test_a_lender_whose_numbers_were_wrong_is_left_out_and_named() -> None:
    wrong = replace(SHED, doubted=True)
    known, small = eligible_machines(DEN, [ATTIC, wrong]), DoesNotFit("helps_nothing")
    assert known.lenders == (ATTIC,)
    assert [(why.code, why.facts) for why in known.reasons] == [("left_out_doubted", {"machine": "s"})]
    assert known.explain(small).reason.code == "doubt_in_the_way"
    assert said(known.explain(small)).startswith("s is not used because it computed wrong numbers in a check")
    both = eligible_machines(DEN, [replace(OLD, doubted=True)])
    assert [why.code for why in both.reasons] == ["left_out_engine"]  # one reason is enough
