"""How the model shall stand in the household: the planner's choice, or another shape, each with its forecast."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QComboBox, QWidget

from app.gui.look import formats
from app.gui.look import theme as sizes
from app.gui.widgets.drop_down import DropDown
from app.gui.widgets.escape_key import wheel_scrolls_page
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.layouts import column

Json = dict[str, Any]
ORDERED = {"one machine": "one", "split": "split", "replicas": "replicas"}  # core's words: orders
SAME = 0.02  # a smaller difference is none
LEAST_CHARACTERS = 12  # shown of a line, however narrow it gets


class ShapeChoice(QWidget):
    """`changed` when a person picks another. Hidden where there is nothing to choose."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._useful = False
        self._best, self._rates = "", dict[str, float]()  # by order
        self.combo = DropDown()
        for kind in ("", *ORDERED.values()):
            self.combo.addItem("", kind)
        self.combo.setAccessibleName(self.tr("How the model is placed"))
        wheel_scrolls_page(self.combo)
        policy = QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        self.combo.setSizeAdjustPolicy(policy)
        self.combo.setMinimumContentsLength(LEAST_CHARACTERS)
        title = label(self.tr("Placement"))
        title.setBuddy(self.combo)
        self.hint = paragraph("", "caption")
        self.setLayout(column(title, self.combo, self.hint, gap=sizes.XS))
        self.combo.currentIndexChanged.connect(self._chosen)
        self._tell()
        self.hide()

    @property
    def kind(self) -> str | None:
        """As an order names it; None: the planner chooses."""
        return (str(self.combo.currentData()) or None) if self._useful else None

    def offer(self, kind: str | None) -> None:
        """For another model; `kind`: what it is loaded as, by order. The planner's choice else."""
        self._best, self._rates = "", {}
        blocked = self.combo.blockSignals(True)
        self.combo.setCurrentIndex(max(0, self.combo.findData(kind or "")))
        self.combo.blockSignals(blocked)
        self._tell()

    def set_useful(self, useful: bool) -> None:
        """Whether this model could stand otherwise: it can be split, and more than one machine is here."""
        self._useful = useful
        self.setVisible(useful)

    def show_plan(self, plan: Json | None) -> None:
        """The forecasts of the newest plan; None: there is none."""
        found = plan or {}
        known = {ORDERED[str(one["shape"])]: one for one in found.get("alternatives") or []}
        quickest = min(known, key=lambda kind: float(known[kind]["request_s"]), default="")
        if found.get("forecast"):
            known.setdefault(ORDERED[str(found["shape"])], found["forecast"])
        together = int(found.get("users") or 1) > 1
        rate = "together_tok_s" if together else "decode_tok_s"
        self._rates = {kind: float(one[rate]) for kind, one in known.items()}
        planned = ORDERED[str(found["shape"])] if found and self.kind is None else ""
        self._best = planned or quickest
        self._tell()

    def _chosen(self) -> None:
        self._tell()
        self.changed.emit()

    def _tell(self) -> None:
        words = {
            "one": self.tr("One machine"),
            "split": self.tr("Split over several"),
            "replicas": self.tr("Replicas on several"),
        }
        for at, kind in enumerate(("", *words)):
            text = words.get(kind) or self._best_words(words.get(self._best, ""))
            if (rate := self._rates.get(kind or self._best)) is not None:
                text = self.tr("{shape}, {rate}").format(shape=text, rate=formats.speed(rate))
            self.combo.setItemText(at, text)
        hints = {
            "one": self.tr("All layers are on this machine."),
            "split": self.tr("Each machine holds some of the layers. What you type stays here."),
            "replicas": self.tr(
                "For several people at once: each question goes to one machine as a whole, so the others "
                "get what is typed."
            ),
        }
        chosen = str(self.combo.currentData() or "")
        self.hint.setText(" ".join(filter(None, (self._slower(chosen), hints.get(chosen, "")))))
        self.hint.setVisible(bool(self.hint.text()))
        self.combo.setAccessibleDescription(self.hint.text())

    def _slower(self, chosen: str) -> str:
        """Said before it is loaded: what was chosen is slower than the best, by more than a forecast's grain."""
        now, best = self._rates.get(chosen), self._rates.get(self._best)
        if now is None or best is None or now * (1 + SAME) >= best:
            return ""
        words = self.tr("Slower than the best: {rate} instead of {best}.")
        return words.format(rate=formats.speed(now), best=formats.speed(best))

    def _best_words(self, best: str) -> str:
        if not best:
            return self.tr("The best")
        return self.tr("The best: {shape}").format(shape=best)
