"""The choice between two engines of one computer, by the measured speed of a model's layers."""

from __future__ import annotations

from app.core.planner.forecast_range import DISTURBED_LOAD
from app.core.planner.speed_estimates import Speed

# A typical request, over a typical part of a model.
PROMPT_TOKENS, ANSWER_TOKENS, N_LAYERS = 512, 200, 8
GAIN = 1.1  # measurements of the same engine differ by up to a tenth, and changing engines costs loading again
DISTURBED_GAIN = 3.0  # of measurements while other programs use the processor


def typical_answer_s(speed: Speed, batch_rows: int) -> float:
    """Return the seconds that an engine takes for a typical request.

    batch_rows: the rows of a prefill chunk, as when the speed was measured.
    """
    n_chunks = max(1, PROMPT_TOKENS // batch_rows)
    prompt_s = n_chunks * (speed.step_s + N_LAYERS * speed.chunk_s)
    return prompt_s + ANSWER_TOKENS * (speed.step_s + N_LAYERS * speed.layer_s)


def is_faster(candidate: Speed, usual: Speed, batch_rows: int) -> bool | None:
    """Return whether an engine is clearly faster than the one that is used otherwise.

    Return None if other programs disturbed a measurement, and the engines do not differ more than that can explain.
    """
    ratio = typical_answer_s(candidate, batch_rows) / typical_answer_s(usual, batch_rows)
    disturbed = max(candidate.other_load, usual.other_load) > DISTURBED_LOAD
    if disturbed and 1 / DISTURBED_GAIN < ratio < DISTURBED_GAIN:
        return None
    return ratio * GAIN < 1
