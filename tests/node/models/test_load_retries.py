"""Tests of what failed attempts of a load mean for the next one, and of the final message."""

from __future__ import annotations

import pytest

from app.core.errors import AppError, BadInput, DoesNotFit, Fact, Reason, StageLost
from app.core.ids import MachineId
from app.core.planner.placement import Candidate, Plan
from app.core.planner.plan import plan
from app.core.recovery import fault_table
from app.core.recovery.recovery import MAX_RECOVERIES, Loss
from app.node.models.load_queue import LoadRetries
from tests.core.test_plan_measured import LAYERS, WORK

HOST, ATTIC, LOFT = (MachineId(sign * 64) for sign in "abc")
SPLIT: Plan = plan(Candidate(HOST, "host", 1 << 40), [Candidate(ATTIC, "attic", 1 << 40)], LAYERS, WORK, [6, 4, 6])


def says(name: str, cause: str) -> AppError:
    facts: dict[str, Fact] = {"machine": name, "what": Reason(cause)}
    return fault_table.loss_error(Reason("lender_said", facts))


def failed(tries: LoadRetries, error: AppError, machine: MachineId | None, name: str = "") -> bool:
    tries.begin(SPLIT)
    tries.lost = Loss(machine or "", name, error.reason, 0.0)
    return tries.should_retry(error)


def test_two_machines_that_say_the_same_mean_the_file() -> None:
    tries = LoadRetries("m")
    assert failed(tries, says("attic", "numbers_not_finite"), ATTIC, "attic")
    assert tries.without == {ATTIC}
    last = says("loft", "worker_crashed")
    assert not failed(tries, last, LOFT, "loft")
    assert tries.final_error(last).reason == Reason("model_ends_process", {"model": "m"})


def test_what_this_machine_says_of_a_crash_means_the_file() -> None:
    tries = LoadRetries("m")
    crash = StageLost("worker_crashed", worker="host", how="signal 11", words="")
    assert failed(tries, crash, None)  # once it may be chance
    assert tries.without == set()
    assert not failed(tries, crash, None)
    assert tries.final_error(crash).reason.code == "model_ends_process"


@pytest.mark.parametrize("code", ["stage_silent", "stage_garbled", "peer_offline"])
def test_who_is_lost_is_left_out_or_tried_again_and_the_file_is_not_blamed(code: str) -> None:
    tries = LoadRetries("m")
    lost = StageLost(code, machine="attic", name="attic", seconds=3, cause="x")
    for _ in range(MAX_RECOVERIES):
        assert failed(tries, lost, ATTIC, "attic")
    assert not failed(tries, lost, ATTIC, "attic")
    assert tries.final_error(lost) is lost
    assert tries.without == ({ATTIC} if code != "peer_offline" else set())


def test_where_it_cannot_be_without_those_that_failed_the_last_end_is_told() -> None:
    tries = LoadRetries("m")
    tries.check_may_repeat()  # nothing failed yet
    error = says("attic", "numbers_not_finite")
    assert failed(tries, error, ATTIC, "attic")
    with pytest.raises(StageLost) as raised:
        tries.check_may_repeat()
    assert raised.value is error
    assert not tries.should_retry(error)
    assert tries.final_error(error).reason == Reason("model_fails_there", {"model": "m", "machine": "attic"})


def test_what_a_request_got_wrong_is_tried_once() -> None:
    assert not failed(LoadRetries("m"), BadInput("split_sum"), None)
    assert not failed(LoadRetries("m"), DoesNotFit("disk_full"), None)


def test_a_lender_that_has_less_than_it_said_counts_with_what_it_has() -> None:
    tries = LoadRetries("m")
    short = DoesNotFit(
        "lender_said", machine="attic", machine_id=ATTIC, what=Reason("lend_too_large"), free_bytes=7,
    )  # fmt: skip
    assert failed(tries, short, ATTIC, "attic")
    assert tries.limits == {ATTIC: 7}
    assert not failed(tries, short, ATTIC, "attic")  # it has even less than that
