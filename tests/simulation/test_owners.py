"""Owners who take their memory back, and a household that changes: what that may cost an answer, and what not."""

from __future__ import annotations

import pytest

from app.node.lending.lending_service import LendingService
from tests.simulation.judge import check
from tests.simulation.world import MEMBERS, told

DEMOTED = (3, 5, 12)  # seeds in which the host may only lend from now on


def test_no_answer_is_broken_off_because_another_machine_takes_long() -> None:
    """A lender that drains waits for the answer's end, not for two seconds without a frame."""
    n_frozen = 0
    for seed in range(8):
        story = told(seed, only=["drain"])
        check(story)
        for item in (item for item in story.heard if not item.is_late):
            assert item.finish or item.gives_up_at, str(story)
            assert not (item.finish and item.finish.figures.recoveries), str(story)
            gaps = [b - a for a, b in zip(item.times, item.times[1:], strict=False)]
            n_frozen += max(gaps, default=0.0) > 2.0
    assert n_frozen  # else nothing was shown


@pytest.mark.parametrize("seed", [28, 72])
def test_a_lender_may_want_to_drain_while_its_pipeline_is_made_again(seed: int) -> None:
    check(told(seed, only=["drain", "leave", "kill"]))


def test_an_answer_outlives_a_machine_that_is_gone_with_all_it_had() -> None:
    stories = [told(seed, only=["crash"]) for seed in range(12)]
    for story in stories:
        check(story)
    requests = [item for story in stories for item in story.heard if item.finish]
    assert sum(bool(item.finish and item.finish.figures.recoveries) for item in requests) >= 5


def test_a_lender_that_works_on_for_one_who_is_no_host_any_more_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """I3 is looked at in every story: where a lender does not follow its household, they go wrong."""
    for seed in DEMOTED:
        check(told(seed, only=[MEMBERS]))
    monkeypatch.setattr(LendingService, "drop_former_hosts", lambda *_: None)
    result = []
    for seed in DEMOTED:
        try:
            told(seed, only=[MEMBERS])
        except AssertionError as error:
            result.append(str(error))
    assert any("may use it no more" in why for why in result)
