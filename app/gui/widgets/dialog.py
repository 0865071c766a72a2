"""Dialogs that fit on the screen. On a small screen, the part above the buttons scrolls."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QSize, Qt
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QDialog, QLayout, QLineEdit, QPushButton, QWidget

from app.gui.look import sizes
from app.gui.look.theme import Theme, set_role
from app.gui.widgets.buttons import button
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.layouts import Item, column, scrolled

FRAME = QSize(4, 40)  # borders and title bar; their actual size is unknown until a window is shown


def available_area(widget: QWidget) -> QRect:
    """Return the area of the widget's screen that is not occupied by panels or docks."""
    return widget.screen().availableGeometry()


def screen_room(widget: QWidget) -> QSize:
    """Return the maximum size of a window on its screen, excluding the window frame."""
    return available_area(widget).size() - FRAME


def fit_to_screen(window: QWidget, smallest: QSize) -> None:
    """Reduce the size and the minimum size of a window if they exceed its screen."""
    most = screen_room(window)
    window.setMinimumSize(smallest.boundedTo(most))
    if window.isMaximized() or window.isFullScreen():
        return
    if window.size() != window.size().boundedTo(most):
        window.resize(window.size().boundedTo(most))
        window.move(available_area(window).topLeft())


def keep_on_screen(window: QWidget) -> None:
    """Shrink and move a window so that it is entirely on its screen."""
    window.resize(window.size().boundedTo(screen_room(window)))
    screen, frame = available_area(window), window.frameGeometry()
    left = max(screen.left(), min(frame.left(), screen.right() - frame.width() + 1))
    top = max(screen.top(), min(frame.top(), screen.bottom() - frame.height() + 1))
    if frame.topLeft() != QPoint(left, top):
        window.move(left, top)


WIDTH, HEIGHT = 460, 600  # this height fits into a window of the minimum size
LEAST = 120  # minimum height of the scrolled part


class Dialog(QDialog):
    """A dialog that stays entirely on its screen."""

    def begin_at(self, width: int, height: int) -> None:
        """Set the initial size, limited by the screen."""
        self.resize(QSize(width, height).boundedTo(self.room))

    @property
    def room(self) -> QSize:
        """The maximum size of the dialog on its screen. While it is hidden, its parent's screen is used."""
        return screen_room(self if self.isVisible() else self.parentWidget() or self)

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802  Qt's name
        super().showEvent(event)
        keep_on_screen(self)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        super().resizeEvent(event)
        if self.isVisible():
            keep_on_screen(self)


class CompactDialog(Dialog):
    """A dialog exactly as tall as its heading, sentence, widgets and buttons need. Escape closes it."""

    def __init__(self, theme: Theme, title: str, sentence: str, parent: QWidget | None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setWindowTitle(title)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setModal(True)
        set_role(self, "page")
        self.heading = label(title, "section")
        self.heading.setWordWrap(True)
        self.sentence = paragraph(sentence, "muted")
        self.sentence.setVisible(bool(sentence))
        self.content = column(gap=sizes.M)
        self.buttons = Flow(right_from=0)
        self._body = QWidget()
        self._inner = column(self.heading, self.sentence, self.content, gap=sizes.M)
        self._body.setLayout(self._inner)
        self._view = scrolled(self._body)
        self._body.installEventFilter(self)
        box = column(self._view, gap=sizes.L)
        box.addLayout(self.buttons)
        box.setContentsMargins(sizes.XL, sizes.XL, sizes.XL, sizes.L)
        self.setLayout(box)
        self.be_wide(theme.px(WIDTH))

    def be_wide(self, width: int) -> None:
        """Set the width, limited by the parent window and the screen."""
        parent = self.parentWidget()
        room = max(parent.window().width() - 2 * sizes.L, WIDTH) if parent else width
        self.setFixedWidth(min(width, room, self.room.width()))

    def add(self, *items: Item) -> None:
        """Append widgets or layouts to the content."""
        for item in items:
            if isinstance(item, QWidget):
                self.content.addWidget(item)
            elif item is not None:
                self.content.addLayout(item)

    def offer(self, close: str, *acts: QPushButton) -> QPushButton:
        """Add a close button, followed by the given buttons. Return the close button."""
        made = button(close, self.reject)
        for choice in (made, *acts):
            self.buttons.addWidget(choice)
        return made

    def answer(self, words: str, then: Callable[[], object], role: str = "") -> QPushButton:
        """Return a button that closes the dialog and then calls `then`."""

        def pressed() -> None:
            self.accept()
            then()

        return button(words, pressed, role)

    def fit(self) -> None:
        """Adjust the height to the content, which scrolls if it is too tall for the window or the screen."""
        box, inner = self.layout(), self._inner
        assert box is not None
        inner.activate()
        edges = box.contentsMargins()
        needed = _height(inner, self.width() - edges.left() - edges.right())
        around = _height(box, self.width()) - self._view.minimumHeight()
        shown = max(self._theme.px(LEAST), min(needed, self._most() - around))
        beside = sizes.M if needed > shown else 0  # space for the scroll bar
        inner.setContentsMargins(0, 0, beside, 0)
        # A leftover scroll bar would narrow the content, whose greater height would then require the scroll bar.
        bar = Qt.ScrollBarPolicy.ScrollBarAsNeeded if beside else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        self._view.setVerticalScrollBarPolicy(bar)
        self._view.setFixedHeight(min(needed, shown))
        box.activate()
        self.setFixedHeight(_height(box, self.width()))

    def _most(self) -> int:
        """Return the maximum height of the dialog."""
        parent = self.parentWidget()
        window = parent.window().height() - 2 * sizes.L if parent is not None else 0
        return min(max(window, HEIGHT - 2 * sizes.L), self.room.height())

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802  Qt's name
        """Adjust the height when the layout of the content changes, which a scroll area does not report."""
        if event.type() is QEvent.Type.LayoutRequest and self.isVisible():
            self.fit()
        return super().eventFilter(watched, event)

    def event(self, event: QEvent) -> bool:
        """Adjust the height when the layout changes, for example when labels wrap on first display."""
        done = super().event(event)
        if event.type() is QEvent.Type.LayoutRequest and self.isVisible():
            self.fit()
        return done

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802  Qt's name
        super().showEvent(event)
        self.fit()


def _height(box: QLayout, width: int) -> int:
    """Return the height of a layout at this width. The layout's size hint is too large if labels wrap."""
    return box.totalHeightForWidth(width) if box.hasHeightForWidth() else box.totalSizeHint().height()


NAME_WIDTH = 380
MOST_NAME = 200  # maximum number of characters


class NameDialog(CompactDialog):
    """A dialog that asks for a name and passes it to `then`. It does not accept an empty name."""

    def __init__(self, theme: Theme, title: str, asks: str, then: Callable[[str], None], parent: QWidget) -> None:
        super().__init__(theme, title, "", parent)
        self._then = then
        self.name = QLineEdit()
        self.name.setMaxLength(MOST_NAME)
        self.name.setAccessibleName(asks)
        self.act = button(self.tr("Save"), self.accept, "primary")
        self.act.setEnabled(False)
        self.name.textChanged.connect(lambda text: self.act.setEnabled(bool(text.strip())))
        self.name.returnPressed.connect(self.act.click)
        caption = label(asks)
        caption.setBuddy(self.name)
        self.add(caption, self.name)
        self.offer(self.tr("Cancel"), self.act)
        self.be_wide(theme.px(NAME_WIDTH))

    def accept(self) -> None:
        super().accept()
        self._then(self.name.text().strip())
