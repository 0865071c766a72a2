"""The Activity page: what runs and ran, the log, the benchmark."""

from __future__ import annotations

from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QStackedWidget, QTabBar, QWidget

from app.gui import theme as sizes
from app.gui.activity.bench_view import BenchView
from app.gui.activity.feed import Feed
from app.gui.activity.log_view import LogView
from app.gui.activity.overview import Overview
from app.gui.page import Page
from app.gui.parts.layouts import column, scrolled
from app.gui.services import Services


class ActivityPage(Page):
    """Three parts behind tabs; the journal is followed while the page can be seen."""

    def __init__(self, services: Services) -> None:
        super().__init__(services, "")
        self.title.setText(self.tr("Activity"))
        self.feed = Feed(services.pool, self)
        self.overview = Overview(services, self.feed)
        self.log = LogView(services.theme, self.feed, services.go)
        self.bench = BenchView(services, self)
        self.tabs = QTabBar()
        self.tabs.setAccessibleName(self.tr("Parts of this page"))
        self.tabs.setDrawBase(False)
        self.tabs.setExpanding(False)
        self._parts = QStackedWidget()
        self.head.addWidget(self.tabs)
        self.content.addWidget(self._parts, 1)  # first: Qt dresses anew what is placed anew
        for name, part in (
            (self.tr("Overview"), _scrolled(self.overview)), (self.tr("Log"), self.log),
            (self.tr("Benchmark"), _scrolled(self.bench)),
        ):  # fmt: skip
            self.tabs.addTab(name)
            self._parts.addWidget(part)
        self.tabs.currentChanged.connect(self._part_chosen)
        self.title.setContentsMargins(0, 0, sizes.S, 0)
        self.head.right_from = None  # they belong to the title
        self.destroyed.connect(self.feed.stop)

    def _part_chosen(self, at: int) -> None:
        self._parts.setCurrentIndex(at)

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802  Qt's name
        super().showEvent(event)
        self.feed.watch(True)

    def hideEvent(self, event: QHideEvent) -> None:  # noqa: N802  Qt's name
        super().hideEvent(event)
        self.feed.watch(False)


def _scrolled(part: QWidget) -> QWidget:
    """What has its layout already; it is measured once it is seen."""
    body = QWidget()
    view = scrolled(body)
    body.setLayout(column(part))
    return view
