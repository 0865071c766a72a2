"""Syntax highlighting with Pygments, and a scheduler that runs slow work in short slices."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Keyword, Literal, Name, Number, Operator, String, _TokenType
from pygments.util import ClassNotFound
from PySide6.QtCore import QObject, QTimer

# Code with a longer line is not colored, because that would take time quadratic in the line's length.
MAX_LINE_CHARS = 1_000
COMMON_LANGUAGES = ("python", "javascript", "bash", "json", "html", "c", "java")
COLORS: dict[_TokenType, str] = {
    Comment: "code_comment", Keyword: "code_keyword", Operator.Word: "code_keyword",
    Name.Builtin: "code_function", Name.Function: "code_function", Name.Class: "code_function",
    Name.Decorator: "code_function", Name.Tag: "code_keyword", Name.Attribute: "code_function",
    String: "code_string", Number: "code_number", Literal: "code_number",
}  # fmt: skip

Span = tuple[int, int, str]  # position in the line, length, and name of a theme color
NONE: tuple[Span, ...] = ()


def lines(code: str, language: str) -> Iterator[tuple[Span, ...]]:
    """Yield the colored spans of each line. Yields nothing if the language is unknown or a line is too long."""
    lexer = _lexer(language) if language else None
    if lexer is None or max(map(len, code.split("\n"))) > MAX_LINE_CHARS:
        return
    held: list[Span] = []
    column = 0
    for _, token, text in lexer.get_tokens_unprocessed(code):
        color = _color(token)
        for n, piece in enumerate(text.split("\n")):
            if n:
                yield tuple(held)
                held, column = [], 0
            if color and piece.strip():
                held.append((column, len(piece), color))
            column += len(piece)
    yield tuple(held)


def warm() -> Iterator[None]:
    """Load the lexers of common languages in advance, because the first use of each one is slow."""
    for language in COMMON_LANGUAGES:
        _lexer(language)
        yield


def _lexer(language: str) -> Lexer | None:
    try:
        return get_lexer_by_name(language.lower(), stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def _color(token: _TokenType) -> str | None:
    """Return the color of a token type, or that of its nearest ancestor with a color."""
    kind: _TokenType | None = token
    while kind is not None:
        if kind in COLORS:
            return COLORS[kind]
        kind = kind.parent
    return None


SLICE_S = 0.006


class TimeSlicer(QObject):
    """A scheduler that runs generators one after another on the GUI thread, in slices of a few milliseconds."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._waiting: dict[int, Iterator[object]] = {}  # by ID of the owner
        self._known: set[int] = set()
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._run)

    def add(self, owner: QObject, work: Iterator[object]) -> None:
        """Schedule work, replacing earlier work of the same owner. Work is dropped when its owner is destroyed."""
        key = id(owner)
        if key not in self._known:
            self._known.add(key)
            owner.destroyed.connect(lambda: self._gone(key))
        self._waiting.pop(key, None)
        self._waiting[key] = work
        self._timer.start()

    def drop(self, owner: QObject) -> None:
        """Cancel the work of an owner."""
        self._waiting.pop(id(owner), None)

    def finish(self) -> None:
        """Run all remaining work immediately."""
        while self._waiting:
            deque(self._waiting.pop(next(iter(self._waiting))), maxlen=0)

    def _gone(self, key: int) -> None:
        self._waiting.pop(key, None)
        self._known.discard(key)

    def _run(self) -> None:
        ends_at = time.perf_counter() + SLICE_S
        while self._waiting and time.perf_counter() < ends_at:
            key, work = next(iter(self._waiting.items()))
            if next(work, self) is self and self._waiting.get(key) is work:
                del self._waiting[key]
        if not self._waiting:
            self._timer.stop()
