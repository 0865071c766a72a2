"""The engine without weights notices every mistake a pipeline could make."""

from __future__ import annotations

import numpy as np
import pytest

from backends.contract import Hidden, Layers, Logits, NumberFormat, Role, Segment, StageConfig, StageError, Tokens
from backends.fake_engine import FakeStage
from backends.hidden_state_codec import bytes_of, decode_hidden, encode_hidden

WIDTH, PROMPT = 8, [3, 80, 81, 90, 250]


def stage(first: int, last: int, role: Role, options: str = "") -> FakeStage:
    return FakeStage(StageConfig("fake", "fake:" + options, "", role, Layers(first, last), WIDTH, 2, 512, 64, 1))


def pipeline(*ends: int) -> list[FakeStage]:
    roles = [Role.FIRST, *[Role.MIDDLE] * (len(ends) - 3), Role.LAST]
    if len(ends) == 2:
        roles = [Role.WHOLE]
    return [stage(a, b, r) for a, b, r in zip(ends, ends[1:], roles, strict=False)]


def run(stages: list[FakeStage], ids: list[int], pos: int, number: NumberFormat = NumberFormat.F32) -> int:
    segments = (Segment(0, len(ids), pos),)
    out: Tokens | Hidden | Logits = Tokens(segments, ids)
    for part in stages:
        if isinstance(out, Hidden):
            rows = np.frombuffer(out.rows, np.float32).reshape(-1, WIDTH)
            out = Hidden(segments, bytes_of(decode_hidden(encode_hidden(rows, number), WIDTH, number)))
        assert not isinstance(out, Logits)
        out = part.forward(out, [0])
    assert isinstance(out, Logits)
    return int(np.frombuffer(out.rows, np.float32).argmax())


def greedy(stages: list[FakeStage], number: NumberFormat = NumberFormat.F32) -> list[int]:
    said = [run(stages, PROMPT, 0, number)]
    for pos in range(len(PROMPT), len(PROMPT) + 20):
        said.append(run(stages, said[-1:], pos, number))
    return said


WHOLE = greedy(pipeline(0, 6))


def test_each_layer_adds_one() -> None:
    out = stage(0, 4, Role.FIRST).forward(Tokens((Segment(0, 1, 0),), [0]), [])
    assert isinstance(out, Hidden)
    assert np.frombuffer(out.rows, np.float32).tolist() == [4.0] * WIDTH


@pytest.mark.parametrize("number", [NumberFormat.F32, NumberFormat.F16, NumberFormat.Q8])
@pytest.mark.parametrize("ends", [(0, 1, 6), (0, 3, 6), (0, 1, 2, 6), (0, 2, 3, 5, 6)])
def test_split_equals_whole_on_every_wire(ends: tuple[int, ...], number: NumberFormat) -> None:
    assert greedy(pipeline(*ends), number) == WHOLE
    assert len(set(WHOLE)) > 5


def test_a_missing_or_doubled_layer_changes_the_tokens() -> None:
    full = [stage(0, 2, Role.FIRST), stage(2, 4, Role.MIDDLE), stage(4, 6, Role.LAST)]
    assert greedy(full) == WHOLE
    short = [stage(0, 2, Role.FIRST), stage(4, 6, Role.LAST)]
    assert greedy(short) != WHOLE
    double = [stage(0, 4, Role.FIRST), stage(2, 4, Role.MIDDLE), stage(4, 6, Role.LAST)]
    assert greedy(double) != WHOLE


def test_another_history_changes_the_tokens() -> None:
    stages = pipeline(0, 6)
    assert run(stages, [3, 80, 81, 91, 250], 0) != WHOLE[0]


@pytest.mark.parametrize("loser", [0, 1, 2])
def test_a_position_lost_by_any_stage_changes_the_tokens(loser: int) -> None:
    stages = pipeline(0, 2, 4, 6)
    run(stages, PROMPT, 0)
    stages[loser].forget(0, keep=3)
    assert run(stages, WHOLE[:1], len(PROMPT)) != WHOLE[1]


def test_forget_and_replay_gives_the_same_tokens() -> None:
    stages = pipeline(0, 2, 6)
    assert greedy(stages) == WHOLE
    for part in stages:
        part.forget(0, keep=2)
    assert run(stages, PROMPT[2:], 2) == WHOLE[0]


def test_an_answer_ends_at_its_length() -> None:
    assert run([stage(0, 6, Role.WHOLE, "length=5")], PROMPT, 0) == 1


@pytest.mark.parametrize("path", ["fake:vocab=x", "fake:wheels=4", "real.gguf"])
def test_a_path_that_is_none_is_refused(path: str) -> None:
    config = StageConfig("fake", path, "", Role.WHOLE, Layers(0, 1), WIDTH, 1, 64, 64, 1)
    with pytest.raises(StageError):
        FakeStage(config)


def test_what_does_not_belong_here_is_refused() -> None:
    tokens = Tokens((Segment(0, 1, 0),), [3])
    hidden = Hidden((Segment(0, 1, 0),), memoryview(bytes(4 * WIDTH)))
    with pytest.raises(StageError):
        stage(2, 4, Role.MIDDLE).forward(tokens, [])
    with pytest.raises(StageError):
        stage(0, 4, Role.FIRST).forward(hidden, [])
    with pytest.raises(StageError):
        stage(0, 4, Role.FIRST).forward(Tokens((Segment(0, 1, 0),), [300]), [])
