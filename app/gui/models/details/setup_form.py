"""How the chosen model is to be loaded: context, people at once, machines, shape."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QSpinBox, QWidget

from app.gui.api.node_state import Pool
from app.gui.look import theme as sizes
from app.gui.models.details.context_slider import ContextSlider
from app.gui.models.details.kv_choice import KvChoice
from app.gui.models.details.machine_ticks import MachineTicks
from app.gui.models.details.plan_loader import Setup
from app.gui.models.details.shape_choice import ShapeChoice
from app.gui.models.model_item import Item
from app.gui.models.model_sketches import MOST_CONTEXT
from app.gui.widgets.escape_key import wheel_scrolls_page
from app.gui.widgets.labels import label
from app.gui.widgets.layouts import column, row

MOST_PEOPLE = 16
LONG = 1 << 17  # offered where nobody says what a model was trained for


class SetupForm(QWidget):
    """`changed` at every move; nothing is loaded by it."""

    changed = Signal()

    def __init__(self, pool: Pool) -> None:
        super().__init__()
        self.context, self.kv, self.shape = ContextSlider(), KvChoice(), ShapeChoice()
        self._splits = False
        self.people = QSpinBox()
        self.people.setRange(1, MOST_PEOPLE)
        wheel_scrolls_page(self.people)
        self.people.setAccessibleName(self.tr("People at once"))
        self.machines = MachineTicks(pool)
        self.people.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        title = label(self.tr("People at once"))
        title.setBuddy(self.people)
        people = row(title, None, self.people)
        box = column(self.context, self.kv, people, self.machines, self.shape)
        box.setSpacing(sizes.M)
        self.setLayout(box)
        self.context.moved.connect(lambda _: self.changed.emit())
        self.kv.changed.connect(self.changed)
        self.people.valueChanged.connect(lambda _: self.changed.emit())
        self.machines.changed.connect(self.changed)
        self.shape.changed.connect(self.changed)
        pool.changed.connect(self._tell_shapes)

    def show_item(
        self, item: Item, context: int | None, kv: str | None = None, shape: str | None = None
    ) -> None:
        """Contexts of another model. context, kv, shape: what it is loaded with; None: the usual ones."""
        most = int(item.facts.get("context_length") or LONG)
        self.context.offer(min(most, MOST_CONTEXT), context)
        self.kv.offer(kv, possible=item.facts.get("quantised_kv") is not False)
        splits = item.facts.get("splits") is not False
        self.machines.offer(splits=splits)
        self._splits = splits and item.is_here
        self.shape.offer(shape)
        self._tell_shapes()

    def setup(self, item: Item, file: str | None) -> Setup:
        """As it stands now."""
        return Setup(
            item, file, self.context.context, self.people.value(), self.machines.without,
            self.kv.kind, self.shape.kind,
        )  # fmt: skip

    def _tell_shapes(self) -> None:
        self.shape.set_useful(self._splits and bool(self.machines.boxes))
