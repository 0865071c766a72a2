"""The text of documents, by page: PDF, Word, PowerPoint and OpenDocument files, and spreadsheets.

A file's name is not trusted: its first bytes and its parts determine its format. This runs in a confined process with
limits on time and memory (backends/readers/__main__.py).
"""

from __future__ import annotations

import io
import logging
import lzma
import time
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pypdf
from pypdf.errors import DependencyError, PyPdfError
from python_calamine import CalamineError, CalamineWorkbook, PasswordError

from backends.readers import office
from backends.readers.messages import MAX_TEXT_CHARS, DocumentText, Refused, is_pdf

HEAD_BYTES = 1_024
ZIP_HEAD, OLE_HEAD = b"PK\x03\x04", bytes.fromhex("d0cf11e0a1b11ae1")
LOCKED_PART = "EncryptedPackage".encode("utf-16-le")  # in the file that contains an encrypted one
SPREADSHEETS = ("xl/workbook.xml", "xl/workbook.bin")
CUT = "[…]"  # ends a page that is not whole
OPEN_DOCUMENT = b"application/vnd.oasis.opendocument."
# What a parser of PDF stumbles over in malformed files; its own errors are among them
MALFORMED = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NotImplementedError,
    OSError,
    TypeError,
    ValueError,
    StopIteration,
    zlib.error,
    PyPdfError,
)
logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it has a warning for each flaw of a file
READING_SECONDS = 20.0  # of processor time, after which the remaining pages are left out


@dataclass(slots=True)
class Pages:
    """The pages read so far, and how many there are. Pages are added until there is too much text or no time left."""

    unit: str
    texts: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    n_pages: int = 0
    n_chars: int = 0
    ends_at: float = field(default_factory=lambda: time.process_time() + READING_SECONDS)

    @property
    def is_full(self) -> bool:
        return self.n_chars >= MAX_TEXT_CHARS or time.process_time() > self.ends_at

    def add(self, text: str, name: str = "") -> None:
        """Add a page. A page that is too long is cut."""
        text, room = clean(text), max(0, MAX_TEXT_CHARS - self.n_chars)
        if len(text) > room:
            text = f"{text[:room]} {CUT}"
        self.texts.append(text)
        self.names.append(name)
        self.n_chars += len(text)

    def document(self) -> DocumentText:
        """Return the document. Raises Refused if it has no text."""
        if not any(self.texts):
            raise Refused("document_empty")
        names = tuple(self.names) if any(self.names) else ()
        return DocumentText(self.unit, tuple(self.texts), max(self.n_pages, len(self.texts)), names)


def read(data: bytes, suffix: str) -> DocumentText:
    """Return the text of a document. Raises Refused."""
    if is_pdf(data[:HEAD_BYTES]):
        return _pdf(data)
    if data.startswith(ZIP_HEAD):
        return _zipped(data)
    if data.startswith(OLE_HEAD):
        if LOCKED_PART in data:
            raise Refused("document_locked")
        if suffix == ".xls":
            return _spreadsheet(data)
        raise Refused("document_old")
    raise Refused("document_unknown")


def clean(text: str) -> str:
    """Return text without control characters, spaces at the end of lines, and more than one blank line in a row."""
    lines: list[str] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        kept = "".join(sign for sign in line if sign >= " " or sign == "\t").rstrip()
        if kept or (lines and lines[-1]):
            lines.append(kept)
    return "\n".join(lines).strip("\n")


def _pdf(data: bytes) -> DocumentText:
    try:
        reader = pypdf.PdfReader(io.BytesIO(data), strict=False)
        # many files are encrypted so that they cannot be changed, and anybody may read them
        if reader.is_encrypted and not reader.decrypt(""):
            raise Refused("document_locked")
        pages = Pages("page", n_pages=len(reader.pages))
    except DependencyError:
        raise Refused("document_locked") from None
    except MALFORMED:
        raise Refused("document_broken") from None
    if not pages.n_pages:
        raise Refused("document_broken")
    for number in range(pages.n_pages):
        if pages.is_full:
            break
        try:
            pages.add(reader.pages[number].extract_text())
        except MALFORMED:  # one page that cannot be read does not hide the others
            pages.add("")
    if not any(pages.texts):
        raise Refused("document_scanned")
    return pages.document()


def _zipped(data: bytes) -> DocumentText:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = set(archive.namelist())
            if "word/document.xml" in names:
                return _paged("page", office.word_pages(archive))
            if "ppt/presentation.xml" in names:
                return _paged("slide", office.slides(archive))
            if names.intersection(SPREADSHEETS):
                return _spreadsheet(data)
            if "content.xml" in names and "mimetype" in names:
                kind = office.part(archive, "mimetype")
                if kind.startswith(OPEN_DOCUMENT + b"spreadsheet"):
                    return _spreadsheet(data)
                if kind.startswith(OPEN_DOCUMENT):
                    return _paged("", office.open_document(archive))
    except (
        zipfile.BadZipFile,
        zlib.error,
        lzma.LZMAError,
        OSError,
        NotImplementedError,
        EOFError,
        ValueError,
        KeyError,
    ):
        raise Refused("document_broken") from None
    except RuntimeError as error:  # zipfile's word for an encrypted part; RecursionError is one, too
        raise Refused("document_heavy" if isinstance(error, RecursionError) else "document_locked") from None
    raise Refused("document_unknown")


def _paged(unit: str, texts: Iterable[str]) -> DocumentText:
    pages = Pages(unit)
    for text in texts:
        pages.n_pages += 1
        if not pages.is_full:
            pages.add(text)
    if unit == "page" and pages.n_pages == 1:
        pages.unit = ""  # the program that wrote the file did not say where its pages end
    return pages.document()


def _spreadsheet(data: bytes) -> DocumentText:
    try:
        book = CalamineWorkbook.from_filelike(io.BytesIO(data))
        pages = Pages("sheet", n_pages=len(book.sheet_names))
        for name in book.sheet_names:
            if pages.is_full:
                break
            pages.add(_rows(book.get_sheet_by_name(name).iter_rows()), name)
    except PasswordError:
        raise Refused("document_locked") from None
    except (CalamineError, OSError, ValueError):
        raise Refused("document_broken") from None
    return pages.document()


def _rows(rows: Iterable[Sequence[object]]) -> str:
    lines: list[str] = []
    n_chars = 0
    for row in rows:
        line = "\t".join(_cell(value) for value in row).rstrip("\t")
        lines.append(line)
        n_chars += len(line) + 1
        if n_chars > MAX_TEXT_CHARS:
            break
    return "\n".join(lines)


def _cell(value: object) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return " ".join(str(value).split())
