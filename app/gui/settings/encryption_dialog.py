"""How far the encrypting of the chats is; seen only where it takes over a second."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QWidget

from app.gui.chat.history.chat_lock import ChatLock
from app.gui.look import theme as sizes
from app.gui.widgets.dialog import Dialog
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.layouts import column
from app.gui.widgets.progress import Progress

SOON_MS = 1000


class TurningDialog(Dialog):
    """In front of the window until it is over, so that nobody renames or deletes meanwhile.

    It cannot be stopped, but the window can be closed: then it is done as a whole or not at all.
    """

    def __init__(self, lock: ChatLock, parent: QWidget, *, on: bool) -> None:
        super().__init__(parent)
        self._lock, self._on = lock, on
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowModality(Qt.WindowModality.WindowModal)
        title = self.tr("Encrypting your chats") if on else self.tr("Decrypting your chats")
        self.setWindowTitle(title)
        self.bar = Progress(title)
        self.words = paragraph(
            self.tr("Answers go on meanwhile; they are written afterwards."), "muted"
        )
        box = column(label(title, "section"), self.words, self.bar, gap=sizes.M)
        box.setContentsMargins(sizes.XL, sizes.XL, sizes.XL, sizes.L)
        self.setLayout(box)
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(SOON_MS)
        self._soon.timeout.connect(self.open)
        lock.turned.connect(self._over)
        lock.history.turning.progressed.connect(self._show)

    def begin(self) -> None:
        """Turn it on or off; the dialog goes by itself."""
        self._soon.start()
        self._lock.turn(self._on)

    def reject(self) -> None:
        """Escape does not end it."""

    def _show(self, n: int, of: int) -> None:
        self.bar.tell(n / of if of else None)

    def _over(self, _: object) -> None:
        self._soon.stop()
        self.done(0)
        self.deleteLater()
