"""Attached documents as text: read one after another, each in a confined process of its own."""

from __future__ import annotations

import itertools
import re
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, QTimer

from app.core.chat import Details
from app.core.errors import BadInput
from app.core.reasons import os_cause
from app.gui.chat.reading.reader_process import ReaderLimits, ReaderProcess
from backends.readers.messages import MAX_DOCUMENT_BYTES, DocumentText, ReadDocument, Refusal, Reply

LIMITS = ReaderLimits(seconds=60.0, resident_bytes=1_280 << 20, idle_ms=0)
HEAD_BYTES = 1_024
HEADS = (b"PK\x03\x04", bytes.fromhex("d0cf11e0a1b11ae1"))  # of Office files, new and old
PDF_HEAD = b"%PDF-"
# Reasons, by what the process says
REASONS = {
    "document_locked": "attachment_locked",
    "document_scanned": "attachment_scanned",
    "document_broken": "attachment_broken",
    "document_old": "attachment_old",
    "document_empty": "attachment_empty",
    "document_heavy": "attachment_heavy",
    "document_unknown": "attachment_no_text",
    "reader_heavy": "attachment_heavy",
}
# Details of an attached file that has pages: what a page is called, how many of them its text has, and of how many
UNIT, PAGES, ALL_PAGES = "unit", "pages", "all_pages"
SHORTENED = "shortened"  # detail of a text without pages of which the end was left out
_PAGE = re.compile(r"(?m)^\[(?:page|slide|sheet) \d+[^\]\n]*\]$")
REST_LEFT_OUT = "[The rest is left out.]"

Read = Callable[[Details], object]
Failed = Callable[[BadInput], object]


def is_document(path: Path) -> bool:
    """Return whether a file is a PDF or Office file by its first bytes. Raises BadInput if it cannot be read."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise BadInput("attachment_unreadable", name=path.name, why=os_cause(error)) from None
    return head.startswith(HEADS) or PDF_HEAD in head


class DocumentReader(QObject):
    """A queue of documents to be read. `close` forgets those that have not been read yet."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._waiting: deque[tuple[Path, Read, Failed]] = deque()
        self._process: ReaderProcess | None = None

    def read(self, path: Path, done: Read, failed: Failed) -> None:
        """Read a document. One of the functions is called later."""
        self._waiting.append((path, done, failed))
        if self._process is None:
            QTimer.singleShot(0, self, self._next)

    def close(self) -> None:
        self._waiting.clear()
        self._end()

    def _next(self) -> None:
        if self._process is not None or not self._waiting:
            return
        path, done, failed = self._waiting.popleft()
        try:
            data = _bytes_of(path)
        except BadInput as error:
            failed(error)
            QTimer.singleShot(0, self, self._next)
            return
        self._process = ReaderProcess("documents", LIMITS, self)
        self._process.ask(ReadDocument(path.suffix.lower()), partial(self._answered, path, done, failed), data)

    def _answered(self, path: Path, done: Read, failed: Failed, reply: Reply | None) -> None:
        self._end()
        QTimer.singleShot(0, self, self._next)
        if isinstance(reply, DocumentText):
            done(details_of(path.name, reply))
        else:
            code = reply.code if isinstance(reply, Refusal) else "reader_heavy"
            failed(BadInput(REASONS.get(code, "attachment_broken"), name=path.name))

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.close()
            process.deleteLater()


def _bytes_of(path: Path) -> bytes:
    """Return the content of a file. Raises BadInput, before reading anything if it is too large."""
    try:
        if path.stat().st_size > MAX_DOCUMENT_BYTES:
            raise BadInput("attachment_large", name=path.name, most_bytes=MAX_DOCUMENT_BYTES)
        with path.open("rb") as file:
            data = file.read(MAX_DOCUMENT_BYTES + 1)
    except OSError as error:
        raise BadInput("attachment_unreadable", name=path.name, why=os_cause(error)) from None
    if len(data) > MAX_DOCUMENT_BYTES:  # it has grown in the meantime
        raise BadInput("attachment_large", name=path.name, most_bytes=MAX_DOCUMENT_BYTES)
    return data


def details_of(name: str, document: DocumentText) -> Details:
    """Return a document as an attachment. The model sees where each page begins, and which ones are missing."""
    if not document.unit:
        return {"name": name, "text": "\n".join(document.pages)}
    names = document.names or ("",) * len(document.pages)
    pages = [
        f"[{document.unit} {number}{f': {title}' if title else ''}]\n{text}"
        for number, (title, text) in enumerate(zip(names, document.pages, strict=False), 1)
    ]
    return _paged(name, document.unit, pages, document.n_pages)


def shortened(file: Details, most_chars: int) -> Details:
    """Return an attachment with at most about this much text. Its last pages are left out, and it says so."""
    text = str(file["text"])
    if len(text) <= most_chars:
        return file
    unit = str(file.get(UNIT) or "")
    places = [match.start() for match in _PAGE.finditer(text)] if unit else []
    pages = [text[at:end].strip("\n") for at, end in itertools.pairwise([*places, len(text)])]
    pages = pages[: int(file.get(PAGES) or 0)]
    kept = n_chars = 0
    for page in pages:
        n_chars += len(page) + 2
        if n_chars > most_chars:
            break
        kept += 1
    if kept:
        return _paged(str(file["name"]), unit, pages[:kept], int(file.get(ALL_PAGES) or kept))
    line_end = text.rfind("\n", 0, most_chars)
    end = line_end if line_end > most_chars // 2 else most_chars
    return {"name": file["name"], "text": f"{text[:end].rstrip()}\n{REST_LEFT_OUT}", SHORTENED: True}


def _paged(name: str, unit: str, pages: list[str], n_pages: int) -> Details:
    text = "\n\n".join(pages)
    if len(pages) + 1 == n_pages:
        text = f"{text}\n\n[{unit.capitalize()} {n_pages} is left out.]"
    elif len(pages) < n_pages:
        text = f"{text}\n\n[{unit.capitalize()}s {len(pages) + 1} to {n_pages} are left out.]"
    return {"name": name, "text": text, UNIT: unit, PAGES: len(pages), ALL_PAGES: n_pages}
