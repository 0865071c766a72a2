"""The core's sentences in German: the same facts stand in both, and what the node said in English is found."""

from __future__ import annotations

import ast
import json
import re
import string
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QLocale

from app.core import reasons
from app.core.errors import DoesNotFit, Fact, Reason
from app.core.recovery import recovery
from app.gui.look.sentences import here, in_language, last_words, reason_of, said, trouble
from tests.test_reasons import PROJECT, sources

GERMAN = reasons.language("de").sentences
DE = reasons.Face("de", True, ",", ".", {"guide": "Guide"})
ENGLISH = reasons.language("en").in_window
COMMAND = re.compile(r"`(poolhouse|make) ")
NEVER_IN_THE_WINDOW = {  # the command line says these, or programs hear them
    "embedding_model_missing",
    "model_ranks_not_alone",
    "reranker_missing", "upstream_uncounted",
    "api_model_not_loaded", "api_model_stays", "upstream_spent", "upstream_short", "node_not_running", "home_missing",
    "guest_model_stays", "guest_embedding_missing", "guest_upstream_spent", "guest_upstream_off", "upstream_off",
    "demo_without_model", "bench_silent", "copy_not_there", "pull_paused", "load_given_up",
    "model_not_pulled", "models_not_pulled",
}  # fmt: skip
ABOUT_THE_INSTALLATION = {  # from its source, where there is no other way
    "left_out_engine", "plan_engine", "engine_in_the_way", "engine_unproved", "cure_engine_unproved",
    "engine_missing", "cure_engine_missing",
}  # fmt: skip
PROGRAMS_ONLY = ("app/cli/", "app/gateway/")  # what these say is never shown in the window
HELPS = "A context of 4,096 tokens fits. One more machine that lends 1.5 GiB would be enough."
HILFT = "Ein Kontext von 4.096 Token passt. Ein weiteres Gerät, das 1,5 GiB verleiht, würde reichen."


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


def has_words(template: str) -> bool:
    """`{sentence}` has none of its own: what it is filled with is looked up itself."""
    return any(re.search(r"\w", words) for words, _, _, _ in string.Formatter().parse(template))


def test_every_sentence_with_words_of_its_own_is_there() -> None:
    """Also those of the command line: a node may send any of them to the window."""
    missing = [
        f'"{code}": "{english}"'
        for code, english in reasons.SENTENCES.items()
        if has_words(english) and code not in GERMAN
    ]
    assert not missing, "app/core/sentences/de.json lacks\n" + "\n".join(missing)


def a_fact(name: str, form: str) -> str | int | float:
    """One that no template holds, and that shows which it is."""
    if name.endswith("_bytes"):
        return 7 << 30
    return 7.0 if form else f"<{name}>"


@pytest.mark.parametrize("code", GERMAN)
def test_each_is_found_by_what_the_node_says_in_english(code: str) -> None:
    """And not taken for another that has nearly the same words."""
    facts: dict[str, Fact] = {
        name: a_fact(name, form or "") for _, name, form, _ in string.Formatter().parse(reasons.SENTENCES[code]) if name
    }
    said_here = in_language(reasons.said(Reason(code, facts)), "de")
    shown = {name: fact if isinstance(fact, str) else "7" for name, fact in facts.items()}
    german = re.sub(r":[^}]+\}", "}", GERMAN[code].replace(":times}", "}-mal"))
    assert re.sub(r"7(,0)?( GiB)?", "7", said_here) == german.format(**shown)


@pytest.mark.parametrize(("times", "words"), [(1, "einmal"), (2, "zweimal"), (3, "dreimal"), (13, "13-mal")])
def test_how_often_is_one_word(times: int, words: str) -> None:
    facts: dict[str, Fact] = {"times": times, "why": "attic stopped responding."}
    told = in_language(reasons.said(Reason("recovery_too_often", facts)), "de")
    assert told.startswith(f"Diese Antwort wurde {words} unterbrochen")


def test_who_ends_processes_hears_one_cure_in_one_sentence() -> None:
    crashed = Reason(
        "worker_crashed", {"worker": "den", "how": Reason("end_signal", {"signal": "SIGSEGV"}), "words": ""}
    )
    told = reasons.said(Reason("answer_ends_process", recovery.death_facts(crashed)))
    assert told.count("use another file of the model") == 1
    assert "(the last time den: it was ended by SIGSEGV), so" in told
    german = reasons.said(Reason("answer_ends_process", recovery.death_facts(crashed)), DE)
    assert "endete zweimal ein Rechenprozess (zuletzt den: er wurde durch SIGSEGV beendet), deshalb" in german
    assert "Versuchen Sie es noch einmal" not in german
    there = Reason("lender_said", {"machine": "attic", "what": Reason("worker_hung")})
    assert recovery.death_facts(there) == {"times": 2, "worker": "attic", "how": Reason("end_hung")}


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_window_sends_nobody_to_the_command_line(language: str) -> None:
    told = {
        code: in_language(reasons.said(Reason(code, dict.fromkeys(facts_of(english), "<fact>"))), language)
        for code, english in reasons.SENTENCES.items()
        if COMMAND.search(english) and code not in NEVER_IN_THE_WINDOW | ABOUT_THE_INSTALLATION
    }  # fmt: skip
    assert len(told) > 10
    assert not {code: words for code, words in told.items() if "`" in words}


def test_the_window_s_own_english_has_the_same_facts() -> None:
    for code, own in ENGLISH.items():
        assert facts_of(own) == facts_of(reasons.SENTENCES[code]), code
        assert own != reasons.SENTENCES[code], code


def test_a_sentence_inside_another_one_has_the_window_s_words() -> None:
    QLocale.setDefault(QLocale("en"))
    why = reasons.said(Reason("lend_no_role"))
    whole = reasons.said(Reason("lend_taken_back", {"machine": "attic-pc", "why": why}))
    assert here(whole) == f"attic-pc takes its memory back. {ENGLISH['lend_no_role']}"
    assert in_language(why, "fr") == why  # whoever asks for a language that is not there


def test_every_phrase_is_in_both_languages_with_the_same_facts() -> None:
    own = reasons.language("de").phrases
    assert own.keys() == reasons.PHRASES.keys()
    assert not [code for code, words in own.items() if facts_of(words) != facts_of(reasons.PHRASES[code])]


SENTENCES = {"reason", "sentence", "preferred_reason", "better_reason", "what_helps"}  # what the node says under these


def sentences_read(node: ast.AST, name: str) -> Iterator[str]:
    """Where the node's sentences are read, and not shown through `here`. Asking whether there is one is no reading."""
    match node:
        case ast.Call(func=ast.Name(id="here" | "bool")):
            return
        case ast.If(body=body, orelse=orelse):
            yield from (place for one in [*body, *orelse] for place in sentences_read(one, name))
            return
        case ast.comprehension(iter=over):
            yield from sentences_read(over, name)
            return
        case ast.Subscript(slice=ast.Constant(value=str(key))) if key in SENTENCES:
            yield f"{name}:{node.lineno}: {key}"
        case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=str(key)), *_]) if key in SENTENCES:
            yield f"{name}:{node.lineno}: {key}"
    for child in ast.iter_child_nodes(node):
        yield from sentences_read(child, name)


def test_what_the_node_says_is_shown_in_the_windows_language() -> None:
    bare = [place for name, tree in sources("app/gui") for place in sentences_read(tree, name)]
    assert not bare, "shown in English; read it through app/gui/look/sentences.py here():\n" + "\n".join(bare)


@pytest.mark.parametrize(
    ("source", "bare"),
    [
        ('show(one["reason"])', True),
        ('show(one.get("sentence") or "")', True),
        ('show(here(str(one.get("sentence") or "")))', False),
        ('if one["reason"]:\n    show(here(one["reason"]))', False),
        ('if one["reason"]:\n    show(one["reason"])', True),
        ('show(bool(one.get("reason")))', False),
        ('[here(one["reason"]) for one in all if one.get("reason")]', False),
        ('[one["reason"] for one in all]', True),
    ],
)
def test_sentences_that_are_shown_as_they_came_are_found(source: str, bare: bool) -> None:
    assert bool(list(sentences_read(ast.parse(source), "f"))) is bare


@pytest.mark.parametrize("language", ["de", "en"])
def test_the_file_names_nothing_twice(language: str) -> None:
    text = (PROJECT / "app" / "core" / "sentences" / f"{language}.json").read_text("utf-8")
    for _, pairs in json.loads(text, object_pairs_hook=list):
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
            Reason("context_too_long", {"asked": 131_072, "most": 4096}),
            "131.072 Token Kontext sind mehr als die 4.096 dieses Modells. Wählen Sie 4.096 oder weniger.",
        ),
        (
            Reason("log_model_failed", {"model": "m", "why": "attic stopped responding."}),
            "m wurde nicht geladen. attic antwortet nicht mehr.",
        ),
        (
            Reason("states_by_cost", {"state_bytes": 3 << 19, "states": 2, "rows": 64, "ms": "0.4",
                                      "row_ms": "2.5"}),
            ("Die Zustände einer Unterhaltung brauchen 1,5 MiB; bis zu 2 weitere von jeder werden nach "
            "Eingaben ab 64 Token behalten: Eine Kopie dauert 0,4 ms, ein Token neu zu lesen 2,5 ms."),
        ),
        (
            Reason("whole_too_big", {"model": "m", "need_bytes": 3 << 30, "machine": "den",
                                     "free_bytes": 1 << 30, "what_helps": HELPS}),
            ("m läuft nur ganz auf einem Gerät und braucht 3,0 GiB, aber auf den sind 1,0 GiB für Modelle frei. "
             f"{HILFT}"),
        ),
        (
            Reason("model_not_loaded", {"worker": "this computer", "cause": "odd"}),
            ("Dieser Computer konnte das Modell nicht laden: odd. Nehmen Sie eine andere Datei davon oder ein "
             "anderes Modell."),
        ),
        (
            Reason("host_over_limit", {"model": "m", "need_bytes": 3 << 30, "machine": "den",
                                       "lent_bytes": 1 << 30, "what_helps":
                                       "With a limit that is 2.0 GiB higher on den it would fit."}),
            ("m braucht 3,0 GiB, aber das Limit auf den, dem einzigen Gerät hier, erlaubt für Modelle nur 1,0 GiB. "
             "Mit einem um 2,0 GiB höheren Limit auf den würde es passen."),
        ),
        (
            Reason("recovery_short", {"machine": "attic", "what": f"Disks spin. {HELPS} Odd."}),
            (f"attic ist weg, und der Rest ist zu klein: Disks spin. {HILFT} Odd. Der bisherige Text "
            "bleibt. Es geht weiter, wenn attic zurückkommt; ein kleineres Modell könnte jetzt antworten."),
        ),
        (
            Reason("file_unreadable", {"path": "/m", "why": "Permission denied"}),
            "/m lässt sich nicht lesen: keine Berechtigung. Prüfen Sie die Festplatte und die Rechte der Datei.",
        ),
        (
            Reason("worker_died", {"worker": "attic's layers", "how": "it was ended by signal 33",
                                   "words": "Its own log says more."}),
            ("Der Rechenprozess (die Schichten von attic) ist weg: er wurde durch Signal 33 beendet. "
            "Mehr steht in seinem eigenen Protokoll."),
        ),
        (
            Reason("stage_failed", {"machine": "attic", "cause": "llama.cpp failed with -3: decode: no graph"}),
            ("Das Rechenprogramm konnte das nicht berechnen: llama.cpp ist mit -3 gescheitert und sagt: "
            "„decode: no graph“. Es würde wieder so kommen: Nehmen Sie eine andere Datei des Modells, oder "
            "aktualisieren Sie Poolhouse."),
        ),
        (
            Reason("model_not_loaded", {"worker": "attic", "cause": "llama.cpp cannot load it: it gives no reason"}),
            ("attic konnte das Modell nicht laden: llama.cpp sagt: nichts Näheres. "
            "Nehmen Sie eine andere Datei davon oder ein anderes Modell."),
        ),
        (
            Reason("grammar_refused", {"cause": "parse: expecting name at ?"}),
            "Die verlangte Form der Antwort lässt sich nicht verwenden: „parse: expecting name at ?“.",
        ),
        (
            Reason("template_failed", {"cause": "the chat template failed: 'x' is undefined"}),
            ("Die Chat-Vorlage dieses Modells lässt sich nicht verwenden: die Chat-Vorlage ist gescheitert: "
            "„'x' is undefined“. Fragen Sie ohne Chat-Vorlage, oder nehmen Sie eine andere Datei des Modells."),
        ),
        (Reason("channel_closed", {"name": "the other end"}),
         "Die Verbindung zu der Gegenstelle ist beendet. Sie wird neu aufgebaut, wenn sie gebraucht wird."),
        (Reason("log_machine_came", {"machine": "pieces"}), "pieces ist verbunden."),
        (Reason("check_memory", {"free_bytes": 7, "total_bytes": 3 << 29}),
         "7 Byte von 1,5 GiB sind frei."),
        (Reason("log_model_lost", {"model": "m", "why": ""}), "m ist verloren gegangen. "),
    ],
)  # fmt: skip
def test_facts_and_sentences_inside_sentences(german: None, reason: Reason, words: str) -> None:
    assert said(reason) == words
    assert here(reasons.said(reason)) == words


def test_the_last_words_of_an_engine_are_no_part_of_what_the_window_says(german: None) -> None:
    """They stand in its details; in the log they are quoted."""
    words = "ops.cpp:4132: GGML_ASSERT(ids) failed."
    how = "it was ended by SIGABRT"
    reason = Reason("worker_died", {"worker": "attic's layers", "how": how, "words": words})
    begin = "Der Rechenprozess (die Schichten von attic) ist weg: er wurde durch SIGABRT beendet. "
    assert said(reason) == f"{begin}Mehr steht in seinem eigenen Protokoll."
    assert here(reasons.said(reason)) == f"{begin}„{words}“"
    told = {"reason": reasons.said(reason), "reason_facts": {"code": reason.code, "facts": reason.facts}}
    assert trouble(told) == said(reason)
    assert last_words(reason_of(told)) == words


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


@pytest.mark.parametrize(
    ("what", "english"),
    [
        (Reason("load_stopped", {"model": "guide"}), "Loading Guide was stopped."),
        (Reason("load_stopped", {"model": "my-guide"}), "Loading my-guide was stopped."),
        (Reason("model_builtin", {"name": "guide"}), "Guide "),
    ],
)
def test_the_guide_is_called_as_everywhere_in_the_window(what: Reason, english: str) -> None:
    assert in_language(reasons.said(what), "en").startswith(english)
    name = english.split(" was", maxsplit=1)[0].removeprefix("Loading ").strip()
    assert name in in_language(reasons.said(what), "de")


def test_a_machine_may_be_called_like_the_guide() -> None:
    sentence = reasons.said(Reason("log_machine_came", {"machine": "guide"}))
    assert in_language(sentence, "en") == sentence


def test_numbers_of_a_sentence_are_those_of_the_country(german: None) -> None:
    needs = Reason("prompt_too_long", {"tokens": 5_000, "context": 4_096})
    assert "4.096" in said(needs)
    QLocale.setDefault(QLocale("de_CH"))
    assert QLocale().toString(4_096) in said(needs)
    assert "4.096" not in said(needs)
