"""S3: every input that `make fuzz` kept is read or refused, in no time, by each parser."""

from __future__ import annotations

import random
import time

import pytest

from tests.fuzz.__main__ import LONGEST_S, arcs_of, changed, fuzz, read
from tests.fuzz.targets import TARGETS, Target

LEAST_KEPT = 4
FEW = 60  # fresh ones, in each run the same


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: str(target.name))
def test_what_was_kept_is_read_or_refused_in_no_time(target: Target) -> None:
    kept = target.corpus.read_text("ascii").splitlines()
    assert len(kept) >= LEAST_KEPT
    outcomes = set()
    for data in read(target):
        began = time.process_time()
        outcomes.add(target.outcome(data))
        assert time.process_time() - began < LONGEST_S
    assert len(outcomes) > 1 or not target.refuses


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: str(target.name))
def test_fresh_changes_of_it_too(target: Target) -> None:
    chance, kept = random.Random(target.name), read(target)
    for _ in range(FEW):
        target.outcome(changed(chance, kept))


def test_a_bug_is_found_and_its_input_kept(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    def fragile(data: bytes) -> None:
        if data[:1] == b"{" and len(data) > 3:
            raise KeyError("x")
        raise ValueError("no")

    target = Target("fragile", fragile, (ValueError,), lambda: [b"abcd"], ("test_corpus.py",))
    monkeypatch.setattr("tests.fuzz.targets.CORPUS", tmp_path)
    n, why = fuzz(target, 20.0, random.Random(1))
    assert why == "KeyError: 'x'"
    assert n > 1
    with pytest.raises(KeyError):
        target.outcome(read(target)[-1])
    assert arcs_of(target, b"abcd")[1] == "ValueError"
