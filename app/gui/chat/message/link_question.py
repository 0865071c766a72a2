"""Asks before a link of an answer is opened: where it leads is shown in full."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication, Qt, QUrl
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from app.gui.look.theme import Theme
from app.gui.widgets.dialog import Compact
from app.gui.widgets.labels import paragraph

SCHEMES = ("http", "https", "mailto")
SHOWN_CHARACTERS = 500
BREAK = "\u200b"  # a line may end here: an address has no spaces


def ask_link(theme: Theme, parent: QWidget, address: str, open_it: Callable[[], object]) -> Compact:
    """Open, copy or leave it; what no browser or mail program opens can only be copied."""
    words = _tr("This link comes from an answer and leads to:")
    box = Compact(theme, _tr("Open a link"), words, parent)
    shown = paragraph(BREAK.join(_shown(address)))
    shown.setTextInteractionFlags(Qt.TextInteractionFlag.NoTextInteraction)  # with the breaks in it
    shown.setAccessibleName(_shown(address))
    box.add(shown)
    copies = box.answer(_tr("Copy address"), lambda: QGuiApplication.clipboard().setText(address))
    acts = [copies]
    if QUrl(address).scheme() in SCHEMES:
        acts.append(box.answer(_tr("Open in the browser"), open_it))
    box.offer(_tr("Cancel"), *acts).setFocus()
    box.open()
    return box


def _shown(address: str) -> str:
    """As the browser will see it; signs that look like others are written out."""
    whole = QUrl(address).toString(QUrl.ComponentFormattingOption.FullyEncoded) or address
    return whole if len(whole) <= SHOWN_CHARACTERS else f"{whole[:SHOWN_CHARACTERS]}…"


def _tr(text: str) -> str:
    return QCoreApplication.translate("Link", text)
