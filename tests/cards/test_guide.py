"""The Guide in three stages, two of them on the device. `python -m tests.cards.real_case` asks all its questions."""

from __future__ import annotations

from tests.cards.device import in_a_process

N_QUESTIONS, SAME = 8, 7


def test_the_guide_answers_as_on_the_processor() -> None:
    figures = in_a_process("tests.cards.real_case", ["guide", "--questions", str(N_QUESTIONS)], within_s=380)
    print(figures)
    assert figures["answers"] == N_QUESTIONS
    assert figures["same"] >= SAME
