"""Tests of where states of recurrent layers are kept, from the steps alone."""

from __future__ import annotations

from backends.contract import MAX_CHECKPOINTS, CheckpointRule, Segment, SlotCheckpoints


def through(*sizes: int, kept: SlotCheckpoints | None = None) -> SlotCheckpoints:
    """Return the kept states after segments of these row counts."""
    kept = kept or SlotCheckpoints()
    for size in sizes:
        kept = kept.after(Segment(0, size, kept.end))
    return kept


def test_a_state_is_kept_at_the_end_of_a_prompt() -> None:
    assert through(64, 30).marks == ()  # nothing follows yet: it is there as it is
    assert through(64, 30, 1, 1).marks == (94,)
    assert through(64, 30, 1, 1, 40, 1).marks == (94, 136)


def test_only_the_latest_are_kept() -> None:
    ends = through(*[10, 1] * (MAX_CHECKPOINTS + 3)).marks
    assert len(ends) == MAX_CHECKPOINTS
    assert ends[-1] == 11 * (MAX_CHECKPOINTS + 3) - 1


def test_it_reaches_its_end_or_a_kept_state_or_nothing() -> None:
    kept = through(64, 30, 1, 1, 1)
    assert [kept.reach(most) for most in (200, 97, 96, 94, 93, 0)] == [97, 97, 94, 94, 0, 0]


def test_cutting_back_forgets_what_came_later() -> None:
    kept = through(20, 1, 1, 20, 1, 1)
    back = kept.cut_back(20)
    assert (back.marks, back.end) == ((20,), 20)
    assert back.cut_back(20) == back
    assert through(1, kept=back).marks == (20,)  # the state is there already
    assert through(5, 1, kept=back).marks == (20, 25)
    assert kept.cut_back(0) == SlotCheckpoints()
    assert kept.cut_back(99) == kept


def test_after_a_short_prompt_nothing_is_kept_and_it_is_read_again() -> None:
    kept = through(64, 1, 1, 8, 1, 1, kept=SlotCheckpoints(rule=CheckpointRule(2, 32)))
    assert kept.marks == (64,)
    assert kept.reach(kept.end - 1) == 64
    grown = through(30, 1, kept=kept)
    assert grown.marks == (64, 106)  # 42 since the state before
    assert grown.cut_back(64).rule == CheckpointRule(2, 32)


def test_no_state_is_kept_where_there_is_no_room() -> None:
    kept = through(64, 1, 64, 1, kept=SlotCheckpoints(rule=CheckpointRule(0)))
    assert kept.marks == ()
    assert kept.reach(kept.end) == kept.end
    assert kept.reach(kept.end - 1) == 0
    assert through(64, 1, 64, 1, kept=SlotCheckpoints(rule=CheckpointRule(1))).marks == (129,)
