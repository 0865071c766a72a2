"""The range within which the measured speed of an answer is expected. It depends on the basis of the forecast.

A forecast of measured layers was off by at most 23 % in 14 households (docs/speed.md). A forecast from layers of
another shape is less certain. So is the forecast for a fast model, because its tokens take less time than what else the
computers are doing.
"""

from __future__ import annotations

from math import floor, log10

from app.core.planner.speed_estimates import is_rough

MEASURED_SPREAD, ROUGH_SPREAD, ESTIMATED_SPREAD = 1.25, 1.5, 1.6
DISTURBED_LOAD = 0.2  # share of the processor used by other programs that makes a measurement less certain
DISTURBED_SPREAD = 1.3
TOO_BUSY_LOAD = 0.5  # above this, a forecast cannot be right


def spread_of(tok_s: float, *, estimated: bool, other_load: float = 0.0) -> float:
    """Return the factor by which an answer may be faster or slower than forecast.

    other_load: the share of a processor that other programs used while its speed was measured.
    """
    spread = ESTIMATED_SPREAD if estimated else MEASURED_SPREAD
    if is_rough(tok_s):
        spread = max(spread, ROUGH_SPREAD)
    return spread * DISTURBED_SPREAD if other_load > DISTURBED_LOAD else spread


def rounded_range(value: float, spread: float) -> tuple[float, float, int]:
    """Return the ends of a range, rounded to two digits, and the number of decimals to show them with."""
    low, high = value / spread, value * spread
    digits = 1 if high < 10 else 0
    return _rounded(low, digits), _rounded(high, digits), digits


def _rounded(value: float, digits: int) -> float:
    """Round to two significant digits, but to no more than `digits` decimals."""
    if value <= 0:
        return 0.0
    return round(value, min(digits, 1 - floor(log10(value))))
