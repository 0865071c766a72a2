"""The line below an answer."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtWidgets import QApplication

from app.api.plans import Progress
from app.api.responses import AnswerRecovery
from app.core.chat import FIGURES
from app.gui.chat.message.answer_stats import AnswerStats, caption, step
from tests.gui.speaking import speaking


@pytest.mark.parametrize(
    ("predicted", "line"),
    [
        ({"decode_tok_s": 545.0}, "59.7 tok/s (forecast 360–820) · first token 21 ms · 40 tokens"),
        ({"decode_tok_s": 11.8}, "59.7 tok/s (forecast 9–15) · first token 21 ms · 40 tokens"),
        ({"decode_tok_s": 545.0, "too_small": True}, "59.7 tok/s · first token 21 ms · 40 tokens"),
        (None, "59.7 tok/s · first token 21 ms · 40 tokens"),
    ],
)
def test_a_forecast_is_a_range_and_none_is_told_of_a_very_small_model(
    qapp: QApplication, predicted: dict[str, Any] | None, line: str
) -> None:
    stats = AnswerStats.stored({FIGURES: {"decode_tok_s": 59.7, "ttft_s": 0.021, "tokens": 40, "predicted": predicted}})
    with speaking(qapp, "en"):
        assert caption(stats) == line


def test_an_answer_that_went_on_tells_the_tokens_of_all_its_parts(qapp: QApplication) -> None:
    lost = [AnswerRecovery(machine="attic")]
    first = AnswerStats(tokens=40, decode_tok_s=59.7, prompt_tokens=10, recovered=lost)
    then = AnswerStats(tokens=20, decode_tok_s=30.0, prompt_tokens=50)
    last = AnswerStats(tokens=1, ttft_s=0.021, prompt_tokens=70)
    whole = first.continued(then).continued(last)
    with speaking(qapp, "en"):
        assert caption(whole) == "30.0 tok/s · first token 21 ms · 61 tokens"
        assert caption(AnswerStats().continued(last)) == "first token 21 ms"  # the window ended before it had counted
    assert whole.context_tokens == 71
    assert whole.recovered == lost


def test_what_is_done_now_names_the_machine_once(qapp: QApplication) -> None:
    for language, words in (("en", "Measuring attic: 29%"), ("de", "Misst attic: 29 %")):
        with speaking(qapp, language):
            progress = Progress("measuring", "attic", 29, 100, "")
            assert step(progress) == words
    assert step(Progress("loading", "attic", 0, 0, "")) == "Loading layers on attic…"


def test_a_speed_that_includes_a_pause_says_so(qapp: QApplication) -> None:
    """No forecast foresees the loss of a machine, so the two are not set side by side."""
    stats = AnswerStats.stored({FIGURES: {
        "decode_tok_s": 3.2, "predicted": {"decode_tok_s": 11.8},
        "recovered": [{"machine": "attic", "recovered_after_s": 1.5}, {"machine": "den", "recovered_after_s": 2.5}],
    }})  # fmt: skip
    with speaking(qapp, "en"):
        assert caption(stats) == "3.2 tok/s, including a pause of 4.0 s"
