"""The widgets that show the text of a message, stacked vertically, one per segment. Long text is shown in portions."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape

from PySide6.QtCore import QMimeData, QPoint, QSize, Qt, QUrl
from PySide6.QtGui import (
    QContextMenuEvent,
    QGuiApplication,
    QResizeEvent,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextLayout,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QMenu, QPlainTextEdit, QSizePolicy, QTextBrowser, QTextEdit, QWidget

from app.core.chat import Details
from app.gui.chat.message import highlight, markdown
from app.gui.chat.message.formula_pictures import (
    MAX_BLOCK_PIXELS,
    MAX_PIXELS,
    FormulaPictures,
    Key,
    Look,
    key_of,
    pixels_of,
    place_of,
)
from app.gui.chat.message.highlight import TimeSlicer
from app.gui.chat.message.markdown import IncrementalParser, Segment, SegmentKind
from app.gui.chat.message.math_rules import Formula
from app.gui.chat.reading.picture_loader import PictureLoader
from app.gui.look import formats, sizes
from app.gui.look.theme import Colors, Theme, set_role
from app.gui.widgets.buttons import IconButton, button
from app.gui.widgets.labels import label
from app.gui.widgets.layouts import column, row

SYNCHRONOUS_CHARS = 1_500  # up to this length, code is colored synchronously
RECOLOR_PAUSE = 5  # pause between recolorings of growing code, as a multiple of the duration of the last one
LINE_HEIGHT = 145  # percent
_START = re.compile(r'<ol start="(\d{1,9})"')
# bidirectional control characters, which reorder the displayed text
_BIDI_CONTROLS = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
_MARKS = {sign: f"[U+{sign:04X}]" for sign in _BIDI_CONTROLS}
MAX_HIGHLIGHTS = 1_000  # maximum number of highlights per block
MAX_LINE_CHARS = 1_000  # maximum line length; longer lines of code are broken for display


@dataclass(frozen=True, slots=True)
class MessageServices:
    """The services that message widgets share.

    These are a scheduler for slow work, and functions that open links and enlarge pictures.
    """

    theme: Theme
    slicer: TimeSlicer
    open_link: Callable[[str], None]
    formulas: FormulaPictures
    pictures: PictureLoader
    open_picture: Callable[[Details], object]


OBJECT = "\N{OBJECT REPLACEMENT CHARACTER}"  # stands for a picture in the text of a document
FORMULA = "formula"  # scheme of the addresses of formulas within a document


class TextBlock(QTextBrowser):
    """A text widget as tall as its content. It loads nothing but its own formulas, and it does not follow links."""

    def __init__(self, services: MessageServices, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._services = services
        self._shown: Segment | None = None
        self._highlighted: Sequence[str] = ()  # the highlighted words
        self._missing: set[Key] = set()  # formulas that are being drawn
        self._pixels = 0  # of the pictures of formulas
        services.formulas.drawn.connect(self._formulas_drawn)
        self.setOpenLinks(False)
        self.setUndoRedoEnabled(False)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFrameShape(QFrame.Shape.NoFrame)
        set_role(self, "prose")
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setAccessibleName(self.tr("Text"))
        self.document().setDocumentMargin(0)
        self.anchorClicked.connect(lambda url: services.open_link(url.toString()))

    def show_segment(self, segment: Segment, *, growing: bool = False) -> None:
        """Replace the displayed segment."""
        if segment != self._shown:
            self._shown = segment
            self._write(segment)

    def restyle(self) -> None:
        """Apply the new theme."""
        if self._shown is not None:
            self._write(self._shown)
            self.mark(self._highlighted)

    def _write(self, segment: Segment) -> None:
        theme = self._services.theme
        if segment.kind is SegmentKind.PLAIN:
            self.setPlainText(segment.content)
        else:
            sheet = _style_sheet(theme.colors, theme.scale, theme.code_font().family())
            self.document().setIndentWidth(theme.px(_indent(segment.content)))
            self.document().setDefaultStyleSheet(sheet)
            self._missing = self._services.formulas.request(segment.formulas)
            self._pixels = 0
            self.setHtml(markdown.with_formulas(segment, self._formula_html))
            self.setAccessibleDescription(", ".join(formula.source for formula in segment.formulas))
            has_link = "<a href" in segment.content
            policy = Qt.FocusPolicy.StrongFocus if has_link else Qt.FocusPolicy.ClickFocus
            self.setFocusPolicy(policy)
        self.fit()

    def mark(self, words: Sequence[str]) -> int | None:
        """Highlight these words, ignoring case. Return the text position of the first match."""
        self._highlighted = words
        return _mark(self, words, self._services.theme)

    def point_of(self, place: int) -> QPoint:
        """Return the point in this widget at which a text position is displayed."""
        return _point_of(self, place)

    def fit(self) -> None:
        """Set the height to that of the text at the current width."""
        document = self.document()
        height = document.size().height()
        if document.idealWidth() > self.viewport().width():  # a table is wider than the viewport
            height += self.horizontalScrollBar().sizeHint().height()
        _set_height(self, int(height + 0.99))

    def loadResource(self, kind: int, name: QUrl | str) -> object:  # noqa: N802  Qt's name
        """Return the picture of a formula. Load nothing else, neither from the network nor from disk."""
        is_image = kind == QTextDocument.ResourceType.ImageResource.value
        formula = self._formula(name.toString() if isinstance(name, QUrl) else name) if is_image else None
        drawing = self._services.formulas.drawing(formula) if formula is not None else None
        if drawing is None or pixels_of(drawing, self._look()) > MAX_PIXELS:
            return None
        return self._services.formulas.image(drawing, self._look())

    def createMimeDataFromSelection(self) -> QMimeData:  # noqa: N802  Qt's name
        """Return the selection as plain text, so that copied text has no colors or fonts."""
        data = QMimeData()
        data.setText(self._source_of(self.textCursor()))
        return data

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:  # noqa: N802  Qt's name
        """Offer to copy the formula under the pointer. Elsewhere, open the menu of the message."""
        format_ = self.document().documentLayout().formatAt(event.pos() + QPoint(self.horizontalScrollBar().value(), 0))
        formula = self._formula(format_.toImageFormat().name()) if format_.isImageFormat() else None
        if formula is None:
            super().contextMenuEvent(event)
            return
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(self.tr("Copy formula"), lambda: QGuiApplication.clipboard().setText(formula.source))
        menu.popup(event.globalPos())

    def _look(self) -> Look:
        theme = self._services.theme
        font = self.document().defaultFont()
        if font.pixelSize() <= 0:
            font.setPixelSize(theme.px(sizes.BODY))
        return Look(font, theme.color("text"), self.devicePixelRatioF())

    def _formula(self, name: str) -> Formula | None:
        scheme, _, number = name.partition(":")
        formulas = self._shown.formulas if self._shown is not None else ()
        is_ours = scheme == FORMULA and number.isascii() and number.isdigit() and int(number) < len(formulas)
        return formulas[int(number)] if is_ours else None

    def _formula_html(self, number: int, formula: Formula) -> str:
        """Return a formula as a picture, or as its source if no picture of it is available or can be shown."""
        drawing = self._services.formulas.drawing(formula)
        if drawing is None and key_of(formula) in self._missing and not formula.is_display:
            return escape(formula.source)  # as it looked until it ended, so that a growing text changes only once
        if drawing is None:
            return markdown.source_html(formula)
        n_pixels = pixels_of(drawing, self._look())
        if n_pixels > min(MAX_PIXELS, MAX_BLOCK_PIXELS - self._pixels):
            return markdown.source_html(formula)
        self._pixels += n_pixels
        place = place_of(drawing, self._look().font)
        align = ' style="vertical-align: middle"' if place.is_middle else ""
        return f'<img src="{FORMULA}:{number}" width="{place.width}" height="{place.height}"{align}>'

    def _formulas_drawn(self, keys: set[Key]) -> None:
        if self._shown is not None and not self._missing.isdisjoint(keys):
            self._write(self._shown)
            self.mark(self._highlighted)

    def _source_of(self, cursor: QTextCursor) -> str:
        """Return the selected text, with the source of each formula in place of its picture."""
        text = cursor.selection().toPlainText()
        if OBJECT not in text:
            return text
        sources = self._selected_sources(cursor)
        return "".join(next(sources, "") if sign == OBJECT else sign for sign in text)

    def _selected_sources(self, cursor: QTextCursor) -> Iterator[str]:
        """Yield the sources of the formulas in a selection, in text order."""
        document = self.document()
        place = cursor.selectionStart()
        while place < cursor.selectionEnd():
            if document.characterAt(place) == OBJECT:
                here = QTextCursor(document)
                here.setPosition(place + 1)
                formula = self._formula(here.charFormat().toImageFormat().name())
                yield formula.source if formula is not None else ""
            place += 1

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.fit()

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802  Qt's name
        _forward_wheel(self, event)


class Listing(QPlainTextEdit):
    """A code listing as tall as its unwrapped lines. It makes bidirectional control characters visible."""

    def __init__(self, services: MessageServices, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._services, self._code, self._language = services, "", ""
        self._spans: list[tuple[highlight.Span, ...]] = []
        self._highlighted: Sequence[str] = ()
        self._rests_until = 0.0
        self.setReadOnly(True)
        self.setUndoRedoEnabled(False)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setFrameShape(QFrame.Shape.NoFrame)
        set_role(self, "listing")
        self.setAccessibleName(self.tr("Code"))
        self.document().setDocumentMargin(0)

    def show_code(self, code: str, language: str, *, growing: bool) -> None:
        shown = "\n".join(_broken(code.translate(_MARKS)))
        if shown.startswith(self._code) and self._code:
            cursor = QTextCursor(self.document())
            cursor.movePosition(QTextCursor.MoveOperation.End)
            cursor.insertText(shown[len(self._code) :])
            del self._spans[max(0, self._code.count("\n")) :]
        else:
            self.setPlainText(shown)
            self._spans.clear()
        self._code, self._language = shown, language
        self.fit()
        self._color_soon(growing=growing)

    def mark(self, words: Sequence[str]) -> int | None:
        self._highlighted = words
        return _mark(self, words, self._services.theme)

    def restyle(self) -> None:
        self._spans.clear()
        self.fit()
        self._color_soon(growing=False)
        self.mark(self._highlighted)

    def fit(self) -> None:
        """Set the height to that of all lines, plus that of the horizontal scroll bar if needed."""
        first = self.blockBoundingRect(self.document().firstBlock()).height()
        bar = self.horizontalScrollBar()
        widest = self.fontMetrics().horizontalAdvance("m") * max(map(len, self._code.split("\n")))
        below = bar.sizeHint().height() if widest > self.viewport().width() else 0
        margins = self.contentsMargins()
        edges = margins.top() + margins.bottom() + below
        _set_height(self, int(first * self.blockCount() + 0.99) + edges)

    def _color_soon(self, *, growing: bool) -> None:
        if len(self._code) <= SYNCHRONOUS_CHARS:
            self._services.slicer.drop(self)
            for _ in self._coloring():
                pass
        elif not growing or time.monotonic() > self._rests_until:
            self._services.slicer.add(self, self._coloring())

    def _coloring(self) -> Iterator[None]:
        """Color the lines one by one, skipping those whose colors have not changed."""
        began = time.monotonic()
        block = self.document().firstBlock()
        for number, spans in enumerate(highlight.lines(self._code, self._language)):
            if not block.isValid():
                return
            known = self._spans[number] if number < len(self._spans) else None
            if spans != known:
                block.layout().setFormats([self._format(span) for span in spans])
                self.document().markContentsDirty(block.position(), block.length())
                self._spans[number:] = [spans, *self._spans[number + 1 :]]
            block = block.next()
            yield
        self._rests_until = time.monotonic() + RECOLOR_PAUSE * (time.monotonic() - began)

    def _format(self, span: highlight.Span) -> QTextLayout.FormatRange:
        range_ = QTextLayout.FormatRange()
        range_.start, range_.length = span[0], span[1]
        colors = QTextCharFormat()
        colors.setForeground(self._services.theme.color(span[2]))
        range_.format = colors
        return range_

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.fit()

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802  Qt's name
        _forward_wheel(self, event)


class CodeBlock(QFrame):
    """A code listing with a header that shows its language and a Copy button."""

    def __init__(self, services: MessageServices, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._segment: Segment | None = None
        set_role(self, "code")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._language = label("", "caption")
        self.copy = IconButton(services.theme, "copy", self.tr("Copy code"), self._copy)
        head = row(self._language, None, self.copy)
        head.setContentsMargins(sizes.M, sizes.XS, sizes.XS, 0)
        self.listing = Listing(services)
        inner = column(self.listing)
        inner.setContentsMargins(sizes.M, 0, sizes.M, sizes.M)
        self.setLayout(column(head, inner, gap=0))

    def show_segment(self, segment: Segment, *, growing: bool = False) -> None:
        """Show different code, or the same code with more text appended."""
        if segment == self._segment and growing:
            return
        self._segment = segment
        self._language.setText(segment.language or self.tr("text"))
        name = self.tr("Code, {language}").format(language=self._language.text())
        self.listing.setAccessibleName(name)
        self.listing.show_code(segment.content, segment.language, growing=growing)

    def restyle(self) -> None:
        self.listing.restyle()

    def mark(self, words: Sequence[str]) -> int | None:
        return self.listing.mark(words)

    def point_of(self, place: int) -> QPoint:
        return self.listing.mapTo(self, _point_of(self.listing, place))

    def minimumSizeHint(self) -> QSize:  # noqa: N802  Qt's name
        return QSize(0, super().minimumSizeHint().height())

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._segment.content if self._segment else "")


Block = TextBlock | CodeBlock


def block_for(segment: Segment, services: MessageServices) -> Block:
    """Create the widget for a segment."""
    return CodeBlock(services) if segment.kind is SegmentKind.CODE else TextBlock(services)


def _broken(code: str) -> Iterator[str]:
    for line in code.split("\n"):
        yield line[:MAX_LINE_CHARS]
        for at in range(MAX_LINE_CHARS, len(line), MAX_LINE_CHARS):
            yield line[at : at + MAX_LINE_CHARS]


def _mark(view: TextBlock | Listing, words: Sequence[str], theme: Theme) -> int | None:
    """Highlight words in the selection colors. Return the text position of the first match."""
    marks: list[QTextEdit.ExtraSelection] = []
    for word in words:
        match = view.document().find(word)
        while not match.isNull() and len(marks) < MAX_HIGHLIGHTS:
            mark = QTextEdit.ExtraSelection()
            mark.cursor = match
            mark.format.setBackground(theme.color("accent"))
            mark.format.setForeground(theme.color("on_accent"))
            marks.append(mark)
            match = view.document().find(word, match)
    view.setExtraSelections(marks)
    return min((selection.cursor.selectionStart() for selection in marks), default=None)


def _point_of(view: TextBlock | Listing, place: int) -> QPoint:
    cursor = QTextCursor(view.document())
    cursor.setPosition(place)
    return view.viewport().mapTo(view, view.cursorRect(cursor).topLeft())


def _set_height(view: TextBlock | Listing, height: int) -> None:
    """Set the height of a view and its viewport, which Qt does not update while the width is changing."""
    if view.height() != height:
        view.setFixedHeight(height)
        view.setViewportMargins(0, 0, 0, 0)  # makes Qt update the viewport's height


def _forward_wheel(view: QTextBrowser | QPlainTextEdit, event: QWheelEvent) -> None:
    """Scroll the view horizontally. Vertical scrolling is left to the conversation."""
    if abs(event.angleDelta().x()) > abs(event.angleDelta().y()):
        view.horizontalScrollBar().event(event)
    else:
        event.ignore()


def _indent(html: str) -> int:
    """Return a list indentation wide enough for the largest item number."""
    begins = max((int(number) for number in _START.findall(html)), default=1)
    digits = len(str(begins + html.count("<li>"))) if "<ol" in html else 1
    return sizes.XL + sizes.S * max(0, digits - 2)


@lru_cache(maxsize=8)
def _style_sheet(colors: Colors, scale: float, code_family: str) -> str:
    def px(size: int) -> str:
        return f"{round(size * scale)}px"

    gap, line = f"margin-top: 0; margin-bottom: {px(sizes.S)};", f"line-height: {LINE_HEIGHT}%;"
    code = f"font-family: '{code_family}'; font-size: {px(sizes.CODE_SIZE)};"
    line_around = f"border-width: {px(1)}; border-style: solid; border-color: {colors.border};"
    head = f"font-weight: 600; margin-top: {px(sizes.S)}; margin-bottom: {px(sizes.S)};"
    return f"""
    p {{ {gap} {line} }} .after {{ margin-top: {px(sizes.S)}; }} li {{ {line} }}
    ul, ol {{ margin-top: 0; margin-bottom: 0; }}
    .h1 {{ font-size: {px(sizes.TITLE)}; {head} }} .h2 {{ font-size: {px(sizes.SECTION)}; {head} }}
    .h3, .h4, .h5, .h6 {{ font-size: {px(sizes.BODY)}; {head} }}
    code {{ {code} background-color: {colors.code}; }}
    a {{ color: {colors.accent}; }}
    blockquote {{ color: {colors.muted}; margin-left: {px(sizes.L)}; margin-right: 0; }}
    table {{ {line_around} border-collapse: collapse; margin-top: {px(sizes.XS)}; margin-bottom: {px(sizes.XS)}; }}
    th, td {{ {line_around} }}
    th {{ background-color: {colors.code}; font-weight: 600; }}
    """


PORTION = 16_000  # characters shown at first, and added by each press of "Show more"


class Body(QWidget):
    """The text of a message, rendered as Markdown or as plain text."""

    def __init__(self, services: MessageServices, *, is_markdown: bool, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._services, self._is_markdown = services, is_markdown
        self._parser = IncrementalParser()
        self._text, self._limit = "", PORTION
        self.blocks: list[Block] = []
        self._match: tuple[Block, int] | None = None
        self._column = column(gap=sizes.S)
        self.more = button("", self._show_more, "link")
        self.more.hide()
        self.setLayout(column(self._column, self.more, gap=sizes.S))

    @property
    def text(self) -> str:
        return self._text

    def show_text(self, text: str, *, growing: bool = False) -> None:
        """Show a text. If it is growing, only its last part is laid out again."""
        if not text.startswith(self._text):
            self._parser, self._limit = IncrementalParser(), PORTION
        grew = growing or len(self._text) > self._limit
        self._text = text
        if grew:
            self._limit = max(self._limit, len(text))
        self._show(growing=growing)

    def mark(self, words: str) -> None:
        """Highlight these words. An empty string clears the highlights."""
        searched = words.split()
        low = self._text.casefold()
        first = min((at for word in searched if (at := low.find(word.casefold())) >= 0), default=0)
        if first >= self._limit:  # the first match is in text that is not shown yet
            self._limit = first + PORTION
            self._show(growing=False)
        marked = [(block, block.mark(searched)) for block in self.blocks]
        self._match = next(((block, place) for block, place in marked if place is not None), None)

    @property
    def match_position(self) -> QPoint | None:
        """The position of the first match in this widget."""
        if self._match is None or self._match[0] not in self.blocks:
            return None
        block, place = self._match
        return block.mapTo(self, block.point_of(place))

    def restyle(self) -> None:
        """Apply the new theme."""
        for block in self.blocks:
            block.restyle()

    def _show_more(self) -> None:
        self._limit += PORTION
        self._show(growing=False)

    def _show(self, *, growing: bool) -> None:
        shown = self._text[: _end_of_line(self._text, self._limit)]
        left = len(self._text) - len(shown)
        self.more.setVisible(left > 0)
        self.more.setText(self.tr("Show more ({count} characters)").format(count=formats.number(left)))
        if not self._is_markdown:
            segments, first = markdown.plain(shown), 0
        else:
            first = self._parser.feed(shown) if growing or left else self._parser.finish(shown)
            segments = self._parser.segments
        for place in range(first, len(segments)):
            is_open = growing and place == len(segments) - 1
            self._at(place, segments[place]).show_segment(segments[place], growing=is_open)
        while len(self.blocks) > len(segments):
            self._drop(self.blocks.pop())

    def _at(self, place: int, segment: Segment) -> Block:
        """Return the widget at an index. It is replaced if the segment is of a different kind."""
        if place < len(self.blocks):
            if isinstance(self.blocks[place], CodeBlock) is (segment.kind is SegmentKind.CODE):
                return self.blocks[place]
            self._drop(self.blocks.pop(place))
        made = block_for(segment, self._services)
        self.blocks.insert(place, made)
        self._column.insertWidget(place, made)
        return made

    def _drop(self, block: Block) -> None:
        self._column.removeWidget(block)
        block.hide()
        block.deleteLater()


def _end_of_line(text: str, limit: int) -> int:
    """Return the end of the line that contains position `limit`, or `limit` itself if the line is very long."""
    end = text.find("\n", limit, limit + PORTION // 4)
    return min(limit, len(text)) if end < 0 else end + 1
