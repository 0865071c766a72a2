"""A stage applies each step once, in order, or not at all."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.contract import NumberFormat, Segment
from backends.frames import BadFrame, Frame, FrameKind, PipelineParameters
from backends.worker.stage_runner import KEPT_OUTPUTS, Answers, StepLog

PIPELINE = bytes(16)
AGREED = PipelineParameters(PIPELINE, 1, NumberFormat.F32, slots=3, context=1000)


def step(seq: int, *segments: Segment, epoch: int = 5) -> Frame:
    n_rows = sum(segment.n_tokens for segment in segments)
    return Frame(FrameKind.STEP, PIPELINE, epoch, seq, NumberFormat.F32, segments, bytes(4 * n_rows))


def forget(seq: int, *segments: Segment, epoch: int = 5) -> Frame:
    return Frame(FrameKind.FORGET, PIPELINE, epoch, seq, segments=segments)


def output(seq: int) -> tuple[Frame, ...]:
    return (Frame(FrameKind.OUTPUT, PIPELINE, 5, seq, payload=b"%d" % seq),)


def apply(steps: StepLog, frame: Frame) -> None:
    assert steps.admit(frame) is None
    steps.computed(frame, output(frame.seq))


@pytest.fixture
def steps() -> StepLog:
    return StepLog(AGREED, 5)


def test_a_repeated_step_is_answered_from_memory(steps: StepLog) -> None:
    frames = [step(seq, Segment(0, 1, seq)) for seq in range(3)]
    for frame in frames:
        apply(steps, frame)
    assert steps.admit(frames[2]) == output(2)
    assert steps.admit(frames[1]) == output(1)
    assert KEPT_OUTPUTS == 2
    assert steps.admit(frames[0]) == (Frame(FrameKind.NEED_FROM, PIPELINE, 5, 0, segments=(Segment(0, 1, 3),)),)


def test_a_gap_names_the_positions_expected_and_changes_nothing(steps: StepLog) -> None:
    apply(steps, step(1, Segment(0, 4, 0)))
    answers = steps.admit(step(2, Segment(0, 1, 4), Segment(1, 2, 7)))
    assert answers == (Frame(FrameKind.NEED_FROM, PIPELINE, 5, 2, segments=(Segment(0, 1, 4), Segment(1, 2, 0))),)
    assert steps.next_pos == [4, 0, 0]


def test_an_admitted_step_that_was_not_computed_changes_nothing(steps: StepLog) -> None:
    frame = step(1, Segment(0, 4, 0))
    assert steps.admit(frame) is None
    assert steps.admit(frame) is None


@pytest.mark.parametrize("kind", ["step", "forget"])
def test_epochs(steps: StepLog, kind: str) -> None:
    old, new = step(1, Segment(0, 1, 0), epoch=4), step(1, Segment(0, 1, 0), epoch=6)
    admits: dict[str, Callable[[Frame], Answers | None]] = {"step": steps.admit, "forget": steps.admit_forget}
    admit = admits[kind]
    if kind == "forget":
        old, new = forget(1, Segment(0, 0, 0), epoch=4), forget(1, Segment(0, 0, 0), epoch=6)
    assert admit(old) == (Frame(FrameKind.STALE, PIPELINE, 4, 1),)
    with pytest.raises(BadFrame):
        admit(new)


def test_forget_cuts_back_and_never_forward(steps: StepLog) -> None:
    apply(steps, step(1, Segment(0, 10, 0), Segment(1, 3, 0)))
    frame = forget(2, Segment(0, 0, 6), Segment(1, 0, 9))
    assert steps.admit_forget(frame) is None
    done = steps.forgotten(frame)
    assert done == (Frame(FrameKind.DONE, PIPELINE, 5, 2, segments=(Segment(0, 0, 6), Segment(1, 0, 3))),)
    apply(steps, step(3, Segment(0, 1, 6)))
    assert steps.admit_forget(frame) == done, "a late repeat must not cut again"


@pytest.mark.parametrize(
    "wrong",
    [
        forget(1),
        forget(1, Segment(3, 0, 0)),
        forget(1, *[Segment(0, 0, 0)] * 4),
        Frame(FrameKind.FORGET, b"x" * 16, 5, 1, segments=(Segment(0, 0, 0),)),
        Frame(FrameKind.FORGET, PIPELINE, 5, 1, segments=(Segment(0, 0, 0),), payload=b"x"),
    ],
)
def test_a_wrong_forget_is_a_bad_frame(steps: StepLog, wrong: Frame) -> None:
    with pytest.raises(BadFrame):
        steps.admit_forget(wrong)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 5), st.booleans()), max_size=30))
def test_a_link_that_sends_twice_loses_and_doubles_nothing(moves: list[tuple[int, int, bool]]) -> None:
    """Every position is applied exactly once, whatever is sent again."""
    steps, applied = StepLog(AGREED, 5), {0: 0, 1: 0, 2: 0}
    for seq, (slot, n_tokens, twice) in enumerate(moves, 1):
        frame = step(seq, Segment(slot, n_tokens, applied[slot]))
        for _ in range(1 + twice):
            answers = steps.admit(frame)
            if answers is None:
                steps.computed(frame, output(seq))
                applied[slot] += n_tokens
            else:
                assert answers == output(seq)
    assert steps.next_pos == list(applied.values())


def begin(seq: int, slot: int = 0, *, epoch: int = 5, pipeline: bytes = PIPELINE) -> Frame:
    return Frame(FrameKind.BEGIN, pipeline, epoch, seq, segments=(Segment(slot, 0, 4),), payload=b"{}")


def test_a_repeated_beginning_is_answered_and_not_carried_out_again(steps: StepLog) -> None:
    assert steps.admit_begin(begin(1)) is None
    done = steps.begun(begin(1))
    assert [frame.kind for frame in done] == [FrameKind.DONE]
    assert steps.admit_begin(begin(1)) == done
    assert steps.admit_begin(begin(2)) is None
    [stale] = steps.admit_begin(begin(3, epoch=4)) or ()
    assert stale.kind is FrameKind.STALE


@pytest.mark.parametrize("frame", [begin(1, 3), begin(1, epoch=6), begin(1, pipeline=b"x" * 16)])
def test_a_beginning_that_cannot_be_changes_nothing(steps: StepLog, frame: Frame) -> None:
    with pytest.raises(BadFrame):
        steps.admit_begin(frame)
