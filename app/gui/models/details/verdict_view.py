"""The verdict on whether a model fits, with the memory it needs in total and on each machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from PySide6.QtCore import QCoreApplication, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from app.api import models as node_models
from app.api.plans import Plan
from app.core.errors import AppError
from app.core.planner.verdict import MemoryNeeds, VerdictWord
from app.gui.look import formats, sizes
from app.gui.look.accessibility import announce
from app.gui.look.drawing import icon
from app.gui.look.theme import Theme, set_role
from app.gui.models import verdicts
from app.gui.models.verdicts import Judgment
from app.gui.widgets.buttons import button
from app.gui.widgets.flow import Beside, Flow
from app.gui.widgets.labels import ElidedLabel, label, paragraph
from app.gui.widgets.layouts import clear_layout, column, layout_widget, row

translate = QCoreApplication.translate
PARTS = (("weights", "accent"), ("kv", "good"), ("work", "border"))  # fields of Memory with their colors
HEIGHT = SWATCH = sizes.S
MIN_NAME_CHARACTERS = 12  # minimum number of visible characters of a name


class VerdictView(QWidget):
    """The verdict on the selected model.

    `use_context` and `use_file` are called to select a context length or file that fits.
    """

    def __init__(self, theme: Theme, use_context: Callable[[int], object], use_file: Callable[[str], object]) -> None:
        super().__init__()
        self._theme = theme
        self.judgment: Judgment | None = None
        self._picture = label()
        self.title = label("", "section")
        self._beside = ElidedLabel("", "muted")
        self.words = paragraph("", "muted")
        self.sum = paragraph("", "muted")
        self.bars = MemoryBars(theme)
        self.memory = QWidget()
        self.memory.setLayout(column(label(self.tr("Memory"), "section"), self.sum, self.bars))
        self._use_context, self._use_file = use_context, use_file
        self.use = button("", self._use, "inline")
        self._fitting = ""  # quantization of the smaller file that fits
        use = row(self.use, None)
        head = row(self._picture, self.title, self._beside, gap=sizes.S)
        head.setStretch(2, 1)
        self._head = layout_widget(head)
        self.setLayout(column(self._head, self.words, use, gap=sizes.S))
        theme.changed.connect(self._paint)
        self.clear()

    def clear(self, sentence: str = "") -> None:
        """Remove the verdict. If `sentence` is given, it explains why there is none."""
        self.judgment = None
        self.title.setText("")
        self._beside.say("")
        self._picture.clear()
        self._head.setVisible(not sentence)  # without a sentence, keeps the space for the pending verdict
        self._update(sentence, None)
        self.use.hide()

    def show_plan(self, plan: Plan) -> Judgment:
        """Show the verdict on a local model that fits."""
        judgment = verdicts.of_plan(plan)
        self._show(judgment, "", plan)
        return judgment

    def show_estimate(self, estimate: node_models.Verdict, quantization: str, *, splits: bool) -> Judgment:
        """Show the verdict on a model that is not local. `quantization` identifies a smaller file that fits, if any."""
        judgment = verdicts.of_estimate(estimate)
        plan = estimate.plan
        words = ""
        if plan is None and judgment.quantization:
            words = self.tr("{quantization} would fit.").format(quantization=judgment.quantization)
        elif plan is None and not splits:
            words = self.tr("This model can't be split, so only this machine's memory counts.")
        elif plan is None and judgment.verdict.word is VerdictWord.SMALLER:
            words = self.tr("With this context, the model needs more memory than is free for models now.")
        elif plan is None:
            words = self.tr("Even with a short context, the model needs more memory than is free for models now.")
        self._show(judgment, words, plan, "" if plan else quantization)
        return judgment

    def show_error(self, error: AppError) -> Judgment | None:
        """Show that a model does not fit or cannot be planned."""
        judgment = verdicts.of_error(error)
        if judgment is None:
            self.clear(verdicts.sentence(error))
        else:
            self._show(judgment, verdicts.sentence(error), None)
        return judgment

    def show_smaller(self, quantization: str) -> None:
        """Offer a smaller file that fits. Does nothing unless the model is too big."""
        judgment = self.judgment
        if judgment is None or judgment.verdict.word is not VerdictWord.TOO_BIG or judgment.estimate:
            return
        self.judgment = replace(judgment, quantization=quantization)
        self._offer(quantization)
        self._paint()

    def _show(self, judgment: Judgment, words: str, plan: Plan | None, fitting: str = "") -> None:
        was = self.judgment.verdict.word if self.judgment else None
        self.judgment = judgment
        self.title.setText(verdicts.title(judgment))
        self._beside.say(verdicts.beside(judgment))
        self._head.show()
        self._update(words, plan)
        self._offer(fitting)
        self._paint()
        if was is not None and was is not judgment.verdict.word:
            announce(self, self.title.text())

    def _offer(self, fitting: str) -> None:
        """Offer the quantization `fitting`, or else the smaller context length in the verdict."""
        judgment = self.judgment
        smaller = judgment is not None and judgment.verdict.word is VerdictWord.SMALLER
        self._fitting = fitting
        self.use.setVisible(bool(fitting) or smaller)
        show = self.tr("Show {quantization}").format(quantization=fitting)
        self.use.setText(show if fitting else self.tr("Use the smaller context"))

    def _use(self) -> None:
        if self._fitting:
            self._use_file(self._fitting)
        elif self.judgment is not None:
            self._use_context(self.judgment.verdict.context)

    def _update(self, words: str, plan: Plan | None) -> None:
        self.words.setText(words)
        self.words.setVisible(bool(words))
        parts = self.judgment.verdict.parts if self.judgment else None
        self.memory.setVisible(plan is not None or parts is not None)
        self.sum.setText(whole_sum(plan) if plan else short_sum(parts) if parts else "")
        self.bars.show_parts(memories(plan) if plan else [])

    def _paint(self) -> None:
        if self.judgment is None:
            return
        color = self.judgment.color
        side = self._theme.px(sizes.TITLE)
        picture = icon(self.judgment.icon, getattr(self._theme.colors, color))
        self._picture.setPixmap(picture.pixmap(side, side))
        set_role(self.title, f"verdict-{color}")


class MemoryBars(QWidget):
    """The memory bars of all machines in a plan, with a legend."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._shown: list[Memory] = []
        self._box: QVBoxLayout = column(gap=sizes.M)
        self.setLayout(self._box)
        theme.changed.connect(self._fill)

    def show_parts(self, parts: list[Memory]) -> None:
        if parts != self._shown:
            self._shown = parts
            self._fill()

    def _fill(self) -> None:
        clear_layout(self._box)
        if not self._shown:
            return
        for part in self._shown:
            words = self.tr("{needs} of {lends}").format(needs=formats.size(part.needs), lends=formats.size(part.lends))
            names = layout_widget(Beside(ElidedLabel(part.name), label(words), gap=sizes.S, least=MIN_NAME_CHARACTERS))
            below = ElidedLabel(of_machine(part), "caption")
            self._box.addLayout(column(names, Bar(self._theme, part), below, gap=sizes.XS))
        self._box.addWidget(layout_widget(self._legend()))

    def _legend(self) -> Flow:
        words = {"weights": self.tr("Weights"), "kv": self.tr("KV cache"), "work": self.tr("Work")}
        line = Flow(gap=sizes.M)
        for name, color in PARTS:
            inside = row(Swatch(self._theme, color), label(words[name], "caption"), gap=sizes.XS)
            line.addWidget(layout_widget(inside))
        return line


class Bar(QWidget):
    """The memory bar of a machine. It shows weights, KV cache and working memory as fractions of the lent memory."""

    def __init__(self, theme: Theme, part: Memory) -> None:
        super().__init__()
        self._theme, self._part = theme, part
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setToolTip(of_machine(part))
        self.setAccessibleName(f"{part.name}: {of_machine(part)}")

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        return QSize(self._theme.px(sizes.SIDEBAR_WIDTH), self._theme.px(HEIGHT))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802  Qt's name
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        whole = QRectF(self.rect())
        shape = QPainterPath()
        shape.addRoundedRect(whole, whole.height() / 2, whole.height() / 2)
        painter.setClipPath(shape)
        painter.fillRect(whole, self._theme.color("hairline"))
        scale = whole.width() / max(self._part.lends, self._part.needs, 1)
        left = 0.0
        for name, color in PARTS:
            width = getattr(self._part, name) * scale
            painter.fillRect(QRectF(left, 0, width, whole.height()), self._theme.color(color))
            left += width


class Swatch(QWidget):
    """A color sample in the legend."""

    def __init__(self, theme: Theme, color: str) -> None:
        super().__init__()
        self._theme, self._color = theme, color
        self.setFixedSize(theme.px(SWATCH), theme.px(SWATCH))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802  Qt's name
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.color(self._color))
        painter.drawEllipse(QRectF(self.rect()))


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory that a model would use on a machine, and the memory that the machine lends."""

    name: str
    weights: int
    kv: int
    work: int
    lends: int

    @property
    def needs(self) -> int:
        return self.weights + self.kv + self.work

    @property
    def left(self) -> int:
        return max(0, self.lends - self.needs)


def memories(plan: Plan) -> list[Memory]:
    """Return the memory use of each machine with a stage, in plan order."""
    lends = {machine.id: machine.lends_bytes for machine in plan.machines}
    sums: dict[str, Memory] = {}
    for stage in plan.stages:
        before = sums.get(stage.id) or Memory(stage.machine, 0, 0, 0, lends.get(stage.id, 0))
        sums[stage.id] = Memory(
            before.name,
            before.weights + stage.weight_bytes,
            before.kv + stage.kv_bytes,
            before.work + stage.work_bytes,
            before.lends,
        )
    return list(sums.values())


def lent_bytes(plan: Plan) -> int:
    """Return the total memory lent by all machines that the planner considered."""
    return sum(machine.lends_bytes for machine in plan.facts.machines or plan.machines)


def whole_sum(plan: Plan) -> str:
    """Describe the total memory that a plan needs, itemized by purpose, and the memory available."""
    parts = memories(plan)
    cells = plan.context * plan.users
    words = translate(
        "Models",
        "Weights {weights} + KV cache {kv} for {tokens} tokens + working memory {work} = {needs}. {lends} is free "
        "for models now.",
    )
    return words.format(
        weights=formats.size(sum(part.weights for part in parts)),
        kv=formats.size(sum(part.kv for part in parts)),
        tokens=formats.number(cells),
        work=formats.size(sum(part.work for part in parts)),
        needs=formats.size(sum(part.needs for part in parts)),
        lends=formats.size(lent_bytes(plan)),
    )


def short_sum(parts: MemoryNeeds) -> str:
    """Describe the memory needed by a model that does not fit, itemized by purpose, and the memory available."""
    words = translate(
        "Models", "Weights {weights} + KV cache {kv} + working memory {work} = {needs}. {lends} is free for models now."
    )
    return words.format(
        weights=formats.size(parts.weight_bytes),
        kv=formats.size(parts.kv_bytes),
        work=formats.size(parts.work_bytes),
        needs=formats.size(parts.needs_bytes),
        lends=formats.size(parts.lends_bytes),
    )


def of_machine(part: Memory) -> str:
    """Describe the memory that a model would use on one machine, itemized by purpose."""
    words = translate("Models", "weights {weights} + KV cache {kv} + working memory {work}, with {left} left")
    return words.format(
        weights=formats.size(part.weights),
        kv=formats.size(part.kv),
        work=formats.size(part.work),
        left=formats.size(part.left),
    )
