"""Tests of the first model of a household: the best that fits and is fast enough to read along."""

from __future__ import annotations

from app.core.planner.verdict import READ_BYTES, StarterOption, VerdictWord, choose_starter

GIB = 1 << 30
SLOW = StarterOption("slow", VerdictWord.FITS, 2 * GIB, tok_s=2.0)
BRISK = StarterOption("brisk", VerdictWord.FITS, 2 * GIB, tok_s=9.0)
TIGHT = StarterOption("tight", VerdictWord.TIGHT, GIB, tok_s=20.0)
LIGHT = StarterOption("light", VerdictWord.FITS, GIB, tok_s=3.0)
HEAVY = StarterOption("heavy", VerdictWord.FITS, READ_BYTES + 1, tok_s=None)
UNMEASURED = StarterOption("unmeasured", VerdictWord.FITS, READ_BYTES, tok_s=None)


def test_the_best_that_is_brisk_and_leaves_room() -> None:
    assert choose_starter([SLOW, TIGHT, HEAVY, BRISK, UNMEASURED]) == BRISK


def test_where_nothing_is_measured_what_a_token_reads_tells() -> None:
    assert choose_starter([HEAVY, UNMEASURED]) == UNMEASURED


def test_where_none_is_brisk_the_lightest() -> None:
    assert choose_starter([SLOW, LIGHT, HEAVY]) == LIGHT


def test_what_follows_the_first_that_suits_need_not_be_judged() -> None:
    every = [SLOW, TIGHT, HEAVY, BRISK, UNMEASURED, LIGHT]
    first = next(n for n, starter_option in enumerate(every) if starter_option.suits)
    assert choose_starter(every[: first + 1]) == choose_starter(every) == BRISK


def test_where_nothing_fits_with_room_none() -> None:
    assert choose_starter([TIGHT, StarterOption("big", VerdictWord.TOO_BIG, GIB, None)]) is None
    assert choose_starter([]) is None
