"""Conversion of attached documents to text, and of pictures to small copies.

Each file is read in a separate confined process.
"""

from __future__ import annotations

import base64
import itertools
import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, QTimer

from app.core.chat import FORM, HEIGHT, PICTURE, WIDTH, Details
from app.core.errors import AppError, BadInput
from app.core.reasons import os_cause
from app.gui.chat.reading.reader_process import ReaderLimits, ReaderProcess
from app.gui.diagnostics.background_job import Job
from backends.readers.messages import (
    MAX_DOCUMENT_BYTES,
    MAX_PICTURE_BYTES,
    DocumentText,
    Picture,
    ReadDocument,
    Refusal,
    Reply,
    ShrinkPicture,
    is_pdf,
)

LIMITS = ReaderLimits(seconds=60.0, resident_bytes=1_280 << 20, idle_ms=0)
HEAD_BYTES = 1_024
HEADS = (b"PK\x03\x04", bytes.fromhex("d0cf11e0a1b11ae1"))  # of Office files, new and old
# The beginnings of pictures: PNG, JPEG and GIF, and TIFF, which the reader refuses by name
PICTURE_HEADS = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8", b"II*\0", b"MM\0*")
HEIC_BRANDS = (b"heic", b"heix", b"hevc", b"mif1", b"msf1", b"avif", b"avis")
MOST_PIXELS = 1 << 12  # wide or high; the reader never sends more
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
PICTURE_REASONS = ("picture_unknown", "picture_broken", "picture_pixels", "picture_heavy")
# Details of an attached file that has pages: what a page is called, how many of them its text has, and of how many
UNIT, PAGES, ALL_PAGES = "unit", "pages", "all_pages"
SHORTENED = "shortened"  # detail of a text without pages of which the end was left out
_PAGE = re.compile(r"(?m)^\[(?:page|slide|sheet) \d+[^\]\n]*\]$")
REST_LEFT_OUT = "[The rest is left out.]"

Read = Callable[[Details], object]
Failed = Callable[[BadInput], object]


class Kind(StrEnum):
    """The kind of a file, determined by its first bytes.

    For documents and pictures, the value is the name of the reader.
    """

    TEXT = "text"
    DOCUMENT = "documents"
    PICTURE = "pictures"


def kind_of(path: Path) -> Kind:
    """Return the kind of a file. Raises BadInput if it cannot be read."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise BadInput("attachment_unreadable", name=path.name, why=os_cause(error)) from None
    if head.startswith(PICTURE_HEADS) or _is_other_picture(head):
        return Kind.PICTURE
    return Kind.DOCUMENT if head.startswith(HEADS) or is_pdf(head) else Kind.TEXT


def _is_other_picture(head: bytes) -> bool:
    """Return whether a file is a WebP, BMP, HEIC or AVIF picture, not just text with the same first letters."""
    is_webp = head.startswith(b"RIFF") and head[8:12] == b"WEBP"
    is_bmp = head.startswith(b"BM") and head[6:10] == bytes(4)
    return is_webp or is_bmp or (head[4:8] == b"ftyp" and head[8:12] in HEIC_BRANDS)


def is_picture(file: Details) -> bool:
    """Return whether an attachment is a picture."""
    return bool(file.get(PICTURE))


@dataclass(frozen=True, slots=True, eq=False)
class _Reading:
    """A file or pasted picture to be read, and the draft that it belongs to."""

    kind: Kind
    name: str
    source: Path | bytes
    draft: str
    done: Read
    failed: Failed


class AttachmentReader(QObject):
    """A queue of files to be read. `close` removes the files that have not been read yet."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._waiting: deque[_Reading] = deque()
        self._reading: _Reading | None = None
        self._process: ReaderProcess | None = None

    def read(self, path: Path, kind: Kind, done: Read, failed: Failed, draft: str = "") -> None:
        """Read a document or picture. One of the two callbacks will be called."""
        self._add(_Reading(kind, path.name, path, draft, done, failed))

    def read_pasted(self, name: str, picture: bytes, done: Read, failed: Failed, draft: str = "") -> None:
        """Read a picture from the clipboard. One of the two callbacks will be called."""
        self._add(_Reading(Kind.PICTURE, name, picture, draft, done, failed))

    def _add(self, reading: _Reading) -> None:
        self._waiting.append(reading)
        QTimer.singleShot(0, self, self._next)

    def forget(self, draft: str) -> None:
        """Remove the documents of a draft that have not been read yet from the queue."""
        self._waiting = deque(reading for reading in self._waiting if reading.draft != draft)
        if self._reading is not None and self._reading.draft == draft:
            self._end()
            QTimer.singleShot(0, self, self._next)

    def close(self) -> None:
        self._waiting.clear()
        self._end()

    def _next(self) -> None:
        if self._reading is not None or not self._waiting:
            return
        reading = self._reading = self._waiting.popleft()
        # A slow disk or network drive must not hold up the window.
        Job(partial(_content, reading), partial(self._loaded, reading), partial(self._lost, reading), self)

    def _loaded(self, reading: _Reading, content: bytes | BadInput) -> None:
        if reading is not self._reading:
            return  # it has been forgotten
        if isinstance(content, BadInput):
            self._fail(reading, content)
            return
        self._process = ReaderProcess(str(reading.kind), LIMITS, self)
        is_document = reading.kind is Kind.DOCUMENT
        request = ReadDocument(Path(reading.name).suffix.lower()) if is_document else ShrinkPicture()
        self._process.ask(request, partial(self._answered, reading), content)

    def _lost(self, reading: _Reading, _: OSError | AppError) -> None:
        if reading is self._reading:
            self._fail(reading, BadInput("attachment_broken", name=reading.name))

    def _answered(self, reading: _Reading, reply: Reply | None) -> None:
        match reply:
            case DocumentText():
                self._deliver(reading, details_of(reading.name, reply))
            case Picture() if _is_sound(reply):
                self._deliver(reading, picture_details(reading.name, reply))
            case Refusal(code=code, facts=facts) if code in PICTURE_REASONS:
                self._fail(reading, BadInput(code, **facts))
            case _:
                code = reply.code if isinstance(reply, Refusal) else "reader_heavy"
                self._fail(reading, BadInput(REASONS.get(code, "attachment_broken"), name=reading.name))

    def _deliver(self, reading: _Reading, file: Details) -> None:
        self._end()
        QTimer.singleShot(0, self, self._next)
        reading.done(file)

    def _fail(self, reading: _Reading, error: BadInput) -> None:
        self._end()
        QTimer.singleShot(0, self, self._next)
        reading.failed(error)

    def _end(self) -> None:
        self._reading = None
        process, self._process = self._process, None
        if process is not None:
            process.close()
            process.deleteLater()


def _content(reading: _Reading) -> bytes | BadInput:
    try:
        return reading.source if isinstance(reading.source, bytes) else _bytes_of(reading.source)
    except BadInput as error:
        return error


def _bytes_of(path: Path) -> bytes:
    """Return the content of a file. Raises BadInput. A file that is too large is rejected before it is read."""
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


def _is_sound(picture: Picture) -> bool:
    """Return whether a small copy has a plausible size, because the process that made it is not trusted."""
    sides = (picture.width, picture.height)
    return picture.form != "rgb" and len(picture.data) <= MAX_PICTURE_BYTES and all(0 < n <= MOST_PIXELS for n in sides)


def picture_details(name: str, picture: Picture) -> Details:
    """Return a picture as an attachment."""
    data = base64.b64encode(picture.data).decode("ascii")
    size = {WIDTH: picture.width, HEIGHT: picture.height}
    return {"name": name, "text": "", PICTURE: data, FORM: picture.form, **size}


def details_of(name: str, document: DocumentText) -> Details:
    """Return a document as an attachment.

    Marks show the model where each page begins and which pages are missing.
    """
    if not document.unit:
        return {"name": name, "text": "\n".join(document.pages)}
    names = document.names or ("",) * len(document.pages)
    pages = [
        f"[{document.unit} {number}{f': {_plain(title)}' if title else ''}]\n{_PAGE.sub(_indented, text)}"
        for number, (title, text) in enumerate(zip(names, document.pages, strict=False), 1)
    ]
    return _paged(name, document.unit, pages, document.n_pages)


def _plain(title: str) -> str:
    """Return a page name in a form that cannot end its page mark or start a new line."""
    return " ".join(title.split()).replace("]", ")")


def _indented(match: re.Match[str]) -> str:
    """Indent a line of the text that looks like a page mark, so that it is not mistaken for one."""
    return f" {match[0]}"


def shortened(file: Details, most_chars: int) -> Details:
    """Return an attachment shortened to about `most_chars` characters.

    The last pages are dropped, and the text says so.
    """
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
