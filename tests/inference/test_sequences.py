"""How an answer that was interrupted is computed again: in the chunks in which it came, or in large ones."""

from __future__ import annotations

import asyncio

import pytest

from app.core.schedule import Batch
from app.inference.carried import Carried
from app.inference.sequences import ALIKE_S, PAUSE_S, Sequence
from app.inference.work import Work
from backends.contract import GREEDY, Sampling
from tests.inference.pool import pool, request
from tests.inference.test_recovery import CREATIVE, SLOW, hear, kill, posix


@posix
@pytest.mark.parametrize(("sampling", "n_others"), [(GREEDY, 0), (GREEDY, 1), (CREATIVE, 0)])
async def test_a_lone_greedy_answer_is_replayed_in_the_chunks_in_which_it_came(
    monkeypatch: pytest.MonkeyPatch, sampling: Sampling, n_others: int
) -> None:
    """Else near ties could fall the other way: engines compute one row by another way than several."""
    entered = list[tuple[int, int]]()
    carried = Work._carry

    def carry(work: Work, batch: Batch) -> Carried:
        entered.extend((one.pos, one.n_tokens) for one in batch.segments if one.slot == 0)
        return carried(work, batch)

    monkeypatch.setattr(Work, "_carry", carry)
    what = request("x" * 99, 40, sampling=sampling)
    async with pool(1, 6, 1, paths=[SLOW], rebuilds=True) as built:
        others = [hear(built.pipeline, request("y", 90)) for _ in range(n_others)]
        deeds = {25: kill(built, "lender")}
        heard = await asyncio.gather(hear(built.pipeline, what, deeds), *others)
        assert len(heard[0][2].figures.recoveries) == 1
    [again] = [place for place, one in enumerate(entered) if one[0] == 0 and place]
    first, second = entered[:again], entered[again:]
    chunks = [one for one in second if one[1] > 1]
    if n_others or sampling.temperature:
        assert sum(n for _, n in chunks) > 99 + 20
    else:
        assert chunks == [one for one in first if one[1] > 1] == [(0, 50), (50, 49)]
        assert second[2:26] == [(pos, 1) for pos in range(99, 123)]


def test_what_took_long_is_replayed_in_large_chunks_and_pauses_do_not_count() -> None:
    for gap_s, n, is_alike in (
        (0.1, 99, True),
        (0.1, 102, False),
        (600.0, 4, True),
        (600.0, 6, False),
    ):
        one = Sequence(request("hello", 500), 600, None)  # type: ignore[arg-type]
        for number in range(n + 1):
            one.sampled(5, 1000.0 + gap_s * number, tuple)
        assert one.spoke_s == pytest.approx(n * min(gap_s, PAUSE_S))
        one.rewind(alone=True)
        assert (one.spoke_s <= ALIKE_S) == is_alike
        assert one.until == (one.n_prompt if is_alike else one.known)
