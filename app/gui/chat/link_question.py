"""Asks before a link of an answer is opened: where it leads is shown in full."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication, Qt, QUrl
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMessageBox, QWidget

SCHEMES = ("http", "https", "mailto")
SHOWN_CHARACTERS = 500


def ask_link(parent: QWidget, address: str, open_it: Callable[[], object]) -> QMessageBox:
    """Open, copy or leave it; what no browser or mail program opens can only be copied."""
    box = QMessageBox(parent)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setWindowTitle(_tr("Open a link"))
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setText(_tr("This link comes from an answer and leads to:"))
    box.setInformativeText(_shown(address))
    if QUrl(address).scheme() in SCHEMES:
        opens = box.addButton(_tr("Open in the browser"), QMessageBox.ButtonRole.AcceptRole)
        opens.clicked.connect(lambda *_: open_it())
    copies = box.addButton(_tr("Copy address"), QMessageBox.ButtonRole.ActionRole)
    copies.clicked.connect(lambda *_: QGuiApplication.clipboard().setText(address))
    cancel = box.addButton(QMessageBox.StandardButton.Cancel)
    box.setDefaultButton(cancel)
    box.open()
    return box


def _shown(address: str) -> str:
    """As the browser will see it; signs that look like others are written out."""
    whole = QUrl(address).toString(QUrl.ComponentFormattingOption.FullyEncoded) or address
    return whole if len(whole) <= SHOWN_CHARACTERS else f"{whole[:SHOWN_CHARACTERS]}…"


def _tr(text: str) -> str:
    return QCoreApplication.translate("Link", text)
