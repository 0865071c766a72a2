"""The Benchmark tab, which starts benchmarks and shows their progress and the results of earlier ones."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt, Signal
from PySide6.QtWidgets import QAbstractItemView, QFrame, QMenu, QTableView, QWidget

from app.api.models import Models
from app.api.plans import LoadedModel
from app.core.errors import AppError, BadInput
from app.core.reasons import os_cause
from app.gui.activity import bench_report
from app.gui.activity.bench_report import BenchCard, compared_with_forecast
from app.gui.activity.bench_run import (
    ALONE,
    BACK,
    FULL,
    LOADING,
    QUICK,
    TOGETHER,
    BenchmarkSize,
    BenchRun,
    Comparison,
    bench_record,
    expected_seconds,
    power_draw_watts,
)
from app.gui.activity.bench_store import Bench, BenchStore
from app.gui.api.node_client import Call
from app.gui.app import navigation
from app.gui.app.app_context import AppContext
from app.gui.app.page import Page
from app.gui.look import formats, sizes
from app.gui.look.accessibility import announce
from app.gui.look.sentences import model_name
from app.gui.look.theme import Theme
from app.gui.widgets.buttons import button
from app.gui.widgets.files import LastFolder, save_file
from app.gui.widgets.flow import Beside, Flow
from app.gui.widgets.labels import label, paragraph, tooltip
from app.gui.widgets.layouts import Columns, EmptyState, card, column
from app.gui.widgets.progress import Progress

Index = QModelIndex | QPersistentModelIndex
WHEN, MODEL, MACHINES, EXTENT, FIRST, SPEED, FORECAST = range(7)
SHOWN_ROWS = 6
MAX_SEED = 1 << 31


class BenchModel(QAbstractTableModel):
    """A Qt table model of the stored benchmarks, newest first."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[Bench] = []

    def show(self, rows: Sequence[Bench]) -> None:
        self.beginResetModel()
        self._rows = list(rows)
        self.endResetModel()

    def bench(self, row: int) -> Bench | None:
        return self._rows[row] if 0 <= row < len(self._rows) else None

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008  Qt's name and manner
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        return 0 if parent.isValid() else 7

    def headerData(  # noqa: N802
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        if orientation is not Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _side(section)
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        return (
            self.tr("When"),
            self.tr("Model"),
            self.tr("Machines"),
            self.tr("Kind"),
            self.tr("First token"),
            self.tr("Speed"),
            self.tr("Compared with the forecast"),
        )[section]

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        bench = self._rows[index.row()]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _side(index.column())
        if role == Qt.ItemDataRole.DisplayRole:
            return self._words(bench, index.column())
        if role == Qt.ItemDataRole.ToolTipRole:
            is_when = index.column() == WHEN
            return formats.exact(bench.at) if is_when else tooltip(self._words(bench, index.column()))
        return None

    def _words(self, bench: Bench, column: int) -> str:
        first, speed = bench.mean("ttft_s"), bench.mean("decode_tok_s")
        unknown = self.tr("not measured")
        return (
            formats.clock(bench.at),
            model_name(bench.model),
            formats.number(len(bench.machines)),
            self.tr("full") if bench.extent == "full" else self.tr("quick"),
            formats.seconds(first) if first else unknown,
            formats.speed(speed) if speed else unknown,
            compared_with_forecast(bench, "decode_tok_s"),
        )[column]


class BenchTable(QTableView):
    """A table of benchmarks that grows with its rows, up to SHOWN_ROWS."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.rows = BenchModel()
        self.rows.setParent(self)
        self.setModel(self.rows)
        self.setAccessibleName(self.tr("Earlier benchmarks"))
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setTabKeyNavigation(False)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.verticalHeader().hide()
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setResizeContentsPrecision(2 * SHOWN_ROWS)  # only this many rows determine the column widths
        self._columns = Columns(self, MODEL, self._fit)
        theme.changed.connect(self._fit)

    def show_all(self, rows: Sequence[Bench]) -> None:
        self.rows.show(rows)
        self._fit()

    def _fit(self) -> None:
        row = self._theme.px(sizes.CONTROL_HEIGHT)
        self.verticalHeader().setDefaultSectionSize(row)
        shown = min(SHOWN_ROWS, max(1, self.rows.rowCount()))
        self.setFixedHeight(row * (shown + 1) + sizes.S + self._columns.bar_height)


def _side(column: int) -> Qt.AlignmentFlag:
    left = column in (WHEN, MODEL, EXTENT)
    side = Qt.AlignmentFlag.AlignLeft if left else Qt.AlignmentFlag.AlignRight
    return side | Qt.AlignmentFlag.AlignVCenter


class EarlierBenchmarks(QWidget):
    """The stored benchmarks, with a card for the selected one. The widget is hidden if there are none."""

    changed = Signal()  # a benchmark was added or removed

    def __init__(self, services: AppContext, page: Page) -> None:
        super().__init__()
        self._services, self._page = services, page
        self.store = BenchStore(services.folder)
        self.shown: Bench | None = None
        self._card, self.table = BenchCard(services.theme), BenchTable(services.theme)
        save = button(self.tr("Save a report…"), self._choose_file)
        remove = button(self.tr("Remove"), self._remove)
        title = label(self.tr("Earlier benchmarks"), "section")
        self.setLayout(column(self._card, Flow(remove, save, right_from=0), title, self.table, gap=sizes.M))
        self.table.selectionModel().currentRowChanged.connect(
            lambda now, _: self._show(self.table.rows.bench(now.row()))
        )
        self._list()

    def add(self, bench: Bench) -> None:
        """Store a benchmark and show it."""
        self._write([bench, *self.store.benchmarks])

    def save(self, file: Path) -> None:
        """Save a report of the selected benchmark. Raises BadInput."""
        if self.shown is not None:
            bench_report.save(self.shown, file, self._services.theme)

    def _remove(self) -> None:
        before = list(self.store.benchmarks)
        self._write([bench for bench in before if bench is not self.shown])
        undo = (self.tr("Undo"), lambda: self._restore(before))
        self._page.notice.say(self.tr("Benchmark removed."), "info", undo)

    def _restore(self, before: list[Bench]) -> None:
        self._page.notice.clear()
        self._write(before)

    def _write(self, kept: list[Bench]) -> None:
        try:
            self.store.replace_all(kept)
        except OSError as error:
            self._page.fail(AppError("bench_unkept", why=os_cause(error)))
        self._list()

    def _choose_file(self) -> None:
        kinds = (
            self.tr("Web page (*.html)"),
            self.tr("Picture (*.png)"),
            self.tr("Markdown (*.md)"),
            self.tr("Data (*.json)"),
        )
        offered = Path.home() / "poolhouse-benchmark.html"
        suffixes = dict(zip(kinds, bench_report.SUFFIXES, strict=True))
        last = LastFolder(self._services.preferences, "report")
        file = save_file(self, self.tr("Save a report"), offered, suffixes, last)
        if file is None:
            return
        try:
            self.save(file)
        except BadInput as error:
            self._page.fail(error)
        else:
            words = self.tr("Saved as {file}. The report doesn't name any machines.")
            self._page.notice.say(words.format(file=file.name))

    def _list(self) -> None:
        kept = self.store.benchmarks
        self.table.show_all(kept)
        self.setVisible(bool(kept))
        if kept:
            self.table.setCurrentIndex(self.table.rows.index(0, 0))
        self._show(kept[0] if kept else None)
        self.changed.emit()

    def _show(self, bench: Bench | None) -> None:
        self.shown = bench
        if bench is not None:
            self._card.show_bench(bench, self._compared(bench))

    def _compared(self, bench: Bench) -> str:
        """Compare the speed with the previous benchmark of the same model and size, if any."""
        kind = (bench.model, bench.extent)
        before = next(
            (old for old in self.store.benchmarks if (old.model, old.extent) == kind and old.at < bench.at), None
        )
        now, was = bench.mean("decode_tok_s"), before.mean("decode_tok_s") if before else None
        if before is None or not now or not was:
            return ""
        text = (
            self.tr("{share} faster than the previous run ({when}, {machines}).")
            if now > was
            else self.tr("{share} slower than the previous run ({when}, {machines}).")
        )
        return text.format(
            share=formats.percent(abs(now / was - 1)),
            when=formats.clock(before.at),
            machines=self.tr("%n machine(s)", "", len(before.machines)),
        )


class BenchView(QWidget):
    """The Benchmark tab. The page shows its notices and errors at the top."""

    def __init__(self, services: AppContext, page: Page) -> None:
        super().__init__()
        self._services, self._page = services, page
        self.run: BenchRun | Comparison | None = None
        self._call: Call | None = None
        self.quick = button("", lambda: self.begin(QUICK), "primary")
        self.full = button("", lambda: self.begin(FULL))
        self.compare = button(self.tr("One machine against all"))
        extents = QMenu(self)
        extents.addAction(self.tr("Quick, about 1 min"), lambda: self.begin(QUICK, compare=True))
        extents.addAction(self.tr("Full, about 10 min"), lambda: self.begin(FULL, compare=True))
        self.compare.setMenu(extents)
        self._about = paragraph("", "muted")
        self._bar = Progress(self.tr("Progress of the benchmark"))
        self._step = label("", "muted")
        self._progress = QWidget()
        self._progress.setLayout(Beside(self._bar, self._step, button(self.tr("Cancel"), self.cancel)))
        self.earlier = EarlierBenchmarks(services, page)
        self.first = button("", self._begin_first)
        self._empty = EmptyState(
            self.tr("Nothing measured yet"),
            self.tr("A benchmark asks random questions and discards the answers."),
            self.first,
        )
        box = column(self._start_card(), self.earlier, gap=sizes.L)
        box.addWidget(self._empty, 10)
        box.addStretch(1)
        self.setLayout(box)
        self.earlier.changed.connect(self._refresh)
        services.pool.changed.connect(self._refresh)
        self._refresh()

    @property
    def is_busy(self) -> bool:
        return self.run is not None or self._call is not None

    def begin(self, extent: BenchmarkSize, anyway: bool = False, compare: bool = False) -> None:
        """Benchmark the loaded model, or show a notice if no model is loaded or answers are in progress.

        anyway: whether to run even if answers are in progress. compare: whether to benchmark the model on its host
        alone as well, and restore the placement afterwards.
        """
        if self.is_busy:
            return
        if self._ready_model() is None:
            open_models = (self.tr("Open the Models page"), lambda: self._services.go(navigation.MODELS))
            self._page.fail(BadInput("nothing_loaded"), open_models)
            return
        answers = self._services.pool.now.answers
        if (answers.running or answers.waiting) and not anyway:
            self._page.notice.say(
                self.tr("An answer is in progress, so the measured speed would be too low."),
                "warning",
                (self.tr("Measure anyway"), lambda: self.begin(extent, anyway=True, compare=compare)),
            )
            return
        self._page.notice.clear()
        self._show_progress(0.0, 0)
        self._call = self._services.client.get(
            "/models", lambda models: self._start(extent, models, compare), self._failed, answer=Models
        )
        self._refresh()

    def cancel(self) -> None:
        """Cancel the benchmark and discard its results."""
        if self._call is not None:
            self._call.cancel()
            self._call = None
        if self.run is not None:
            self.run.cancel()
            self.run = None
        self._refresh()

    def _begin_first(self) -> None:
        """Run the quick benchmark, or open the Models page if no model is loaded."""
        if self._ready_model() is not None:
            self.begin(QUICK)
        else:
            self._services.go(navigation.MODELS)

    def _ready_model(self) -> LoadedModel | None:
        loaded = self._services.pool.now.loaded
        return loaded if loaded is not None and loaded.state == "ready" else None

    def _start(self, extent: BenchmarkSize, models: Models, compare: bool) -> None:
        self._call = None
        loaded = self._ready_model()
        if loaded is None:
            self._failed(BadInput("nothing_loaded"))
            return
        client, pool = self._services.client, self._services.pool
        n_vocab = next((model.n_vocab for model in models.models if model.name == loaded.model), None)
        # A new seed each time, because a prompt still cached in a slot would make the results look too good.
        seed = random.randrange(MAX_SEED)  # noqa: S311  a benchmark, not a secret
        run: BenchRun | Comparison
        if compare:
            run = Comparison(client, loaded, list(pool.now.machines), extent, n_vocab, seed, self._watts)
            run.progressed.connect(self._show_comparison)
            run.finished.connect(self._finished)
        else:
            run = single = BenchRun(client, loaded, extent, n_vocab, seed, self._watts)
            run.progressed.connect(self._show_progress)
            run.finished.connect(lambda results: self._finished(bench_record(loaded, single, results)))
        self.run = run
        run.failed.connect(self._failed)
        run.start()
        self._refresh()

    def _watts(self, loaded: LoadedModel) -> float | None:
        return power_draw_watts(self._services.pool.now, loaded)

    def _show_comparison(self, share: float, step: str) -> None:
        self._bar.tell(share)
        self._step.setText(
            {
                TOGETHER: self.tr("Measuring the household"),
                LOADING: self.tr("Loading on one machine"),
                ALONE: self.tr("Measuring one machine"),
                BACK: self.tr("Restoring the previous setup"),
            }[step]
        )

    def _show_progress(self, share: float, answers: int) -> None:
        self._bar.tell(share)
        text = self.tr("%n answer(s) measured", "", answers)
        self._step.setText(text if answers else self.tr("Warming up"))

    def _finished(self, bench: Bench) -> None:
        self.run = None
        self.earlier.add(bench)
        self._refresh()
        announce(self, self.tr("Benchmark finished."))

    def _failed(self, error: AppError) -> None:
        self.run = self._call = None
        self._refresh()
        self._page.fail(error)

    def _refresh(self) -> None:
        loaded, runs = self._services.pool.now.loaded, self.is_busy
        ready = self._ready_model()
        for start, extent, words in (
            (self.quick, QUICK, self.tr("Quick, about {time}")),
            (self.full, FULL, self.tr("Full, about {time}")),
        ):
            start.setText(words.format(time=formats.roughly(expected_seconds(extent, loaded))))
        for control in (self.quick, self.full, self.first, self.compare):
            control.setEnabled(not runs)
        self.first.setText(self.tr("Measure now") if ready else self.tr("Open the Models page"))
        self.compare.setVisible(ready is not None and len({stage.id for stage in ready.stages}) > 1)
        self._progress.setVisible(runs)
        self._empty.setVisible(not self.earlier.store.benchmarks)
        text = self.tr("Load a model first, then measure it.")
        if ready is not None:
            text = self.tr("Measures {model} with its current settings.").format(model=model_name(ready.model))
        self._about.setText(text)

    def _start_card(self) -> QFrame:
        words = QWidget()
        words.setLayout(column(label(self.tr("Benchmark"), "section"), self._about, gap=sizes.XS))
        return card(Beside(words, self.compare, self.full, self.quick, gap=sizes.S), self._progress)
