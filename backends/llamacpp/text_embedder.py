"""Embedding models and rerankers on llama.cpp, which turn token ids into one pooled vector or one score."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from backends.contract import NotFinite, Segment, StageError
from backends.control_tokens import ControlTokenBreaker
from backends.hidden_state_codec import VALUE, Rows
from backends.llamacpp import binding
from backends.llamacpp.stage import Batch
from backends.vocabulary import markers_of, tokenize_with

FOR_ONE = 0  # the only sequence
NO_TOKEN = -1
PAIR_TEMPLATE = b"rerank"  # the template's name in rerankers derived from generative models


class LlamaEmbedder:
    """An embedding model or reranker on llama.cpp.

    The model file determines whether the output is a vector or a score (`ranks`).
    """

    def __init__(self, path: str, context: int, threads: int) -> None:
        """Load a model for texts of at most `context` tokens. Raises StageError with llama.cpp's message."""
        llama = self._llama = binding.load()
        self._context: Any = None
        self._breaker: ControlTokenBreaker | None = None  # once it is needed
        self._model: Any = binding.load_model(path)
        try:
            self._context = self._new_context(context, threads)
        except StageError:
            self.close()
            raise
        self.width = int(llama.llama_model_n_embd_out(self._model))
        if self.ranks:
            self.width = 1
        self._vocab = llama.llama_model_get_vocab(self._model)
        self._n_vocab = int(llama.llama_vocab_n_tokens(self._vocab))
        self._most = context
        self._batch = Batch(llama, context, 1)

    def tokenize(self, text: str) -> list[int]:
        """Return the tokens of a text, including the special tokens that the model expects around it."""
        return tokenize_with(self._llama, self._vocab, text, special=False, bos=True)

    def embed(self, ids: Sequence[int]) -> Rows:
        """Return the vector of a tokenized text: `[width]`, not normalized. Raises StageError."""
        if self.ranks:
            raise StageError("this model ranks texts and gives no vectors")
        return self._pooled(ids)

    def pair(self, query: str, text: str) -> list[int]:
        """Return the tokens of a query and a text, combined for the reranker in the format of llama.cpp's server."""
        llama, vocab = self._llama, self._vocab
        template = llama.llama_model_chat_template(self._model, PAIR_TEMPLATE)
        if template is not None:
            written = template.decode("utf-8", "replace")
            if self._breaker is None:
                self._breaker = ControlTokenBreaker(markers_of(llama, vocab, written))
            texts = {"{query}": self._breaker.text(query), "{document}": self._breaker.text(text)}
            both = "".join(texts.get(part, part) for part in re.split(r"(\{query\}|\{document\})", written))
            return tokenize_with(llama, vocab, both, special=True, bos=False)
        parts = [tokenize_with(llama, vocab, part, special=False, bos=False) for part in (query, text)]
        end = llama.llama_vocab_eos(vocab)
        end = llama.llama_vocab_sep(vocab) if end == NO_TOKEN else end
        begin = [llama.llama_vocab_bos(vocab)] if llama.llama_vocab_get_add_bos(vocab) else []
        ends = [end] if llama.llama_vocab_get_add_eos(vocab) else []
        between = [llama.llama_vocab_sep(vocab)] if llama.llama_vocab_get_add_sep(vocab) else []
        ids = [*begin, *parts[0], *ends, *between, *parts[1], *ends]
        return [int(token) for token in ids if token != NO_TOKEN]

    def score(self, ids: Sequence[int]) -> float:
        """Score how well the text answers the query, given the tokens of the pair. Raises StageError."""
        if not self.ranks:
            raise StageError("this model gives vectors and no scores")
        return float(self._pooled(ids)[0])

    def _pooled(self, ids: Sequence[int]) -> Rows:
        if not 0 < len(ids) <= self._most or not 0 <= min(ids) <= max(ids) < self._n_vocab:
            raise StageError(f"{len(ids)} tokens of a vocabulary of {self._n_vocab} cannot be read")
        n_rows = self._batch.place((Segment(FOR_ONE, len(ids), 0),))
        self._batch.tokens(np.asarray(ids, dtype=np.int32))
        self._batch.flag_all(n_rows)
        memory = self._llama.llama_get_memory(self._context)
        if memory:
            self._llama.llama_memory_clear(memory, False)
        compute = self._llama.llama_decode if memory else self._llama.llama_encode
        binding.take_log()
        if code := compute(self._context, self._batch.struct):
            words = binding.take_log()
            raise StageError(f"llama.cpp failed with {code}: {words}", "llama_failed", status=code, words=words)
        start = self._llama.llama_get_embeddings_seq(self._context, FOR_ONE)
        if not start:
            raise StageError("this model pools nothing")
        address = ctypes.addressof(start.contents)
        data = ctypes.string_at(address, self.width * VALUE.itemsize)
        return _finite(np.frombuffer(data, VALUE).copy())

    def close(self) -> None:
        """Release the memory."""
        if self._context:
            self._llama.llama_free(self._context)
        if self._model:
            self._llama.llama_model_free(self._model)
        self._context = self._model = None

    def _new_context(self, context: int, threads: int) -> Any:
        params = self._llama.llama_context_default_params()
        # an encoder's attention is bidirectional, so it needs the whole text in one pass
        params.n_ctx = params.n_batch = params.n_ubatch = context
        params.n_seq_max = 1
        params.n_threads = params.n_threads_batch = threads
        params.embeddings = True
        params.pooling_type = self._llama.LLAMA_POOLING_TYPE_UNSPECIFIED  # as set in the file
        params.offload_kqv = params.op_offload = False
        binding.take_log()
        made = self._llama.llama_init_from_model(self._model, params)
        if not made:
            words = binding.take_log()
            text = f"llama.cpp has no room for {context} tokens: {words}"
            raise StageError(text, "llama_no_room_tokens", count=context, words=words)
        kind = self._llama.llama_pooling_type(made)
        self.ranks = kind == self._llama.LLAMA_POOLING_TYPE_RANK
        if kind == self._llama.LLAMA_POOLING_TYPE_NONE:
            self._llama.llama_free(made)
            raise StageError("this model gives no vector for a whole text")
        return made


def _finite(values: Rows) -> Rows:
    """Return the values unchanged. Raises NotFinite if any value is not finite."""
    if not np.isfinite(values).all():
        raise NotFinite("what it computes of a text are no numbers")
    return values
