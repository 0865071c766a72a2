"""The text of Word, PowerPoint and OpenDocument files, which are XML files in a zip archive."""

from __future__ import annotations

import io
import posixpath
import zipfile
from collections.abc import Iterator
from typing import Any

from defusedxml import ElementTree
from defusedxml.common import DefusedXmlException

from backends.readers.messages import Refused

MAX_PART_BYTES = 96 << 20  # of one unpacked part
W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
T = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
TEXT = (f"{A}t", f"{A}br")
PAGE_END = "\f"
Element = Any  # of xml.etree


def part(archive: zipfile.ZipFile, name: str) -> bytes:
    """Return an unpacked part. Raises Refused if it is huge, whatever the archive says about its size."""
    with archive.open(name) as packed:
        data = packed.read(MAX_PART_BYTES + 1)
    if len(data) > MAX_PART_BYTES:
        raise Refused("document_heavy")
    return data


def elements(data: bytes) -> Iterator[tuple[str, Element]]:
    """Yield the beginnings and ends of elements. Raises Refused if the XML is malformed or has entities."""
    try:
        yield from ElementTree.iterparse(io.BytesIO(data), events=("start", "end"), forbid_dtd=True)
    except (ElementTree.ParseError, DefusedXmlException):
        raise Refused("document_broken") from None


def word_pages(archive: zipfile.ZipFile) -> Iterator[str]:
    """Yield the pages of a Word file, where Word has noted them when it was saved, or else the whole text."""
    data = part(archive, "word/document.xml")
    noted = b"lastRenderedPageBreak" in data
    lines: list[str] = []
    for block in _blocks(data, f"{W}body"):
        before, *pages = _word_text(block, noted).split(PAGE_END)
        lines.append(before)
        for page in pages:
            yield "\n".join(lines)
            lines = [page]
    yield "\n".join(lines)


def _blocks(data: bytes, parent: str) -> Iterator[Element]:
    """Yield the children of an element one by one, and free their memory."""
    depth = inside = 0
    for event, element in elements(data):
        if event == "start":
            depth += 1
            if element.tag == parent:
                inside = depth
        else:
            if inside and depth == inside + 1:
                yield element
                element.clear()
            elif element.tag == parent:
                inside = 0
            depth -= 1


def _word_text(element: Element, noted: bool) -> str:
    """Return the text of a paragraph or table. `noted`: the file says where Word began new pages."""
    if element.tag == f"{W}tr":
        return " | ".join(_word_text(cell, noted).strip() for cell in element.iter(f"{W}tc"))
    if element.tag in (f"{W}tbl", f"{W}tc", f"{W}sdt", f"{W}sdtContent"):
        inner = (_word_text(child, noted) for child in element)
        return (" " if element.tag == f"{W}tc" else "\n").join(text for text in inner if text)
    pieces: list[str] = []
    for node in element.iter():
        if node.tag == f"{W}t":
            pieces.append(node.text or "")
        elif node.tag == f"{W}tab":
            pieces.append("\t")
        elif node.tag == f"{W}lastRenderedPageBreak":
            pieces.append(PAGE_END)
        elif node.tag in (f"{W}br", f"{W}cr"):
            is_page = node.get(f"{W}type") == "page"
            pieces.append("\n" if not is_page else "" if noted else PAGE_END)
    return "".join(pieces)


def slides(archive: zipfile.ZipFile) -> Iterator[str]:
    """Yield the text of each slide, in the order of the presentation."""
    targets = {
        element.get("Id"): element.get("Target", "")
        for event, element in elements(part(archive, "ppt/_rels/presentation.xml.rels"))
        if event == "end"
    }
    order = [
        element.get(f"{R}id")
        for event, element in elements(part(archive, "ppt/presentation.xml"))
        if event == "end" and element.tag == f"{P}sldId"
    ]
    for ident in order:
        name = posixpath.normpath(posixpath.join("/ppt", targets.get(ident, ""))).lstrip("/")
        if name in archive.NameToInfo:
            yield "\n".join(_paragraphs(part(archive, name)))


def _paragraphs(data: bytes) -> Iterator[str]:
    for event, element in elements(data):
        if event == "end" and element.tag == f"{A}p":
            line = "".join(
                "\n" if node.tag == f"{A}br" else node.text or "" for node in element.iter() if node.tag in TEXT
            )
            if line.strip():
                yield line


def open_document(archive: zipfile.ZipFile) -> Iterator[str]:
    """Yield the whole text of an OpenDocument file."""
    lines: list[str] = []
    for event, element in elements(part(archive, "content.xml")):
        if event == "end" and element.tag in (f"{T}p", f"{T}h"):
            lines.append("".join(_open_text(element)))
    yield "\n".join(lines)


def _open_text(element: Element) -> Iterator[str]:
    yield element.text or ""
    for child in element:
        if child.tag in (f"{T}tab", f"{T}line-break"):
            yield "\t" if child.tag == f"{T}tab" else "\n"
        elif child.tag == f"{T}s":
            yield " " * min(int(child.get(f"{T}c", "1")), 100)
        elif child.tag not in (f"{T}p", f"{T}h"):  # those are lines of their own
            yield from _open_text(child)
        yield child.tail or ""
