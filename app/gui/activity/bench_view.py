"""The benchmark: one button, its progress, its figures, and those of before."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtWidgets import QAbstractItemView, QFrame, QMenu, QTableView, QWidget

from app.core.errors import AppError, BadInput
from app.core.reasons import os_cause
from app.gui.activity import bench_report
from app.gui.activity.bench_report import BenchCard, against
from app.gui.activity.bench_run import (
    ALONE,
    BACK,
    FULL,
    LOADING,
    QUICK,
    TOGETHER,
    BenchRun,
    Comparison,
    Extent,
    bench_of,
    drawn,
    expected_s,
)
from app.gui.activity.bench_store import Bench, BenchStore
from app.gui.api.node_client import Call
from app.gui.app import page_names
from app.gui.app.app_context import AppContext
from app.gui.app.page import Page
from app.gui.look import formats
from app.gui.look import theme as sizes
from app.gui.look.accessibility import announce
from app.gui.look.sentences import model_name
from app.gui.look.theme import Theme
from app.gui.widgets.buttons import button
from app.gui.widgets.empty_state import EmptyState
from app.gui.widgets.flow import Beside, Flow
from app.gui.widgets.labels import label, paragraph, tooltip
from app.gui.widgets.layouts import Columns, card, column
from app.gui.widgets.progress import Progress
from app.gui.widgets.save_file import LastFolder, save_file

Json = dict[str, Any]
Index = QModelIndex | QPersistentModelIndex
WHEN, MODEL, MACHINES, EXTENT, FIRST, SPEED, SAID = range(7)
SHOWN_ROWS = 6
MAX_SEED = 1 << 31


class BenchModel(QAbstractTableModel):
    """The newest first."""

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
            self.tr("Beside its forecast"),
        )[section]

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        one = self._rows[index.row()]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _side(index.column())
        if role == Qt.ItemDataRole.DisplayRole:
            return self._words(one, index.column())
        if role == Qt.ItemDataRole.ToolTipRole:
            is_when = index.column() == WHEN
            return formats.exact(one.at) if is_when else tooltip(self._words(one, index.column()))
        return None

    def _words(self, one: Bench, column: int) -> str:
        first, speed = one.mean("ttft_s"), one.mean("decode_tok_s")
        unknown = self.tr("not measured")
        return (
            formats.clock(one.at),
            model_name(one.model),
            formats.number(len(one.machines)),
            self.tr("full") if one.extent == "full" else self.tr("quick"),
            formats.seconds(first) if first else unknown,
            formats.speed(speed) if speed else unknown,
            against(one, "decode_tok_s"),
        )[column]


class BenchTable(QTableView):
    """Rows of benchmarks; its height follows how many there are."""

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
        header.setResizeContentsPrecision(2 * SHOWN_ROWS)  # rows that decide how wide a column is
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


class BenchView(QWidget):
    """Notices and errors are said by the page it is on."""

    def __init__(self, services: AppContext, page: Page) -> None:
        super().__init__()
        self._services, self._page = services, page
        self.store = BenchStore(services.folder)
        self.run: BenchRun | Comparison | None = None
        self._call: Call | None = None
        self._shown: Bench | None = None
        self.quick = button("", lambda: self.begin(QUICK), "primary")
        self.full = button("", lambda: self.begin(FULL))
        self.compare = button(self.tr("One machine against all"))
        both = QMenu(self)
        both.addAction(self.tr("Quick, about 1 min"), lambda: self.begin(QUICK, compare=True))
        both.addAction(self.tr("Full, about 10 min"), lambda: self.begin(FULL, compare=True))
        self.compare.setMenu(both)
        self._about = paragraph("", "muted")
        self._bar = Progress(self.tr("Progress of the benchmark"))
        self._step = label("", "muted")
        self._progress, self.cancel_button = QWidget(), button(self.tr("Cancel"), self.cancel)
        self._progress.setLayout(Beside(self._bar, self._step, self.cancel_button))
        self.result = BenchCard(services.theme)
        self.table = BenchTable(services.theme)
        self._save = button(self.tr("Save a report…"), self._choose_file)
        self._remove = button(self.tr("Remove"), self._forget)
        self._results = self._results_part()
        self.first = button("", self._begin_first)
        self._empty = EmptyState(
            self.tr("Nothing measured yet"),
            self.tr("A benchmark asks random questions and throws the answers away."),
            self.first,
        )
        box = column(self._start_card(), self._results, gap=sizes.L)
        box.addWidget(self._empty, 10)
        box.addStretch(1)
        self.setLayout(box)
        self.table.selectionModel().currentRowChanged.connect(
            lambda now, _: self._show(self.table.rows.bench(now.row()))
        )
        services.pool.changed.connect(self._tell)
        self._list()
        self._tell()

    @property
    def shown(self) -> Bench | None:
        return self._shown

    @property
    def is_busy(self) -> bool:
        return self.run is not None or self._call is not None

    def begin(self, extent: Extent, anyway: bool = False, compare: bool = False) -> None:
        """Measure the loaded model; without one, or while somebody is answered, say so first.

        compare: measure it on its host alone, too, and place it again as it is now.
        """
        loaded = self._services.pool.loaded
        if self.is_busy:
            return
        if loaded is None or loaded.get("state") != "ready":
            self._page.fail(
                BadInput("nothing_loaded"), (self.tr("Open the models"), lambda: self._services.go(page_names.MODELS))
            )
            return
        answers = self._services.pool.snapshot.get("answers") or {}
        if any(answers.values()) and not anyway:
            self._page.notice.say(
                self.tr("Somebody gets an answer just now, so the figures would be too low."),
                "warning",
                (self.tr("Measure anyway"), lambda: self.begin(extent, anyway=True, compare=compare)),
            )
            return
        self._page.notice.clear()
        self._progressed(0.0, 0)
        self._call = self._services.client.get("/models", lambda told: self._start(extent, told, compare), self._failed)
        self._tell()

    def _begin_first(self) -> None:
        """Where nothing was measured yet: the quick one, or what it needs."""
        loaded = self._services.pool.loaded
        if loaded is not None and loaded.get("state") == "ready":
            self.begin(QUICK)
        else:
            self._services.go(page_names.MODELS)

    def cancel(self) -> None:
        """Stop measuring; nothing of it is kept."""
        if self._call is not None:
            self._call.cancel()
            self._call = None
        if self.run is not None:
            self.run.cancel()
            self.run = None
        self._tell()

    def save(self, file: Path) -> None:
        """Write the report of what is shown. Raises BadInput."""
        if self._shown is not None:
            bench_report.save(self._shown, file, self._services.theme)

    def _start(self, extent: Extent, told: Json, compare: bool) -> None:
        self._call = None
        loaded = self._services.pool.loaded
        if loaded is None or loaded.get("state") != "ready":
            self._failed(BadInput("nothing_loaded"))
            return
        n_vocab = next((one["n_vocab"] for one in told["models"] if one["name"] == loaded["model"]), None)
        # Another seed each time: prompts that a slot still holds would flatter.
        seed = random.randrange(MAX_SEED)  # noqa: S311  a benchmark, not a secret
        if compare:
            self._start_comparison(loaded, extent, n_vocab, seed)
            return
        run = self.run = BenchRun(self._services.client, loaded, extent, n_vocab, seed, self._watts)
        run.progressed.connect(self._progressed)
        run.finished.connect(lambda results: self._finished(bench_of(loaded, run, results)))
        run.failed.connect(self._failed)
        run.start()
        self._tell()

    def _start_comparison(self, loaded: Json, extent: Extent, n_vocab: int | None, seed: int) -> None:
        machines = list(self._services.pool.snapshot.get("machines") or {})
        client = self._services.client
        both = Comparison(client, loaded, machines, extent, n_vocab, seed, self._watts)
        self.run = both
        both.progressed.connect(self._compared_so_far)
        both.finished.connect(self._finished)
        both.failed.connect(self._failed)
        both.start()
        self._tell()

    def _watts(self, loaded: Json) -> float | None:
        return drawn(self._services.pool.snapshot, loaded)

    def _compared_so_far(self, share: float, step: str) -> None:
        self._bar.tell(share)
        self._step.setText(
            {
                TOGETHER: self.tr("Measuring the household"),
                LOADING: self.tr("Loading on one machine"),
                ALONE: self.tr("Measuring one machine"),
                BACK: self.tr("Loading as it was"),
            }[step]
        )

    def _progressed(self, share: float, answers: int) -> None:
        self._bar.tell(share)
        text = self.tr("%n answer(s) measured", "", answers)
        self._step.setText(text if answers else self.tr("Warming up"))

    def _finished(self, made: Bench) -> None:
        self.run = None
        self._keep(made)
        self._tell()
        announce(self, self.tr("The benchmark is done."))

    def _failed(self, error: AppError) -> None:
        self.run = self._call = None
        self._tell()
        self._page.fail(error)

    def _keep(self, made: Bench) -> None:
        try:
            self.store.add(made)
        except OSError as error:
            self._page.fail(AppError("bench_unkept", why=os_cause(error)))
        self._list()

    def _forget(self) -> None:
        gone = self._shown
        if gone is None:
            return
        before = list(self.store.kept)
        self._write([one for one in before if one is not gone])
        self._page.notice.say(
            self.tr("The benchmark was removed."), "info", (self.tr("Undo"), lambda: self._restore(before))
        )

    def _restore(self, before: list[Bench]) -> None:
        self._page.notice.clear()
        self._write(before)

    def _write(self, kept: list[Bench]) -> None:
        try:
            self.store.keep(kept)
        except OSError as error:
            self._page.fail(AppError("bench_unkept", why=os_cause(error)))
        self._list()

    def _choose_file(self) -> None:
        kinds = (
            self.tr("Web page (*.html)"),
            self.tr("Picture (*.png)"),
            self.tr("Markdown (*.md)"),
            self.tr("Figures (*.json)"),
        )
        offered = Path.home() / "poolhouse-benchmark.html"
        ends = dict(zip(kinds, bench_report.ENDS, strict=True))
        last = LastFolder(self._services.preferences, "report")
        file = save_file(self, self.tr("Save a report"), offered, ends, last)
        if file is None:
            return
        try:
            self.save(file)
        except BadInput as error:
            self._page.fail(error)
        else:
            said = self.tr("Saved as {file}. Machines are not named in it.")
            self._page.notice.say(said.format(file=file.name))

    def _list(self) -> None:
        kept = self.store.kept
        self.table.show_all(kept)
        self._results.setVisible(bool(kept))
        self._empty.setVisible(not kept)
        if kept:
            self.table.setCurrentIndex(self.table.rows.index(0, 0))
        self._show(kept[0] if kept else None)

    def _show(self, made: Bench | None) -> None:
        self._shown = made
        if made is not None:
            self.result.show_bench(made, self._compared(made))

    def _compared(self, made: Bench) -> str:
        """Beside the one before it of the same kind and model."""
        same = [
            one for one in self.store.kept if (one.model, one.extent) == (made.model, made.extent) and one.at < made.at
        ]
        now = made.mean("decode_tok_s")
        was = same[0].mean("decode_tok_s") if same else None
        if not now or not was:
            return ""
        share = formats.percent(abs(now / was - 1))
        many = self.tr("%n machine(s)", "", len(same[0].machines))
        text = (
            self.tr("{share} faster than {when}, with {machines}.")
            if now > was
            else self.tr("{share} slower than {when}, with {machines}.")
        )
        return text.format(share=share, when=formats.clock(same[0].at), machines=many)

    def _tell(self) -> None:
        loaded = self._services.pool.loaded
        ready = loaded is not None and loaded.get("state") == "ready"
        runs = self.is_busy
        lasts = [formats.roughly(expected_s(extent, loaded)) for extent in (QUICK, FULL)]
        self.quick.setText(self.tr("Quick, about {time}").format(time=lasts[0]))
        self.full.setText(self.tr("Full, about {time}").format(time=lasts[1]))
        self.quick.setEnabled(not runs)
        self.full.setEnabled(not runs)
        self.first.setEnabled(not runs)
        self.first.setText(self.tr("Measure now") if ready else self.tr("Open the models"))
        spread = ready and len({one["id"] for one in (loaded or {}).get("stages") or []}) > 1
        self.compare.setVisible(bool(spread))
        self.compare.setEnabled(not runs)
        self._progress.setVisible(runs)
        name = model_name(str((loaded or {}).get("model")))
        text = self.tr("Measures {model} as it is loaded now.").format(model=name)
        self._about.setText(text if ready else self.tr("Load a model first, then measure it."))

    def _start_card(self) -> QFrame:
        words = QWidget()
        words.setLayout(column(label(self.tr("Benchmark"), "section"), self._about, gap=sizes.XS))
        return card(Beside(words, self.compare, self.full, self.quick, gap=sizes.S), self._progress)

    def _results_part(self) -> QWidget:
        part = QWidget()
        title = label(self.tr("Earlier benchmarks"), "section")
        buttons = Flow(self._remove, self._save, right_from=0)
        part.setLayout(column(self.result, buttons, title, self.table, gap=sizes.M))
        return part
