"""Documents attached to a message: read in the background, counted, and shortened to fit the context."""

from __future__ import annotations

from pathlib import Path

from pytestqt.qtbot import QtBot

from app.core.chat import ChatId, Details
from app.gui.chat.answer import MAX_TOKENS
from app.gui.chat.chat_page import ChatPage
from app.gui.chat.composer import fitting
from app.gui.chat.session import ANSWER_SHARE
from app.gui.look import formats
from app.gui.widgets.labels import Chip
from tests.backends.readers.sample_documents import locked_pdf, pdf
from tests.gui.chat.test_chat_page import ask, page

__all__ = ["page"]  # a fixture
WAIT_MS = 90_000


def chips(page: ChatPage) -> list[str]:
    return [chip.accessibleName() or chip.text() for chip in page.composer.findChildren(Chip)]


def read(qtbot: QtBot, page: ChatPage) -> None:
    qtbot.waitUntil(lambda: not page.composer._reading, timeout=WAIT_MS)


def test_a_document_is_read_in_the_background_and_sent_with_its_pages(
    qtbot: QtBot, page: ChatPage, tmp_path: Path
) -> None:
    path = tmp_path / "report.pdf"
    path.write_bytes(pdf("First", "Second"))
    page.composer.field.setPlainText("What does it say?")
    page.composer.attach([path])
    assert any("Reading report.pdf" in text for text in chips(page))
    assert not page.composer.send.isEnabled()  # it would be sent without the document
    page.composer.field.sent.emit()
    assert page.chat.leaf is None
    read(qtbot, page)
    assert page.composer.send.isEnabled()
    assert "report.pdf, 2 page(s)" in chips(page)  # plural forms come with the translations
    [file] = page.composer.files
    assert file["text"] == "[page 1]\nFirst\n\n[page 2]\nSecond"
    assert page.chat.draft_files[0]["pages"] == 2  # the draft keeps it


def test_a_document_that_cannot_be_read_says_why(qtbot: QtBot, page: ChatPage, tmp_path: Path) -> None:
    path = tmp_path / "shut.pdf"
    path.write_bytes(locked_pdf("secret", "x"))
    page.composer.attach([path])
    read(qtbot, page)
    assert "protected by a password" in page.notice.sentence
    assert page.composer.files == []


def test_another_chat_does_not_get_the_document(qtbot: QtBot, page: ChatPage, tmp_path: Path) -> None:
    path = tmp_path / "report.pdf"
    path.write_bytes(pdf("x"))
    first, second = page.chat.id, page.history.begin().id
    page.composer.attach([path])
    page.open_chat(second)
    assert page.composer._reading == []
    qtbot.waitUntil(lambda: not any("Reading" in text for text in chips(page)))

    def files(chat_id: ChatId) -> tuple[Details, ...]:
        chat = page.history.chat(chat_id)
        return chat.draft_files if chat is not None else ()

    qtbot.waitUntil(lambda: bool(files(first)), timeout=WAIT_MS)  # it is kept for the chat that it was attached to
    assert page.composer.files == []
    assert files(second) == ()
    page.open_chat(first)
    assert [file["name"] for file in page.composer.files] == ["report.pdf"]


def test_a_document_is_read_on_when_its_chat_is_shown_again(qtbot: QtBot, page: ChatPage, tmp_path: Path) -> None:
    path = tmp_path / "report.pdf"
    path.write_bytes(pdf("x"))
    first = page.chat.id
    page.composer.attach([path])
    page.open_chat(page.history.begin().id)
    page.composer._cancel_reading()  # of this chat, which has none
    page.open_chat(first)
    assert any("Reading report.pdf" in text for text in chips(page))
    read(qtbot, page)
    assert [file["name"] for file in page.composer.files] == ["report.pdf"]


def test_the_files_say_how_much_of_the_context_they_take(page: ChatPage) -> None:
    composer = page.composer
    file: Details = {"name": "a.txt", "text": "line\n" * 400}
    composer.show_draft("", [file])
    composer.show_room(500)
    assert composer.budget.isHidden()  # not counted yet
    composer.count(composer._files[0], 400)
    assert not composer.budget.isHidden()
    assert composer.budget.words.text() == "The files take up 400 of the 500 tokens available in this chat."
    assert composer.budget.shorten.isHidden()
    composer.show_room(100)
    assert composer.budget.words.text() == "The files take up 400 tokens, but this chat has room for only 100."
    assert not composer.budget.shorten.isHidden()
    composer.budget.shorten.click()
    [part] = composer.files
    assert len(part["text"]) < 2_000 * 100 / 400 + 50
    assert part["text"].endswith("[The rest is left out.]")
    assert any("shortened" in text for text in chips(page))
    assert composer.budget.isHidden()  # it is counted again
    composer.show_room(None)
    composer.show_draft("")
    assert composer.budget.isHidden()


def test_the_room_is_what_the_loaded_model_has_left(qtbot: QtBot, page: ChatPage, tmp_path: Path) -> None:
    """The Guide counts the tokens, and its context less this chat and an answer is the room."""
    ask(qtbot, page, "Is it free?")
    head = page.chat_head
    assert head.context > head.used > 0
    path = tmp_path / "report.pdf"
    path.write_bytes(pdf(*["Many words about herons and low water. " * 20] * 12))
    page.composer.attach([path])
    budget = page.composer.budget
    qtbot.waitUntil(lambda: not budget.isHidden(), timeout=WAIT_MS)
    [file] = page.composer.files
    room = head.context - head.used - min(MAX_TOKENS, int(head.context * ANSWER_SHARE))
    assert file["tokens"] > room
    numbers = (formats.number(file["tokens"]), formats.number(room))
    assert all(number in budget.words.text() for number in numbers)
    budget.shorten.click()
    qtbot.waitUntil(lambda: bool(page.composer.files[0].get("tokens")), timeout=WAIT_MS)
    [part] = page.composer.files
    assert 0 < part["tokens"] <= room
    assert budget.shorten.isHidden()


def test_the_longest_files_are_shortened_first() -> None:
    files: list[Details] = [
        {"name": "small", "text": "a\n" * 100, "tokens": 100},
        {"name": "large", "text": "b\n" * 1_000, "tokens": 1_000},
        {"name": "middle", "text": "c\n" * 500, "tokens": 500},
    ]
    small, large, middle = fitting(files, 1_000)
    assert small is files[0]
    assert middle is files[2]
    assert 600 < len(large["text"]) < 850
    assert fitting(files, 5_000) == files
    small, large, middle = fitting(files, 300)
    assert small is files[0]
    assert len(large["text"]) < 30
    assert len(middle["text"]) < 450
