"""What a new chat begins with, as chosen in Settings: sampling, system message, the key that sends."""

from __future__ import annotations

from dataclasses import dataclass

from app.gui.app.preferences import Preferences

SYSTEM, SEND_KEY = "chat/system", "chat/send_key"
PARAGRAPHS = "chat/read_paragraphs"
ENTER, CTRL_ENTER = "enter", "ctrl_enter"


@dataclass(frozen=True, slots=True)
class Value:
    """One number of sampling: its name in the node's API, its default, its range."""

    name: str
    default: float
    least: float
    most: float
    digits: int

    @property
    def key(self) -> str:
        """Of the preference."""
        return f"chat/{self.name}"

    def chosen(self, preferences: Preferences) -> float:
        """Within its range, whatever the file says."""
        found = preferences.number(self.key, self.default)
        return min(self.most, max(self.least, found))


# Names and defaults are those of `sampling` of POST /ask.
VALUES = (
    Value("temperature", 0.8, 0.0, 2.0, 2),
    Value("top_k", 40, 0, 1000, 0),
    Value("top_p", 0.95, 0.0, 1.0, 2),
    Value("min_p", 0.05, 0.0, 1.0, 2),
    Value("repeat_penalty", 1.0, 0.5, 2.0, 2),
)


def sampling(preferences: Preferences) -> dict[str, float | int]:
    """For the body of POST /ask."""
    return {one.name: one.chosen(preferences) if one.digits else round(one.chosen(preferences)) for one in VALUES}


def system_message(preferences: Preferences) -> str:
    """Empty: none."""
    return preferences.text(SYSTEM).strip()


def sends_with_enter(preferences: Preferences) -> bool:
    """Else Ctrl+Enter sends, and Enter begins a new line."""
    return preferences.text(SEND_KEY, ENTER) != CTRL_ENTER


def reads_paragraphs(preferences: Preferences) -> bool:
    """A screen reader is told of each finished paragraph; else of the answer at its end."""
    return preferences.flag(PARAGRAPHS)


def beginning(preferences: Preferences) -> tuple[str, dict[str, float | int]]:
    """What a new chat begins with: the system message, and of sampling what a person changed."""
    now = sampling(preferences)
    changed = {one.name: now[one.name] for one in VALUES if now[one.name] != one.default}
    return system_message(preferences), changed
