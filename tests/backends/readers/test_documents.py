"""Documents are read page by page, and a file that means harm is refused with its reason."""

from __future__ import annotations

import contextlib
import random

import pytest

from backends.readers import documents
from backends.readers.documents import CUT, read
from backends.readers.messages import MAX_TEXT_CHARS, DocumentText, Refused
from tests.backends.readers.sample_documents import (
    PACKAGE,
    locked_pdf,
    paragraph,
    pdf,
    slide_show,
    word,
    workbook,
    zipped,
)


def refusal(data: bytes, suffix: str = "") -> str:
    with pytest.raises(Refused) as refused:
        read(data, suffix)
    return refused.value.code


def test_a_pdf_file_has_its_pages() -> None:
    assert read(pdf("First page", "Second page"), "") == DocumentText("page", ("First page", "Second page"), 2)
    assert read(b"\n\n" + pdf("x"), ".txt").pages == ("x",)


def test_a_pdf_file_that_only_forbids_changes_is_read() -> None:
    assert read(locked_pdf("", "open"), "").pages == ("open",)
    assert refusal(locked_pdf("secret", "shut")) == "document_locked"


def test_pages_without_text_are_named_as_such() -> None:
    assert refusal(pdf("", "")) == "document_scanned"
    assert read(pdf("", "x"), "").pages == ("", "x")


def test_a_word_file_has_the_pages_that_word_noted() -> None:
    table = "<w:tbl><w:tr><w:tc>" + paragraph("a") + "</w:tc><w:tc>" + paragraph("b") + "</w:tc></w:tr></w:tbl>"
    body = paragraph("One") + table + paragraph("Two", "<w:lastRenderedPageBreak/>") + paragraph("more")
    assert read(word(body), "") == DocumentText("page", ("One\na | b", "Two\nmore"), 2)
    broken = paragraph("One") + paragraph("Two", '<w:br w:type="page"/>')
    assert read(word(broken), "").pages == ("One", "Two")
    both = paragraph("One", '<w:br w:type="page"/><w:lastRenderedPageBreak/>')  # Word writes the two together
    assert read(word(both), "").pages == ("", "One")


def test_a_word_file_without_pages_is_one_text() -> None:
    body = paragraph("One") + f"<w:sdt><w:sdtContent>{paragraph('in a field')}</w:sdtContent></w:sdt>"
    text = read(word(body + paragraph("a", "<w:tab/>") + paragraph("c", "<w:br/>")), "")
    assert (text.unit, text.pages, text.n_pages) == ("", ("One\nin a field\n\ta\n\nc",), 1)


def test_slides_come_in_the_order_of_the_presentation() -> None:
    text = read(slide_show(["Title", "by me"], ["Second"], []), "")
    assert (text.unit, text.pages) == ("slide", ("Title\nby me", "Second", ""))


def test_a_spreadsheet_has_its_sheets_and_whole_numbers() -> None:
    text = read(workbook({"Costs": [["rent", 900], ["water", 30.5]], "Empty": [], "More": [["x"]]}), "")
    assert (text.unit, text.names) == ("sheet", ("Costs", "Empty", "More"))
    assert text.pages == ("rent\t900\nwater\t30.5", "", "x")


def test_an_open_document_is_read() -> None:
    names = 'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
    content = (
        f"<body {names}><text:h>Title</text:h><text:p>one<text:s text:c='3'/>two <text:span>x</text:span></text:p>"
    )
    parts = {"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": content + "</body>"}
    assert read(zipped(parts), "").pages == ("Title\none   two x",)


def test_text_after_the_most_is_left_out_and_counted() -> None:
    rows = [["x" * 1_000]] * 300
    text = read(workbook({"a": rows, "b": rows, "c": rows}), "")
    assert sum(map(len, text.pages)) <= MAX_TEXT_CHARS + len(CUT) + 1
    assert text.pages[1].endswith(CUT)
    assert (len(text.pages), text.n_pages) == (2, 3)


def test_pages_after_the_time_are_left_out_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "READING_SECONDS", -1.0)
    monkeypatch.setattr(documents.Pages, "is_full", property(lambda pages: len(pages.texts) >= 2))
    text = read(pdf(*map(str, range(9))), "")
    assert (len(text.pages), text.n_pages) == (2, 9)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"%PDF-1.7\nnot really", "document_broken"),
        (b"A text about %PDF-1.7", "document_unknown"),
        (b"PK\x03\x04not really", "document_broken"),
        (bytes.fromhex("d0cf11e0a1b11ae1") + b"Word.Document", "document_old"),
        (bytes.fromhex("d0cf11e0a1b11ae1") + "EncryptedPackage".encode("utf-16-le"), "document_locked"),
        (b"GIF89a", "document_unknown"),
        (zipped({"a.txt": "x"}), "document_unknown"),
        (zipped({"word/document.xml": "<w"}), "document_broken"),
        (zipped({"ppt/presentation.xml": "<p/>"}), "document_broken"),
        (zipped({"xl/workbook.xml": "<x"}), "document_broken"),
        (word(""), "document_empty"),
    ],
)
def test_what_cannot_be_read_is_refused(data: bytes, code: str) -> None:
    assert refusal(data) == code


LAUGHS = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>'
OUTSIDE = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/hostname">]>'


@pytest.mark.parametrize(
    "data",
    [
        word(paragraph("&c;"), LAUGHS),
        word(paragraph("&a;"), OUTSIDE),
        zipped(
            {
                "ppt/presentation.xml": f"{LAUGHS}<x>&c;</x>",
                "ppt/_rels/presentation.xml.rels": f'<Relationships xmlns="{PACKAGE}"/>',
            }
        ),
        zipped({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": f"{OUTSIDE}<x>&a;</x>"}),
    ],
)
def test_entities_are_refused(data: bytes) -> None:
    assert refusal(data) == "document_broken"


def test_a_zip_bomb_is_refused_before_it_is_unpacked() -> None:
    bomb = zipped({"word/document.xml": b" " * (200 << 20)})
    assert len(bomb) < 1 << 20
    assert refusal(bomb) == "document_heavy"


def test_a_pdf_file_whose_pages_contain_themselves_ends() -> None:
    whole = pdf("x")
    looped = whole.replace(b"/Kids [4 0 R]", b"/Kids [2 0 R]")
    assert looped != whole
    assert refusal(looped) in ("document_broken", "document_scanned")


def test_no_damage_escapes_as_anything_but_a_refusal() -> None:
    """Whatever bytes are wrong: a refusal or a text, and never another error."""
    wrong = random.Random(6)
    for whole in (
        pdf("a", "b"),
        word(paragraph("x")),
        slide_show(["x"]),
        workbook({"a": [["x"]]}),
        locked_pdf("", "x"),
    ):
        for _ in range(60):
            data = bytearray(whole)
            for _ in range(wrong.randint(1, 12)):
                data[wrong.randrange(len(data))] = wrong.randrange(256)
            with contextlib.suppress(Refused, MemoryError, RecursionError):
                read(bytes(data[: wrong.randint(20, len(data))] if wrong.random() < 0.3 else data), "")
