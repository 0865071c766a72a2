"""A small dialog: what it is about, its content, a line for what went wrong, its buttons."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QDialog, QLayout, QPushButton, QWidget

from app.core.errors import AppError
from app.gui import theme as sizes
from app.gui.node_client import Call
from app.gui.parts.buttons import button
from app.gui.parts.layouts import Item, column, row, scrolled
from app.gui.parts.notice import Notice
from app.gui.parts.text import label, paragraph
from app.gui.pool import Link
from app.gui.services import Services
from app.gui.theme import set_role

WIDTH, HEIGHT = 460, 600  # of a window at its smallest there is room for this height
LEAST = 120  # of what scrolls
LOST = (Link.STARTING, Link.AWAY, Link.OTHER_VERSION)


class Sheet(QDialog):
    """Closes with Escape. Its calls end with it. `needs_node`: nothing in it can be done without one."""

    needs_node = True

    def __init__(self, services: Services, title: str, sentence: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.services = services
        self.setWindowTitle(title)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setModal(True)
        set_role(self, "page")
        self._calls: list[Call] = []
        self.heading = label(title, "section")
        self.heading.setWordWrap(True)
        self.sentence = paragraph(sentence, "muted")
        self.sentence.setVisible(bool(sentence))
        self.content = column(gap=sizes.M)
        self.notice = Notice(services.theme)
        self.buttons = row(None, gap=sizes.S)
        self._body = QWidget()
        inner = column(self.heading, self.sentence, self.content, gap=sizes.M)
        inner.addStretch(1)
        self._body.setLayout(inner)
        self._view = scrolled(self._body)
        self._body.installEventFilter(self)
        box = column(self._view, self.notice, gap=sizes.M)
        box.addSpacing(sizes.XS)
        box.addLayout(self.buttons)
        box.setContentsMargins(sizes.XL, sizes.XL, sizes.XL, sizes.L)
        self.setLayout(box)
        room = max(parent.window().width() - 2 * sizes.L, WIDTH)
        self.setFixedWidth(min(services.theme.px(WIDTH), room))
        self.finished.connect(self._end)
        self._is_lost = False
        services.pool.link_changed.connect(self._link_changed)

    def add(self, *items: Item) -> None:
        """Content, one under another."""
        for item in items:
            if isinstance(item, QWidget):
                self.content.addWidget(item)
            elif item is not None:
                self.content.addLayout(item)

    def offer(self, close: str, act: QPushButton | None = None) -> QPushButton:
        """The buttons at the foot: one that closes, and the one that does it."""
        made = button(close, self.reject)
        self.buttons.addWidget(made)
        if act is not None:
            self.buttons.addWidget(act)
        return made

    def keep(self, call: Call | None) -> None:
        """A call whose answer is for this dialog only."""
        if call is not None:
            self._calls.append(call)

    def fail(self, error: AppError) -> None:
        self.notice.fail(error, self._leave_for, closable=False)
        self.fit()

    def _leave_for(self, page: str) -> None:
        """This dialog is in front of every page."""
        self.reject()
        self.services.go(page)

    def came_back(self) -> None:
        """The node is there again: what was asked of the one before is asked anew, if need be."""

    def fit(self) -> None:
        """As high as its words need at its width, and no higher than its window: then it scrolls."""
        box, inner = self.layout(), self._body.layout()
        assert box is not None
        assert inner is not None
        inner.activate()
        edges = box.contentsMargins()
        wanted = _height(inner, self.width() - edges.left() - edges.right())
        around = _height(box, self.width()) - self._view.minimumHeight()
        shown = max(self.services.theme.px(LEAST), min(wanted, self._room() - around))
        beside = sizes.M if wanted > shown else 0  # the scroll bar
        inner.setContentsMargins(0, 0, beside, 0)
        # A bar of a moment ago would make the lines shorter, and their height would need it for ever.
        bar = (
            Qt.ScrollBarPolicy.ScrollBarAsNeeded
            if beside
            else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        )
        self._view.setVerticalScrollBarPolicy(bar)
        self._view.setFixedHeight(min(wanted, shown))
        box.activate()
        self.setFixedHeight(_height(box, self.width()))

    def _room(self) -> int:
        """How high it may be."""
        parent = self.parentWidget()
        window = parent.window().height() if parent is not None else 0
        return min(max(window, HEIGHT), self.screen().availableGeometry().height()) - 2 * sizes.L

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802  Qt's name
        """What scrolls asks nobody above it for room."""
        if event.type() is QEvent.Type.LayoutRequest and self.isVisible():
            self.fit()
        return super().eventFilter(watched, event)

    def event(self, event: QEvent) -> bool:
        """What is in it became another size, as texts do when they are first shown."""
        done = super().event(event)
        if event.type() is QEvent.Type.LayoutRequest and self.isVisible():
            self.fit()
        return done

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802  Qt's name
        super().showEvent(event)
        self.fit()

    def _link_changed(self) -> None:
        """Nothing can be done here while the node is lost; the window behind cannot be reached to say so."""
        pool = self.services.pool
        if self.needs_node and pool.link in LOST:
            self._is_lost = True
            waits = self.tr(
                "The background service does not run just now. This waits until it is back."
            )
            again = (self.tr("Start again"), pool.try_again)
            actions = (again,) if pool.link is Link.AWAY else ()
            self.notice.say(pool.problem or waits, "error", *actions, closable=False)
            self.fit()
        elif pool.link is Link.THERE and self._is_lost:
            self._is_lost = False
            self.notice.clear()
            self.came_back()
            self.fit()

    def _end(self) -> None:
        for call in self._calls:
            call.cancel()
        self._calls.clear()


def _height(box: QLayout, width: int) -> int:
    """That it needs at this width; not more, which labels that wrap would ask for."""
    return (
        box.totalHeightForWidth(width) if box.hasHeightForWidth() else box.totalSizeHint().height()
    )
