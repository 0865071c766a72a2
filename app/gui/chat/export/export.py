"""Export of chats into a file in one of four formats. The file appears only when it is complete."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QLocale

from app.core.chat import Chat, ChatId
from app.core.errors import AppError
from app.core.reasons import os_cause
from app.gui.chat.export.chat_json import HEAD, TAIL, chat_json
from app.gui.chat.export.documents import HTML_TAIL, PdfBook, html_article, html_head, markdown, without_thoughts
from app.gui.chat.history import history_rows
from app.gui.chat.history.history_cipher import Codec
from app.gui.chat.history.history_file import connect

Chats = Generator[Chat, None, None]  # closed by whoever uses it up, in the same thread
Told = Callable[[int], None]  # so many chats are written; raises to stop


@dataclass(frozen=True, slots=True)
class Format:
    """A format for exported chats."""

    name: str
    suffix: str


MARKDOWN, HTML = Format("Markdown", ".md"), Format("HTML", ".html")
PDF, JSON = Format("PDF", ".pdf"), Format("JSON", ".json")
FORMATS = (MARKDOWN, HTML, PDF, JSON)


def stored(file: Path, ids: Sequence[ChatId] | None, codec: Codec) -> Chats:
    """Yield chats from the history's file, in any thread. ids: None for all chats."""
    with contextlib.closing(connect(file)) as db:
        if ids is None:
            ids = [heading.id for heading in history_rows.headings(db, codec)]
        for ident in ids:
            chat = history_rows.read(db, ident, codec)
            if chat is not None:
                yield chat


def export(chats: Chats, form: Format, target: Path, title: str, report: Told, *, thoughts: bool = True) -> int:
    """Export chats and return their number. Raises AppError; an existing file then stays unchanged.

    thoughts: include the thoughts of answers. JSON, which can be imported again, always includes them.
    """
    if not thoughts and form != JSON:
        chats = _without_thoughts(chats)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        write = _pdf if form == PDF else _text
        with contextlib.closing(chats):
            count = write(chats, form, part, title, report)
        part.replace(target)
        return count
    except OSError as error:
        raise AppError("chats_not_exported", path=str(target), why=os_cause(error)) from None
    except sqlite3.Error as error:
        raise AppError("chats_not_exported", path=str(target), why=str(error)) from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def _without_thoughts(chats: Chats) -> Chats:
    with contextlib.closing(chats):
        for chat in chats:
            yield without_thoughts(chat)


def _text(chats: Iterable[Chat], form: Format, part: Path, title: str, report: Told) -> int:
    head, write_chat, between, tail = _parts(form, title)
    count = 0
    with part.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
        part.chmod(0o600)
        file.write(head)
        for chat in chats:
            file.write((between if count else "") + write_chat(chat))
            count += 1
            report(count)
        file.write(tail)
    return count


def _parts(form: Format, title: str) -> tuple[str, Callable[[Chat], str], str, str]:
    """Return the beginning of the file, the writer of a chat, the separator of chats, and the end."""
    if form == JSON:
        return HEAD, chat_json, ",\n", TAIL
    if form == HTML:
        language = QLocale().bcp47Name()
        return html_head(title, language), html_article, "", HTML_TAIL
    return "", markdown, "\n---\n\n", ""


def _pdf(chats: Iterable[Chat], form: Format, part: Path, title: str, report: Told) -> int:
    part.touch(mode=0o600)
    book, count = PdfBook(part, title), 0
    try:
        for chat in chats:
            for _ in book.add(chat):
                report(count)
            count += 1
            report(count)
    finally:
        whole = book.close()
    if not whole:
        raise OSError(0, "the PDF could not be written")
    return count
