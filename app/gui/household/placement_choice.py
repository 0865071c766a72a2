"""Whose placement the map shows, where the models of several machines run at the same time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtWidgets import QComboBox, QWidget

from app.gui.parts.flow import Flow
from app.gui.parts.text import label

Host = tuple[str, str]  # id and name


class PlacementChoice(QWidget):
    """Hidden while at most one runs; `chosen` is called when a person chooses."""

    def __init__(self, chosen: Callable[[], object]) -> None:
        super().__init__()
        self._chosen = chosen
        self._hosts: tuple[Host, ...] = ()
        self.box = QComboBox()
        self.box.setAccessibleName(self.tr("Whose model the map shows"))
        self.box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.box.activated.connect(lambda _: chosen())
        words = label(self.tr("Show the model of"), "muted")
        words.setBuddy(self.box)
        self.setLayout(Flow(words, self.box))
        self.hide()

    @property
    def centre(self) -> str:
        """The machine whose placement is shown; "" while there is nothing to choose."""
        at = self.box.currentIndex()
        return self._hosts[at][0] if len(self._hosts) > 1 and at >= 0 else ""

    def show_hosts(self, hosts: Sequence[Host], this: str) -> None:
        """Who runs a model; the choice stays while that machine still does."""
        if tuple(hosts) == self._hosts:
            return
        before = self.centre
        self._hosts = tuple(hosts)
        self.box.clear()
        for key, name in self._hosts:
            text = self.tr("{name} (this machine)").format(name=name) if key == this else name
            self.box.addItem(text)
        keys = [key for key, _ in self._hosts]
        self.box.setCurrentIndex(keys.index(before) if before in keys else 0)
        self.setVisible(len(keys) > 1)
