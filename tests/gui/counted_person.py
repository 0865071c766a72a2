"""Somebody at a computer, whose clicks and typed codes are counted."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tests.gui.outside import Outside

BUSY = 90  # seconds that a step may take where the processor is shared with much else


@dataclass
class Person:
    """Somebody at a computer, who presses buttons by their names."""

    screen: Outside
    clicks: list[str] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)

    def press(self, name: str, within: float = BUSY, role: str = "push button") -> None:
        self.screen.press(name, role=role, within=within)
        self.clicks.append(name)

    def reads(self, text: str, within: float = BUSY) -> str:
        return self.screen.read(text, within=within)

    def shown_code(self) -> str:
        """The six digits on the screen."""
        self.reads("If the new machine can't find this one")
        return "".join(re.findall(r"^label: '(\d)' ", "\n".join(self.screen.tree()), re.MULTILINE))

    def types_code(self, code: str) -> None:
        """Type a code wherever the keys go, without a click into the field."""
        self.screen.focus_is_on("Six-digit code", role="text")
        self.screen.type(code)
        self.codes.append(code)
