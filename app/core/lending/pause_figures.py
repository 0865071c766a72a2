"""Why lending is paused, as its own machine tells it: with the figures and names that the others are not told."""

from __future__ import annotations

from app.core.errors import Reason
from app.core.lending.policy import Senses


def in_figures(why: Reason, senses: Senses) -> Reason:
    """The same reason with what is sensed now; itself where that tells no more."""
    match why.code:
        case "pause_battery" if senses.battery is not None:
            return Reason("pause_battery_at", {"percent": round(senses.battery.percent)})
        case "pause_program" if senses.programs:
            return Reason("pause_program_named", {"program": min(senses.programs)})
        case "pause_hot" if senses.hottest_c is not None:
            return Reason("pause_hot_at", {"degrees": round(senses.hottest_c)})
    return why
