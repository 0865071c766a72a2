"""The Activity page, with the tabs Overview, Log and Benchmark."""

from __future__ import annotations

from functools import cached_property

from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QStackedWidget, QTabBar, QWidget

from app.gui.activity.bench_view import BenchView
from app.gui.activity.journal_feed import JournalFeed
from app.gui.activity.log_view import LogView
from app.gui.activity.overview import Overview
from app.gui.app.app_context import AppContext
from app.gui.app.page import Page
from app.gui.look import sizes
from app.gui.widgets.layouts import column, scrolled

OVERVIEW, LOG, BENCH = 0, 1, 2  # tabs


class ActivityPage(Page):
    """The Activity page.

    Each tab is created when it is first shown. The journal is polled frequently only while the page is visible.
    """

    def __init__(self, services: AppContext) -> None:
        super().__init__(services, "")
        self.title.setText(self.tr("Activity"))
        self.feed = JournalFeed(services.pool, self)
        self.tabs = QTabBar()
        self.tabs.setAccessibleName(self.tr("Sections of this page"))
        self.tabs.setDrawBase(False)
        self.tabs.setExpanding(False)
        self._parts = QStackedWidget()
        self._views: dict[int, QWidget] = {}
        self.head.addWidget(self.tabs)
        self.content.addWidget(self._parts, 1)  # added first, because Qt polishes moved widgets again
        for name in (self.tr("Overview"), self.tr("Log"), self.tr("Benchmark")):
            self.tabs.addTab(name)
        self.tabs.currentChanged.connect(self._part_chosen)
        self.title.setContentsMargins(0, 0, sizes.S, 0)
        self.head.right_from = None  # the tabs stay next to the title
        self.destroyed.connect(self.feed.stop)
        self.later(lambda: self._part_chosen(0))

    @property
    def is_busy(self) -> bool:
        return BENCH in self._views and self.bench.is_busy

    @cached_property
    def overview(self) -> Overview:
        return Overview(self.services, self.feed)

    @cached_property
    def log(self) -> LogView:
        return LogView(self.services.theme, self.feed, self.services.go)

    @cached_property
    def bench(self) -> BenchView:
        return BenchView(self.services, self)

    def _part_chosen(self, at: int) -> None:
        if at not in self._views:
            self._views[at] = self._view(at)
            self._parts.addWidget(self._views[at])
        self._parts.setCurrentWidget(self._views[at])

    def _view(self, at: int) -> QWidget:
        if at == LOG:
            return self.log
        return _scrolled(self.overview if at == OVERVIEW else self.bench)

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802  Qt's name
        super().showEvent(event)
        self.feed.watch(True)

    def hideEvent(self, event: QHideEvent) -> None:  # noqa: N802  Qt's name
        super().hideEvent(event)
        self.feed.watch(False)


def _scrolled(part: QWidget) -> QWidget:
    """Wrap a widget in a scroll area. The widget is not laid out until it is first shown."""
    body = QWidget()
    view = scrolled(body)
    body.setLayout(column(part))
    return view
