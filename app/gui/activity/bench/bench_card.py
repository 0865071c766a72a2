"""The figures of one benchmark on a card; also the picture that is shared."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtWidgets import QFrame, QSizePolicy, QVBoxLayout, QWidget

from app.core.errors import BadInput
from app.gui.activity.bench import bench_report as words
from app.gui.activity.bench.bench_store import Bench
from app.gui.activity.entries import StageDid, together
from app.gui.activity.timeline import Bars, share_lines
from app.gui.look import theme as sizes
from app.gui.look.theme import Theme, set_role
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import Elided, label, paragraph
from app.gui.widgets.layouts import card, clear, column, line

ENDS = (".html", ".png", ".md", ".json")  # what `save` can write


class BenchCard(QFrame):
    """Large figures with their forecasts; below, what each machine did."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._box: QVBoxLayout = column(gap=sizes.M)
        inner = card(gap=sizes.M)
        box = inner.layout()
        assert isinstance(box, QVBoxLayout)
        box.addLayout(self._box)
        self.setLayout(column(inner))

    def show_bench(self, made: Bench, compared: str = "") -> None:
        """Its figures. compared: a sentence about an earlier one."""
        clear(self._box)
        title = Elided(words.headline(made), "section")
        self._box.addLayout(column(title, paragraph(words.subtitle(made), "muted"), gap=sizes.XS))
        figures = Flow(*_figures(words.figures(made)), gap=sizes.XL)
        self._box.addLayout(figures)
        if made.one:
            self._box.addWidget(paragraph(words.beside_one(made)))
        if compared:
            self._box.addWidget(paragraph(compared))
        machines = together([_stage(one) for one in made.alone["stages"]])
        whole_s = _answer_seconds(made)
        if machines and whole_s:
            bars = Bars(self._theme)
            bars.show_lines(share_lines(machines, whole_s))
            self._box.addWidget(line())
            self._box.addWidget(label(self.tr("Of the time of one answer"), "muted"))
            self._box.addWidget(bars)


def _figures(told: list[tuple[str, str, str]]) -> list[QWidget]:
    """Large numbers, each between its name and what it stands beside; all as wide as the widest."""
    boxes = []
    for name, value, beside in told:
        box = QWidget()
        words = (label(name, "muted"), label(value, "figure"), label(beside, "caption"))
        for one in words:
            one.ensurePolished()
        box.setLayout(column(*words, gap=sizes.XS))
        box.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        boxes.append(box)
    widest = max(box.sizeHint().width() for box in boxes)
    for box in boxes:
        box.setMinimumWidth(widest)
    return boxes


def _stage(told: dict[str, object]) -> StageDid:
    return StageDid(**told)  # type: ignore[arg-type]


def _answer_seconds(made: Bench) -> float:
    first, speed = made.mean("ttft_s"), made.mean("decode_tok_s")
    return (first or 0.0) + ((made.output_tokens - 1) / speed if speed else 0.0)


def save(made: Bench, file: Path, theme: Theme) -> None:
    """The report as the end of the file's name says, else as HTML. Raises BadInput where it cannot be
    written."""
    texts = {".md": words.markdown, ".json": words.as_json}
    try:
        if (end := file.suffix.lower()) == ".png":
            _picture(made, file, theme)
        else:
            file.write_text(texts.get(end, words.html)(made), encoding="utf-8")
    except OSError as error:
        raise BadInput("report_unwritten", path=str(file), why=str(error.strerror)) from None


def _picture(made: Bench, file: Path, theme: Theme) -> None:
    page = QWidget()
    set_role(page, "page")
    shown = BenchCard(theme)
    shown.show_bench(words.unnamed(made))
    box = column(shown, label(words.foot(made), "caption"))
    box.setContentsMargins(sizes.XL, sizes.XL, sizes.XL, sizes.XL)
    page.setLayout(box)
    page.setFixedWidth(theme.px(sizes.CHAT_WIDTH))
    page.adjustSize()
    if not page.grab().save(str(file), "PNG"):
        raise OSError(0, "the picture could not be made")
