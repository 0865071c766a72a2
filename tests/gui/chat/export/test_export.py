"""Export in four forms: whole, escaped, and never half a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from random import Random

import pytest
from PySide6.QtGui import QImage
from pytestqt.qtbot import QtBot

from app.core.chat import ATTACHMENTS, FORM, HEIGHT, PICTURE, WIDTH, Chat, Details, Message, MessageId, Role, add, edit
from app.core.errors import AppError
from app.core.reasons import said
from app.gui.chat.export import documents
from app.gui.chat.export.chat_json import parse_chats
from app.gui.chat.export.import_export import FORMATS, HTML, JSON, MARKDOWN, PDF, Format, export, read_chats
from app.gui.chat.history.history import History
from app.gui.chat.reading.picture_loader import picture_now
from tests.gui.chat.talk import history, talked

NASTY = '<script>alert(1)</script> ![x](http://evil.example/a.png) [go](javascript:alert(2)) "&'


@pytest.fixture
def kept(qtbot: QtBot, tmp_path: Path) -> Iterator[History]:
    made = history(tmp_path)
    yield made
    made.close()


@pytest.fixture
def chat(kept: History) -> Chat:
    """Return a chat with a system message, a file, code, a table, an old branch, and harmful content."""
    made = talked(kept, f"Old {NASTY}", "gone", title=f"My <i>chat</i> {NASTY}", folder="Work")
    made = edit(made, next(iter(made.messages)), f"New {NASTY}", MessageId("new"), kept.now())
    files = {ATTACHMENTS: [{"name": "notes<1>.txt", "text": "a ``` b\n</pre>"}]}
    made = add(made, Message(MessageId("q"), made.leaf, Role.USER, "And?", kept.now(), files))
    answer = f"# Title\n\n|a|b|\n|-|-|\n|1|2|\n\n```python\nx < 1\n```\n\n{NASTY}"
    made = add(made, Message(MessageId("a"), made.leaf, Role.ASSISTANT, answer, kept.now()))
    made = replace(made, system="Be <kind>.")
    kept.save(made)
    return made


def written(kept: History, form: Format, folder: Path) -> bytes:
    assert kept.file is not None
    target = folder / f"out{form.suffix}"
    assert export(read_chats(kept.file, None, kept.codec), form, target, "Chats", lambda _: None) == len(
        kept.headings()
    )
    return target.read_bytes()


def picture(seed: int) -> str:
    """Return a picture of noise, which no PDF can make small, in base64."""
    import base64
    import io

    from PIL import Image

    file = io.BytesIO()
    Image.frombytes("RGB", (300, 200), Random(seed).randbytes(300 * 200 * 3)).save(file, "JPEG")
    return base64.b64encode(file.getvalue()).decode()


def test_a_pdf_shows_the_pictures_that_can_be_decoded(kept: History, tmp_path: Path) -> None:
    file = {"name": "noise.jpg", PICTURE: picture(1), FORM: "jpeg", WIDTH: 300, HEIGHT: 200}
    broken = file | {"name": "broken.jpg", PICTURE: "aGVsbG8="}
    made = talked(kept, "words", "more")
    bare = written(kept, PDF, tmp_path)
    kept.save(add(made, Message(MessageId("p"), made.leaf, Role.USER, "And?", kept.now(), {ATTACHMENTS: [broken]})))
    with_broken = written(kept, PDF, tmp_path)
    assert b"/Subtype /Image" not in bare + with_broken
    kept.save(
        add(made, Message(MessageId("p"), made.leaf, Role.USER, "And?", kept.now(), {ATTACHMENTS: [file, broken]}))
    )
    whole = written(kept, PDF, tmp_path)
    assert whole.count(b"/Subtype /Image") == 1
    assert len(whole) > len(with_broken) + 10_000


class Tags(HTMLParser):
    """The tags that a browser would find."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_pdf_names_the_pictures_beyond_its_room_and_decodes_equal_ones_once(
    kept: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded = list[str]()

    def counted(file: Details, side: int) -> QImage | None:
        decoded.append(str(file["name"]))
        return picture_now(file, side)

    monkeypatch.setattr(documents, "picture_now", counted)
    monkeypatch.setattr(documents, "PDF_PICTURE_BYTES", 2 * 300 * 200 * 3)
    noise = {FORM: "jpeg", WIDTH: 300, HEIGHT: 200}
    files = [noise | {"name": f"{seed}.jpg", PICTURE: picture(seed)} for seed in (1, 1, 2, 2, 3, 1)]
    made = talked(kept, "words", "more")
    kept.save(add(made, Message(MessageId("p"), made.leaf, Role.USER, "And?", kept.now(), {ATTACHMENTS: files})))
    whole = written(kept, PDF, tmp_path)
    assert decoded == ["1.jpg", "2.jpg"]
    assert whole.count(b"/Subtype /Image") == 2


def test_html_is_whole_and_harmless(kept: History, chat: Chat, tmp_path: Path) -> None:
    tags = Tags()
    tags.feed(written(kept, HTML, tmp_path).decode())
    names = {tag for tag, _ in tags.found}
    assert {"table", "pre", "code", "section"} <= names
    assert not names & {"script", "img", "iframe", "object", "link", "i"}
    loaded = [a for _, a in tags.found if "src" in a or "href" in a or any(n[:2] == "on" for n in a)]
    assert all(set(item) == {"href"} and str(item["href"]).startswith("http") for item in loaded)
    assert "Be <kind>." in tags.text
    assert "notes<1>.txt" in tags.text
    assert "Old" not in tags.text


def test_markdown_keeps_the_words(kept: History, chat: Chat, tmp_path: Path) -> None:
    text = written(kept, MARKDOWN, tmp_path).decode()
    assert f"# My <i>chat</i> {NASTY}" in text
    assert "\n````\na ``` b\n</pre>\n````\n" in text
    assert "```python\nx < 1\n```" in text


def test_pdf_has_a_page_for_each_chat(kept: History, chat: Chat, tmp_path: Path) -> None:
    talked(kept, "Second", "word " * 3000)
    data = written(kept, PDF, tmp_path)
    assert data.startswith(b"%PDF")
    assert data.count(b"/Type /Page\n") >= 4  # one of the first chat, some of the long one


def test_json_comes_back_as_it_was(kept: History, chat: Chat, tmp_path: Path) -> None:
    other = talked(kept, "Question", "Answer", title="Plain")
    kept.pin([other.id], True)
    kept.archive([other.id], True)
    assert kept.file is not None
    target = tmp_path / "out.json"
    assert export(read_chats(kept.file, None, kept.codec), JSON, target, "", lambda _: None) == 2
    chats = parse_chats(target.read_bytes(), "out.json")
    same = [replace(item, id=chat.id) for item in chats]
    for original in (kept.chat(chat.id), kept.chat(other.id)):
        assert original is not None
        assert replace(original, id=chat.id) in same


def test_only_the_chosen(kept: History, chat: Chat, tmp_path: Path) -> None:
    other = talked(kept, "Only me")
    assert kept.file is not None
    target = tmp_path / "one.md"
    assert export(read_chats(kept.file, [other.id], kept.codec), MARKDOWN, target, "", lambda _: None) == 1
    assert "My <i>" not in target.read_text("utf-8")


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_an_export_that_fails_leaves_the_old_file(kept: History, chat: Chat, tmp_path: Path, form: Format) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    target = folder / f"a{form.suffix}"
    target.write_text("before")

    def stop(n: int) -> None:
        raise OSError(28, "No space left on device")

    assert kept.file is not None
    with pytest.raises(AppError) as caught:
        export(read_chats(kept.file, None, kept.codec), form, target, "", stop)
    assert "No space left" in said(caught.value)
    assert target.read_text() == "before"
    assert list(folder.iterdir()) == [target]


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_a_folder_that_is_not_there(kept: History, chat: Chat, tmp_path: Path, form: Format) -> None:
    assert kept.file is not None
    with pytest.raises(AppError) as caught:
        export(read_chats(kept.file, None, kept.codec), form, tmp_path / "no" / "x", "", lambda _: None)
    assert "Choose another folder" in said(caught.value)
