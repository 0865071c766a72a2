"""The sentences of why lending is paused that only its own machine tells."""

from __future__ import annotations

PAUSE_SENTENCES: dict[str, str] = {
    "pause_battery_at": "Paused: on battery ({percent} %). Resumes when it is plugged in.",
    "pause_program_named": "Paused: {program} runs. Resumes when it closes.",
    "pause_hot_at": "Paused: the processor has {degrees} °C. Resumes when it has cooled down.",
}
