"""The word for a model: fits, tight, smaller context, too big; each as the planner would find it."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from app.core.errors import DoesNotFit
from app.core.planner.placement import Workload
from app.core.planner.plan import plan
from app.core.planner.speed_estimates import estimated_model
from app.core.planner.verdict import MemoryNeeds, Verdict, VerdictWord, judge, margin_bytes, verdict_of
from testbed.households import MIB, machine, model, some_household

GIB = 1 << 30


@pytest.mark.parametrize(
    ("lends", "keeps"), [(0, 0), (1 * GIB, GIB // 4), (4 * GIB, GIB), (16 * GIB, GIB), (100 * GIB, 5 * GIB)]
)
def test_what_stays_free(lends: int, keeps: int) -> None:
    assert margin_bytes(lends) == keeps


@pytest.mark.parametrize(
    ("machines", "expected"),
    [
        ([(2 * GIB, 8 * GIB)], Verdict(VerdictWord.FITS, spare_bytes=6 * GIB)),
        ([(7 * GIB, 8 * GIB)], Verdict(VerdictWord.FITS, spare_bytes=GIB)),
        ([(7 * GIB + 1, 8 * GIB)], Verdict(VerdictWord.TIGHT, spare_bytes=GIB - 1)),
        ([(2 * GIB, 8 * GIB), (4 * GIB, 4 * GIB)], Verdict(VerdictWord.TIGHT, spare_bytes=6 * GIB)),
    ],
)
def test_of_a_placement(machines: list[tuple[int, int]], expected: Verdict) -> None:
    assert verdict_of(machines) == expected


def test_what_the_planner_refuses_never_fits() -> None:
    words: dict[VerdictWord, int] = {}
    for seed in range(200):
        host, lenders, made, work = some_household(Random(seed))
        verdict = judge(host, lenders, made, work)
        words[verdict.word] = words.get(verdict.word, 0) + 1
        refused = _refused(host, lenders, made, work)
        if refused is None:
            continue
        assert verdict.word in (VerdictWord.SMALLER, VerdictWord.TOO_BIG)
        assert verdict.context == refused.reason.facts["fits_context"]
        assert verdict.parts is not None
        assert verdict.parts.needs_bytes == refused.reason.facts["need_bytes"]
    assert set(words) == set(VerdictWord), words


def _refused(*household: Any) -> DoesNotFit | None:
    try:
        plan(*household)
    except DoesNotFit as error:
        return error
    return None


def test_numbers_of_what_does_not_fit() -> None:
    host = machine("host", 500, None)
    verdict = judge(host, [], model([100 * MIB] * 8), Workload(4096))
    parts = verdict.parts
    assert isinstance(parts, MemoryNeeds)
    assert parts.lends_bytes == 500 * MIB
    assert parts.needs_bytes == parts.weight_bytes + parts.kv_bytes + parts.work_bytes
    assert verdict.short_bytes == parts.needs_bytes - 500 * MIB
    assert (verdict.word, verdict.context) == (VerdictWord.TOO_BIG, 0)


def test_a_sketch_weighs_what_its_file_weighs() -> None:
    made = estimated_model("m", "llama", 8 * GIB, 32, 128 << 10, 8192, splits=True)
    assert 8 * GIB <= sum(made.weights.layer_bytes) < 8 * GIB + 32
    assert sum(made.kv_bytes_per_token) == 128 << 10
    assert len(made.cuts.boundaries) == 31
    whole = estimated_model("m", "odd", 8 * GIB, None, None, 8192, splits=False)
    assert not whole.cuts.boundaries
    assert whole.cuts.whole_reason is not None
    assert judge(machine("host", 8.5 * 1024, None), [], whole, Workload(4096)).word is VerdictWord.SMALLER
    assert judge(machine("host", 16 * 1024, None), [], whole, Workload(4096)).word is VerdictWord.FITS
