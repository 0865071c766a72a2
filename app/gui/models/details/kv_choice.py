"""How the context is kept: exactly, or in about half the memory; what each takes, and what it does to answers."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QComboBox, QWidget

from app.core.model import ASKED, SAME
from app.gui.look import formats
from app.gui.look import theme as sizes
from app.gui.widgets.fields import DropDown, wheel_scrolls_page
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.layouts import column

Json = dict[str, Any]
EXACT, SMALL = "f16", "q8_0"
LEAST_CHARACTERS = 12  # shown of a line, however narrow it gets


class KvChoice(QWidget):
    """`changed` when a person picks another."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._possible, self._bytes = True, dict[str, int]()
        self.combo = DropDown()
        self.combo.addItem(self.tr("f16, exactly"), EXACT)
        self.combo.addItem(self.tr("q8_0, about half"), SMALL)
        self.combo.setAccessibleName(self.tr("How the context is kept"))
        wheel_scrolls_page(self.combo)
        policy = QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        self.combo.setSizeAdjustPolicy(policy)
        self.combo.setMinimumContentsLength(LEAST_CHARACTERS)
        title = label(self.tr("Context in memory"))
        title.setBuddy(self.combo)
        self.hint = paragraph("", "caption")
        self.setLayout(column(title, self.combo, self.hint, gap=sizes.XS))
        self.combo.currentIndexChanged.connect(self._chosen)
        self._tell()

    @property
    def kind(self) -> str:
        return str(self.combo.currentData())

    def offer(self, kind: str | None, *, possible: bool) -> None:
        """For another model; `kind`: what it is loaded with. not possible: its heads are too small."""
        self._possible, self._bytes = possible, {}
        blocked = self.combo.blockSignals(True)
        self.combo.setCurrentIndex(max(0, self.combo.findData(kind or EXACT)) if possible else 0)
        self.combo.blockSignals(blocked)
        self.combo.setEnabled(possible)
        self._tell()

    def show_bytes(self, found: Json | None) -> None:
        """What the context of the newest plan takes, by how it is kept; None: there is no plan."""
        self._bytes = {key: int(value) for key, value in (found or {}).items()}
        self._tell()

    def _chosen(self) -> None:
        self._tell()
        self.changed.emit()

    def _tell(self) -> None:
        self.hint.setText(self._words())
        self.hint.setVisible(bool(self.hint.text()))
        self.combo.setAccessibleDescription(self.hint.text())

    def _words(self) -> str:
        if not self._possible:
            return self.tr("This model's heads are too small for q8_0, so its context stays in f16.")
        exact, small = self._bytes.get(EXACT), self._bytes.get(SMALL)
        known = {"exact": formats.size(exact or 0), "small": formats.size(small or 0)}
        if self.kind == EXACT:
            words = self.tr("The context takes {exact}; as q8_0 it would take {small}.")
            return words.format(**known) if small else ""
        words = self.tr("The context takes {small} instead of {exact}.") if small else ""
        effect = self.tr(
            "Answers may differ a little: of {asked} short answers of the Guide {same} stayed the "
            "same, word for word. Longer ones of other models were not measured."
        )
        said = effect.format(asked=formats.number(ASKED), same=formats.number(SAME))
        return " ".join(part for part in (words.format(**known), said) if part)
