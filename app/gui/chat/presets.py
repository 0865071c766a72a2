"""Presets, which are named system messages and named sets of sampling parameters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QObject, Signal

from app.core.chat import Sampling
from app.decoding import decode
from app.gui.app.preferences import Preferences

SYSTEM, SAMPLING = "presets/system", "presets/sampling"  # preferences keys
MAX_PRESETS, NAME_CHARACTERS, TEXT_CHARACTERS = 100, 100, 100_000
MAX_SEED = (1 << 32) - 2


@dataclass(frozen=True, slots=True)
class SamplingParameter:
    """A sampling parameter and its valid range. If its default is None, the value is random each time."""

    name: str
    minimum: float
    maximum: float
    default: float | None
    step: float
    whole: bool = False


SAMPLING_PARAMETERS = (
    SamplingParameter("temperature", 0, 10, 0.8, 0.1),
    SamplingParameter("top_k", 0, 1 << 20, 40, 1, whole=True),
    SamplingParameter("top_p", 0, 1, 0.95, 0.01),
    SamplingParameter("min_p", 0, 1, 0.05, 0.01),
    SamplingParameter("repeat_penalty", 0, 10, 1.0, 0.05),
    SamplingParameter("seed", 0, MAX_SEED, None, 1, whole=True),
)


def valid_sampling(values: object) -> dict[str, float | int]:
    """Return the sampling parameters that are valid and differ from their defaults."""
    if not isinstance(values, Mapping):
        return {}
    return {
        parameter.name: int(value) if parameter.whole else value
        for parameter in SAMPLING_PARAMETERS
        if (value := values.get(parameter.name)) is not None and _fits(parameter, value)
    }


def _fits(parameter: SamplingParameter, value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not parameter.minimum <= value <= parameter.maximum:  # type: ignore[operator]
        return False
    return value != parameter.default and (not parameter.whole or value == int(value))  # type: ignore[call-overload]


class Presets(QObject):
    """The built-in presets and the user's own presets, which override built-in ones with the same name.

    The user's presets are stored in the preferences.
    """

    changed = Signal()

    def __init__(self, preferences: Preferences, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._preferences = preferences

    def systems(self) -> dict[str, str]:
        """Return all system messages by name, built-in ones first."""
        builtin = {
            self.tr("Helpful and brief"): self.tr("Answer briefly and clearly. Say so if you do not know."),
            self.tr("Explain simply"): self.tr(
                "Explain things to someone who is new to the subject. Use short sentences and an example."
            ),
            self.tr("Programming"): self.tr(
                "You are a programming assistant. Show complete, working code and explain how to run it."
            ),
            self.tr("Edit a text"): self.tr(
                "Improve the spelling, grammar and style of the text. Keep its meaning and language. Show the "
                "improved text, then list your changes."
            ),
        }
        return builtin | self.own_systems()

    def own_systems(self) -> dict[str, str]:
        """Return the user's system messages by name. Only these can be removed."""
        saved = self._saved(SYSTEM)
        return {name: text for name, text in saved.items() if isinstance(text, str)}

    def samplings(self) -> dict[str, Sampling]:
        """Return all sets of sampling parameters by name. A set may omit parameters, which then have their defaults."""
        builtin: dict[str, Sampling] = {
            self.tr("Balanced"): {},
            self.tr("Precise"): {"temperature": 0.2, "top_p": 0.9},
            self.tr("Creative"): {"temperature": 1.1, "top_p": 0.98},
            self.tr("Same answer every time"): {"temperature": 0.0},
        }
        return builtin | self.own_samplings()

    def own_samplings(self) -> dict[str, Sampling]:
        """Return the user's sets of sampling parameters by name. Only these can be removed."""
        return {name: valid_sampling(values) for name, values in self._saved(SAMPLING).items()}

    def save_system(self, name: str, text: str) -> None:
        """Save a system message under this name, replacing any existing one."""
        self._save(SYSTEM, name, text[:TEXT_CHARACTERS])

    def save_sampling(self, name: str, values: Sampling) -> None:
        """Save a set of sampling parameters under this name, replacing any existing one."""
        self._save(SAMPLING, name, valid_sampling(values))

    def remove_system(self, name: str) -> None:
        self._remove(SYSTEM, name)

    def remove_sampling(self, name: str) -> None:
        self._remove(SAMPLING, name)

    def _saved(self, group: str) -> dict[str, Any]:
        try:
            return decode(self._preferences.text(group) or "{}", dict[str, Any])
        except ValueError:
            return {}

    def _save(self, group: str, name: str, value: object) -> None:
        name = " ".join(name.split())[:NAME_CHARACTERS]
        saved = self._saved(group)
        if name and (name in saved or len(saved) < MAX_PRESETS):
            self._write(group, saved | {name: value})

    def _remove(self, group: str, name: str) -> None:
        saved = self._saved(group)
        if saved.pop(name, None) is not None:
            self._write(group, saved)

    def _write(self, group: str, saved: dict[str, Any]) -> None:
        self._preferences.keep(group, json.dumps(saved))
        self.changed.emit()
