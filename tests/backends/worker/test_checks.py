"""Steps that check guesses: nothing is sampled after a wrong one, and the tokens are those of one row at a time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.contract import (
    GREEDY,
    MOST_GUESSES,
    NOT_SAMPLED,
    FamilyTraits,
    Layers,
    NumberFormat,
    Role,
    Sampling,
    Segment,
    StageConfig,
)
from backends.frames import BadFrame, Frame, FrameKind, PipelineParameters, check_step, guesses_of, guesses_to_wire
from backends.hidden_state_codec import decode_ids, encode_ids
from backends.worker.stage_runner import StageRunner, StepLog
from backends.worker_orders import BeginSequence, OpenStage

PIPELINE = bytes(16)
AGREED = PipelineParameters(PIPELINE, 1, NumberFormat.IDS, slots=3, context=1000, samples=True)
PROMPT = (5, 6, 7)
WARM = Sampling(temperature=1.5, top_k=0, top_p=1.0, min_p=0.0)
CREATIVE = Sampling(temperature=50.0, top_k=0, top_p=1.0, min_p=0.0, repeat_penalty=1.3)


class Whole:
    """A whole fake model and the answer in its slot 0."""

    def __init__(self, sampling: Sampling, *, recurrent: bool = False) -> None:
        traits = FamilyTraits(recurrent=recurrent)
        config = StageConfig("fake", "fake:vocab=64", "", Role.WHOLE, Layers(0, 4), 8, 2, 128, 32, 1, traits=traits)
        order = OpenStage(
            request=0, pipeline=PIPELINE.hex(), epoch=0, config=config, number=0, context=64, memory_limit_bytes=0
        )
        self.runner, self.seq = StageRunner(order), 0
        self.begin(sampling)

    def begin(self, sampling: Sampling) -> None:
        self.runner.start(self.runner._steps.epoch + 1)
        order = BeginSequence(
            request=0, pipeline=PIPELINE.hex(), slot=0, due_from=len(PROMPT), sampling=sampling, history=(), drawn=0
        )
        self.runner.begin(order)

    def frame(self, pos: int, ids: Sequence[int], guesses: Sequence[int] = (), *, cuts: bool = False) -> Frame:
        self.seq += 1
        payload = bytes(encode_ids([*ids, *guesses])) + (guesses_to_wire([guesses]) if guesses else b"")
        segments = (Segment(0, len(ids) + len(guesses), pos),)
        epoch = self.runner._steps.epoch
        return Frame(
            FrameKind.STEP, PIPELINE, epoch, self.seq, NumberFormat.IDS, segments, payload, False, cuts, bool(guesses)
        )

    def sampled(self, frame: Frame) -> list[int]:
        answer = self.runner.step(frame)[-1]
        assert answer.kind is FrameKind.SAMPLED
        return list(decode_ids(answer.payload).tolist())

    def text(self, n: int, guess: Sequence[int] = (), depth: int = 0) -> list[int]:
        """Return `n` tokens. guess: what is guessed, `depth` tokens at a time, whether or not it is right."""
        said, pos, held = list[int](), 0, 0
        while len(said) < n:
            known = [*PROMPT, *said][pos:]
            some = list(guess[len(said) : len(said) + depth])
            ids = self.sampled(self.frame(pos, known, some, cuts=held > pos))
            held = pos + len(known) + len(some)
            taken = [token for token in ids if token != NOT_SAMPLED]
            assert ids[len(taken) :] == [NOT_SAMPLED] * (len(ids) - len(taken))
            assert taken[:-1] == some[: len(taken) - 1]
            said += taken
            pos = len(PROMPT) + len(said) - 1
        return said[:n]


@pytest.mark.parametrize("sampling", [GREEDY, CREATIVE, Sampling(temperature=3.0, seed=9, presence_penalty=0.5)])
@pytest.mark.parametrize("depth", [1, 3, 8])
@pytest.mark.parametrize("wrong_every", [1, 2, 5, 100])
def test_the_same_seed_says_the_same_whatever_is_guessed(sampling: Sampling, depth: int, wrong_every: int) -> None:
    plain = Whole(sampling).text(30)
    guess = [token ^ (n % wrong_every == wrong_every - 1) for n, token in enumerate(plain)]
    assert Whole(sampling).text(30, guess, depth) == plain


@pytest.mark.parametrize("is_likely", [True, False])
def test_what_is_sampled_beside_guesses_follows_the_models_own_distribution(is_likely: bool) -> None:
    """2,000 seeds: the second token, given one guess of the first, has the same distribution as without guesses."""
    guess = Whole(GREEDY).text(1)[0] ^ (not is_likely)
    pairs = {0: Counter[int](), 1: Counter[int]()}
    whole = Whole(WARM)
    for depth, counts in pairs.items():
        for seed in range(1000 * depth, 1000 * depth + 1000):
            whole.begin(Sampling(**{name: getattr(WARM, name) for name in WARM.__slots__} | {"seed": seed}))
            counts[whole.text(2, [guess], depth)[-1]] += 1
    compared = [(pairs[0][token], pairs[1][token]) for token in range(64) if pairs[0][token] + pairs[1][token] >= 10]
    chi_square = sum((a - b) ** 2 / (a + b) for a, b in compared)
    assert len(compared) > 2
    assert chi_square < len(compared) + 4 * math.sqrt(2 * len(compared))


def test_a_repeated_check_is_answered_from_memory_and_a_late_one_cuts_nothing() -> None:
    whole = Whole(CREATIVE)
    first = whole.frame(0, PROMPT)
    [token] = whole.sampled(first)
    wrong = whole.frame(3, [token], [60, 61])
    ids = whole.sampled(wrong)
    assert whole.sampled(wrong) == ids
    again = whole.frame(4, [ids[0]], cuts=True)
    [after] = whole.sampled(again)
    assert whole.sampled(again) == [after], "nothing is drawn twice"
    whole.sampled(whole.frame(5, [after]))
    whole.sampled(whole.frame(6, [1]))
    assert whole.runner.step(again)[0].kind is FrameKind.NEED_FROM
    assert whole.runner._steps.next_pos[0] == 7


def test_a_step_begins_earlier_only_if_it_says_so_and_never_later() -> None:
    whole = Whole(GREEDY)
    whole.sampled(whole.frame(0, PROMPT))
    assert whole.runner.step(whole.frame(2, [7]))[0].kind is FrameKind.NEED_FROM
    assert whole.runner.step(whole.frame(4, [7], cuts=True))[0].kind is FrameKind.NEED_FROM
    whole.sampled(whole.frame(2, [7], cuts=True))


def test_a_recurrent_state_is_never_cut() -> None:
    whole = Whole(GREEDY, recurrent=True)
    whole.sampled(whole.frame(0, PROMPT))
    with pytest.raises(BadFrame):
        whole.runner.step(whole.frame(2, [7], cuts=True))
    whole.sampled(whole.frame(3, [7]))


def test_a_recurrent_stage_has_no_room_for_the_scores_of_guesses() -> None:
    whole = Whole(GREEDY, recurrent=True)
    whole.sampled(whole.frame(0, PROMPT))
    with pytest.raises(BadFrame):
        whole.runner.step(whole.frame(3, [7], [8, 9]))
    whole.sampled(whole.frame(3, [7]))


def test_log_probabilities_name_the_place_of_each_token() -> None:
    whole = Whole(Sampling(temperature=0.0, likely=2))
    [token] = whole.sampled(whole.frame(0, PROMPT))
    plain = Whole(GREEDY).text(4)
    frames = whole.runner.step(whole.frame(3, [token], [plain[1], plain[2], 63]))
    assert [frame.segments[0].end for frame in frames if frame.kind is FrameKind.LIKELY] == [4, 5, 6]


def checking(n_rows: int, tail: bytes, agreed: PipelineParameters = AGREED) -> Frame:
    payload = np.zeros(n_rows, np.int32).tobytes() + tail
    return Frame(FrameKind.STEP, PIPELINE, 0, 1, agreed.number, (Segment(0, n_rows, 0),), payload, checks=True)


@pytest.mark.parametrize(
    "frame",
    [
        checking(3, b""),
        checking(3, b"\0"),
        checking(3, guesses_to_wire([[]])),
        checking(3, guesses_to_wire([[1, 2, 3]])),
        checking(3, guesses_to_wire([[1, 2], [1]])),
        checking(3, guesses_to_wire([[1, 2]]) + b"\0"),
        checking(3, guesses_to_wire([[1, 2]])[:-1]),
        checking(3, guesses_to_wire([[1, -2]])),
        checking(30, guesses_to_wire([[1] * (MOST_GUESSES + 1)])),
    ],
)
def test_malformed_guesses_are_a_bad_frame(frame: Frame) -> None:
    with pytest.raises(BadFrame):
        check_step(frame, AGREED)


def test_only_a_stage_that_samples_is_sent_guesses() -> None:
    frame = checking(3, guesses_to_wire([[1, 2]]))
    check_step(frame, AGREED)
    assert guesses_of(frame, AGREED) == ((1, 2),)
    with pytest.raises(BadFrame):
        check_step(frame, PipelineParameters(PIPELINE, 1, NumberFormat.IDS, slots=3, context=1000))


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 5), st.integers(0, 3), st.booleans()), max_size=30))
def test_a_link_that_sends_twice_cuts_once(moves: list[tuple[int, int, int, bool]]) -> None:
    steps, applied = StepLog(AGREED, 0), {0: 0, 1: 0, 2: 0}
    for seq, (slot, n_tokens, back, twice) in enumerate(moves, 1):
        pos = max(0, applied[slot] - back)
        segments = (Segment(slot, n_tokens, pos),)
        frame = Frame(FrameKind.STEP, PIPELINE, 0, seq, NumberFormat.IDS, segments, bytes(4 * n_tokens), cuts=True)
        answer = (Frame(FrameKind.SAMPLED, PIPELINE, 0, seq),)
        for _ in range(1 + twice):
            kept = steps.admit(frame)
            if kept is None:
                steps.cut(frame)
                steps.computed(frame, answer)
                applied[slot] = pos + n_tokens
            else:
                assert kept == answer
    assert steps.next_pos == list(applied.values())
