"""`poolhouse chats`: the window's chats are encrypted and made readable without the window, whole or not at all."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from app.gui.chat.history import history_file
from tests.cli.conftest import Said
from tests.cli.fake_node import FakeNode

Poolhouse = Callable[..., Said]
TEXT = "What is a cormorant?"


@pytest.fixture(autouse=True)
def key_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POOLHOUSE_KEYSTORE", "file")


@pytest.fixture
def file(home: Path) -> Path:
    """One chat with one message, as the window leaves it."""
    made = home / "window" / "history.sqlite3"
    made.parent.mkdir(parents=True)
    with closing(history_file.open_history(made).db) as db:
        db.execute("INSERT INTO chats VALUES ('c', '', '', NULL, 0, 0, NULL, '', '{}', NULL, '', 'm', 1.0, NULL)")
        db.execute("INSERT INTO messages VALUES (1, 'c', 'm', NULL, 'user', ?, 1.0, '{}', 1)", (TEXT,))
    return made


def words(file: Path) -> bytes:
    """Everything of the file, and beside it."""
    return b"".join(path.read_bytes() for path in sorted(file.parent.glob("history.sqlite3*")))


def test_they_are_encrypted_and_made_readable_again(poolhouse: Poolhouse, home: Path, file: Path) -> None:
    plain = poolhouse("chats", "status")
    assert (plain.code, "Not encrypted." in plain.out) == (0, True)
    assert poolhouse("chats", "decrypt").out == "The chats are not encrypted.\n"
    assert b"cormorant" in words(file)

    done = poolhouse("chats", "encrypt", "--json").json
    assert (done["encrypted"], done["swept"], done["changed"]) == (True, True, True)
    assert (done["chats"], done["messages"]) == (1, 1)
    assert done["key_place"] == f"the file {home / 'chat-key'}"
    assert b"cormorant" not in words(file)
    assert poolhouse("chats", "encrypt").out == "The chats are already encrypted.\n"
    known = "".join(poolhouse("chats", "status").out.split())
    assert "1chatwith1message,in" in known
    assert known.endswith(f"thefile{home / 'chat-key'}.")

    assert poolhouse("chats", "decrypt").code == 0
    again = history_file.open_history(file)
    with closing(again.db) as db:
        assert again.locked is None
        assert db.execute("SELECT text FROM messages").fetchall() == [(TEXT,)]
        text = "SELECT rowid FROM words WHERE words MATCH 'cormorant'"
        assert not again.indexed or db.execute(text).fetchall() == [(1,)]
    assert (home / "chat-key").exists()  # for copies of the file


def test_nothing_is_changed_under_an_open_window(poolhouse: Poolhouse, file: Path) -> None:
    with closing(history_file.open_history(file).db) as window:
        window.execute("SELECT * FROM chats").fetchall()
        said = poolhouse("chats", "encrypt")
        assert said.code == 1
        assert said.err == (
            f"The chats in {file} are in use. Quit Poolhouse (its tray icon also has a Quit command), then try again.\n"
        )
        assert poolhouse("chats", "status").code == 0
        assert window.execute("SELECT text FROM messages").fetchall() == [(TEXT,)]
    assert poolhouse("chats", "encrypt").code == 0


def test_without_their_key_they_stay_as_they_are(poolhouse: Poolhouse, home: Path, file: Path) -> None:
    assert poolhouse("chats", "encrypt").code == 0
    before, key = words(file), home / "chat-key"
    kept = key.read_bytes()
    key.unlink()
    for command in ("decrypt", "status"):
        said = poolhouse("chats", command)
        text = "".join((said.out + said.err).split())  # long paths break anywhere
        assert f"missingfromthefile{key}." in text
        assert said.code == (1 if command == "decrypt" else 0)
    assert not key.exists()
    key.write_bytes(b"A" * 43 + b"=")
    said = poolhouse("chats", "decrypt")
    assert said.err.startswith("Your chats are encrypted, but the key in the file ")
    assert words(file) == before
    key.write_bytes(kept)
    assert poolhouse("chats", "decrypt").code == 0


def test_a_running_node_is_asked_for_the_key(
    poolhouse: Poolhouse, answering: Callable[..., FakeNode], home: Path, file: Path
) -> None:
    result = {"key": "B" * 43 + "=", "where": "in the system keyring", "place": "the entry x"}
    answering({("POST", "/history/key"): result, ("GET", "/history/key"): result})
    assert "The key is the entry x" in " ".join(poolhouse("chats", "encrypt").out.split())
    assert not (home / "chat-key").exists()
    assert poolhouse("chats", "decrypt").code == 0


def test_no_chats_and_those_of_a_newer_version_are_told(poolhouse: Poolhouse, home: Path, file: Path) -> None:
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA user_version = 99")
    assert "newer version of Poolhouse" in poolhouse("chats", "encrypt").err
    file.unlink()
    for command in ("status", "encrypt", "decrypt"):
        said = poolhouse("chats", command)
        assert (said.code, said.out) == (1, "")
        assert said.err.startswith("There are no chats in ")


def test_it_needs_no_qt() -> None:
    names = "app.cli.commands.chats_commands, app.cli.chats_file"
    order = f"import sys, {names}; sys.exit(any(one.startswith('PySide6') for one in sys.modules))"
    assert subprocess.run([sys.executable, "-c", order], check=False).returncode == 0


def test_help_says_where_chats_are_exported(poolhouse: Callable[..., Said]) -> None:
    assert "To export chats, open the Chat page" in poolhouse("chats", "--help", at_home=False).out


def test_one_chat_and_its_messages_are_counted_in_a_sentence(poolhouse: Poolhouse, file: Path) -> None:
    assert poolhouse("chats", "encrypt").out.startswith("Encrypted 1 chat with 1 message. The key is ")
    assert poolhouse("chats", "decrypt").out.startswith("Decrypted 1 chat with 1 message: ")
