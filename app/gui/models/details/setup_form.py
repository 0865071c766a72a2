"""The form for a model's context, KV cache format, number of simultaneous users, machines and placement."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QComboBox, QSlider, QSpinBox, QWidget

from app.api.plans import Alternative, Forecast, Plan
from app.api.snapshot import Machine
from app.gui.api.node_state import NodeState
from app.gui.look import formats, sizes
from app.gui.models.details.plan_loader import Setup
from app.gui.models.model_item import ModelItem
from app.gui.models.verdicts import MAX_CONTEXT
from app.gui.widgets.fields import DropDown, wheel_scrolls_page
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.layouts import clear_layout, column, layout_widget, row
from backends.contract import KV_ANSWERS, KV_SAME_ANSWERS

EXACT, SMALL = "f16", "q8_0"
MIN_CHARACTERS = 12  # minimum number of visible characters
# names of placements in plans -> in requests
REQUEST_NAMES = {"one machine": "one", "split": "split", "replicas": "replicas"}
NOISE_SHARE = 0.02  # smaller relative differences between forecasts count as noise
MIN_CONTEXT, DEFAULT_CONTEXT = 512, 4096
FACTORS = (2, 3)  # halves of a power of two: the power itself, and 1.5 times it
MAX_USERS = 16
FALLBACK_CONTEXT = 1 << 17  # maximum context offered if the model's own is unknown


class SetupForm(QWidget):
    """The form with all load settings. `changed` is emitted on every change; the form itself loads nothing."""

    changed = Signal()

    def __init__(self, pool: NodeState) -> None:
        super().__init__()
        self.context, self.kv, self.shape = ContextSlider(), KvChoice(), ShapeChoice()
        self._splits = False
        self.people = QSpinBox()
        self.people.setRange(1, MAX_USERS)
        wheel_scrolls_page(self.people)
        self.people.setAccessibleName(self.tr("Simultaneous users"))
        self.machines = MachineChoice(pool)
        self.exact = QCheckBox(self.tr("Same results on all computers"))
        self.exact.setToolTip(
            self.tr(
                "All computers use the same processor instructions, so an answer continues with the same words if a "
                "computer is lost. In this mode, computers with AVX-512 read prompts about half as fast."
            )
        )
        self.exact.toggled.connect(lambda _: self.changed.emit())
        self.draft = QCheckBox(self.tr("Use a draft model"))
        self.draft.setToolTip(
            self.tr(
                "A smaller model with the same tokens guesses the next ones on this computer, and this model checks "
                "several at once. Answers stay the same. The details of each answer say whether it was faster."
            )
        )
        self.draft.toggled.connect(lambda _: self.changed.emit())
        self.people.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        title = label(self.tr("Simultaneous users"))
        title.setBuddy(self.people)
        people = row(title, None, self.people)
        box = column(self.context, self.kv, people, self.machines, self.exact, self.draft, self.shape)
        box.setSpacing(sizes.M)
        self.setLayout(box)
        self.context.moved.connect(lambda _: self.changed.emit())
        self.kv.changed.connect(self.changed)
        self.people.valueChanged.connect(lambda _: self.changed.emit())
        self.machines.changed.connect(self.changed)
        self.shape.changed.connect(self.changed)
        pool.changed.connect(self._update_shapes)

    def show_item(
        self,
        item: ModelItem,
        context: int | None,
        kv: str | None = None,
        shape: str | None = None,
        *,
        exact: bool = False,
        draft: bool = False,
    ) -> None:
        """Show a model with the settings it is loaded with. None selects a default."""
        max_context = item.facts.context_length or FALLBACK_CONTEXT
        self.context.offer(min(max_context, MAX_CONTEXT), context)
        self.kv.offer(kv, possible=item.shelf is None or item.shelf.quantized_kv)
        self.machines.offer(splits=item.splits)
        for box, checked in ((self.exact, exact), (self.draft, draft)):
            blocked = box.blockSignals(True)
            box.setChecked(checked)
            box.blockSignals(blocked)
        self.draft.setVisible(item.is_here)
        self._splits = item.splits and item.is_here
        self.shape.offer(shape)
        self._update_shapes()

    def setup(self, item: ModelItem, file: str | None) -> Setup:
        """Return the current settings."""
        return Setup(
            item,
            file,
            self.context.context,
            self.people.value(),
            self.machines.without,
            self.kv.kind,
            self.shape.kind,
            exact=self.exact.isChecked(),
            draft=self.draft.isChecked(),
        )

    def _update_shapes(self) -> None:
        useful = self._splits and bool(self.machines.boxes)
        self.shape.set_useful(useful)
        self.exact.setVisible(useful)


def steps(max_context: int) -> list[int]:
    """Return the selectable context lengths: 512, 768, 1024, 1536 and so on, up to the model's maximum."""
    contexts, power = [], MIN_CONTEXT
    while power < max_context:
        contexts += [size for factor in FACTORS if (size := power * factor // 2) < max_context]
        power *= 2
    return [*contexts, max_context]


class ContextSlider(QWidget):
    """A slider for the context length, with larger steps at greater lengths. `moved` is emitted even while dragging."""

    moved = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self._steps = [DEFAULT_CONTEXT]
        self._title = label(self.tr("Context"))
        self._value = label("", "muted")
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setAccessibleName(self.tr("Context, in tokens"))
        wheel_scrolls_page(self.slider)
        self.slider.valueChanged.connect(self._moved)
        named = layout_widget(Flow(self._title, self._value, right_from=1))  # wraps to two lines if the form is narrow
        self.setLayout(column(named, self.slider, gap=sizes.XS))

    @property
    def context(self) -> int:
        return self._steps[min(self.slider.value(), len(self._steps) - 1)]

    @property
    def default(self) -> int:
        """The context length that is selected until the user moves the slider."""
        return self._steps[self._place(DEFAULT_CONTEXT)]

    def offer(self, max_context: int, context: int | None = None) -> None:
        """Offer context lengths up to `max_context`, and select the longest one that does not exceed `context`."""
        self._steps = steps(max(1, max_context))
        blocked = self.slider.blockSignals(True)
        self.slider.setRange(0, len(self._steps) - 1)
        self.slider.setPageStep(2)
        self.slider.setValue(self._place(context or DEFAULT_CONTEXT))
        self.slider.blockSignals(blocked)
        self.slider.setEnabled(len(self._steps) > 1)
        self._update()

    def choose(self, context: int) -> None:
        """Select the longest context length that does not exceed `context`."""
        self.slider.setValue(self._place(context))

    def _place(self, context: int) -> int:
        shorter = [n for n, size in enumerate(self._steps) if size <= context]
        return shorter[-1] if shorter else 0

    def _moved(self) -> None:
        self._update()
        self.moved.emit(self.context)

    def _update(self) -> None:
        words = self.tr("{count} tokens")
        if not self.slider.isEnabled():
            words = self.tr("{count} tokens (model maximum)")
        words = words.format(count=formats.number(self.context))
        self._value.setText(words)
        self.slider.setToolTip(words)
        self.slider.setAccessibleDescription(words)


class KvChoice(QWidget):
    """A choice of KV cache format, which is either full precision or quantized to about half the size.

    `changed` is emitted when the user selects another format.
    """

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._possible, self._bytes = True, dict[str, int]()
        self.combo = DropDown()
        self.combo.addItem(self.tr("f16, exact"), EXACT)
        self.combo.addItem(self.tr("q8_0, about half the size"), SMALL)
        self.combo.setAccessibleName(self.tr("Context storage format"))
        wheel_scrolls_page(self.combo)
        policy = QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        self.combo.setSizeAdjustPolicy(policy)
        self.combo.setMinimumContentsLength(MIN_CHARACTERS)
        title = label(self.tr("Context in memory"))
        title.setBuddy(self.combo)
        self.hint = paragraph("", "caption")
        self.setLayout(column(title, self.combo, self.hint, gap=sizes.XS))
        self.combo.currentIndexChanged.connect(self._chosen)
        self._update()

    @property
    def kind(self) -> str:
        return str(self.combo.currentData())

    def offer(self, kind: str | None, *, possible: bool) -> None:
        """Set the control up for a model.

        kind: the format that the model is loaded with. possible: whether its attention heads are large enough for
        q8_0.
        """
        self._possible, self._bytes = possible, {}
        blocked = self.combo.blockSignals(True)
        self.combo.setCurrentIndex(max(0, self.combo.findData(kind or EXACT)) if possible else 0)
        self.combo.blockSignals(blocked)
        self.combo.setEnabled(possible)
        self._update()

    def show_bytes(self, bytes_by_format: Mapping[str, int]) -> None:
        """Show how much memory the latest plan needs in each format. The mapping is empty if there is no plan."""
        self._bytes = dict(bytes_by_format)
        self._update()

    def _chosen(self) -> None:
        self._update()
        self.changed.emit()

    def _update(self) -> None:
        self.hint.setText(self._words())
        self.hint.setVisible(bool(self.hint.text()))
        self.combo.setAccessibleDescription(self.hint.text())

    def _words(self) -> str:
        if not self._possible:
            return self.tr("This model's attention heads are too small for q8_0, so its context stays in f16.")
        exact, small = self._bytes.get(EXACT), self._bytes.get(SMALL)
        known = {"exact": formats.size(exact or 0), "small": formats.size(small or 0)}
        if self.kind == EXACT:
            words = self.tr("The context uses {exact}. With q8_0, it would use {small}.")
            return words.format(**known) if small else ""
        words = self.tr("The context uses {small} instead of {exact}.") if small else ""
        effect = self.tr(
            "Answers may differ slightly. In a test with the Guide, {same} of {asked} short answers were identical. "
            "Longer answers and other models were not tested."
        )
        said = effect.format(asked=formats.number(KV_ANSWERS), same=formats.number(KV_SAME_ANSWERS))
        return " ".join(part for part in (words.format(**known), said) if part)


class MachineChoice(QWidget):
    """Check boxes for the machines that may run layers. This machine is always included.

    `changed` is emitted when the user checks or clears a box. The widget is hidden if there is no choice.
    """

    changed = Signal()

    def __init__(self, pool: NodeState) -> None:
        super().__init__()
        self._pool = pool
        self._without: set[str] = set()
        self._useful = True  # whether the model can be split
        self._shown: list[tuple[str, str, bool]] = []
        self.boxes: dict[str, QCheckBox] = {}
        self._box = column(gap=0)
        self.setLayout(self._box)
        pool.changed.connect(self.update_boxes)
        self.update_boxes()

    @property
    def without(self) -> tuple[str, ...]:
        """The IDs of the machines whose boxes are cleared."""
        return tuple(sorted(self._without & set(self.boxes)))

    def offer(self, *, splits: bool) -> None:
        """Show the check boxes only if the model can be split."""
        self._useful = splits
        self.setVisible(self._useful and len(self._shown) > 1)

    def update_boxes(self) -> None:
        """Update the boxes to reflect the household's current machines."""
        rows = [
            (machine.id, self._words(machine), machine.this or _lends(machine))
            for machine in self._pool.now.sorted_machines
            if machine.this or "lender" in machine.roles
        ]
        if rows != self._shown:
            self._shown = rows
            self._fill()

    def _fill(self) -> None:
        focused = next((key for key, box in self.boxes.items() if box.hasFocus()), None)
        clear_layout(self._box)
        self.boxes = {}
        self.setVisible(self._useful and len(self._shown) > 1)
        if len(self._shown) < 2:
            return
        self._box.addWidget(label(self.tr("Machines to use")))
        own = self._pool.now.node.id
        for key, words, lends in self._shown:
            box = QCheckBox(words)
            box.setAccessibleName(words)
            box.setChecked(lends and key not in self._without)
            box.setEnabled(lends and key != own)
            if key == own:
                box.setToolTip(self.tr("This machine runs the first and last layers."))
            else:
                box.toggled.connect(lambda on, key=key: self._ticked(key, on))
                self.boxes[key] = box
            self._box.addWidget(box)
        self._box.setSpacing(sizes.XS)
        if focused in self.boxes:
            self.boxes[focused].setFocus()

    def _words(self, machine: Machine) -> str:
        name = machine.name
        if machine.this:
            return self.tr("{name} (this machine)").format(name=name)
        if not machine.online:
            return self.tr("{name} (offline)").format(name=name)
        if not _lends(machine):
            return self.tr("{name} (not lending now)").format(name=name)
        size = formats.size(machine.lent_bytes or 0)
        return self.tr("{name} (lends {size})").format(name=name, size=size)

    def _ticked(self, key: str, on: bool) -> None:
        (self._without.discard if on else self._without.add)(key)
        self.changed.emit()


def _lends(machine: Machine) -> bool:
    return machine.online and bool(machine.lent_bytes)


class ShapeChoice(QWidget):
    """A choice of placement, which is either selected by the planner or fixed. Each option shows its forecast.

    `changed` is emitted when the user selects another. The widget is hidden if there is no choice.
    """

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._useful = False
        self._best, self._rates = "", dict[str, float]()  # by name in requests
        self._spread = 1.0  # of the forecasts
        self.combo = DropDown()
        for kind in ("", *REQUEST_NAMES.values()):
            self.combo.addItem("", kind)
        self.combo.setAccessibleName(self.tr("Model placement"))
        wheel_scrolls_page(self.combo)
        policy = QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        self.combo.setSizeAdjustPolicy(policy)
        self.combo.setMinimumContentsLength(MIN_CHARACTERS)
        title = label(self.tr("Placement"))
        title.setBuddy(self.combo)
        self.hint = paragraph("", "caption")
        self.setLayout(column(title, self.combo, self.hint, gap=sizes.XS))
        self.combo.currentIndexChanged.connect(self._chosen)
        self._update()
        self.hide()

    @property
    def kind(self) -> str | None:
        """The name of the placement in requests, or None to let the planner choose."""
        return (str(self.combo.currentData()) or None) if self._useful else None

    def offer(self, kind: str | None) -> None:
        """Set the control up for a model.

        kind: the placement that was requested when the model was loaded, or None if the planner chose it.
        """
        self._best, self._rates = "", {}
        blocked = self.combo.blockSignals(True)
        self.combo.setCurrentIndex(max(0, self.combo.findData(kind or "")))
        self.combo.blockSignals(blocked)
        self._update()

    def set_useful(self, useful: bool) -> None:
        """Show or hide the control. It is useful only if the model can be split and there are several machines."""
        self._useful = useful
        self.setVisible(useful)

    def show_plan(self, plan: Plan | None) -> None:
        """Show the forecasts of the latest plan, or remove them if there is no plan."""
        if plan is None:
            self._rates, self._best = {}, ""
            self._update()
            return
        forecasts: dict[str, Alternative | Forecast] = {
            REQUEST_NAMES[alternative.shape]: alternative for alternative in plan.alternatives
        }
        quickest = min(forecasts, key=lambda kind: forecasts[kind].request_s, default="")
        planned = REQUEST_NAMES[plan.shape]
        if plan.forecast is not None:
            forecasts.setdefault(planned, plan.forecast)
        self._rates = {
            kind: forecast.together_tok_s if plan.users > 1 else forecast.decode_tok_s
            for kind, forecast in forecasts.items()
        }
        self._spread = max((forecast.spread for forecast in forecasts.values()), default=1.0)
        self._best = planned if self.kind is None else quickest
        self._update()

    def _chosen(self) -> None:
        self._update()
        self.changed.emit()

    def _update(self) -> None:
        words = {
            "one": self.tr("One machine"),
            "split": self.tr("Split over several machines"),
            "replicas": self.tr("Copies on several machines"),
        }
        for at, kind in enumerate(("", *words)):
            text = words.get(kind) or self._best_words(words.get(self._best, ""))
            if (rate := self._rates.get(kind or self._best)) is not None:
                text = self.tr("{shape}, {rate}").format(shape=text, rate=formats.speed_range(rate, self._spread))
            self.combo.setItemText(at, text)
        hints = {
            "one": self.tr("This machine runs all layers."),
            "split": self.tr("Each machine runs some of the layers. Your text stays on this machine."),
            "replicas": self.tr(
                "Best for several simultaneous users. Each question is sent to one machine, and that machine can read "
                "it."
            ),
        }
        chosen = str(self.combo.currentData() or "")
        self.hint.setText(" ".join(filter(None, (self._slower(chosen), hints.get(chosen, "")))))
        self.hint.setVisible(bool(self.hint.text()))
        self.combo.setAccessibleDescription(self.hint.text())

    def _slower(self, chosen: str) -> str:
        """Return a warning if the selected placement is slower than the best one by more than the margin of error."""
        now, best = self._rates.get(chosen), self._rates.get(self._best)
        if now is None or best is None or now * (1 + NOISE_SHARE) >= best:
            return ""
        words = self.tr("About {share} slower than the best option.")
        return words.format(share=formats.percent(1 - now / best))

    def _best_words(self, best: str) -> str:
        if not best:
            return self.tr("Best")
        return self.tr("Best: {shape}").format(shape=best)
