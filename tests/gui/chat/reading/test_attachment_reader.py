"""Attached documents: read by a confined process, with their pages, or refused in one sentence."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.core.chat import Details
from app.core.errors import BadInput
from app.core.reasons import LANGUAGES, Locale, said
from app.gui.chat.reading import attachment_reader
from app.gui.chat.reading.attachment_reader import (
    ALL_PAGES,
    PAGES,
    REASONS,
    REST_LEFT_OUT,
    SHORTENED,
    UNIT,
    AttachmentReader,
    Kind,
    _bytes_of,
    details_of,
    kind_of,
    shortened,
)
from app.gui.chat.reading.reader_process import ReaderLimits
from backends.readers.messages import MAX_DOCUMENT_BYTES, DocumentText
from tests.backends.readers.sample_documents import locked_pdf, paragraph, pdf, slide_show, word, workbook, zipped

WAIT_MS = 90_000
Outcome = Details | BadInput


@pytest.fixture
def reader(qapp: QApplication) -> Iterator[AttachmentReader]:
    made = AttachmentReader()
    yield made
    made.close()


def read(qtbot: QtBot, reader: AttachmentReader, *paths: Path) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for path in paths:
        reader.read(path, Kind.DOCUMENT, outcomes.append, outcomes.append)
    qtbot.waitUntil(lambda: len(outcomes) == len(paths), timeout=WAIT_MS)
    return outcomes


def saved(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    assert kind_of(path) is Kind.DOCUMENT
    return path


def test_documents_are_read_in_order_with_their_pages(qtbot: QtBot, reader: AttachmentReader, tmp_path: Path) -> None:
    outcomes = read(
        qtbot,
        reader,
        saved(tmp_path, "a.pdf", pdf("First", "Second")),
        saved(tmp_path, "b.docx", word(paragraph("Words"))),
        saved(tmp_path, "c.pptx", slide_show(["Title"])),
        saved(tmp_path, "d.xlsx", workbook({"Costs": [["rent", 900]]})),
        saved(tmp_path, "e.txt", pdf("by its bytes")),
    )
    assert outcomes[:4] == [
        {"name": "a.pdf", "text": "[page 1]\nFirst\n\n[page 2]\nSecond", UNIT: "page", PAGES: 2, ALL_PAGES: 2},
        {"name": "b.docx", "text": "Words"},
        {"name": "c.pptx", "text": "[slide 1]\nTitle", UNIT: "slide", PAGES: 1, ALL_PAGES: 1},
        {"name": "d.xlsx", "text": "[sheet 1: Costs]\nrent\t900", UNIT: "sheet", PAGES: 1, ALL_PAGES: 1},
    ]
    assert isinstance(outcomes[4], dict)
    assert "by its bytes" in outcomes[4]["text"]


def test_each_refusal_is_a_sentence_with_a_cause_and_a_cure(
    qtbot: QtBot, reader: AttachmentReader, tmp_path: Path
) -> None:
    outcomes = read(
        qtbot,
        reader,
        saved(tmp_path, "a.pdf", locked_pdf("secret", "x")),
        saved(tmp_path, "b.pdf", pdf("")),
        saved(tmp_path, "c.pdf", b"%PDF-1.4 garbage"),
        saved(tmp_path, "d.zip", zipped({"x": "y"})),
        saved(tmp_path, "e.docx", zipped({"word/document.xml": b" " * (200 << 20)})),
    )
    codes = [outcome.reason.code for outcome in outcomes if isinstance(outcome, BadInput)]
    assert codes == [
        "attachment_locked", "attachment_scanned", "attachment_broken", "attachment_no_text", "attachment_heavy",
    ]  # fmt: skip
    for code in {*REASONS.values(), "attachment_large"}:
        for language in LANGUAGES:
            text = said(BadInput(code, name="a.pdf", most_bytes=1 << 20).reason, Locale(language))
            assert text.startswith("a.pdf ")
            assert text.count(".") >= 3, text  # of the name, the cause and the cure


def test_a_huge_file_is_refused_before_it_is_read(qtbot: QtBot, reader: AttachmentReader, tmp_path: Path) -> None:
    huge = saved(tmp_path, "huge.pdf", pdf("x"))
    os.truncate(huge, 2 << 30)
    began, before = time.monotonic(), psutil.Process().memory_info().rss
    [error] = read(qtbot, reader, huge)
    assert isinstance(error, BadInput)
    assert error.reason.code == "attachment_large"
    assert error.reason.facts["most_bytes"] == MAX_DOCUMENT_BYTES
    assert time.monotonic() - began < 5
    assert psutil.Process().memory_info().rss - before < 200 << 20


def test_what_is_gone_or_a_folder_is_told(qtbot: QtBot, reader: AttachmentReader, tmp_path: Path) -> None:
    [gone] = read(qtbot, reader, tmp_path / "gone.pdf")
    assert isinstance(gone, BadInput)
    assert gone.reason.code == "attachment_unreadable"
    with pytest.raises(BadInput):
        kind_of(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="stops processes by signals")
def test_a_document_that_takes_for_ever_ends_with_its_process(
    qtbot: QtBot, reader: AttachmentReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attachment_reader, "LIMITS", ReaderLimits(1.0, 1 << 30, 0))
    monkeypatch.setattr("app.gui.chat.reading.reader_process.START_SECONDS", 1.0)
    outcomes: list[Outcome] = []
    for name in ("a.pdf", "b.pdf"):
        reader.read(saved(tmp_path, name, pdf("x")), Kind.DOCUMENT, outcomes.append, outcomes.append)
    qtbot.waitUntil(lambda: reader._process is not None and reader._process.pid > 0, timeout=WAIT_MS)
    assert reader._process is not None
    os.kill(reader._process.pid, signal.SIGSTOP)
    monkeypatch.undo()
    qtbot.waitUntil(lambda: len(outcomes) == 2, timeout=WAIT_MS)
    assert isinstance(outcomes[0], BadInput)
    assert outcomes[0].reason.code == "attachment_heavy"
    assert isinstance(outcomes[1], dict)  # the next one has a process of its own


# 2,000 letters that unpack to a page of endless text
ENDLESS = b"BT /F 12 Tf " + b"(x) Tj T* " * 20_000_000 + b"ET"


def test_a_page_that_unpacks_to_gigabytes_ends(qtbot: QtBot, reader: AttachmentReader, tmp_path: Path) -> None:
    packed = pdf(stream=ENDLESS)
    assert len(packed) < 1 << 20
    [outcome] = read(qtbot, reader, saved(tmp_path, "endless.pdf", packed))
    assert isinstance(outcome, BadInput)
    assert outcome.reason.code in ("attachment_heavy", "attachment_scanned", "attachment_broken")


def test_closing_ends_the_process(qtbot: QtBot, reader: AttachmentReader, tmp_path: Path) -> None:
    outcomes: list[Outcome] = []
    reader.read(saved(tmp_path, "a.pdf", pdf("x")), Kind.DOCUMENT, outcomes.append, outcomes.append)
    qtbot.waitUntil(lambda: reader._process is not None and reader._process.pid > 0, timeout=WAIT_MS)
    assert reader._process is not None
    pid = reader._process.pid
    reader.close()
    qtbot.waitUntil(lambda: not psutil.pid_exists(pid), timeout=WAIT_MS)
    assert outcomes == []


def test_left_out_pages_are_said_to_the_model() -> None:
    three = DocumentText("page", ("a", "b", "c"), 5)
    whole = details_of("x.pdf", three)
    assert whole["text"].endswith("[page 3]\nc\n\n[Pages 4 to 5 are left out.]")
    assert (whole[PAGES], whole[ALL_PAGES]) == (3, 5)
    four = details_of("x.pdf", DocumentText("page", ("a", "b", "c"), 4))
    assert four["text"].endswith("[Page 4 is left out.]")


def test_a_document_is_shortened_at_its_pages() -> None:
    pages = tuple(str(n) * 100 for n in range(1, 10))
    whole = details_of("x.pdf", DocumentText("page", pages, 9))
    part = shortened(whole, 350)
    assert (part[PAGES], part[ALL_PAGES]) == (3, 9)
    assert part["text"].endswith("3" * 100 + "\n\n[Pages 4 to 9 are left out.]")
    again = shortened(part, 250)
    assert (again[PAGES], again[ALL_PAGES]) == (2, 9)
    assert again["text"].endswith("2" * 100 + "\n\n[Pages 3 to 9 are left out.]")
    assert shortened(whole, 100_000) is whole
    assert "tokens" not in shortened({**whole, "tokens": 5}, 350)


def test_a_line_that_looks_like_the_mark_of_a_page_is_none() -> None:
    """The third page would otherwise be the second, and the model would be told of the wrong ones."""
    first = "\n".join(["[page 2]", "x" * 100, "[page 3]"])
    whole = details_of("x.pdf", DocumentText("page", (first, "b" * 100, "c" * 100), 3))
    part = shortened(whole, 260)
    assert (part[PAGES], part[ALL_PAGES]) == (2, 3)
    assert part["text"].endswith("b" * 100 + "\n\n[Page 3 is left out.]")
    names = ("a]\n[sheet 2: b", "c")
    sheets = details_of("x.xlsx", DocumentText("sheet", ("1" * 50, "2" * 50), 2, names))
    assert shortened(sheets, 90)["text"].endswith("1" * 50 + "\n\n[Sheet 2 is left out.]")


def test_a_text_about_pdf_files_is_a_text(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("A PDF file begins with %PDF-1.7, and", "utf-8")
    assert kind_of(path) is Kind.TEXT
    for before in (b"", b"\r\n ", b"\xef\xbb\xbf"):
        saved(tmp_path, "a.pdf", before + pdf("x"))


def test_the_window_goes_on_while_a_file_is_read(
    qtbot: QtBot, reader: AttachmentReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network drive may take seconds for one file."""
    threads: list[int] = []

    def noted(path: Path) -> bytes:
        threads.append(threading.get_ident())
        return _bytes_of(path)

    monkeypatch.setattr(attachment_reader, "_bytes_of", noted)
    [outcome] = read(qtbot, reader, saved(tmp_path, "a.pdf", pdf("x")))
    assert isinstance(outcome, dict)
    assert len(threads) == 1
    assert threads[0] != threading.get_ident()


def test_documents_of_one_draft_are_forgotten(qtbot: QtBot, reader: AttachmentReader, tmp_path: Path) -> None:
    outcomes: list[Outcome] = []
    path = saved(tmp_path, "a.pdf", pdf("x"))
    for draft in ("one", "two", "one"):
        reader.read(path, Kind.DOCUMENT, outcomes.append, outcomes.append, draft)
    qtbot.waitUntil(lambda: reader._reading is not None, timeout=WAIT_MS)
    reader.forget("one")
    qtbot.waitUntil(lambda: bool(outcomes), timeout=WAIT_MS)
    qtbot.waitUntil(lambda: reader._reading is None, timeout=WAIT_MS)
    assert len(outcomes) == 1


def test_text_without_pages_is_shortened_at_a_line() -> None:
    text = "\n".join(["line " * 10] * 40)
    part = shortened({"name": "a.txt", "text": text, "tokens": 9}, 500)
    assert part[SHORTENED] is True
    assert part["text"].endswith(f"line\n{REST_LEFT_OUT}")
    assert 300 < len(part["text"]) < 560
    long = shortened({"name": "a.txt", "text": "x" * 5_000}, 500)  # one line
    assert long["text"] == "x" * 500 + f"\n{REST_LEFT_OUT}"
    first = details_of("x.pdf", DocumentText("page", ("y" * 5_000, "z"), 2))
    assert shortened(first, 500)[SHORTENED] is True  # not even its first page fits
