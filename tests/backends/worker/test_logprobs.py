"""Tests of logprobs, computed from the model's own scores."""

from __future__ import annotations

import struct

import numpy as np

from backends.contract import MAX_TOP_LOGPROBS
from backends.worker.stage_runner import likeliest, likely_to_wire


def test_the_sampled_token_comes_first_then_the_likeliest() -> None:
    logits = np.array([0.0, 2.0, 1.0, 1.0, -5.0], np.float32)
    results = likeliest(logits, 4, 3)
    assert [token for token, _ in results] == [4, 1, 2, 3]  # of equal ones the first
    share = np.exp(logits.astype(np.float64))
    share /= share.sum()
    assert np.allclose([log for _, log in results], np.log(share[[4, 1, 2, 3]]))


def test_as_many_as_there_are_and_never_more_than_allowed() -> None:
    logits = np.arange(50, dtype=np.float32)
    assert len(likeliest(logits, 0, 0)) == 1
    assert len(likeliest(logits, 0, 10**6)) == 1 + MAX_TOP_LOGPROBS
    assert len(likeliest(logits[:3], 0, 5)) == 1 + 3


def test_large_scores_do_not_overflow() -> None:
    ((_, log),) = likeliest(np.array([3e38, -3e38], np.float32), 0, 0)
    assert log == 0.0


def test_the_bytes_are_pairs_of_id_and_log() -> None:
    data = likely_to_wire(((7, -0.5), (9, -1.25)))
    assert list(struct.iter_unpack("<if", data)) == [(7, -0.5), (9, -1.25)]
