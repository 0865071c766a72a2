"""No more than the rate passes, however it is taken; an idle time is not saved up."""

from __future__ import annotations

from random import Random

import pytest

from app.network.traffic_limits import BURST_S, MAX_SLICE_BYTES, MIN_SLICE_BYTES, SLICE_S, Bucket


@pytest.mark.parametrize("seed", range(20))
def test_no_more_passes_than_the_rate_and_one_burst(seed: int) -> None:
    chance, bucket, now_s, passed = Random(seed), Bucket(1000.0), 50.0, 0
    begun_s, last = now_s, 0
    for _ in range(200):
        now_s += chance.choice((0.0, chance.uniform(0, 2)))  # idle in between
        now_s += bucket.wait_s(now_s)
        last = chance.randrange(1, 500)
        bucket = bucket.taken(last, now_s)
        passed += last
        assert passed - last <= 1000.0 * (now_s - begun_s + BURST_S) + 1e-6


def test_whoever_takes_without_a_pause_gets_just_the_rate() -> None:
    bucket, now_s = Bucket(1000.0), 0.0
    for _ in range(100):
        now_s += bucket.wait_s(now_s)
        bucket = bucket.taken(100, now_s)
    assert now_s + bucket.wait_s(now_s) == pytest.approx(10.0, abs=BURST_S)


def test_what_is_small_after_an_idle_time_makes_nobody_wait() -> None:
    bucket = Bucket(1e6, free_at_s=1.0).taken(int(1e6 * BURST_S), 5.0)
    assert bucket.wait_s(5.0) == 0
    assert bucket.taken(1000, 5.0).wait_s(5.0) == pytest.approx(0.001)


@pytest.mark.parametrize(("rate", "size"), [(1e3, MIN_SLICE_BYTES), (1e6, int(1e6 * SLICE_S)), (1e12, MAX_SLICE_BYTES)])
def test_a_slice_takes_a_moment_whatever_the_rate(rate: float, size: int) -> None:
    assert Bucket(rate).slice_bytes == size
