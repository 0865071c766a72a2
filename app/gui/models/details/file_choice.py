"""Which quantisation of a model: one is recommended; what cannot be used says why."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QStandardItemModel
from PySide6.QtWidgets import QComboBox, QWidget

from app.gui.look import formats
from app.gui.look import theme as sizes
from app.gui.look.sentences import here
from app.gui.models.model_item import Item
from app.gui.widgets.fields import DropDown, wheel_scrolls_page
from app.gui.widgets.labels import label, tooltip
from app.gui.widgets.layouts import column

Json = dict[str, Any]
LEAST_CHARACTERS = 12  # shown of a line, however narrow it gets


class FileChoice(QWidget):
    """Hidden where there is nothing to choose."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.combo = DropDown()
        self.combo.setAccessibleName(self.tr("Quantisation"))
        wheel_scrolls_page(self.combo)
        policy = QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        self.combo.setSizeAdjustPolicy(policy)
        self.combo.setMinimumContentsLength(LEAST_CHARACTERS)
        self.combo.currentIndexChanged.connect(lambda _: self.changed.emit())
        title = label(self.tr("Quantisation"))
        title.setBuddy(self.combo)
        self.setLayout(column(title, self.combo, gap=sizes.XS))

    @property
    def file(self) -> str | None:
        """The chosen one's name."""
        data = self.combo.currentData()
        return str(data) if data else None

    def show_item(self, item: Item, keep: str | None = None) -> None:
        """The files of a model; `keep`: the one to stand at, if it is there."""
        blocked = self.combo.blockSignals(True)
        self.combo.clear()
        for file in item.files:
            self.combo.addItem(self._words(file), file["file"])
            if not file.get("usable"):
                self._bar(self.combo.count() - 1, here(str(file.get("reason") or "")))
        best = item.file(keep) or item.file()
        self.combo.setCurrentIndex(self.combo.findData(best["file"]) if best else -1)
        self.combo.blockSignals(blocked)
        self.setVisible(bool(item.files))

    def choose(self, quantisation: str) -> None:
        """The first file of this quantisation."""
        for n in range(self.combo.count()):
            if self.combo.itemText(n).startswith(quantisation):
                self.combo.setCurrentIndex(n)
                return

    def _words(self, file: Json) -> str:
        name = str(file.get("quantisation") or file["file"])
        size = formats.size(file["size_bytes"]) if file.get("size_bytes") else ""
        several = int(file.get("parts") or 1)
        parts = self.tr("{count} files").format(count=several) if several > 1 else ""
        words = " · ".join(part for part in (name, size, parts) if part)
        if file.get("on_shelf"):
            return self.tr("{words} (on this computer)").format(words=words)
        if file.get("recommended"):
            return self.tr("{words} (recommended)").format(words=words)
        return words

    def _bar(self, place: int, why: str) -> None:
        model = self.combo.model()
        if isinstance(model, QStandardItemModel) and (one := model.item(place)) is not None:
            one.setEnabled(False)
            one.setToolTip(tooltip(why))
            one.setData(why, Qt.ItemDataRole.AccessibleDescriptionRole)
