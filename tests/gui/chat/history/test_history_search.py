"""Words are found in titles and texts, in every script, and signs have no power."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.core.chat import Message, Role, add
from app.gui.chat.history import history_file
from app.gui.chat.history.history import History
from app.gui.chat.history.history_conversion import Conversion
from app.gui.chat.history.history_search import excerpt
from tests.gui.chat.sealed import turned
from tests.gui.chat.talk import history, talked


@pytest.fixture(params=["index", "letters", "sealed"])
def kept(
    request: pytest.FixtureRequest, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[History]:
    """Once with the index of words, once with an SQLite that has none, once with texts that are opened one by one."""
    if request.param == "letters":
        monkeypatch.setattr(history_file, "can_index", lambda db: False)
    made = history(tmp_path)
    talked(made, "Write a function", "Here: `add_one(x)`, 100% sure", title="Code")
    talked(made, "Wo liegt Köln?", "Am **Rhein**.", title="Travel")
    talked(made, "東京の天気は", "今日は晴れです")
    note = {"attachments": [{"name": "tide.csv", "text": "low water\n100 herons"}]}
    message = Message(made.new_message_id(), None, Role.USER, "See there", made.now(), note)
    made.save(replace(add(made.begin(), message), system="Answer as a sailor."))
    if request.param == "sealed":
        assert turned(qtbot, made, Conversion.SEAL) is None
    yield made
    made.close()


@pytest.mark.parametrize(
    ("typed", "titles"),
    [
        ("function", ["Code"]),
        ("FUNC", ["Code"]),
        ("add_one(", ["Code"]),
        ("100%", ["Code"]),
        ("travel", ["Travel"]),
        ("Köln", ["Travel"]),
        ("天気", ["東京の天気は"]),
        ("function Rhein", []),
        ("", []),
        ("  ", []),
        ('"', []),
        ("a* OR b", []),
        ("%", ["Code"]),
        ("x" * 5000, []),
        ("herons", ["See there"]),
        ("tide.csv 100", ["See there"]),
        ("sailor", ["See there"]),
        ("attachments", []),  # no word of a person
    ],
)
def test_what_is_found(kept: History, typed: str, titles: list[str]) -> None:
    assert [hit.heading.title for hit in kept.search(typed)] == titles


def test_an_index_catches_up(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that was written where SQLite has no index gets one where it can."""
    with monkeypatch.context() as without:
        without.setattr(history_file, "can_index", lambda db: False)
        made = history(tmp_path)
        talked(made, "cormorant")
        made.close()
    made = history(tmp_path)
    assert made.search("cormorant")
    made.close()
    with monkeypatch.context() as without:
        without.setattr(history_file, "can_index", lambda db: False)
        made = history(tmp_path)
        talked(made, "grebe")
        made.close()
    made = history(tmp_path)
    assert made.search("grebe")
    assert made.trouble is None
    made.close()


def test_the_message_that_was_found(kept: History) -> None:
    hit = kept.search("Rhein")[0]
    chat = kept.chat(hit.heading.id)
    assert chat is not None
    assert hit.message == chat.leaf
    assert hit.excerpt == "Am Rhein."


def test_where_it_was_found(kept: History) -> None:
    """A match in a file shows the message that it is attached to. The text above the chat is not a message."""
    attached, over = kept.search("herons")[0], kept.search("sailor")[0]
    chat = kept.chat(attached.heading.id)
    assert chat is not None
    assert (attached.message, attached.excerpt) == (chat.leaf, "tide.csv low water 100 herons")
    assert (over.message, over.excerpt) == (None, "Answer as a sailor.")
    assert kept.search("see")[0].excerpt == "See there"


def test_facts_that_are_no_json_keep_nothing_from_being_found(kept: History) -> None:
    odd = "UPDATE messages SET details = '{x' WHERE text LIKE '%Rhein%'"
    kept._store.read(lambda db: db.execute(odd), None)
    assert kept.search("Rhein")
    assert kept.search("herons")


@pytest.mark.parametrize(
    ("text", "words", "shown"),
    [
        ("short", ["short"], "short"),
        ("a b\n\nc", ["zz"], "a b c"),
        ("word " * 20 + "here it is" + " more" * 40, ["here"], "…word word word word here it is"),
    ],
)
def test_excerpts(text: str, words: list[str], shown: str) -> None:
    assert excerpt(text, words).startswith(shown)
