"""A card of settings: its heading, and a hairline between each two that are shown."""

from __future__ import annotations

from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.gui.look import theme as sizes
from app.gui.settings.setting_row import Setting
from app.gui.widgets.labels import label, show_if
from app.gui.widgets.layouts import card, line


class Card:
    """Settings may come later; while none is shown there is neither card nor heading."""

    def __init__(self, page: QVBoxLayout, title: str) -> None:
        self.heading = label(title, "muted") if title else None
        if self.heading is not None:
            self.heading.setWordWrap(True)
            page.addSpacing(sizes.S)
            page.addWidget(self.heading)
        self.frame = card(gap=0)
        box = self.frame.layout()
        assert box is not None
        self._box = box
        self._box.setContentsMargins(sizes.L, sizes.S, sizes.L, sizes.S)
        self._rows: list[tuple[QWidget | None, Setting]] = []
        page.addWidget(self.frame)

    def put(self, *settings: Setting) -> None:
        """At its end. They are seen after the next `show`."""
        for setting in settings:
            between = line() if self._rows else None
            if between is not None:
                self._box.addWidget(between)
            self._box.addWidget(setting)
            self._rows.append((between, setting))

    def show(self, words: list[str]) -> int:
        """Only settings in which all `words` stand; how many."""
        shown = 0
        for between, setting in self._rows:
            found = not setting.gone and setting.matches(words)
            show_if(setting, found)
            if between is not None:
                show_if(between, found and shown > 0)
            shown += found
        show_if(self.frame, shown > 0)
        if self.heading is not None:
            show_if(self.heading, shown > 0)
        return shown
