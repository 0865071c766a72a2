"""Sampling -> pick(logits): llama.cpp's sampler chain, whatever engine made the logits."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backends import process
from backends.contract import Sampling, StageError
from backends.llamacpp import binding
from backends.numbers import Rows

MAX_GRAMMAR_BYTES = 64 << 10  # SAFETY.md 7
COMPILE_SECONDS = 1
COMPILE_BYTES = 512 << 20  # of address space, beside what the worker holds already
LEAST_TEMPERATURE = 1e-6  # scores divided by much less are no float32 any more
MAX_SEED = (1 << 32) - 2  # 2^32 - 1 asks llama.cpp for a seed of its own

CANDIDATE = np.dtype([("id", "<i4"), ("logit", "<f4"), ("p", "<f4")])


class GrammarRefused(StageError):
    """The grammar has a mistake, or takes too long to compile."""


class Greedy:
    """The highest score; of equal ones the first, as in llama.cpp."""

    def pick(self, logits: Rows) -> int:
        """The next token for float32 logits [n_vocab]. Raises StageError when there is none."""
        best = int(logits.argmax())  # a NaN is taken for the highest
        if not np.isfinite(logits[best]):
            raise StageError("the model's scores are not finite")
        return best


class Sampler:
    """llama.cpp's chain for one sequence: it draws once for each token, and remembers what it chose."""

    def __init__(
        self, sampling: Sampling, n_vocab: int, vocab: Any, history: Sequence[int], drawn: int
    ) -> None:
        """history: token ids so far; the last `drawn` of them were picked by this sequence's sampler.

        Raises GrammarRefused, or StageError when a history is not what the grammar allows.
        """
        self._llama = binding.load()
        self._candidates = np.zeros(n_vocab, dtype=CANDIDATE)
        self._ids = np.arange(n_vocab, dtype=np.int32)
        self._grammar: Any = None
        self._end = -1  # what ends an answer that a grammar leaves no way on
        self._chance: Any = None
        self._chain = self._new_chain(sampling, n_vocab)
        if sampling.temperature > 0:
            seed = sampling.seed % (MAX_SEED + 1)
            self._chance = self._llama.llama_sampler_init_dist(seed)
        if sampling.grammar:
            self._grammar = _compile(self._llama, vocab, sampling.grammar)
            self._end = int(self._llama.llama_vocab_eos(vocab))
        self._remember(history, drawn)

    def pick(self, logits: Rows) -> int:
        """As Greedy.pick; the choice is remembered."""
        if self._grammar is None:
            token = self._choose(logits, self._chance)
        else:
            token = self._choose_by_grammar(logits)
            if token != self._end:
                self._llama.llama_sampler_accept(self._grammar, token)
        self._llama.llama_sampler_accept(self._chain, token)
        return token

    def __del__(self) -> None:
        for name in ("_chain", "_chance", "_grammar"):
            if getattr(self, name, None):
                self._llama.llama_sampler_free(getattr(self, name))

    def _new_chain(self, sampling: Sampling, n_vocab: int) -> Any:
        """Order and meaning as in llama.cpp's own chain (common/sampling.cpp)."""
        llama = self._llama
        chain = llama.llama_sampler_chain_init(llama.llama_sampler_chain_default_params())
        links = [self._bias(sampling, n_vocab)] if sampling.logit_bias else []
        links.append(
            llama.llama_sampler_init_penalties(
                n_vocab, sampling.repeat_last_n, sampling.repeat_penalty,
                sampling.frequency_penalty, sampling.presence_penalty,
            )
        )  # fmt: skip
        if sampling.temperature > 0:
            links += [
                llama.llama_sampler_init_top_k(sampling.top_k),
                llama.llama_sampler_init_top_p(sampling.top_p, 1),
                llama.llama_sampler_init_min_p(sampling.min_p, 1),
                llama.llama_sampler_init_temp(sampling.temperature),
            ]
        for link in links:
            llama.llama_sampler_chain_add(chain, link)
        return chain

    def _bias(self, sampling: Sampling, n_vocab: int) -> Any:
        if any(not 0 <= token < n_vocab for token, _ in sampling.logit_bias):
            raise StageError(f"a bias for a token beyond the {n_vocab} of the vocabulary")
        kind = self._llama.llama_logit_bias * len(sampling.logit_bias)
        biases = kind(*[self._llama.llama_logit_bias(t, bias) for t, bias in sampling.logit_bias])
        return self._llama.llama_sampler_init_logit_bias(n_vocab, len(biases), biases)

    def _remember(self, history: Sequence[int], drawn: int) -> None:
        """Bring penalties, grammar and the random numbers to where they were after `history`."""
        for token in history:
            self._llama.llama_sampler_accept(self._chain, token)
        if self._chance is not None:
            for _ in range(drawn):
                self._apply(self._chance, self._candidates[:1])
        if self._grammar is not None:
            for token in history[len(history) - drawn :]:
                if not self._allows(token):
                    raise StageError("the answer so far is not what the grammar allows")
                self._llama.llama_sampler_accept(self._grammar, token)

    def _choose_by_grammar(self, logits: Rows) -> int:
        """Try without the grammar first: checking one token is far cheaper than the vocabulary.

        The try draws from a copy, so that each token takes one random number either way.
        """
        spare = self._chance and self._llama.llama_sampler_clone(self._chance)
        token = self._choose(logits, spare)
        if self._allows(token):
            if spare:
                spare, self._chance = self._chance, spare
        else:
            token = self._choose(logits, self._chance, self._grammar)
        if spare:
            self._llama.llama_sampler_free(spare)
        return token

    def _choose(self, logits: Rows, chance: Any, grammar: Any = None) -> int:
        if not np.isfinite(logits.max()):
            raise StageError("the model's scores are not finite")
        candidates = self._candidates
        candidates["id"], candidates["logit"], candidates["p"] = self._ids, logits, 0
        array = _array(self._llama, candidates)
        if grammar is not None:
            self._llama.llama_sampler_apply(grammar, ctypes.byref(array))
        self._llama.llama_sampler_apply(self._chain, ctypes.byref(array))
        if chance:
            self._llama.llama_sampler_apply(chance, ctypes.byref(array))
            best = array.data[array.selected]  # samplers may have sorted, cut or moved the list
            token, score = best.id, best.logit
        else:  # the chain without temperature keeps the order
            token = int(candidates["logit"].argmax())
            score = candidates["logit"][token]
        if np.isfinite(score):
            return int(token)
        if self._end < 0:
            raise StageError("no token is allowed here")
        return self._end  # a grammar without a way on ends its answer, and no other's

    def _allows(self, token: int) -> bool:
        one = np.array([(token, 1.0, 0.0)], dtype=CANDIDATE)
        self._apply(self._grammar, one)
        return bool(np.isfinite(one["logit"][0]))

    def _apply(self, sampler: Any, candidates: NDArray[np.void]) -> None:
        array = _array(self._llama, candidates)
        self._llama.llama_sampler_apply(sampler, ctypes.byref(array))


def sampler_for(
    sampling: Sampling, n_vocab: int, vocab: Any, history: Sequence[int] = (), drawn: int = 0
) -> Greedy | Sampler:
    """What picks the tokens of one sequence; see Sampler. A temperature as good as 0 is 0."""
    if sampling.temperature < LEAST_TEMPERATURE:
        sampling = replace(sampling, temperature=0.0)
    neutral = (
        sampling.repeat_last_n == 0
        or (sampling.repeat_penalty, sampling.frequency_penalty, sampling.presence_penalty)
        == (1.0, 0.0, 0.0)
    )  # fmt: skip
    if sampling.temperature <= 0 and neutral and not (sampling.logit_bias or sampling.grammar):
        return Greedy()
    if not 0 <= drawn <= len(history) or any(not 0 <= token < n_vocab for token in history):
        raise StageError(f"a history that is not of this vocabulary of {n_vocab}")
    return Sampler(sampling, n_vocab, vocab, history, drawn)


def _compile(llama: Any, vocab: Any, grammar: str) -> Any:
    """Raises GrammarRefused."""
    if vocab is None:
        raise GrammarRefused("a grammar needs the model's vocabulary, which is not known here")
    text = grammar.encode()
    if len(text) > MAX_GRAMMAR_BYTES or b"\0" in text:
        raise GrammarRefused(f"a grammar of more than {MAX_GRAMMAR_BYTES} bytes, or with a NUL")
    if sys.platform != "win32":
        _try_in_a_child(llama, vocab, text)
    binding.last_words()
    compiled = llama.llama_sampler_init_grammar(vocab, text, b"root")
    if not compiled:
        raise GrammarRefused(binding.last_words() or "the grammar has a mistake")
    return compiled


def _try_in_a_child(llama: Any, vocab: Any, text: bytes) -> None:
    """Compile in a copy of this process: native code can neither be stopped nor may it crash here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the copy only compiles, and exits
        child = os.fork()
    if child == 0:
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(
                COMPILE_SECONDS
            )  # first: a copy lacks the threads that would let go of a lock
            faulthandler.disable()
            with process.may_grow_by(COMPILE_BYTES, mapped=True):
                compiled = llama.llama_sampler_init_grammar(vocab, text, b"root")
                # What compiles and then has no way on is found when it is asked for a token.
                one = np.array([(0, 1.0, 0.0)], dtype=CANDIDATE)
                array = _array(llama, one)
                if compiled:
                    llama.llama_sampler_apply(compiled, ctypes.byref(array))
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGALRM:
        raise GrammarRefused(f"the grammar took longer than {COMPILE_SECONDS} s to compile")
    if code < 0:
        raise GrammarRefused("the grammar is too deep or too large to compile")


def _array(llama: Any, candidates: NDArray[np.void]) -> Any:
    """llama.cpp's view of candidates; valid as long as they are."""
    data = ctypes.cast(candidates.ctypes.data, llama.llama_token_data_p)
    return llama.llama_token_data_array(data, len(candidates), -1, False)
