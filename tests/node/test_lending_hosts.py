"""Tests of what a lender hears of its hosts: that an answer passes, and that one is no longer a host."""

from __future__ import annotations

from dataclasses import replace

from app.core.household.operations import Role as HouseholdRole
from tests.node.lending.test_lending_policy import until
from tests.node.lending_bench import Bench, member, new


async def test_a_host_says_when_an_answer_passes_and_a_silent_one_keeps_nothing(bench: Bench) -> None:
    """Another machine may compute for long between two frames, so a pause is not the end."""
    bench.lending.note_answering(member().id, now=True)
    assert not bench.lending.is_answering()  # it has nothing here
    await bench.bring(pipeline := new())
    bench.lender.may_open.set()
    await bench.open(pipeline)
    await bench.answered(1)
    assert bench.lending.is_answering()
    bench.lending.note_answering(member().id, now=False)
    assert not bench.lending.is_answering()
    bench.lending.note_answering(member().id, now=True)
    bench.lending.host_disconnected(member().id)  # it stands still, or is gone
    assert not bench.lending.is_answering()
    bench.lending.end()


async def test_a_host_that_may_only_lend_from_now_on_is_told_while_its_layers_are_loaded(bench: Bench) -> None:
    """Its link stays: without an answer it would wait for five minutes."""
    await bench.bring(pipeline := new())
    await bench.open(pipeline)
    await until(lambda: bench.lender.n_opened == 1)
    demoted = replace(member(), roles=frozenset({HouseholdRole.LENDER}))
    bench.lending.drop_former_hosts({demoted.id: demoted})
    await bench.answered(1)
    assert bench.codes() == ["role_missing"]
    await until(lambda: not bench.lending.borrowers())
