"""Input fields for lists and machine names, and event filters for Escape and the mouse wheel."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication, QEvent, QObject, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QComboBox, QLineEdit, QStyledItemDelegate, QWidget

from app.core.ids import MAX_NAME_CHARACTERS
from app.gui.look import sizes
from app.gui.look.accessibility import announce
from app.gui.look.drawing import pixmap
from app.gui.look.theme import Theme
from app.gui.widgets.labels import SPARE, paragraph, show_if


class DropDown(QComboBox):
    """A drop-down list styled by the style sheet. Qt's own popup has square corners and unstyled items."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setItemDelegate(QStyledItemDelegate(self))
        wheel_scrolls_page(self)

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        """Return Qt's size hint plus a few pixels, because Qt alone would cut off the longest item."""
        return super().sizeHint() + QSize(SPARE, 0)

    def minimumSizeHint(self) -> QSize:  # noqa: N802  Qt's name
        return super().minimumSizeHint() + QSize(SPARE, 0)

    def showPopup(self) -> None:  # noqa: N802  Qt's name
        around = self.view().window()
        if not around.testAttribute(Qt.WidgetAttribute.WA_TranslucentBackground):
            flags = Qt.WindowType.FramelessWindowHint | Qt.WindowType.NoDropShadowWindowHint
            around.setWindowFlags(around.windowFlags() | flags)
            around.setAttribute(Qt.WidgetAttribute.WA_TranslucentBackground)
        super().showPopup()


class SearchField(QLineEdit):
    """A search field with a magnifying glass, which grows with the text size."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.setClearButtonEnabled(True)
        theme.changed.connect(self._fit)
        self._fit()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802  Qt's name
        super().paintEvent(event)
        side = self._theme.px(sizes.SECTION)
        painter = QPainter(self)
        painter.drawPixmap(
            self._theme.px(sizes.S), (self.height() - side) // 2, pixmap("search", self._theme.colors.muted, side)
        )

    def _fit(self) -> None:
        """Leave space for the magnifying glass, and keep the field wide enough for its placeholder."""
        glass = self._theme.px(sizes.SECTION + sizes.S)
        self.setTextMargins(glass, 0, 0, 0)
        words = self.fontMetrics().horizontalAdvance(self.placeholderText())
        self.setMinimumWidth(words + 2 * glass + self._theme.px(sizes.XL))
        self.update()


MOST_TYPED = 4 * MAX_NAME_CHARACTERS  # long names are reported instead of being cut off


class MachineName(QLineEdit):
    """A field for the name of a machine.

    problem: a label for the error in the name, to be placed below the field. judged: emitted after each check of the
    text.
    needed: whether a name is required.
    """

    judged = Signal()

    def __init__(self, called: str, name: str = "") -> None:
        super().__init__(name)
        self.needed = True
        self.setMaxLength(MOST_TYPED)
        self.setAccessibleName(called)
        self.problem = paragraph("", "error")
        self.problem.hide()
        self.textChanged.connect(self._judge)

    @property
    def name(self) -> str:
        return " ".join(self.text().split())

    @property
    def fits(self) -> bool:
        return not self._words(len(self.name))

    def _judge(self) -> None:
        words = self._words(len(self.name))
        if words != self.problem.text():
            self.problem.setText(words)
            show_if(self.problem, bool(words))
            self.setAccessibleDescription(words)
            announce(self, words)
        self.judged.emit()

    def _words(self, count: int) -> str:
        if not count and self.needed:
            text = _tr("Enter a name of up to {limit} characters.")
        elif count > MAX_NAME_CHARACTERS:
            text = _tr("A name can have up to {limit} characters. This one has {count}.")
        else:
            return ""
        return text.format(limit=MAX_NAME_CHARACTERS, count=count)


def _tr(text: str) -> str:
    return QCoreApplication.translate("MachineName", text)


class _Wheel(QObject):
    """An event filter that passes wheel events on to the page.

    A widget keeps the focus after a choice, so the next turn of the wheel, meant for the page, would silently change
    that choice.
    """

    def __init__(self, box: QWidget) -> None:
        super().__init__(box)
        box.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # the wheel alone does not set the focus
        box.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802  Qt's name
        if event.type() == QEvent.Type.Wheel:
            event.ignore()  # passes the event on to the page
            return True
        return super().eventFilter(watched, event)


def wheel_scrolls_page(box: QWidget) -> None:
    """Let the mouse wheel scroll the page, rather than change an input widget."""
    _Wheel(box)


class Escape(QObject):
    """An event filter that calls `act` when Escape is pressed in a field and `is_wanted()` returns True."""

    def __init__(self, field: QWidget, act: Callable[[], object], is_wanted: Callable[[], bool] = lambda: True) -> None:
        super().__init__(field)
        self._act, self._wanted = act, is_wanted
        field.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802  Qt's name
        pressed = isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape
        if not pressed or not self._wanted():
            return super().eventFilter(watched, event)
        if event.type() is QEvent.Type.ShortcutOverride:
            event.accept()
        elif event.type() is QEvent.Type.KeyPress:
            self._act()
        return True
