"""The text of one message as widgets, one below the other; a very long one is shown in portions."""

from __future__ import annotations

from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QWidget

from app.gui.chat.message import segments
from app.gui.chat.message.blocks import Block, CodeBlock, Look, block_for
from app.gui.chat.message.segments import Kind, Reader, Segment
from app.gui.look import formats
from app.gui.look import theme as sizes
from app.gui.widgets.buttons import button
from app.gui.widgets.layouts import column

PORTION = 16_000  # characters that are shown at first, and with each press of "Show more"


class Body(QWidget):
    """`is_markdown`: as a model writes; else the text as it was typed."""

    def __init__(self, look: Look, *, is_markdown: bool, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._look, self._is_markdown = look, is_markdown
        self._reader = Reader()
        self._text, self._limit = "", PORTION
        self.blocks: list[Block] = []
        self._marked: tuple[Block, int] | None = None
        self._column = column(gap=sizes.S)
        self.more = button("", self._show_more, "link")
        self.more.hide()
        self.setLayout(column(self._column, self.more, gap=sizes.S))

    @property
    def text(self) -> str:
        return self._text

    def show_text(self, text: str, *, growing: bool = False) -> None:
        """Another text; one that is growing is shown to its end, and only its end is painted again."""
        if not text.startswith(self._text):
            self._reader, self._limit = Reader(), PORTION
        grew = growing or len(self._text) > self._limit
        self._text = text
        if grew:
            self._limit = max(self._limit, len(text))
        self._show(growing=growing)

    def mark(self, words: str) -> None:
        """Wherever one of them stands; "" marks nothing."""
        sought = words.split()
        low = self._text.casefold()
        first = min((at for one in sought if (at := low.find(one.casefold())) >= 0), default=0)
        if first >= self._limit:  # more is shown first
            self._limit = first + PORTION
            self._show(growing=False)
        marked = [(block, block.mark(sought)) for block in self.blocks]
        self._marked = next(((block, place) for block, place in marked if place is not None), None)

    @property
    def marked_at(self) -> QPoint | None:
        """Where the first of them stands."""
        if self._marked is None or self._marked[0] not in self.blocks:
            return None
        block, place = self._marked
        return block.mapTo(self, block.seen_at(place))

    def restyle(self) -> None:
        """The theme is another."""
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
            found, first = segments.plain(shown), 0
        else:
            first = self._reader.feed(shown) if growing or left else self._reader.finish(shown)
            found = self._reader.segments
        for place in range(first, len(found)):
            is_open = growing and place == len(found) - 1
            self._at(place, found[place]).show_segment(found[place], growing=is_open)
        while len(self.blocks) > len(found):
            self._drop(self.blocks.pop())

    def _at(self, place: int, segment: Segment) -> Block:
        """The widget of that place, another one if its kind does not fit."""
        if place < len(self.blocks):
            if isinstance(self.blocks[place], CodeBlock) is (segment.kind is Kind.CODE):
                return self.blocks[place]
            self._drop(self.blocks.pop(place))
        made = block_for(segment, self._look)
        self.blocks.insert(place, made)
        self._column.insertWidget(place, made)
        return made

    def _drop(self, block: Block) -> None:
        self._column.removeWidget(block)
        block.hide()
        block.deleteLater()


def _end_of_line(text: str, limit: int) -> int:
    """The end of the line that holds the character `limit`, unless that is far."""
    end = text.find("\n", limit, limit + PORTION // 4)
    return min(limit, len(text)) if end < 0 else end + 1
