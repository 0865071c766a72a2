"""A slider for the context, in steps that grow with it."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QSlider, QWidget

from app.gui.look import formats
from app.gui.look import theme as sizes
from app.gui.widgets.escape_key import wheel_scrolls_page
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import label
from app.gui.widgets.layouts import column, held

LEAST, USUAL = 512, 4096
FACTORS = (2, 3)  # between two powers of two stands one and a half times the lower


def steps(most: int) -> list[int]:
    """Contexts to choose from: 512, 768, 1024, 1536, … and the longest of the model."""
    found, power = [], LEAST
    while power < most:
        found += [size for factor in FACTORS if (size := power * factor // 2) < most]
        power *= 2
    return [*found, most]


class ContextSlider(QWidget):
    """`moved` while it is dragged too."""

    moved = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self._steps = [USUAL]
        self._title = label(self.tr("Context"))
        self._value = label("", "muted")
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setAccessibleName(self.tr("Context, in tokens"))
        wheel_scrolls_page(self.slider)
        self.slider.valueChanged.connect(self._moved)
        named = held(
            Flow(self._title, self._value, right_from=1)
        )  # two lines where one has no room
        self.setLayout(column(named, self.slider, gap=sizes.XS))

    @property
    def context(self) -> int:
        return self._steps[min(self.slider.value(), len(self._steps) - 1)]

    @property
    def usual(self) -> int:
        """Where it stands before anybody moves it."""
        return self._steps[self._place(USUAL)]

    def offer(self, most: int, context: int | None = None) -> None:
        """Steps for a model of this longest context; stands at `context`, or where it fits before it."""
        self._steps = steps(max(1, most))
        blocked = self.slider.blockSignals(True)
        self.slider.setRange(0, len(self._steps) - 1)
        self.slider.setPageStep(2)
        self.slider.setValue(self._place(context or USUAL))
        self.slider.blockSignals(blocked)
        self.slider.setEnabled(len(self._steps) > 1)
        self._tell()

    def choose(self, context: int) -> None:
        """The longest step that is not longer."""
        self.slider.setValue(self._place(context))

    def _place(self, context: int) -> int:
        shorter = [n for n, size in enumerate(self._steps) if size <= context]
        return shorter[-1] if shorter else 0

    def _moved(self) -> None:
        self._tell()
        self.moved.emit(self.context)

    def _tell(self) -> None:
        words = self.tr("{count} tokens")
        if not self.slider.isEnabled():
            words = self.tr("{count} tokens, all that this model has")
        words = words.format(count=formats.number(self.context))
        self._value.setText(words)
        self.slider.setToolTip(words)
        self.slider.setAccessibleDescription(words)
