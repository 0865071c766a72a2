"""Pictures in the chat: attached, pasted and dropped, shown small and enlarged, sent to models that see, and saved."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from PIL import Image
from PySide6.QtCore import QMimeData, QUrl
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app.api.models import SharedModel
from app.api.plans import LoadedModel
from app.api.snapshot import Snapshot
from app.core.chat import ATTACHMENTS, FORM, HEIGHT, PICTURE, WIDTH, Chat, ChatId, Details, Message, MessageId, Role
from app.core.errors import BadInput
from app.core.reasons import said
from app.gui.chat import sent_pictures
from app.gui.chat.answer import content, question
from app.gui.chat.chat_page import ChatPage
from app.gui.chat.export.chat_json import HEAD, TAIL, chat_json, parse_chats
from app.gui.chat.export.documents import html_article, html_head, markdown
from app.gui.chat.message.picture_view import PictureButton, PictureWindow, file_name, picture_name
from app.gui.chat.reading.attachment_reader import Kind, kind_of
from app.gui.chat.reading.picture_loader import SMALL_SIDE, PictureLoader
from app.gui.look.sentences import GUIDE
from backends.readers.messages import MOST_PICTURES_OF_CHAT, Picture
from tests.gui.chat.test_chat_page import page

__all__ = ["page"]  # a fixture
WAIT_MS = 90_000


def file_of(width: int, height: int, form: str = "PNG", color: str = "red") -> bytes:
    made = io.BytesIO()
    Image.new("RGB", (width, height), color).save(made, form)
    return made.getvalue()


def attached(name: str = "cat.png", data: bytes | None = None) -> Details:
    kept = base64.b64encode(file_of(40, 20) if data is None else data).decode()
    return {"name": name, "text": "", PICTURE: kept, FORM: "png", WIDTH: 40, HEIGHT: 20}


def asked(number: int, files: Sequence[Details], parent: int | None = None) -> Message:
    above = None if parent is None else MessageId(str(parent))
    details = {ATTACHMENTS: list(files)} if files else {}
    return Message(MessageId(str(number)), above, Role.USER, f"question {number}", float(number), details)


def chat_of(*messages: Message) -> Chat:
    return Chat(ChatId("c"), messages={message.id: message for message in messages}, leaf=messages[-1].id)


def read(qtbot: QtBot, page: ChatPage) -> None:
    qtbot.waitUntil(lambda: not page.composer._reading, timeout=WAIT_MS)


def shown(page: ChatPage) -> list[PictureButton]:
    return page.composer.findChildren(PictureButton)


def test_a_photograph_is_kept_small_shown_and_enlarged(qtbot: QtBot, page: ChatPage, tmp_path: Path) -> None:
    path = tmp_path / "garden.jpg"
    path.write_bytes(file_of(4_000, 3_000, "JPEG", "green"))
    page.composer.attach([path])
    assert not page.composer.send.isEnabled()  # it would be sent without the picture
    read(qtbot, page)
    [file] = page.composer.files
    assert (file["name"], file[FORM], file[WIDTH], file[HEIGHT]) == ("garden.jpg", "jpeg", 1_536, 1_152)
    assert page.chat.draft_files[0][PICTURE] == file[PICTURE]  # the draft keeps it
    [small] = shown(page)
    assert small.accessibleName() == "Picture garden.jpg, 1536 × 1152"
    qtbot.waitUntil(lambda: page.pictures.is_idle, timeout=WAIT_MS)
    image = small.icon().pixmap(64, 64).toImage()
    assert abs(image.pixelColor(image.width() // 2, image.height() // 2).green() - QColor("green").green()) < 8
    small.click()
    [window] = page.findChildren(PictureWindow)
    qtbot.waitUntil(lambda: not window.image.pixmap().isNull(), timeout=WAIT_MS)
    saved = tmp_path / "saved.jpg"
    window.write(saved)
    with Image.open(saved) as again:
        assert again.size == (1_536, 1_152)
    window.close()


def test_a_picture_is_pasted_and_removed(qtbot: QtBot, page: ChatPage) -> None:
    data = QMimeData()
    data.setData("image/bmp", file_of(30, 10, "BMP"))
    page.composer.field.insertFromMimeData(data)
    read(qtbot, page)
    assert [(file["name"], file[WIDTH]) for file in page.composer.files] == [("Pasted picture", 30)]
    pixels = QMimeData()
    image = QImage(20, 30, QImage.Format.Format_RGB32)
    image.fill(QColor("blue"))
    pixels.setImageData(image)
    page.composer.field.insertFromMimeData(pixels)
    read(qtbot, page)
    assert [file[WIDTH] for file in page.composer.files] == [30, 20]
    both = QMimeData()  # as office programs leave it
    both.setText("words")
    both.setImageData(image)
    page.composer.field.insertFromMimeData(both)
    assert page.composer.text == "words"
    page.composer._remove(page.composer.files[0])
    qtbot.waitUntil(lambda: len(shown(page)) == 1)


def test_a_picture_is_dropped_on_the_field(qtbot: QtBot, page: ChatPage, tmp_path: Path) -> None:
    path = tmp_path / "a.webp"
    path.write_bytes(file_of(8, 8, "WEBP"))
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    page.composer.field.insertFromMimeData(data)
    read(qtbot, page)
    assert [file["name"] for file in page.composer.files] == ["a.webp"]


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("cut.png", file_of(900, 900)[:200], "damaged or incomplete"),
        ("photo.heic", b"\0\0\0\x18ftypheic" + bytes(64), "not a PNG, JPEG, WebP or GIF"),
        ("old.tiff", file_of(8, 8, "TIFF"), "not a PNG, JPEG, WebP or GIF"),
    ],
)
def test_what_cannot_be_opened_says_why(
    qtbot: QtBot, page: ChatPage, tmp_path: Path, name: str, data: bytes, words: str
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    page.composer.attach([path])
    read(qtbot, page)
    assert words in page.notice.sentence
    assert page.composer.files == []


def test_a_model_that_sees_nothing_is_not_sent_pictures(page: ChatPage) -> None:
    page.composer.show_draft("What is this?", [attached()])
    page._show_hint()  # the Guide would answer
    assert page.hint.words.text() == (
        "This chat's model can't look at pictures. Choose one that can, or remove the pictures."
    )
    assert not page.composer.send.isEnabled()
    page.composer.field.sent.emit()
    assert page.chat.leaf is None
    page._set_up(replace(page.chat, model="another"))  # what it can do is not known here
    assert page.composer.send.isEnabled()
    page.composer._remove(page.composer.files[0])
    page._set_up(replace(page.chat, model=GUIDE))
    assert page.composer.send.isEnabled()
    assert "pictures" not in page.hint.words.text()


def test_who_sees_is_known_from_the_status() -> None:
    loading = LoadedModel(model="l", state="loading")
    blind = SharedModel(model="m", machine="study", machine_id="1", reference="m@study")
    seeing = SharedModel(model="v", machine="study", machine_id="1", reference="v@study", vision=True)
    later = SharedModel(model="w", machine="study", machine_id="1", reference="w@study", ready=False)
    now = Snapshot(shared=[blind, seeing, later], loaded=loading)
    assert sent_pictures.sees(now, "l") is None  # its projector is opened last
    assert sent_pictures.sees(now, "w@study") is None
    assert sent_pictures.sees(now, "v@study") is True
    assert sent_pictures.sees(now, "m@study") is False
    assert sent_pictures.sees(now, GUIDE) is False
    assert sent_pictures.sees(now, "unloaded") is None


def test_the_room_that_a_picture_takes_is_that_of_its_projector() -> None:
    seeing = SharedModel(model="v", machine="study", machine_id="1", reference="v@study", picture_tokens=1156)
    here = LoadedModel(model="l", state="loaded", picture_tokens=256)
    now = Snapshot(shared=[seeing], loaded=here)
    assert sent_pictures.picture_tokens(now, "v@study") == 1156
    assert sent_pictures.picture_tokens(now, "l") == 256
    assert sent_pictures.picture_tokens(Snapshot(), "l") == sent_pictures.USUAL_TOKENS


def test_pictures_are_sent_beside_the_text_and_old_ones_left_out() -> None:
    first, second = asked(1, [attached(), {"name": "a.txt", "text": "words"}]), asked(2, [], 1)
    body = question(chat_of(first, second), [first, second], {})["messages"]
    assert body[0]["pictures"] == [attached()[PICTURE]]
    assert body[0]["content"] == "question 1\n\nFile a.txt:\n\n```\nwords\n```"
    assert "pictures" not in body[1]
    none = sent_pictures.without_pictures([first, second])
    assert (none.left_out, content(none.branch[0])) == (1, content(first))
    assert not sent_pictures.pictures_of(none.branch[0])
    many = [asked(number, [attached(f"{number}.png")]) for number in range(MOST_PICTURES_OF_CHAT + 2)]
    sent = sent_pictures.within_limits(many)
    assert sent.left_out == 2
    assert [len(sent_pictures.pictures_of(message)) for message in sent.branch[:3]] == [0, 0, 1]


def test_pictures_of_many_bytes_are_left_out_from_the_oldest_on() -> None:
    large = attached(data=bytes(3 << 20))
    sent = sent_pictures.within_limits([asked(1, [attached()]), asked(2, [large]), asked(3, [large])])
    assert sent.left_out == 2  # the small first one, too: what is sent is consecutive
    assert [len(sent_pictures.pictures_of(message)) for message in sent.branch] == [0, 0, 1]


def test_a_chat_with_pictures_is_exported_and_imported() -> None:
    chat = chat_of(asked(1, [attached("<b>.png")]))
    [again] = parse_chats(f"{HEAD}{chat_json(chat)}{TAIL}".encode(), "x.json")
    assert [dict(file) for file in again.messages[MessageId("1")].details[ATTACHMENTS]] == [attached("<b>.png")]
    article = html_article(chat)
    assert f'src="data:image/png;base64,{attached()[PICTURE]}"' in article
    assert "<b>.png" not in article
    assert "img-src data:" in html_head("t", "en")
    assert "**Picture <b>.png, 40 × 20**" in markdown(chat)


@pytest.mark.parametrize(
    "harm", [{FORM: "svg+xml"}, {FORM: "x' onerror='y"}, {WIDTH: 0}, {WIDTH: True}, {HEIGHT: 1 << 20}, {PICTURE: "<?"}]
)
def test_a_damaged_picture_is_not_imported(harm: Details) -> None:
    chat = chat_of(asked(1, [{**attached(), **harm}]))
    with pytest.raises(BadInput) as caught:
        parse_chats(f"{HEAD}{chat_json(chat)}{TAIL}".encode(), "x.json")
    assert "a picture is damaged" in said(caught.value)


def test_the_window_decodes_nothing_itself(qtbot: QtBot) -> None:
    loader = PictureLoader()
    keys = [loader.request(attached(data=data), SMALL_SIDE) for data in (b"", b"\x89PNG", file_of(300, 200), b"<svg/>")]
    qtbot.waitUntil(lambda: loader.is_idle, timeout=WAIT_MS)
    images = [loader.image(key) for key in keys]
    assert images[:2] == [None, None]
    assert images[3] is None
    assert images[2] is not None
    assert (images[2].width(), images[2].height()) == (256, 170)
    loader._answered(keys[2], Picture(256, 170, "rgb", b"too few"))  # whatever the process sends
    assert loader.image(keys[2]) is None
    loader._answered(keys[2], Picture(1 << 20, 1 << 20, "rgb", b""))
    assert loader.image(keys[2]) is None
    loader.close()


def test_a_picture_that_cannot_be_shown_says_so_each_time(qtbot: QtBot, page: ChatPage) -> None:
    for _ in range(2):
        page._open_picture(attached(data=b"\x89PNG"))
        shown = page.findChildren(PictureWindow)[-1].image
        qtbot.waitUntil(partial(_says, shown, "This picture can't be shown."), timeout=WAIT_MS)
        shown.window().close()


def _says(shown: QLabel, words: str) -> bool:
    return shown.text() == words


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("", ""),
        (".", ""),
        ("/", ""),
        ("../../a.png", "a.png"),
        ("Photo 1.5", "Photo 1.5"),
        ('a<b>"?.png', "a_b___.png"),
    ],
)
def test_the_name_of_a_saved_picture_is_that_of_a_file(name: str, kept: str) -> None:
    assert file_name(attached(name)) == kept


def test_a_text_that_begins_as_a_picture_is_a_text(tmp_path: Path) -> None:
    for beginning in ("BMI table\n", "0000ftyp of text", "RIFF of text"):
        path = tmp_path / "table.txt"
        path.write_text(beginning + "x" * 80)
        assert kind_of(path) is Kind.TEXT
    path.write_bytes(file_of(8, 8, "BMP"))
    assert kind_of(path) is Kind.PICTURE


def test_a_picture_is_named_for_those_who_cannot_see_it() -> None:
    assert picture_name(attached("cat.png")) == "Picture cat.png, 40 × 20"
