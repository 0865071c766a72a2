"""Our sampler picks what llama.cpp's own would, remembers across breaks, and obeys grammars."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from backends.contract import GREEDY, Layers, Logits, Role, Sampling, Segment, StageError, Tokens
from backends.grammar import GrammarRefused, GrammarTooHeavy
from backends.hidden_state_codec import Rows
from backends.llamacpp import binding
from backends.llamacpp.stage import LlamaStage
from backends.sampling import Greedy, Sampler, make_sampler
from backends.worker import process_resources
from testbed import tiny
from tests.backends import cutting

N_VOCAB, N_TOKENS = 300, 40
A = tiny.FIRST_BYTE + ord("a")
DIGITS = 'root ::= [0-9]+ "." [0-9]'


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaStage]:
    path = tiny.llama(tmp_path_factory.mktemp("sampling") / "whole.gguf", layers=2)
    with closing(LlamaStage(cutting.config(path, Layers(0, 2), Role.WHOLE, 64))) as loaded:
        yield loaded


def scores(stage: LlamaStage, ids: list[int], pos: int) -> Rows:
    out = stage.forward(Tokens((Segment(0, len(ids), pos),), ids), [0])
    assert isinstance(out, Logits)
    return np.frombuffer(out.rows, np.float32)


def ours(stage: LlamaStage, sampling: Sampling, n_tokens: int = N_TOKENS) -> list[int]:
    stage.forget(0)
    sampler = make_sampler(sampling, N_VOCAB, stage.vocabulary)
    said = [sampler.pick(scores(stage, [0, 80, 90], 0))]
    while len(said) < n_tokens:
        said.append(sampler.pick(scores(stage, said[-1:], 2 + len(said))))
    return said


def theirs(stage: LlamaStage, links: list[Any]) -> list[int]:
    """llama_sampler_sample, on the same model."""
    llama = binding.load()
    chain = llama.llama_sampler_chain_init(llama.llama_sampler_chain_default_params())
    for link in links:
        llama.llama_sampler_chain_add(chain, link)
    stage.forget(0)
    scores(stage, [0, 80, 90], 0)
    said = [llama.llama_sampler_sample(chain, stage._context, -1)]
    while len(said) < N_TOKENS:
        scores(stage, said[-1:], 2 + len(said))
        said.append(llama.llama_sampler_sample(chain, stage._context, -1))
    llama.llama_sampler_free(chain)
    return said


@pytest.mark.parametrize("top_k", [50, 0, 5])
def test_seeded_sampling_is_llama_cpps(stage: LlamaStage, top_k: int) -> None:
    llama = binding.load()
    sampling = Sampling(
        temperature=1.3, top_k=top_k, top_p=0.9, min_p=0.02, repeat_penalty=1.2, repeat_last_n=8,
        presence_penalty=0.3, frequency_penalty=0.2, seed=99, logit_bias=((5, 2.0), (7, -50.0)),
    )  # fmt: skip
    biases = (llama.llama_logit_bias * 2)(llama.llama_logit_bias(5, 2.0), llama.llama_logit_bias(7, -50.0))
    said = theirs(
        stage,
        [
            llama.llama_sampler_init_logit_bias(N_VOCAB, 2, biases),
            llama.llama_sampler_init_penalties(N_VOCAB, 8, 1.2, 0.2, 0.3),
            llama.llama_sampler_init_top_k(top_k),
            llama.llama_sampler_init_top_p(0.9, 1),
            llama.llama_sampler_init_min_p(0.02, 1),
            llama.llama_sampler_init_temp(1.3),
            llama.llama_sampler_init_dist(99),
        ],
    )
    assert ours(stage, sampling) == said
    assert ours(stage, replace(sampling, seed=100)) != said


@pytest.mark.parametrize("penalty", [1.0, 1.3])
def test_greedy_is_llama_cpps(stage: LlamaStage, penalty: float) -> None:
    llama = binding.load()
    links = [llama.llama_sampler_init_penalties(N_VOCAB, 64, penalty, 0.0, 0.0), llama.llama_sampler_init_greedy()]
    assert ours(stage, replace(GREEDY, repeat_penalty=penalty)) == theirs(stage, links)


@pytest.mark.parametrize("temperature", [5e-324, 1.1754943508222875e-38, 1e-30, 1e-6])
@pytest.mark.parametrize("bias", [(), ((1, 100.0), (2, -100.0))])
def test_hardly_any_temperature_is_none(
    stage: LlamaStage, temperature: float, bias: tuple[tuple[int, float], ...]
) -> None:
    """Scores divided by it were infinite: one such request cost everybody the loaded model."""
    greedy = replace(GREEDY, repeat_penalty=0.01, logit_bias=bias)
    assert ours(stage, replace(greedy, temperature=temperature)) == ours(stage, greedy)


def test_of_equal_scores_greedy_takes_the_first() -> None:
    logits = np.zeros(N_VOCAB, dtype=np.float32)
    logits[[40, 41, 200]] = 3.0
    assert Greedy().pick(logits) == 40
    assert make_sampler(replace(GREEDY, logit_bias=((1, 0.5),)), N_VOCAB, "").pick(logits) == 40


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_scores_that_are_not_finite_are_an_error(bad: float) -> None:
    logits = np.zeros(N_VOCAB, dtype=np.float32)
    logits[77] = bad
    for sampling in (GREEDY, Sampling(seed=1)):
        with pytest.raises(StageError):
            make_sampler(sampling, N_VOCAB, "").pick(logits)


@pytest.mark.parametrize("grammar", ["", DIGITS])
def test_a_continued_answer_goes_on_as_if_never_broken(stage: LlamaStage, grammar: str) -> None:
    """Penalties, grammar and random numbers are where they were."""
    sampling = Sampling(temperature=2.0, repeat_penalty=1.3, seed=5, grammar=grammar)
    prompt = [0, 80, 90]
    stage.forget(0)
    sampler = make_sampler(sampling, N_VOCAB, stage.vocabulary, prompt)
    rows = [scores(stage, prompt, 0).copy()]
    said = [sampler.pick(rows[0])]
    for pos in range(3, 9):
        rows.append(scores(stage, said[-1:], pos).copy())
        said.append(sampler.pick(rows[-1]))
    again = make_sampler(sampling, N_VOCAB, stage.vocabulary, [*prompt, *said[:4]], drawn=4)
    assert [again.pick(row) for row in rows[4:]] == said[4:]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_grammar_is_obeyed_and_ends_the_answer(stage: LlamaStage, temperature: float) -> None:
    grammar = 'root ::= "yes" | "no"'
    sampling = Sampling(temperature=temperature, seed=3, grammar=grammar)
    said = ours(stage, sampling, n_tokens=3)
    text = bytes(token - tiny.FIRST_BYTE for token in said if token >= tiny.FIRST_BYTE)
    assert text in (b"yes", b"no")


def test_a_grammar_without_a_way_on_ends_its_answer(stage: LlamaStage) -> None:
    """The stage and everybody else's answers go on."""
    never = replace(GREEDY, grammar='root ::= "a"', logit_bias=((A, -np.inf),))
    assert ours(stage, never, 2) == [1, 1]


def test_a_grammar_leaves_the_random_numbers_as_they_are(stage: LlamaStage) -> None:
    """One that allows everything changes nothing."""
    anything = "root ::= [\\x00-\\U0010FFFF]*"
    free = Sampling(temperature=0.4, seed=3, logit_bias=tuple((t, -99.0) for t in range(131, 300)))
    assert ours(stage, replace(free, grammar=anything), 5) == ours(stage, free, 5)


@pytest.mark.parametrize(
    "grammar",
    [
        "root ::= [0-9",
        "nothing",
        'leaf ::= "a"',
        "root ::= root",
        "root ::= " + "(" * 60000 + '"a"' + ")" * 60,
        "root ::= " + "(" * 30000 + '"a"' + ")" * 30000,
        'root ::= ((("a"{1999}){1999}){1999}){1999}',
        "root ::= " + '"a"' * 40000,
    ],
)
def test_a_bad_grammar_is_refused_within_a_second_or_so(stage: LlamaStage, grammar: str) -> None:
    started = time.monotonic()
    with pytest.raises(GrammarRefused):
        make_sampler(replace(GREEDY, grammar=grammar), N_VOCAB, stage.vocabulary)
    assert time.monotonic() - started < 20


OPENS = tiny.FIRST_BYTE + ord("[")


def followed(stage: LlamaStage, grammar: str, token: int, most: int = 200) -> int:
    """Return how many such tokens are accepted before the grammar is too heavy to follow."""
    sampling = replace(GREEDY, grammar=grammar)
    sampler, logits = (make_sampler(sampling, N_VOCAB, stage.vocabulary), np.zeros(N_VOCAB, np.float32))
    logits[token] = 9.0
    for n_taken in range(most):
        try:
            assert sampler.pick(logits) == token
        except GrammarTooHeavy:
            return n_taken
    return most


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there it is the node's deadline that ends it")
def test_a_grammar_that_grows_with_each_token_ends_its_answer_and_nothing_else(stage: LlamaStage) -> None:
    """An array of itself in two ways: after n brackets there are 2 to the n ways on."""
    grammar = 'root ::= "[" root "]" | "[" root "]" | "1"'
    started, before = time.monotonic(), process_resources.resident_bytes()
    assert 5 < followed(stage, grammar, OPENS) < 60
    assert time.monotonic() - started < 30
    assert process_resources.resident_bytes() - before < 64 << 20
    assert ours(stage, replace(GREEDY, grammar=DIGITS), 3)  # the next one has what it needs


@pytest.mark.skipif(not hasattr(os, "fork"), reason="as above")
def test_grammars_beside_each_other_do_not_know_of_one_another(stage: LlamaStage) -> None:
    sampling = Sampling(temperature=2.0, seed=5, grammar=DIGITS)
    alone = ours(stage, sampling, 6)
    stage.forget(0)
    sampler = make_sampler(sampling, N_VOCAB, stage.vocabulary)
    rows, said = scores(stage, [0, 80, 90], 0), list[int]()
    while len(said) < 6:
        followed(stage, 'root ::= "[" root "]" | "[" root "]" | "1"', OPENS, most=2)
        said.append(sampler.pick(rows))
        rows = scores(stage, said[-1:], 2 + len(said))
    assert said == alone


def test_impossible_requests_are_refused(stage: LlamaStage) -> None:
    with pytest.raises(StageError):
        make_sampler(replace(GREEDY, grammar=DIGITS), N_VOCAB, "")
    with pytest.raises(StageError):
        make_sampler(replace(GREEDY, logit_bias=((300, 1.0),)), N_VOCAB, "")
    with pytest.raises(StageError):
        make_sampler(Sampling(), N_VOCAB, "", [300])
    with pytest.raises(StageError):
        make_sampler(Sampling(), N_VOCAB, "", [3], drawn=2)
    with pytest.raises(StageError, match="grammar"):
        make_sampler(Sampling(grammar=DIGITS), N_VOCAB, stage.vocabulary, [80], drawn=1)
    assert isinstance(make_sampler(Sampling(), N_VOCAB, ""), Sampler)
