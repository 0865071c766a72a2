"""The sliding window of each layer, derived from a file's metadata in the same way as in llama.cpp."""

from __future__ import annotations

from backends.gguf_weights.stage_file import StageFile

WINDOW, PATTERN = "attention.sliding_window", "attention.sliding_window_pattern"


def windows(file: StageFile, n_layers: int, period: int, default: int = 0) -> tuple[int, ...]:
    """Return the number of positions that each layer sees, where 0 means all.

    period: every `period`-th layer sees all positions, unless the file states another pattern; if 0, none does.
    default: the window if the file states none.
    """
    window = file.integer(WINDOW, default)
    has_window = file.flags(PATTERN, n_layers)
    if has_window is None:
        period = file.integer(PATTERN, period)
        has_window = tuple(period == 0 or layer % period != period - 1 for layer in range(n_layers))
    return tuple(window if has else 0 for has in has_window)
