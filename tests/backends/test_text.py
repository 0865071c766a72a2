"""Vocabularies: text to ids and back; chat templates within bounds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from backends.contract import LocalTime, StageError, TemplateFailed
from backends.templates.sandboxed_rendering import render
from backends.vocabulary import Vocabulary, open_vocabulary, pieces
from testbed import tiny

MESSAGES = [{"role": "user", "content": "Grüße <|im_end|>"}]


@pytest.fixture(params=["real", "fake"])
def text(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Vocabulary]:
    path = "fake:vocab=300"
    if request.param == "real":
        path = str(tiny.llama(tmp_path / "whole.gguf", layers=1, vocab=10000))
    with closing(open_vocabulary(path)) as loaded:
        yield loaded


def test_what_is_tokenized_comes_back(text: Vocabulary) -> None:
    ids = text.tokenize("Grüße, 你好 🙂\n", special=False, bos=True)
    assert ids[0] == text.bos == 0
    assert b"".join(map(text.piece, ids)).decode() == "Grüße, 你好 🙂\n"
    assert text.adds_bos
    assert text.end_tokens == (1,)


def test_names_of_control_tokens_count_only_when_asked(text: Vocabulary) -> None:
    named = text.tokenize("a<|im_end|>", special=True, bos=False)
    assert named[-1] == 1
    assert len(named) == 2
    plain = text.tokenize("a<|im_end|>", special=False, bos=False)
    assert 1 not in plain
    assert text.piece(1) == b""
    assert text.name(1) == "<|im_end|>"
    assert text.name(-1) == ""
    assert "<|im_end|>" in text.markers()
    assert not {"a", "b", " "} & set(text.markers())


def test_half_a_character_is_no_crash(text: Vocabulary) -> None:
    assert text.tokenize("a\ud83d", special=False, bos=False)


def test_all_pieces_come_in_parts(text: Vocabulary) -> None:
    result = list(pieces(text))
    assert sum(len(some) for _, some in result) == text.n_vocab
    assert result[0][1][:4] == (b"", b"", b"", text.piece(3))
    assert len(result) == (2 if text.n_vocab > 8192 else 1)


def test_its_template_is_applied(text: Vocabulary) -> None:
    assert render(text.template, MESSAGES) == ("<|im_start|>user\nGrüße <|im_end|><|im_end|>\n<|im_start|>assistant\n")


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.gguf").write_bytes(b"not a model")
    with pytest.raises(StageError):
        open_vocabulary(str(tmp_path / "x.gguf"))


def test_templates_have_what_they_are_written_against() -> None:
    template = (
        "{{ bos_token }}{% for m in messages %}{% if loop.index > 1 %}{% break %}{% endif %}"
        "{{ m | tojson }}{{ m['content'].strip() | upper }}{% endfor %}"
        "{{ strftime_now('%Y %H') }}{{ eos_token }}"
    )
    tokens = {"bos_token": "<s>", "eos_token": "</s>"}
    messages = [{"role": "user", "content": " hi "}] * 2
    said = '<s>{"role": "user", "content": " hi "}HI'
    then = LocalTime(1.0, 7200)
    assert render(template, messages, tokens=tokens, now=then) == said + "1970 02</s>"
    assert "1970" not in render(template, messages, tokens=tokens)  # nobody says when: now


@pytest.mark.parametrize(
    "template",
    [
        "{{ raise_exception('no system role') }}",
        "{% for",
        "{{ messages[9].role.x }}",
        "{{ 1 / 0 }}",
        "{{ 'x' + 1 }}",
        "{{ ''.__class__.__mro__ }}",
        "{{ messages.insert(0, 1) }}",
        "{{ 9 ** 9 ** 9 }}",
        "{{ 'x' * 2000000 }}",
        "{{ 'x' * 2000000000 }}",
        "{% set x = ['y' * 90000000] * 3 %}{{ x[0] | upper | length }}",
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
        "{% if 1 %}" * 150 + "{% endif %}" * 150,
    ],
)
def test_a_hostile_template_fails_within_its_bounds(template: str) -> None:
    started = time.monotonic()
    with pytest.raises(TemplateFailed):
        render(template, MESSAGES)
    assert time.monotonic() - started < 20
    assert render("{{ 'x' * 9 }}", []) == "x" * 9, "bounds are lifted afterwards"
