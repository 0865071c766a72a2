"""Tests of importing untrusted chats: complete and of our format, or refused with the reason."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QCoreApplication, QThreadPool
from PySide6.QtWidgets import QLabel, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.core.chat import path
from app.core.errors import AppError, BadInput
from app.core.reasons import said
from app.gui.chat.export import import_export
from app.gui.chat.export.chat_json import FORMAT, HEAD, TAIL, parse_chats
from app.gui.chat.export.import_export import FORMATS, JSON, CancelableJob, Format, ImportExportPanel
from app.gui.chat.history.history import History
from app.gui.widgets.fold import Fold
from app.gui.widgets.notice import NarrowNotice
from tests.gui.chat.talk import history, talked
from tests.gui.desk import Desk

Change = Callable[[dict[str, Any]], object]

GOOD: dict[str, Any] = {
    "format": FORMAT,
    "version": 1,
    "chats": [
        {
            "title": "Trip",
            "folder": "Work",
            "sampling": {"temperature": 0.5, "top_k": "many", "unknown": 1, "seed": 7},
            "context": 2048,
            "changed_at": 10.5,
            "leaf": "b",
            "messages": [
                {"id": "a", "parent": None, "role": "user", "text": "Hi", "made_at": 1},
                {
                    "id": "b",
                    "parent": "a",
                    "role": "assistant",
                    "text": "Hello",
                    "made_at": 2,
                    "details": {
                        "figures": {"decode_tok_s": 9.5, "text": "x", "tokens": 2**31, "predicted": {"ttft_s": 1}},
                        "strange": {"deep": []},
                        "model": "guide",
                    },
                },
            ],
        }
    ],
}


def bytes_of(content: object) -> bytes:
    return json.dumps(content).encode()


def test_a_good_file() -> None:
    (chat,) = parse_chats(bytes_of(GOOD), "x.json")
    assert (chat.title, chat.folder, chat.context) == ("Trip", "Work", 2048)
    assert chat.sampling == {"temperature": 0.5, "seed": 7}
    assert [m.text for m in path(chat)] == ["Hi", "Hello"]
    figures = {"decode_tok_s": 9.5, "predicted": {"ttft_s": 1}}
    assert path(chat)[1].details == {"figures": figures, "model": "guide"}


def _message(name: str, value: object) -> Change:
    return lambda file: file["chats"][0]["messages"][1].update({name: value})


def _chat(name: str, value: object) -> Change:
    return lambda file: file["chats"][0].update({name: value})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda file: file.update(format="other"), "it was not written by Poolhouse"),
        (lambda file: file.update(version=2), "another version"),
        (lambda file: file.update(chats={}), "“chats” is not a list"),
        (lambda file: file.update(chats=[7]), "in chat 1, “chat” is not an object"),
        (_chat("title", 7), "“title” is not text"),
        (_chat("title", "x" * 201), "longer than 200"),
        (_chat("changed_at", "now"), "a time is invalid"),
        (_chat("changed_at", 1e300), "a time is invalid"),
        (_chat("messages", None), "“messages” is not a list"),
        (_message("role", "system"), "unknown role"),
        (_message("role", ["user"]), "unknown role"),
        (_message("id", "a"), "same id"),
        (_message("id", ""), "same id"),
        (_message("parent", "b"), "not come before it"),
        (_message("parent", {}), "not come before it"),
        (_message("text", None), "“text” is not text"),
        (_message("id", "\ud800"), "an incomplete character"),
        (_chat("model", "\ud800"), "an incomplete character"),
        (_message("details", []), "“details” is not an object"),
        (_message("details", {"attachments": [{"name": 1, "text": ""}]}), "“name” is not text"),
        (_message("details", {"notes": [1]}), "“notes” is not text"),
        (_message("details", {"figures": 3}), "“figures” is not an object"),
    ],
)
def test_what_is_refused(change: Change, words: str) -> None:
    file = copy.deepcopy(GOOD)
    change(file)
    with pytest.raises(BadInput) as caught:
        parse_chats(bytes_of(file), "x.json")
    assert words in said(caught.value)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"\xff\xfe", b"[" * 200_000, b'{"format": NaN}', b"9" * 10_000, b"null", b"[]"]
)
def test_what_is_no_file_of_ours(data: bytes) -> None:
    with pytest.raises(BadInput):
        parse_chats(data, "x.json")


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists, max_leaves=5))
def test_no_value_anywhere_does_harm(value: object) -> None:
    for where in (_chat, _message):
        for name in (*GOOD["chats"][0], *GOOD["chats"][0]["messages"][1]):
            file = copy.deepcopy(GOOD)
            where(name, value)(file)
            try:
                parse_chats(bytes_of(file), "x.json")
            except BadInput:
                continue


@pytest.fixture
def kept(qtbot: QtBot, tmp_path: Path) -> Iterator[History]:
    made = history(tmp_path)
    yield made
    made.close()


@pytest.fixture
def exchange(qtbot: QtBot, away: Desk, kept: History) -> Iterator[tuple[ImportExportPanel, NarrowNotice]]:
    parent = QWidget()
    qtbot.addWidget(parent)
    notice = NarrowNotice(away.services.theme, parent)
    yield ImportExportPanel(kept, notice, away.services, parent), notice
    del parent  # alive until here


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_exporting_in_the_background(
    qtbot: QtBot, exchange: tuple[ImportExportPanel, NarrowNotice], kept: History, tmp_path: Path, form: Format
) -> None:
    desk, notice = exchange
    talked(kept, "Question", "Answer")
    target = tmp_path / f"all{form.suffix}"
    desk.write(form, None, target)
    assert desk.busy
    qtbot.waitUntil(lambda: not desk.busy, timeout=10_000)
    assert notice.sentence == f"1 chat(s) exported to {target.name}."
    assert target.stat().st_size > 0


def test_there_and_back(
    qtbot: QtBot, exchange: tuple[ImportExportPanel, NarrowNotice], kept: History, tmp_path: Path
) -> None:
    desk, notice = exchange
    for number in range(30):
        talked(kept, f"Question {number}", "Answer", folder="Work" if number % 2 else "")
    desk.write(JSON, None, tmp_path / "all.json")
    qtbot.waitUntil(lambda: not desk.busy, timeout=10_000)
    desk.read(tmp_path / "all.json")
    qtbot.waitUntil(lambda: "imported" in notice.sentence, timeout=10_000)
    assert len(kept.headings()) == 60
    assert len(kept.inside("Work")) == 30
    undo = next(button for button in notice.findChildren(QPushButton) if button.text() == "Undo")
    undo.click()
    assert len(kept.headings()) == 30


def test_a_bad_file_changes_nothing(
    qtbot: QtBot, exchange: tuple[ImportExportPanel, NarrowNotice], kept: History, tmp_path: Path
) -> None:
    desk, notice = exchange
    (tmp_path / "bad.json").write_text("{")
    desk.read(tmp_path / "bad.json")
    qtbot.waitUntil(lambda: not desk.busy, timeout=10_000)
    assert "cannot be imported: it is not JSON" in notice.sentence
    desk.read(tmp_path / "missing.json")
    qtbot.waitUntil(lambda: "missing.json" in notice.sentence, timeout=10_000)
    assert kept.headings() == []


def test_cancel_takes_an_import_back(
    qtbot: QtBot, exchange: tuple[ImportExportPanel, NarrowNotice], kept: History, tmp_path: Path
) -> None:
    desk, _ = exchange
    many = GOOD | {"chats": GOOD["chats"] * 2000}
    (tmp_path / "many.json").write_bytes(bytes_of(many))
    desk.read(tmp_path / "many.json")
    qtbot.waitUntil(lambda: bool(kept.headings()), timeout=10_000)
    desk.cancel()
    assert not desk.busy
    assert kept.headings() == []


def test_what_was_cancelled_is_not_told_even_if_it_was_done(
    qtbot: QtBot, exchange: tuple[ImportExportPanel, NarrowNotice], kept: History
) -> None:
    desk, _ = exchange
    work, reports = CancelableJob(lambda _: parse_chats(bytes_of(GOOD), "x.json")), list[object]()
    desk._begin(work, "", 0, reports.append)
    assert QThreadPool.globalInstance().waitForDone(5000)  # its end waits in the queue
    desk.cancel()
    QCoreApplication.processEvents()
    assert reports == []


def test_a_mistake_of_ours_is_told_as_one(
    qtbot: QtBot, exchange: tuple[ImportExportPanel, NarrowNotice], monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, notice = exchange
    monkeypatch.setattr(import_export, "_read", lambda *_: 1 / 0)
    desk.read(Path("chats.json"))
    qtbot.waitUntil(lambda: bool(notice.sentence), timeout=5000)
    assert notice.sentence == said(AppError("bug"))
    (fold,) = notice.findChildren(Fold)
    assert any("ZeroDivisionError@" in label.text() for label in fold.findChildren(QLabel))


def test_a_file_as_we_write_it_is_read_bit_by_bit() -> None:
    """The same as when it is read at once; what is cut off or added is no file of ours."""
    dumps = json.dumps(GOOD["chats"][0])
    whole = f"{HEAD}{dumps},\n{dumps}{TAIL}"
    values: list[int] = []
    chats = parse_chats(whole.encode(), "x.json", values.append)
    assert chats[0] == parse_chats(bytes_of(GOOD), "x.json")[0]
    assert values == [1, 2]
    assert parse_chats((HEAD + TAIL).encode(), "x.json") == []
    for bad in (HEAD, whole[:-4], f"{HEAD}{dumps} {dumps}{TAIL}", f"{HEAD}{dumps},", HEAD + "]," + TAIL):
        with pytest.raises(BadInput):
            parse_chats(bad.encode(), "x.json")
