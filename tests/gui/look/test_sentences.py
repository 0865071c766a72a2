"""The window's sentences: each code in both languages with its facts, in its own words and the country's signs."""

from __future__ import annotations

import ast
import errno
import json
import os
import re
import string
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QLocale

from app.core import reasons
from app.core.errors import DoesNotFit, Fact, Reason
from app.core.reasons import Locale
from app.core.recovery import recovery
from app.gui.look.sentences import last_words, said, told
from tests.test_reasons import NAMES, PROJECT, called, sources

GERMAN = reasons.language("de")
ENGLISH = reasons.language("en")
DE = Locale("de", True, ",", ".", {"guide": "Guide"})
EN = Locale("en", True, names={"guide": "Guide"})
COMMAND = re.compile(r"`(poolhouse|make) ")
NEVER_IN_THE_WINDOW = {  # the command line says these, or programs hear them
    "embedding_model_missing",
    "model_ranks_not_alone",
    "reranker_missing", "pack_copy_used", "pack_copy_unnamed",
    "api_model_not_loaded", "api_model_stays", "node_not_running", "home_missing",
    "guest_model_stays", "guest_embedding_missing", "guest_upstream_spent", "guest_upstream_off",
    "demo_without_model", "bench_silent", "copy_not_there", "pull_paused", "load_given_up",
    "model_not_pulled", "models_not_pulled",
}  # fmt: skip
ABOUT_THE_INSTALLATION = {  # from its source, where there is no other way
    "left_out_engine", "plan_engine", "engine_in_the_way", "engine_unproved", "cure_engine_unproved",
    "engine_missing", "cure_engine_missing",
}  # fmt: skip
HELPS = reasons.combined_reason(
    [Reason("helps_context", {"context": 4096}), Reason("helps_machine", {"more_bytes": 3 << 29})]
)
HILFT = "Ein Kontext von 4.096 Token passt. Ein weiteres Gerät, das 1,5 GiB verleiht, würde reichen."
OWN_FILE = "app/gui/look/sentences.py"


def facts_of(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name}


@pytest.fixture
def german() -> Iterator[None]:
    before = QLocale()
    QLocale.setDefault(QLocale("de"))
    yield
    QLocale.setDefault(before)


def has_words(template: str) -> bool:
    """`{sentence}` has none of its own: it is filled with a whole sentence."""
    return any(re.search(r"\w", words) for words, _, _, _ in string.Formatter().parse(template))


def test_every_text_is_in_both_languages_with_the_same_facts() -> None:
    """This includes those of the command line, since a node may send any of them to the window."""
    missing = {code for code, english in ENGLISH.sentences.items() if has_words(english)} - set(GERMAN.sentences)
    assert not missing, "app/core/sentences/de.json lacks " + ", ".join(sorted(missing))
    assert GERMAN.phrases.keys() == ENGLISH.phrases.keys()
    assert GERMAN.sentences.keys() <= ENGLISH.sentences.keys()
    assert not ENGLISH.sentences.keys() & ENGLISH.phrases.keys()
    for code, english in (ENGLISH.sentences | ENGLISH.phrases).items():
        own = GERMAN.text(code, in_window=True)
        assert own is None or facts_of(own) == facts_of(english), code
    for code, own in ENGLISH.in_window.items():
        assert facts_of(own) == facts_of(ENGLISH.sentences[code]), code
        assert own != ENGLISH.sentences[code], code


def a_fact(name: str, form: str) -> Fact:
    """Return a fact that fits the form, and where any text fits, a reason with facts of its own."""
    if name.endswith("_bytes"):
        return 7 << 30
    if form:
        return 7
    return Reason("end_signal", {"signal": f"<{name}>"})


@pytest.mark.parametrize("face", [DE, EN], ids=["de", "en"])
def test_every_code_is_said_with_nested_facts_in_one_language(face: Locale) -> None:
    """A nested reason has the language of the sentence around it."""
    for code, english in (ENGLISH.sentences | ENGLISH.phrases).items():
        facts = {name: a_fact(name, form or "") for _, name, form, _ in string.Formatter().parse(english) if name}
        sentence = reasons.said(Reason(code, facts), face)
        nested = [name for name, fact in facts.items() if isinstance(fact, Reason)]
        for name in nested:
            phrase = "wurde durch <{}> beendet" if face is DE else "was killed by <{}>"
            assert phrase.format(name) in sentence, code
        assert "{" not in sentence, code
        assert "Reason(" not in sentence, code
        if face is DE:
            assert "was killed" not in sentence, code


ONLY_FOR_PROGRAMS = ("app/gateway/", "app/cli/", "app/core/json_schema/", "app/core/tools/")  # they hear English


def english_words(node: ast.expr) -> bool:
    """Return whether a fact is words in the code: a phrase, or figures between words."""
    match node:
        case ast.Constant(value=str(text)):
            return " " in text.strip()
        case ast.JoinedStr(values=parts):
            return any(isinstance(part, ast.Constant) and re.search(r"[a-z]{2}", str(part.value)) for part in parts)
        case ast.BoolOp(values=choices):
            return any(english_words(choice) for choice in choices)
    return False


def test_no_fact_is_english_in_a_german_sentence() -> None:
    """Words are phrases with codes, in each language; other programs' messages, names and keys stay as they are."""
    written = [
        f"{name}:{node.lineno}: {ast.unparse(fact)}"
        for name, tree in sources("app")
        if not name.startswith(ONLY_FOR_PROGRAMS)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and called(node) in {*NAMES, "invalid"}
        for fact in facts_in(node)
        if english_words(fact)
    ]
    assert written == []


def facts_in(call: ast.Call) -> Iterator[ast.expr]:
    yield from (keyword.value for keyword in call.keywords if keyword.arg != "code")
    for argument in call.args[1:]:
        yield from argument.values if isinstance(argument, ast.Dict) else [argument]


@pytest.mark.parametrize("name", ["app/catalog/stages/manifest.py", "app/catalog/stages/synthetic_stage.py"])
def test_claims_about_what_other_machines_send_are_phrases(name: str) -> None:
    tree = dict(sources("app"))[name]
    claims = [node.args[1] for node in ast.walk(tree) if isinstance(node, ast.Call) and called(node) == "_must"]
    codes = {claim.value for claim in claims if isinstance(claim, ast.Constant)}
    assert len(claims) > 5
    assert codes <= GERMAN.phrases.keys()


@pytest.mark.parametrize(("times", "words"), [(1, "einmal"), (2, "zweimal"), (3, "dreimal"), (13, "13-mal")])
def test_how_often_is_one_word(times: int, words: str) -> None:
    facts: dict[str, Fact] = {"times": times, "why": Reason("peer_stopped", {"name": "attic"})}
    sentence = reasons.said(Reason("recovery_too_often", facts), DE)
    assert sentence.startswith(f"Diese Antwort wurde {words} unterbrochen")
    assert "Zuletzt: attic antwortet nicht mehr." in sentence


def test_who_ends_processes_hears_one_cure_in_one_sentence() -> None:
    how = Reason("end_signal", {"signal": "SIGSEGV"})
    crashed = Reason("worker_crashed", {"worker": "den", "how": how, "words": ""})
    reason = Reason("answer_ends_process", recovery.death_facts(crashed))
    sentence = reasons.said(reason)
    assert sentence.count("use a different model file") == 1
    assert "it was killed by SIGSEGV" in sentence
    german = reasons.said(reason, DE)
    assert "endete zweimal ein Rechenprozess (zuletzt den: er wurde durch SIGSEGV beendet), deshalb" in german
    assert "Versuchen Sie es noch einmal" not in german
    there = Reason("lender_said", {"machine": "attic", "what": Reason("worker_hung")})
    assert recovery.death_facts(there) == {"times": 2, "worker": "attic", "how": Reason("end_hung")}


@pytest.mark.parametrize("face", [EN, DE], ids=["en", "de"])
def test_the_window_sends_nobody_to_the_command_line(face: Locale) -> None:
    sentences = {
        code: reasons.said(Reason(code, dict.fromkeys(facts_of(english), 7)), face)
        for code, english in ENGLISH.sentences.items()
        if COMMAND.search(english) and code not in NEVER_IN_THE_WINDOW | ABOUT_THE_INSTALLATION
    }
    assert len(sentences) > 10
    assert not {code: words for code, words in sentences.items() if "`" in words}


def test_a_sentence_inside_another_one_has_the_window_s_words() -> None:
    QLocale.setDefault(QLocale("en"))
    whole = Reason("lend_taken_back", {"machine": "attic-pc", "why": Reason("lend_no_role")})
    assert said(whole) == f"attic-pc took its memory back. {ENGLISH.in_window['lend_no_role']}"


def test_the_usual_causes_of_the_system_have_a_phrase() -> None:
    for number in (errno.EACCES, errno.ENOSPC, errno.ENOENT, errno.EROFS):
        assert isinstance(reasons.os_cause(OSError(number, os.strerror(number))), Reason)
    assert reasons.os_cause(OSError(9999, "Odd")) == "Odd"


SENTENCES = {"reason", "sentence", "preferred_reason", "better_reason", "held_up", "stopped"}


def test_the_window_reads_no_sentence_of_the_node() -> None:
    """The window gets codes and facts. The English sentences are for people who read the JSON."""
    read = [
        f"{name}:{node.lineno}: {node.args[0].value}"
        for name, tree in sources("app/gui")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "get"
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and node.args[0].value in SENTENCES
    ]
    assert not read, "give the facts beside it to app/gui/look/sentences.py:\n" + "\n".join(read)


def test_sentences_are_made_from_codes_and_not_found_by_patterns() -> None:
    tree = dict(sources("app/gui"))[OWN_FILE]
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert "re" not in imported
    texts = [
        f"{name}:{node.lineno}"
        for name, tree in sources("app/gui")
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "app.core.reasons"
        and any(alias.name in ("SENTENCES", "PHRASES", "said", "sentence_for") for alias in node.names)
    ]  # fmt: skip
    assert not texts, "the window says reasons by app/gui/look/sentences.py:\n" + "\n".join(texts)


@pytest.mark.parametrize("language", ["de", "en"])
def test_the_file_names_nothing_twice(language: str) -> None:
    text = (PROJECT / "app" / "core" / "sentences" / f"{language}.json").read_text("utf-8")

    def pairs(results: list[tuple[str, object]]) -> dict[str, object]:
        assert len(results) == len(dict(results))
        return dict(results)

    json.loads(text, object_pairs_hook=pairs)


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
            Reason("recovery_moving", {"seconds": 1.0}),
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
            Reason("log_model_failed", {"model": "m", "why": Reason("peer_stopped", {"name": "attic"})}),
            "m wurde nicht geladen. attic antwortet nicht mehr.",
        ),
        (
            Reason("states_by_cost", {"state_bytes": 3 << 19, "states": 2, "rows": 64, "ms": 0.4,
                                      "row_ms": 2.5}),
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
            Reason("model_not_loaded", {"worker": Reason("this_computer"), "cause": "odd"}),
            ("Dieser Computer konnte das Modell nicht laden: odd. Nehmen Sie eine andere Datei davon oder ein "
             "anderes Modell."),
        ),
        (
            Reason("host_over_limit", {"model": "m", "need_bytes": 3 << 30, "machine": "den",
                                       "lent_bytes": 1 << 30, "what_helps":
                                       Reason("helps_limit", {"machine": "den", "more_bytes": 2 << 30})}),
            ("m braucht 3,0 GiB, aber das Limit auf den, dem einzigen Gerät hier, erlaubt für Modelle nur 1,0 GiB. "
             "Mit einem um 2,0 GiB höheren Limit auf den würde es passen."),
        ),
        (
            Reason("recovery_short", {"machine": "attic", "what": HELPS}),
            (f"attic ist weg, und der Rest ist zu klein: {HILFT} Der bisherige Text "
            "bleibt. Es geht weiter, wenn attic zurückkommt; ein kleineres Modell könnte jetzt antworten."),
        ),
        (
            Reason("file_unreadable", {"path": "/m", "why": Reason("os_eacces")}),
            "/m lässt sich nicht lesen: keine Berechtigung. Prüfen Sie die Festplatte und die Rechte der Datei.",
        ),
        (
            Reason("worker_died", {"worker": Reason("layers_of", {"machine": "attic"}),
                                   "how": Reason("end_signal_number", {"number": 33}), "words": Reason("worker_log")}),
            ("Der Rechenprozess (die Schichten von attic) ist weg: er wurde durch Signal 33 beendet. "
            "Mehr steht in seinem eigenen Protokoll."),
        ),
        (
            Reason("stage_failed", {"machine": "attic",
                                    "cause": Reason("llama_failed", {"status": -3, "words": "decode: no graph"})}),
            ("Das Rechenprogramm konnte das nicht berechnen: llama.cpp ist mit -3 gescheitert und sagt: "
            "„decode: no graph“. Es würde wieder so kommen: Nehmen Sie eine andere Datei des Modells, oder "
            "aktualisieren Sie Poolhouse."),
        ),
        (
            Reason("model_not_loaded", {"worker": "attic", "cause": Reason("llama_silent")}),
            ("attic konnte das Modell nicht laden: llama.cpp kann es nicht laden und nennt keinen Grund. "
            "Nehmen Sie eine andere Datei davon oder ein anderes Modell."),
        ),
        (
            Reason("grammar_refused", {"cause": "parse: expecting name at ?"}),
            "Die verlangte Form der Antwort lässt sich nicht verwenden: „parse: expecting name at ?“.",
        ),
        (
            Reason("template_failed", {"cause": Reason("template_error", {"error": "'x' is undefined"})}),
            ("Die Chat-Vorlage dieses Modells lässt sich nicht verwenden: die Chat-Vorlage ist gescheitert: "
            "„'x' is undefined“. Fragen Sie ohne Chat-Vorlage, oder nehmen Sie eine andere Datei des Modells."),
        ),
        (Reason("channel_closed", {"name": Reason("other_end")}),
         "Die Verbindung zu der Gegenstelle ist beendet. Sie wird neu aufgebaut, wenn sie gebraucht wird."),
        (Reason("log_machine_came", {"machine": "pieces"}), "pieces ist verbunden."),
        (Reason("check_memory", {"free_bytes": 7, "total_bytes": 3 << 29}),
         "7 Byte von 1,5 GiB sind frei."),
        (Reason("log_model_lost", {"model": "m", "why": ""}), "m ist verloren gegangen. "),
    ],
)  # fmt: skip
def test_facts_and_sentences_inside_sentences(german: None, reason: Reason, words: str) -> None:
    assert said(reason) == words


def test_the_last_words_of_an_engine_are_no_part_of_what_the_window_says(german: None) -> None:
    """The engine's last words are in the details, and quoted elsewhere."""
    words = "ops.cpp:4132: GGML_ASSERT(ids) failed."
    worker, how = Reason("layers_of", {"machine": "attic"}), Reason("end_signal", {"signal": "SIGABRT"})
    reason = Reason("worker_died", {"worker": worker, "how": how, "words": words})
    begin = "Der Rechenprozess (die Schichten von attic) ist weg: er wurde durch SIGABRT beendet. "
    assert said(reason) == f"{begin}Mehr steht in seinem eigenen Protokoll."
    assert reasons.said(reason, DE) == f"{begin}„{words}“"
    assert told({"reason": reasons.said(reason), "reason_facts": reason.to_json()}) == said(reason)
    assert last_words(reason) == words
    assert last_words(Reason("worker_died", {"words": Reason("worker_log")})) == last_words(None) == ""


def test_an_error_is_said_in_german(german: None) -> None:
    error = DoesNotFit("disk_full", folder="/m", needed_bytes=1 << 30, free_bytes=0)
    assert said(error).startswith("Die Festplatte von /m ist voll: 1,0 GiB werden gebraucht")


def test_what_another_node_said_stays_as_it_is(german: None) -> None:
    assert said(Reason("said_by_node", {"sentence": "Something else happened."})) == "Something else happened."
    assert said(None) == told({"reason": "Paused by the owner."}) == ""
    assert reasons.said(Reason("pause_hot"), Locale("fr")) == reasons.said(Reason("pause_hot"))


def test_english_is_said_as_in_the_terminal() -> None:
    QLocale.setDefault(QLocale("en"))
    assert said(Reason("pause_hot")) == reasons.said(Reason("pause_hot"))


@pytest.mark.parametrize(
    ("reason", "name"),
    [
        (Reason("load_stopped", {"model": "guide"}), "Guide"),
        (Reason("load_stopped", {"model": "my-guide"}), "my-guide"),
        (Reason("model_builtin", {"name": "guide"}), "Guide"),
        (Reason("pull_ended", {"why": Reason("load_stopped", {"model": "guide"})}), "Guide"),
    ],
)
def test_the_guide_is_called_as_everywhere_in_the_window(reason: Reason, name: str) -> None:
    assert f" {name} " in f" {reasons.said(reason, EN)}"
    assert name in reasons.said(reason, DE)


def test_a_machine_may_be_called_like_the_guide() -> None:
    assert reasons.said(Reason("log_machine_came", {"machine": "guide"}), EN).startswith("guide ")


def test_numbers_of_a_sentence_are_those_of_the_country(german: None) -> None:
    needs = Reason("prompt_too_long", {"tokens": 5_000, "context": 4_096})
    assert "4.096" in said(needs)
    QLocale.setDefault(QLocale("de_CH"))
    assert QLocale().toString(4_096) in said(needs)
    assert "4.096" not in said(needs)
