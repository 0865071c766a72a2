"""The defaults of new chats, as chosen in Settings: sampling, system message, and the key that sends."""

from __future__ import annotations

from dataclasses import dataclass

from app.gui.app.preferences import Preferences

SYSTEM, SEND_KEY = "chat/system", "chat/send_key"
PARAGRAPHS = "chat/read_paragraphs"
ENTER, CTRL_ENTER = "enter", "ctrl_enter"


@dataclass(frozen=True, slots=True)
class Value:
    """A sampling value: its name in the node's API, its default, and its range."""

    name: str
    default: float
    least: float
    most: float
    digits: int

    @property
    def key(self) -> str:
        """The key of the preference."""
        return f"chat/{self.name}"

    def chosen(self, preferences: Preferences) -> float:
        """Return the chosen value, limited to its range."""
        number = preferences.number(self.key, self.default)
        return min(self.most, max(self.least, number))


# Names and defaults are those of `sampling` of POST /ask.
VALUES = (
    Value("temperature", 0.8, 0.0, 2.0, 2),
    Value("top_k", 40, 0, 1000, 0),
    Value("top_p", 0.95, 0.0, 1.0, 2),
    Value("min_p", 0.05, 0.0, 1.0, 2),
    Value("repeat_penalty", 1.0, 0.5, 2.0, 2),
)


def sampling(preferences: Preferences) -> dict[str, float | int]:
    """Return the sampling values for the body of POST /ask."""
    return {
        value.name: value.chosen(preferences) if value.digits else round(value.chosen(preferences)) for value in VALUES
    }


def system_message(preferences: Preferences) -> str:
    """Return the system message; empty: none."""
    return preferences.text(SYSTEM).strip()


def sends_with_enter(preferences: Preferences) -> bool:
    """Return whether Enter sends; otherwise Ctrl+Enter does, and Enter begins a new line."""
    return preferences.text(SEND_KEY, ENTER) != CTRL_ENTER


def reads_paragraphs(preferences: Preferences) -> bool:
    """Return whether a screen reader hears each finished paragraph, or the whole answer at its end."""
    return preferences.flag(PARAGRAPHS)


def beginning(preferences: Preferences) -> tuple[str, dict[str, float | int]]:
    """Return the system message, and the sampling values that a person changed."""
    now = sampling(preferences)
    changed = {value.name: now[value.name] for value in VALUES if now[value.name] != value.default}
    return system_message(preferences), changed
