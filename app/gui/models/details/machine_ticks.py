"""Which machines may hold layers: a tick for each. This one always does, for its own user."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QWidget

from app.gui.api.node_state import Pool
from app.gui.look import formats
from app.gui.look import theme as sizes
from app.gui.widgets.labels import label
from app.gui.widgets.layouts import clear, column

Json = dict[str, Any]


class MachineTicks(QWidget):
    """`changed` when a person ticks or unticks one. Hidden where there is nothing to choose."""

    changed = Signal()

    def __init__(self, pool: Pool) -> None:
        super().__init__()
        self._pool = pool
        self._without: set[str] = set()
        self._useful = True  # for a model that can be split
        self._shown: list[tuple[str, str, bool]] = []
        self.boxes: dict[str, QCheckBox] = {}
        self._box = column(gap=0)
        self.setLayout(self._box)
        pool.changed.connect(self.tell)
        self.tell()

    @property
    def without(self) -> tuple[str, ...]:
        """Ids of machines that are there and left out."""
        return tuple(sorted(self._without & set(self.boxes)))

    def offer(self, *, splits: bool) -> None:
        """For a model that runs whole there is no choice."""
        self._useful = splits
        self.setVisible(self._useful and len(self._shown) > 1)

    def tell(self) -> None:
        """The household as it is now."""
        found = [
            (str(one["id"]), self._words(one), bool(one.get("this")) or _lends(one))
            for one in self._pool.machines
            if one.get("this") or "lender" in (one.get("roles") or [])
        ]
        if found != self._shown:
            self._shown = found
            self._fill()

    def _fill(self) -> None:
        focused = next((key for key, box in self.boxes.items() if box.hasFocus()), None)
        clear(self._box)
        self.boxes = {}
        self.setVisible(self._useful and len(self._shown) > 1)
        if len(self._shown) < 2:
            return
        self._box.addWidget(label(self.tr("Machines to use")))
        own = self._pool.node.get("id")
        for key, words, lends in self._shown:
            box = QCheckBox(words)
            box.setAccessibleName(words)
            box.setChecked(lends and key not in self._without)
            box.setEnabled(lends and key != own)
            if key == own:
                box.setToolTip(self.tr("This machine holds the first and the last layers."))
            else:
                box.toggled.connect(lambda on, key=key: self._ticked(key, on))
                self.boxes[key] = box
            self._box.addWidget(box)
        self._box.setSpacing(sizes.XS)
        if focused in self.boxes:
            self.boxes[focused].setFocus()

    def _words(self, machine: Json) -> str:
        name = str(machine.get("name"))
        if machine.get("this"):
            return self.tr("{name} (this machine)").format(name=name)
        if not machine.get("online"):
            return self.tr("{name} (offline)").format(name=name)
        if not _lends(machine):
            return self.tr("{name} (lends nothing now)").format(name=name)
        size = formats.size(machine["lent_bytes"])
        return self.tr("{name} (lends {size})").format(name=name, size=size)

    def _ticked(self, key: str, on: bool) -> None:
        (self._without.discard if on else self._without.add)(key)
        self.changed.emit()


def _lends(machine: Json) -> bool:
    return bool(machine.get("online")) and bool(machine.get("lent_bytes"))
