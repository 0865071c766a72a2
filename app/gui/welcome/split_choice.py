"""The check box in the first run for splitting a model across the household's computers."""

from __future__ import annotations

from PySide6.QtWidgets import QCheckBox, QWidget

from app.gui.api.node_state import NodeState
from app.gui.look import sizes
from app.gui.models.model_item import ModelItem
from app.gui.welcome.first_models import Choice, Source
from app.gui.widgets.labels import paragraph
from app.gui.widgets.layouts import column

SPLIT = "split"  # its name in requests


def is_shipped(item: ModelItem | None) -> bool:
    """Return whether a model came with Poolhouse."""
    return item is not None and item.shelf is not None and item.shelf.shipped


class SplitChoice(QWidget):
    """A check box for splitting a model that is on this computer.

    It is hidden if no other computer can run a part.

    It is initially checked for the model that came with Poolhouse, so that the first chat already uses the computers
    that have just been paired. For other models, the planner decides unless the user checks the box.
    """

    def __init__(self, pool: NodeState) -> None:
        super().__init__()
        self._pool = pool
        self._by_user = False  # the user has clicked, so the box stays as it is
        self._is_useful = False
        self.box = QCheckBox(self.tr("Split it over your computers"))
        self.box.clicked.connect(self._clicked)
        words = self.tr("Each computer then runs some of the layers. A small model is usually faster on one computer.")
        self.box.setAccessibleDescription(words)
        self.setLayout(column(self.box, paragraph(words, "caption"), gap=sizes.XS))
        self.hide()

    @property
    def shape(self) -> str | None:
        """The placement to request, or None to let the planner choose."""
        return SPLIT if self._is_useful and self.box.isChecked() else None

    def show_for(self, choice: Choice | None) -> None:
        """Show the check box for this model if it can be split across computers that are lending now."""
        item = choice.item if choice is not None and choice.source is Source.HERE else None
        machines = self._pool.now.machines.values()
        lends = any(not each.this and each.online and each.lent_bytes for each in machines if "lender" in each.roles)
        self._is_useful = item is not None and item.splits and lends
        self.setVisible(self._is_useful)
        if not self._by_user:
            self.box.setChecked(is_shipped(item))

    def _clicked(self) -> None:
        self._by_user = True
