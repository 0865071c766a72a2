"""Chats as PDF pages: A4, each chat on a new page, a page number at the foot."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path

from PySide6.QtCore import QMarginsF, QRectF, QSizeF, Qt, QUrl
from PySide6.QtGui import (
    QAbstractTextDocumentLayout,
    QFont,
    QPageLayout,
    QPageSize,
    QPainter,
    QPalette,
    QPdfWriter,
    QTextDocument,
)

from app.core.chat import Chat
from app.gui.chat.export import export_words as words
from app.gui.chat.export.export_html import rendered
from app.gui.look.theme import LIGHT

DPI, MARGIN_MM, FOOT_MM = 300, 18, 10
TEXT_PT, FOOT_PT = 10, 8
MM_PER_INCH = 25.4
SHEET = (
    ".title { font-size: 18pt; font-weight: 600; } .h1 { font-size: 14pt; } .h2 { font-size: 12pt; }"
    " .h1, .h2, .h3, .h4, .h5, .h6 { font-weight: 600; }"
    f" .who {{ font-size: 9pt; font-weight: 600; color: {LIGHT.accent}; margin-top: 20pt; }}"
    f" .facts {{ font-size: 9pt; color: {LIGHT.muted}; }} a {{ color: {LIGHT.accent}; }}"
    f" pre, code {{ background: {LIGHT.code}; }} pre, .typed {{ white-space: pre-wrap; }}"
    " table { border-collapse: collapse; margin-top: 6pt; }"
)


class _Document(QTextDocument):
    """Loads nothing, whatever an answer says."""

    def loadResource(self, kind: int, name: QUrl | str) -> object:  # noqa: N802  Qt's name
        return None


class PdfBook:
    """Write chats one after another, then `close`. All in the thread that made it."""

    def __init__(self, target: Path, title: str) -> None:
        self._writer = QPdfWriter(str(target))
        self._writer.setResolution(DPI)
        self._writer.setTitle(title)
        margins = QMarginsF(MARGIN_MM, MARGIN_MM, MARGIN_MM, MARGIN_MM)
        layout = QPageLayout(
            QPageSize(QPageSize.PageSizeId.A4), QPageLayout.Orientation.Portrait, margins, QPageLayout.Unit.Millimeter
        )
        self._writer.setPageLayout(layout)
        self._painter = QPainter()
        self._begun = self._painter.begin(self._writer)
        self._page = 0

    @property
    def writable(self) -> bool:
        """Whether the file could be opened."""
        return self._begun

    def add(self, chat: Chat) -> Iterator[int]:
        """Paint its pages; yields after each, so that it can be stopped."""
        document = self._laid_out(chat)
        size, paper = document.pageSize(), QPalette()
        paper.setColor(QPalette.ColorRole.Text, LIGHT.text)
        for number in range(document.pageCount()):
            if self._page:
                self._writer.newPage()
            self._page += 1
            self._painter.save()
            self._painter.translate(0, -number * size.height())
            part = QRectF(0, number * size.height(), size.width(), size.height())
            look = QAbstractTextDocumentLayout.PaintContext()
            look.clip = part
            look.palette = paper
            self._painter.setClipRect(part)
            document.documentLayout().draw(self._painter, look)
            self._painter.restore()
            self._foot(size)
            yield self._page

    def close(self) -> bool:
        """Whether all of it is written."""
        return self._begun and self._painter.end()

    def _laid_out(self, chat: Chat) -> QTextDocument:
        document = _Document()
        font = QFont()
        font.setPointSize(TEXT_PT)
        document.documentLayout().setPaintDevice(self._writer)
        document.setDefaultFont(font)
        document.setDefaultStyleSheet(SHEET)
        document.setDocumentMargin(0)
        foot = DPI * FOOT_MM / MM_PER_INCH
        page = QSizeF(self._writer.width(), self._writer.height() - foot)
        document.setPageSize(page)
        document.setHtml(_html(chat))
        return document

    def _foot(self, size: QSizeF) -> None:
        font = QFont()
        font.setPointSize(FOOT_PT)
        self._painter.setFont(font)
        self._painter.setPen(Qt.GlobalColor.darkGray)
        room = QRectF(0, size.height(), size.width(), self._writer.height() - size.height())
        self._painter.drawText(room, Qt.AlignmentFlag.AlignCenter, str(self._page))


def _html(chat: Chat) -> str:
    parts = [f'<p class="title">{escape(words.title(chat))}</p>']
    parts.append(f'<p class="facts">{escape(words.facts(chat))}</p>')
    if chat.system:
        parts.append(_who(words.system_words()) + _typed(chat.system))
    for said in words.spoken(chat):
        parts.append(_who(f"{said.who} · {said.when}" if said.when else said.who))
        for name, text in said.attachments:
            parts.append(f"<p><b>{escape(words.attachment_words(name))}</b></p>{_typed(text)}")
        if said.thought:
            parts.append(f"<p><b>{escape(words.thought_words())}</b></p>")
            parts.append(rendered(said.thought))
        parts.append(_typed(said.text) if said.mine else rendered(said.text))
    return "".join(parts).replace("\n</code></pre>", "</code></pre>")


def _who(line: str) -> str:
    return f'<p class="who">{escape(line)}</p>'


def _typed(text: str) -> str:
    return f'<p class="typed">{escape(text)}</p>'
