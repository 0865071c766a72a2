"""Encrypted chats: nothing readable is left, nothing is lost, and without the key nothing is touched."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import time
from dataclasses import replace
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.core.chat import path
from app.core.errors import AppError
from app.core.reasons import said
from app.gui.chat.export.import_export import JSON, export, read_chats, rescue
from app.gui.chat.history import history_conversion, history_store
from app.gui.chat.history.history import History
from app.gui.chat.history.history_cipher import Cipher, PlainCodec, damage_error
from app.gui.chat.history.history_conversion import Conversion
from app.gui.chat.history.history_file import FILE, is_sealed
from tests.gui.chat.sealed import (
    KEY,
    OTHER,
    SECRETS,
    everything,
    filled,
    locked,
    readable,
    sealed,
    state,
    swept,
    turned,
)
from tests.gui.chat.talk import history, talked


def test_nothing_readable_is_left(qtbot: QtBot, tmp_path: Path) -> None:
    kept = history(tmp_path)
    gone = talked(kept, "A cormorant that is deleted")
    kept.delete([gone.id])
    chat = filled(kept)
    before = state(kept)
    kept.flush()
    assert readable(tmp_path) == list(SECRETS)
    assert turned(qtbot, kept, Conversion.SEAL) is None
    assert kept.codec.seals
    assert readable(tmp_path) == []
    assert state(kept) == before
    kept.save(replace(chat, draft="draft-heron again"))
    talked(kept, "Another cormorant", folder="Folder-Ibis")
    kept.rename(chat.id, "Kept-Title 2")
    kept.rename_folder("empty-folder-stork", "Graylag-folder")
    assert kept.folders() == ["Folder-Ibis", "Graylag-folder"]
    assert readable(tmp_path) == []  # also in what SQLite keeps beside it
    kept.close()
    assert readable(tmp_path) == []


def test_the_key_opens_it_again(qtbot: QtBot, tmp_path: Path) -> None:
    kept = sealed(qtbot, tmp_path)
    before = state(kept)
    kept.close()
    again = history(tmp_path)
    assert again.locked is not None
    assert "keyring" in said(again.locked)
    assert (again.headings(), again.folders(), again.trouble) == ([], [], None)
    with qtbot.waitSignal(again.unlocked):
        assert again.unlock(KEY)
    assert locked(again) is None
    assert state(again) == before
    again.close()


def test_turning_it_off_leaves_it_as_it_was(qtbot: QtBot, tmp_path: Path) -> None:
    kept = sealed(qtbot, tmp_path)
    before = state(kept)
    assert turned(qtbot, kept, Conversion.OPEN) is None
    assert not kept.codec.seals
    assert state(kept) == before
    kept.close()
    again = history(tmp_path)
    assert again.locked is None
    assert state(again) == before
    assert again.search("cormo")  # by the index, which is there again
    again.close()


@pytest.mark.parametrize(
    ("typed", "titles"),
    [
        ("function", ["Code"]),
        ("FUNC", ["Code"]),
        ("add_one(", ["Code"]),
        ("travel", ["Travel"]),
        ("koln", ["Travel"]),
        ("天気", ["東京の天気は"]),
        ("function Rhein", []),
        ("  ", []),
    ],
)
def test_words_are_found(qtbot: QtBot, tmp_path: Path, typed: str, titles: list[str]) -> None:
    def fill(kept: History) -> None:
        talked(kept, "Write a function", "Here: `add_one(x)`, 100% sure", title="Code")
        talked(kept, "Wo liegt Köln?", "Am **Rhein**.", title="Travel")
        talked(kept, "東京の天気は", "今日は晴れです")

    kept = sealed(qtbot, tmp_path, fill)
    hits = kept.search(typed)
    assert [hit.heading.title for hit in hits] == titles
    if typed == "koln":
        assert hits[0].message is not None
        assert "Köln" in hits[0].excerpt
    kept.close()


@pytest.mark.parametrize("turn", [Conversion.SEAL, Conversion.OPEN])
def test_a_crash_in_the_middle_leaves_one_or_the_other(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turn: Conversion
) -> None:
    """A copy of the disk at that moment shows what a kill would leave."""
    live, crashes = tmp_path / "live", tmp_path / "crashes"
    live.mkdir()
    kept = history(live) if turn is Conversion.SEAL else sealed(qtbot, live)
    if turn is Conversion.SEAL:
        filled(kept)
    before = state(kept)

    def crash(*_: object) -> None:
        shutil.copytree(live, crashes / str(len(list(crashes.glob("*")))))

    crashes.mkdir()
    monkeypatch.setattr(history_store.Converter, "_report", crash)
    sweep = history_conversion._sweep

    def sweep_after_a_crash(db: sqlite3.Connection) -> None:
        crash()
        sweep(db)

    monkeypatch.setattr(history_conversion, "_sweep", sweep_after_a_crash)
    assert turned(qtbot, kept, turn) is None
    crash()
    kept.close()
    states = []
    for file in sorted(crashes.iterdir()):
        again = history(file)
        states.append(again.locked is not None)
        if again.locked is not None:
            assert again.unlock(KEY)
            swept(qtbot, again)
            assert readable(file) == []  # a crash after the commit: swept at the next start
        assert state(again) == before
        again.close()
    assert states[0] is (turn is Conversion.OPEN)
    assert states[-1] is (turn is Conversion.SEAL)
    assert len(set(states)) == 2


def test_a_full_disk_leaves_it_as_it_was(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = history(tmp_path)
    filled(kept)
    before = state(kept)

    def full(*_: object) -> None:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    with monkeypatch.context() as broken_disk:
        broken_disk.setattr(history_conversion, "_recode_message", full)
        error = turned(qtbot, kept, Conversion.SEAL)
    assert error is not None
    assert "full" in said(error)
    assert not kept.codec.seals
    assert state(kept) == before
    talked(kept, "and it goes on")
    assert kept.search("cormorant")
    kept.close()


def test_what_could_not_be_swept_is_said(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = history(tmp_path)
    filled(kept)

    def in_use(_: object) -> None:
        raise sqlite3.OperationalError("the file is in use")

    with monkeypatch.context() as busy:
        busy.setattr(history_conversion, "_sweep", in_use)
        error = turned(qtbot, kept, Conversion.SEAL)
    assert error is not None
    assert "the next time it starts" in said(error)
    assert kept.codec.seals
    kept.close()
    again = history(tmp_path)
    assert again.unlock(KEY)
    swept(qtbot, again)
    assert readable(tmp_path) == []
    again.close()


def test_closing_in_the_middle_loses_nothing(qtbot: QtBot, tmp_path: Path) -> None:
    kept = history(tmp_path)
    chat = filled(kept)
    assert kept.convert(Conversion.SEAL, KEY)
    assert not kept.convert(Conversion.SEAL, KEY)  # one at a time
    kept.save(replace(chat, draft="typed meanwhile"))
    kept.close()
    again = history(tmp_path)
    if again.locked is not None:
        assert again.unlock(KEY)
    result = again.chat(chat.id)
    assert result is not None
    assert result.draft == "typed meanwhile"
    again.close()


def test_meanwhile_words_are_kept_and_deeds_are_refused(qtbot: QtBot, tmp_path: Path) -> None:
    kept = history(tmp_path)
    chat = filled(kept)
    troubles: list[AppError] = []
    kept.troubled.connect(troubles.append)
    with qtbot.waitSignal(kept.converter.ended, timeout=10_000):
        assert kept.convert(Conversion.SEAL, KEY)
        new = talked(kept, "A cormorant said meanwhile")
        kept.pin([chat.id], True)
        assert kept.chat(new.id) is not None
        assert kept.search("graylag") or kept.converter.busy  # both kinds are read
    assert [trouble.reason.code for trouble in troubles] == ["history_busy"]
    assert readable(tmp_path) == []
    kept.close()
    again = history(tmp_path)
    assert again.unlock(KEY)
    assert again.chat(new.id) == new
    again.close()


def test_another_key_changes_nothing(qtbot: QtBot, tmp_path: Path) -> None:
    kept = sealed(qtbot, tmp_path)
    chat = kept.headings()[0]
    kept.close()
    before = everything(tmp_path)
    again = history(tmp_path)
    assert not again.unlock(OTHER)
    assert again.locked is not None
    assert again.locked.reason.code == "history_key_wrong"
    troubles: list[AppError] = []
    again.troubled.connect(troubles.append)
    again.rename(chat.id, "other")
    again.delete([chat.id])
    new = talked(again, "A word without a key")
    assert again.chat(new.id) is not None
    assert not again.convert(Conversion.SEAL, OTHER)
    assert troubles
    assert everything(tmp_path) == before
    assert again.unlock(KEY)
    again.flush()
    assert {chat.id, new.id} <= {heading.id for heading in again.headings()}  # it was written at last
    again.close()


def test_a_file_that_nobody_can_open_is_kept_aside_when_asked(qtbot: QtBot, tmp_path: Path) -> None:
    kept = sealed(qtbot, tmp_path)
    assert kept.set_aside() is None  # it is open
    kept.close()
    before = (tmp_path / FILE).read_bytes()
    again = history(tmp_path)
    aside = again.set_aside()
    assert aside is not None
    assert aside.read_bytes() == before
    chat = talked(again, "a new begin")
    again.close()
    third = history(tmp_path)
    assert third.locked is None
    assert [heading.id for heading in third.headings()] == [chat.id]
    third.close()


def test_a_damaged_file_is_followed_by_an_encrypted_one(qtbot: QtBot, tmp_path: Path) -> None:
    kept = sealed(qtbot, tmp_path)
    kept.close()
    file = tmp_path / FILE
    with sqlite3.connect(file) as db:
        db.execute("UPDATE messages SET text = CAST(x'01' || randomblob(60) AS BLOB) WHERE number = 1")
    db.close()
    again = history(tmp_path)
    assert again.unlock(KEY)
    troubles: list[AppError] = []
    again.troubled.connect(troubles.append)
    again.search("osprey")
    assert [trouble.reason.code for trouble in troubles] == ["history_set_aside"]
    assert again.codec.seals
    talked(again, "A new cormorant")
    aside = tmp_path / "history-damaged-1.sqlite3"
    assert [path(chat)[0].text for chat in rescue(aside, again.codec, lambda _: None)] == ["The Graylag"]
    with pytest.raises(AppError):
        rescue(aside, PlainCodec(), lambda _: None)
    again.close()
    assert readable(tmp_path) == []


def test_a_file_that_is_gone_is_begun_encrypted_where_it_was_chosen(qtbot: QtBot, tmp_path: Path) -> None:
    kept = History(tmp_path / FILE, sealed=True)
    assert kept.locked is not None
    assert kept.unlock(KEY)
    filled(kept)
    assert readable(tmp_path) == []
    kept.close()
    (tmp_path / FILE).write_bytes(b"no database" * 500)
    again = History(tmp_path / FILE, sealed=True)
    assert again.trouble is not None
    assert again.locked is not None
    assert again.unlock(KEY)
    filled(again)
    again.close()
    assert readable(tmp_path) == []


def test_encrypted_chats_are_exported(qtbot: QtBot, tmp_path: Path) -> None:
    live = tmp_path / "live"
    live.mkdir()
    kept = sealed(qtbot, live)
    target = tmp_path / "out.json"
    assert kept.file is not None
    assert export(read_chats(kept.file, None, kept.codec), JSON, target, "", lambda _: None) == 2
    out = target.read_text("utf-8")
    words = ("cormorant", "Graylag", "system-teal", "Folder-Ibis", "attached-egret", "Kept-Title")
    assert [word for word in words if word not in out] == []
    kept.close()


def test_opening_a_long_chat_is_quick(qtbot: QtBot, tmp_path: Path) -> None:
    kept = sealed(qtbot, tmp_path, lambda made: talked(made, *["Some words. " * 150] * 500))
    (chat,) = kept.headings()
    kept.close()
    again = history(tmp_path)
    assert again.unlock(KEY)
    begun = time.thread_time()  # of this thread alone, whatever else the computer does
    result = again.chat(chat.id)
    took_s = time.thread_time() - begun
    assert result is not None
    assert len(result.messages) == 500
    assert took_s < 1.0
    again.close()


def test_a_sealed_text_opens_only_in_its_place() -> None:
    cipher = Cipher(KEY)
    kept = cipher.seal("words", "chat", "1", "title")
    assert kept != cipher.seal("words", "chat", "1", "title")  # a nonce of its own each time
    assert cipher.open(kept, "chat", "1", "title") == "words"
    assert isinstance(kept, bytes)
    changed = kept[:-1] + bytes([kept[-1] ^ 1])
    for bad, place in (
        (kept, ("chat", "2", "title")),
        (changed, ("chat", "1", "title")),
        (kept[:20], ("chat", "1", "title")),
        (b"\x02" + kept[1:], ("chat", "1", "title")),
    ):
        with pytest.raises(type(damage_error())):
            cipher.open(bad, *place)
    with pytest.raises(ValueError, match="32 bytes"):
        Cipher(KEY[:16])


@pytest.mark.parametrize("number", [0, 1])
def test_a_sealed_file_with_the_number_of_a_plain_one_stays_sealed(qtbot: QtBot, tmp_path: Path, number: int) -> None:
    """Nothing is ever written into it as it is."""
    sealed(qtbot, tmp_path).close()
    with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as db:
        db.execute(f"PRAGMA user_version = {number}")
    kept = history(tmp_path)
    error = locked(kept)
    assert error is not None
    assert error.reason.code == "history_locked"
    assert not kept.headings()
    kept.close()
    assert is_sealed(tmp_path / FILE)
    again = history(tmp_path)
    assert again.unlock(KEY)
    assert again.headings()
    again.close()
