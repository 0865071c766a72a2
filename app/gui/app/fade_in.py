"""A page that comes to the front: for a moment the colour of the window lies over it, ever thinner."""

from __future__ import annotations

from PySide6.QtCore import QEasingCurve, QEvent, QObject, Qt, QVariantAnimation
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from app.gui.look.theme import PAGE_MS, Theme

STEPS = 6  # thirty a second: at each of them what is below is painted
FIRST = 0.8  # of the page is covered at first


class FadeIn(QWidget):
    """Hidden at rest. It takes no key and no click: whoever is quick uses what is there already.

    No picture of a page is taken: for that Qt would lay out what nobody sees of it, too.
    """

    def __init__(self, over: QWidget, theme: Theme) -> None:
        super().__init__(over)
        self._over, self._theme = over, theme
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()
        self._moves = QVariantAnimation(self)
        self._moves.setDuration(PAGE_MS)
        self._moves.setStartValue(STEPS)
        self._moves.setEndValue(0)
        self._moves.setEasingCurve(QEasingCurve.Type.OutCubic)
        self._moves.valueChanged.connect(lambda _: self.update())
        self._moves.finished.connect(self.hide)
        over.installEventFilter(self)

    def begin(self) -> None:
        """From the beginning, also while it goes on."""
        self._moves.stop()
        self.setGeometry(self._over.rect())
        self.raise_()
        self.show()
        self._moves.start()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802  Qt's name
        if event.type() == QEvent.Type.Resize:
            self.setGeometry(self._over.rect())
        elif event.type() == QEvent.Type.Hide:  # what comes back later was seen before
            self._moves.stop()
            self.hide()
        return False

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802  Qt's name
        painter = QPainter(self)
        painter.setOpacity(FIRST * int(self._moves.currentValue()) / STEPS)
        painter.fillRect(event.rect(), self._theme.colour("window"))
