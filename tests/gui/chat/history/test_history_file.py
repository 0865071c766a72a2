"""Killed, damaged, newer, full, read-only: the chats are never silently lost."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.core.chat import path
from app.core.errors import AppError
from app.core.reasons import said
from app.gui.chat.history.history import History
from app.gui.chat.history.history_file import FILE
from tests.gui.chat.talk import history, talked

WRITER = """
import sys
from pathlib import Path
from PySide6.QtCore import QCoreApplication
from tests.gui.chat.talk import history, talked
app = QCoreApplication([])
kept = history(Path(sys.argv[1]))
for number in range(1000):
    talked(kept, f"question {number}", "answer")
    print(number, flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_what_was_kept_outlives_a_kill(qtbot: QtBot, tmp_path: Path, project: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": str(project)}
    writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env, cwd=project)
    assert writer.stdout is not None
    lines = [writer.stdout.readline() for _ in range(20)]
    writer.send_signal(signal.SIGKILL)
    lines += writer.stdout.readlines()
    writer.wait()
    writer.stdout.close()
    kept = history(tmp_path)
    assert kept.trouble is None
    assert len(kept.headings()) >= len(lines)
    assert len(kept.search("question 7")) >= 1
    kept.close()


@pytest.mark.parametrize("content", [b"no database " * 500, b"SQLite format 3\x00" + b"\xff" * 9000])
def test_a_damaged_file_is_kept_aside(qtbot: QtBot, tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    kept = history(tmp_path)
    aside = tmp_path / "history-damaged-1.sqlite3"
    assert aside.read_bytes() == content
    assert kept.trouble is not None
    assert str(aside) in said(kept.trouble)
    chat = talked(kept, "a new begin")
    kept.close()
    again = history(tmp_path)
    assert again.trouble is None
    assert again.chat(chat.id) is not None
    again.close()


def test_a_file_of_another_program_is_kept_aside(qtbot: QtBot, tmp_path: Path) -> None:
    """Valid SQLite with our version number, but none of our tables."""
    db = sqlite3.connect(tmp_path / FILE)
    db.executescript("CREATE TABLE other (x); PRAGMA user_version = 1;")
    db.close()
    kept = history(tmp_path)
    assert kept.trouble is not None
    assert (tmp_path / "history-damaged-1.sqlite3").exists()
    assert talked(kept, "works").id in [heading.id for heading in kept.headings()]
    kept.close()


def test_damage_under_way_keeps_what_is_open(qtbot: QtBot, tmp_path: Path) -> None:
    kept = history(tmp_path)
    chat = talked(kept, "Keep me", "I shall")
    troubles: list[object] = []
    kept.troubled.connect(troubles.append)
    kept.flush()
    file = tmp_path / FILE
    with sqlite3.connect(file) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    other.close()
    size = file.stat().st_size
    with file.open("r+b") as raw:
        raw.seek(4096)
        raw.write(b"\xa5" * (size - 4096))
    kept.search("anything")
    qtbot.waitUntil(lambda: bool(troubles), timeout=5000)
    qtbot.waitUntil(lambda: bool(kept.headings()), timeout=5000)
    result = kept.chat(chat.id)
    assert result is not None
    assert [m.text for m in path(result)] == ["Keep me", "I shall"]
    kept.close()
    again = history(tmp_path)
    assert again.chat(chat.id) == result
    again.close()


def test_a_file_of_a_newer_version_stays_untouched(qtbot: QtBot, tmp_path: Path) -> None:
    kept = history(tmp_path)
    talked(kept, "from the future")
    kept.close()
    db = sqlite3.connect(tmp_path / FILE)
    db.execute("PRAGMA user_version = 99")
    db.close()
    before = (tmp_path / FILE).read_bytes()
    kept = history(tmp_path)
    assert kept.trouble is not None
    assert "newer" in said(kept.trouble)
    talked(kept, "today")
    kept.close()
    assert (tmp_path / FILE).read_bytes() == before
    again = history(tmp_path)
    assert [heading.title for heading in again.headings()] == ["today"]
    again.close()


def test_a_full_disk_loses_nothing(qtbot: QtBot, tmp_path: Path) -> None:
    kept = history(tmp_path)
    troubles: list[object] = []
    healed: list[bool] = []
    kept.troubled.connect(troubles.append)
    kept.recovered.connect(lambda: healed.append(True))
    talked(kept, "small")
    _limit(kept, "PRAGMA max_page_count = 1")
    chat = talked(kept, "large " * 100_000)
    assert len(troubles) == 1
    assert kept.trouble is not None
    assert "full" in said(kept.trouble)
    assert kept.chat(chat.id) == chat  # still there
    kept.save(chat)
    assert len(troubles) == 1  # said once
    _limit(kept, "PRAGMA max_page_count = 100000")
    kept.flush()
    assert healed
    assert _trouble(kept) is None
    kept.close()
    again = history(tmp_path)
    assert again.chat(chat.id) == chat
    again.close()


def test_a_folder_that_cannot_be_written(qtbot: QtBot, tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    kept = history(tmp_path)
    assert kept.trouble is not None
    assert "could not be saved" in said(kept.trouble)
    assert kept.file is None
    chat = talked(kept, "in memory")
    assert kept.chat(chat.id) is not None
    kept.close()


def _trouble(kept: History) -> AppError | None:
    return kept.trouble


def _limit(kept: History, order: str) -> None:
    kept._store.read(lambda db: db.execute(order).fetchall(), [])


@pytest.mark.parametrize("seed", range(4))
def test_no_damage_ends_the_window(qtbot: QtBot, tmp_path: Path, seed: int) -> None:
    """Bytes of the file are changed, also those of the names of its tables: SQLite quotes them in its errors."""
    whole = tmp_path / "whole"
    whole.mkdir()
    kept = history(whole)
    for number in range(4):
        talked(kept, f"question {number} ä", "answer", title=f"chat {number}")
    kept.close()
    content = (whole / FILE).read_bytes()
    chance = random.Random(seed)
    for case in range(15):
        folder = tmp_path / str(case)
        folder.mkdir()
        data = bytearray(content)
        first = chance.choice((100, 4096, len(data)))  # the head, the schema, anything
        for _ in range(chance.choice((1, 20, 200))):
            data[chance.randrange(min(first, len(data)))] = chance.randrange(256)
        (folder / FILE).write_bytes(data)
        kept = history(folder)
        for heading in kept.headings():
            kept.chat(heading.id)
        kept.search("question")
        talked(kept, "notices it, where nothing did before")
        assert talked(kept, "goes on").id in [heading.id for heading in kept.headings()]
        kept.close()


def test_a_text_that_is_none_is_damage(qtbot: QtBot, tmp_path: Path) -> None:
    kept = history(tmp_path)
    chat = talked(kept, "question")
    kept.close()
    with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as db:
        db.execute("UPDATE messages SET text = CAST(x'ff' AS TEXT), indexed = 0")
        db.commit()
    kept = history(tmp_path)
    assert kept.chat(chat.id) is None
    assert kept.trouble is not None
    assert kept.trouble.reason.code == "history_set_aside"
    kept.close()


@pytest.mark.parametrize("details", ['{"a": NaN}', "[]", "{", "[" * 100_000])
def test_details_that_cannot_be_read_are_damage(qtbot: QtBot, tmp_path: Path, details: str) -> None:
    kept = history(tmp_path)
    chat = talked(kept, "question")
    kept.close()
    with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as db:
        db.execute("UPDATE messages SET details = ?", (details,))
        db.commit()
    kept = history(tmp_path)
    assert kept.chat(chat.id) is None
    assert kept.trouble is not None
    kept.close()
