"""The sampling of tokens from logits. All engines use llama.cpp's sampler chain."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backends.contract import Sampling, StageError
from backends.grammar import Grammar
from backends.grammar_process import CANDIDATE, array_of
from backends.hidden_state_codec import Rows
from backends.llamacpp import binding

LEAST_TEMPERATURE = 1e-6  # scores divided by much less overflow float32
MAX_SEED = (1 << 32) - 2  # 2^32 - 1 makes llama.cpp choose a seed


class Greedy:
    """A sampler that picks the token with the highest score.

    If several tokens share the highest score, it picks the first, like llama.cpp.
    """

    def pick(self, logits: Rows) -> int:
        """Return the next token for float32 logits `[n_vocab]`. Raises StageError if the logits are not finite."""
        best = int(logits.argmax())  # argmax treats NaN as the highest value
        if not np.isfinite(logits[best]):
            raise StageError("the model's scores are not finite")
        return best


class Sampler:
    """A llama.cpp sampler chain for one sequence.

    It draws one random number per token and remembers each token it picks.
    """

    def __init__(self, sampling: Sampling, n_vocab: int, vocabulary: str, history: Sequence[int], drawn: int) -> None:
        """Create a sampler in the state that it would have after `history`.

        history: the token ids before the next one. The last `drawn` of them were sampled for this sequence. vocabulary:
        the path of the model file, which a grammar needs.

        Raises GrammarRefused, or StageError if the grammar does not allow the history.
        """
        self._llama = binding.load()
        self._candidates = np.zeros(n_vocab, dtype=CANDIDATE)
        self._ids = np.arange(n_vocab, dtype=np.int32)
        self._grammar: Grammar | None = None
        self._chance: Any = None
        self._chain = self._new_chain(sampling, n_vocab)
        if sampling.temperature > 0:
            seed = sampling.seed % (MAX_SEED + 1)
            self._chance = self._llama.llama_sampler_init_dist(seed)
        if sampling.grammar:
            self._grammar = Grammar(vocabulary, n_vocab, sampling.grammar)
        self._remember(history, drawn)

    def pick(self, logits: Rows) -> int:
        """Pick the next token and remember it. Raises GrammarTooHeavy and the errors of Greedy.pick."""
        if self._grammar is None:
            token = self._choose(logits, self._chance)
        else:
            token = self._choose_by_grammar(logits, self._grammar)
        self._llama.llama_sampler_accept(self._chain, token)
        return token

    def __del__(self) -> None:
        for name in ("_chain", "_chance"):
            if getattr(self, name, None):
                self._llama.llama_sampler_free(getattr(self, name))
        if (grammar := getattr(self, "_grammar", None)) is not None:
            grammar.close()

    def _new_chain(self, sampling: Sampling, n_vocab: int) -> Any:
        """Build the chain from the same samplers, in the same order, as llama.cpp's common/sampling.cpp."""
        llama = self._llama
        chain = llama.llama_sampler_chain_init(llama.llama_sampler_chain_default_params())
        links = [self._bias(sampling, n_vocab)] if sampling.logit_bias else []
        links.append(
            llama.llama_sampler_init_penalties(
                n_vocab,
                sampling.repeat_last_n,
                sampling.repeat_penalty,
                sampling.frequency_penalty,
                sampling.presence_penalty,
            )
        )
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
        """Advance the penalties, the grammar and the random number generator past `history`."""
        for token in history:
            self._llama.llama_sampler_accept(self._chain, token)
        if self._chance is not None:
            for _ in range(drawn):
                self._apply(self._chance, self._candidates[:1])
        if self._grammar is not None:
            for token in history[len(history) - drawn :]:
                if not self._grammar.takes(token):
                    raise StageError("the answer so far is not what the grammar allows")

    def _choose_by_grammar(self, logits: Rows, grammar: Grammar) -> int:
        """Pick a token that the grammar allows.

        The first attempt ignores the grammar, because checking one token is far cheaper than checking the whole
        vocabulary. It uses a copy of the random number generator, so each token consumes exactly one random number.
        """
        spare = self._chance and self._llama.llama_sampler_clone(self._chance)
        token = self._choose(logits, spare)
        if grammar.takes(token):
            if spare:
                spare, self._chance = self._chance, spare
        else:
            token = self._choose(logits, self._chance, grammar)
            if token != grammar.end:
                grammar.takes(token)
        if spare:
            self._llama.llama_sampler_free(spare)
        return token

    def _choose(self, logits: Rows, chance: Any, grammar: Grammar | None = None) -> int:
        if not np.isfinite(logits.max()):
            raise StageError("the model's scores are not finite")
        candidates = self._candidates
        candidates["id"], candidates["logit"], candidates["p"] = self._ids, logits, 0
        if grammar is not None:
            candidates["logit"][~grammar.allowed()] = -np.inf
        array = array_of(self._llama, candidates)
        self._llama.llama_sampler_apply(self._chain, ctypes.byref(array))
        if chance:
            self._llama.llama_sampler_apply(chance, ctypes.byref(array))
            best = array.data[array.selected]  # samplers may have sorted, truncated or moved the list
            token, score = best.id, best.logit
        else:  # without temperature the chain preserves the order
            token = int(candidates["logit"].argmax())
            score = candidates["logit"][token]
        if np.isfinite(score):
            return int(token)
        if self._grammar is None:
            raise StageError("no token is allowed here")
        return self._grammar.end  # a grammar with no allowed token ends only this answer

    def _apply(self, sampler: Any, candidates: NDArray[np.void]) -> None:
        array = array_of(self._llama, candidates)
        self._llama.llama_sampler_apply(sampler, ctypes.byref(array))


def make_sampler(
    sampling: Sampling, n_vocab: int, vocabulary: str, history: Sequence[int] = (), drawn: int = 0
) -> Greedy | Sampler:
    """Return the simplest sampler that implements these parameters for one sequence (see Sampler).

    A temperature close to 0 counts as 0. Raises the same errors as Sampler.
    """
    if sampling.temperature < LEAST_TEMPERATURE:
        sampling = replace(sampling, temperature=0.0)
    neutral = sampling.repeat_last_n == 0 or (
        sampling.repeat_penalty,
        sampling.frequency_penalty,
        sampling.presence_penalty,
    ) == (1.0, 0.0, 0.0)
    if sampling.temperature <= 0 and neutral and not (sampling.logit_bias or sampling.grammar):
        return Greedy()
    if not 0 <= drawn <= len(history) or any(not 0 <= token < n_vocab for token in history):
        raise StageError(f"a history that is not of this vocabulary of {n_vocab}")
    return Sampler(sampling, n_vocab, vocabulary, history, drawn)
