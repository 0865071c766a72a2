"""The history keeps every change at once, and its lists and folders agree."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.core.chat import Chat, ChatId, Message, MessageId, Role, add, edit, path, set_text, switch
from app.gui.chat.history import history_rows
from app.gui.chat.history.history import CACHED_CHATS, History
from app.gui.chat.history.history_file import FILE
from tests.gui.chat.talk import history, talked


@pytest.fixture
def kept(qtbot: QtBot, tmp_path: Path) -> Iterator[History]:
    made = history(tmp_path)
    yield made
    made.close()


def reopened(kept: History, folder: Path) -> History:
    kept.close()
    return history(folder)


def test_a_chat_comes_back_whole(kept: History, tmp_path: Path) -> None:
    chat = talked(kept, "Question", "Answer", "More", "Yes", folder="Work")
    first = next(iter(chat.messages))
    chat = edit(chat, first, "Another", MessageId("new"), 5.0)
    chat = replace(chat, system="Be kind.", sampling={"top_k": 3}, context=2048, model="guide", draft="half a")
    chat = set_text(chat, MessageId("new"), "Another 💧", {"notes": ["a", "b"], "figures": {"x": 1.5}})
    kept.save(switch(chat, first))
    again = reopened(kept, tmp_path)
    assert again.chat(chat.id) == switch(chat, first)
    assert [heading.folder for heading in again.headings()] == ["Work"]
    again.close()


def test_chats_that_are_left_empty_are_forgotten_but_for_the_last(kept: History) -> None:
    """A person who presses New chat all day: nothing grows."""
    begun = [kept.begin() for _ in range(CACHED_CHATS + 3)]
    assert [kept.chat(chat.id) for chat in begun] == [None] * 3 + begun[3:]


def test_nothing_is_left_of_a_chat_without_words(kept: History, tmp_path: Path) -> None:
    begun = kept.begin()
    assert kept.chat(begun.id) == begun
    assert kept.headings() == []
    again = reopened(kept, tmp_path)
    assert again.chat(begun.id) is None
    again.close()


def test_a_draft_that_was_taken_back_leaves_nothing(kept: History, tmp_path: Path) -> None:
    begun = kept.begin()
    kept.save(replace(begun, draft=""))
    assert kept.headings() == []
    kept.save(replace(begun, draft="Dear"))
    assert [heading.id for heading in kept.headings()] == [begun.id]
    kept.save(replace(begun, draft=""))
    again = reopened(kept, tmp_path)
    assert again.headings() == []
    again.close()


def test_the_file_is_private(kept: History, tmp_path: Path) -> None:
    talked(kept, "secret")
    for file in tmp_path.glob(f"{FILE}*"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_an_answer_under_way_waits_for_its_second(qtbot: QtBot, kept: History) -> None:
    chat = talked(kept, "Question", "Begin")
    answer = chat.leaf
    assert answer is not None
    seen: list[str] = []
    kept.changed.connect(seen.append)
    for number in range(20):
        chat = set_text(chat, answer, f"Begin {number}")
        kept.save_soon(chat)
    assert not seen
    assert kept.chat(chat.id) == chat  # whoever asks gets the newest
    qtbot.waitUntil(lambda: bool(seen), timeout=5000)
    assert seen == [chat.id]
    kept.save(set_text(chat, answer, "The end"))
    assert [hit.excerpt for hit in kept.search("end")] == ["The end"]


def test_lines_of_the_list(kept: History) -> None:
    old, new = talked(kept, "First thing"), talked(kept, "Second thing")
    assert [heading.id for heading in kept.headings()] == [new.id, old.id]
    kept.pin([old.id], True)
    assert [heading.title for heading in kept.headings()] == ["First thing", "Second thing"]
    kept.rename(old.id, "  Named\nby hand ")
    assert kept.headings()[0].title == "Named by hand"
    kept.rename(old.id, "")
    assert kept.headings()[0].title == "First thing"
    kept.archive([new.id], True)
    assert [heading.id for heading in kept.headings()] == [old.id]
    assert [heading.id for heading in kept.headings(archived=True)] == [new.id]


def test_keeping_does_not_undo_what_the_list_did(kept: History) -> None:
    """The conversation holds an older value while somebody renames the chat in the list."""
    chat = talked(kept, "Question", "Answer")
    kept.rename(chat.id, "Renamed")
    kept.move([chat.id], "Work")
    kept.save(replace(chat, draft="typing"))
    result = kept.chat(chat.id)
    assert result is not None
    assert (result.title, result.folder, result.draft) == ("Renamed", "Work", "typing")


def test_a_chat_not_written_yet_can_be_named(kept: History) -> None:
    begun = kept.begin()
    kept.rename(begun.id, "Early")
    kept.save(replace(begun, draft="x"))
    assert [heading.title for heading in kept.headings()] == ["Early"]


def test_deleting_can_be_undone_until_it_is_purged(kept: History, tmp_path: Path) -> None:
    chat, two = talked(kept, "pelican"), talked(kept, "heron")
    gone: list[str] = []
    kept.removed.connect(gone.append)
    kept.delete([chat.id, two.id])
    assert gone == [chat.id, two.id]
    assert kept.headings() == []
    assert kept.search("pelican") == []
    kept.restore([chat.id])
    assert [hit.heading.id for hit in kept.search("pelican")] == [chat.id]
    kept.purge()
    kept.restore([two.id])
    kept.save(two)  # an answer that came late
    assert [line.id for line in kept.headings()] == [chat.id]
    kept.delete([chat.id])
    kept.close()
    assert b"pelican" not in (tmp_path / FILE).read_bytes()


def test_folders(kept: History) -> None:
    chat = talked(kept, "a", folder="Work")
    kept.make_folder("Home")
    kept.make_folder("Home")
    assert kept.folders() == ["Home", "Work"]
    kept.rename_folder("Work", "Job")
    assert (kept.folders(), kept.inside("Job")) == (["Home", "Job"], [chat.id])
    kept.rename_folder("Job", "Home")
    assert (kept.folders(), kept.inside("Home")) == (["Home"], [chat.id])
    assert kept.delete_folder("Home") == [chat.id]
    assert kept.folders() == []
    heading = kept.heading(chat.id)
    assert heading is not None
    assert heading.folder == ""


def test_copies(kept: History) -> None:
    chat = talked(kept, "Question", "Answer")
    copy = kept.duplicate(chat.id, "Copy")
    assert copy is not None
    assert copy.id != chat.id
    assert [m.text for m in path(copy)] == ["Question", "Answer"]
    assert len(kept.headings()) == 2
    assert kept.duplicate(ChatId("nobody"), "x") is None


def test_half_characters_are_kept_out(kept: History, tmp_path: Path) -> None:
    chat = talked(kept, "broken \ud83d pair")
    again = reopened(kept, tmp_path)
    result = again.chat(chat.id)
    assert result is not None
    assert [m.text for m in path(result)] == ["broken ? pair"]
    again.close()


def test_half_characters_anywhere_and_the_others_are_written(kept: History, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = replace(kept.begin(), model="\ud800", draft="x")
    kept.save(say_new(odd, "\ud800"))
    assert [heading.id for heading in kept.headings()] == [odd.id]
    monkeypatch.setattr(history_rows, "storable", lambda text: text)  # one that cannot be written
    said: list[object] = []
    kept.troubled.connect(said.append)
    bad = kept.begin()
    kept.save_soon(replace(bad, draft="\udfff"))
    fine = talked(kept, "fine")
    assert kept.heading(fine.id) is not None
    assert len(said) == 1
    monkeypatch.undo()
    kept.flush()
    assert kept.heading(bad.id) is not None


def say_new(chat: Chat, ident: str) -> Chat:
    return add(chat, Message(MessageId(ident), None, Role.USER, "Hi", 1.0))


@pytest.mark.parametrize("text", ["half a", "", "\x1e[odd"])
def test_a_draft_keeps_its_files(kept: History, tmp_path: Path, text: str) -> None:
    files = ({"name": "a.txt", "text": "Ä\ud800", "tokens": 3},) if text != "\x1e[odd" else ()
    chat = replace(kept.begin(), draft=text, draft_files=files)
    kept.save(chat)
    kept.close()
    result = history(tmp_path).chat(chat.id)
    assert result is not None
    assert (result.draft, len(result.draft_files)) == (text, len(files))
    for draft_file in result.draft_files:
        assert draft_file == {"name": "a.txt", "text": "Ä?", "tokens": 3}
