"""The core's sentences in German: the same facts stand in both, and what the node said in English is found."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QLocale

from app.core import reasons
from app.core.errors import DoesNotFit, Reason
from app.gui.sentences import FOLDER, here, in_language, own_words, said

GERMAN = own_words("de")


def facts_of(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name}


@pytest.fixture
def german() -> Iterator[None]:
    before = QLocale()
    QLocale.setDefault(QLocale("de"))
    yield
    QLocale.setDefault(before)


def test_every_one_belongs_to_a_reason_and_names_its_facts() -> None:
    assert len(GERMAN) >= 150
    for code, own in GERMAN.items():
        assert facts_of(own) == facts_of(reasons.SENTENCES[code]), code
        assert own != reasons.SENTENCES[code] or code == "lender_said", code
        assert not re.search(r"\{\w+:", own), code  # the fact is text already


def test_what_a_person_meets_every_day_is_there() -> None:
    """All but a few that came later: those are said in English until somebody translates them."""
    for start, least in (("pause_", 15), ("log_", 20), ("recovery_", 10), ("history_", 5)):
        there = [code for code in reasons.SENTENCES if code.startswith(start)]
        assert sum(code in GERMAN for code in there) >= least, start


def test_the_file_names_nothing_twice() -> None:
    text = (FOLDER / "sentences_de.json").read_text("utf-8")
    pairs = json.loads(text, object_pairs_hook=list)
    assert len(pairs) == len(dict(pairs))


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (Reason("pause_hot"), "Pausiert: Der Prozessor ist zu heiß. Geht weiter, wenn er abgekühlt ist."),
        (Reason("log_machine_came", {"machine": "den (a+b)"}), "den (a+b) ist verbunden."),
        (
            Reason("left_out_slower", {"machine": "attic", "with_tok_s": 9.61, "without_tok_s": 11.8}),
            "attic weggelassen: damit 9,6 tok/s, ohne 11,8.",
        ),
        (
            Reason("recovery_moving", {"seconds": "1.0"}),
            "Die Schichten werden neu verteilt, etwa 1,0 s.",
        ),
        (Reason("log_node_started", {"version": "1.0"}), "Poolhouse 1.0 ist gestartet."),
        (
            Reason("context_too_long", {"asked": 9, "most": 8}),
            "9 Token Kontext sind mehr als die 8 dieses Modells. Wählen Sie 8 oder weniger.",
        ),
        (
            Reason("log_model_failed", {"model": "m", "why": "attic stopped responding."}),
            "m wurde nicht geladen. attic antwortet nicht mehr.",
        ),
    ],
)  # fmt: skip
def test_facts_and_sentences_inside_sentences(german: None, reason: Reason, words: str) -> None:
    assert said(reason) == words
    assert here(reasons.said(reason)) == words


def test_an_error_is_said_in_german(german: None) -> None:
    error = DoesNotFit("disk_full", folder="/m", needed_bytes=1 << 30, free_bytes=0)
    assert said(error).startswith("Die Festplatte von /m ist voll: 1,0 GiB werden gebraucht")


def test_what_is_not_known_stays_as_it_is() -> None:
    assert in_language("Something else happened.", "de") == "Something else happened."
    assert in_language("", "de") == ""
    assert in_language("a" * 5_000, "de") == "a" * 5_000
    sentence = reasons.said(Reason("pause_hot"))
    assert in_language(sentence, "fr") == sentence
    assert in_language(sentence, "..") == sentence


def test_english_is_said_as_it_was_made() -> None:
    QLocale.setDefault(QLocale("en"))
    assert said(Reason("pause_hot")) == reasons.said(Reason("pause_hot"))
