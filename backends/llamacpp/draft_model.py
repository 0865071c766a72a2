"""Draft models on llama.cpp: small models that write tokens ahead of a larger one with the same tokens."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Sequence
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

from backends.contract import Segment, StageError
from backends.hidden_state_codec import VALUE, Rows
from backends.llamacpp import binding
from backends.llamacpp.stage import Batch
from backends.llamacpp.token_embedding import TokenEmbedding

BATCH_ROWS = 64
LEAST_CHANCE = 0.1  # it writes no further after a token of which it is less sure, because little of that would be right
# Of a draft whose head covers only a part of the tokens, and whose inputs are rows of the larger model's embedding:
IDS_KEY = "poolhouse.draft.ids"  # the token for each row of its head
TOKENIZER_KEY = "poolhouse.draft.tokenizer"  # the larger model's tokenizer_hash


def tokenizer_hash(path: str) -> str:
    """Return a hash of the tokens of a GGUF file, of their texts and kinds. Equal hashes mean equal token ids.

    Raises StageError.
    """
    model = binding.load_model(path, vocabulary_only=True)
    try:
        return _hash_of(model)
    finally:
        binding.load().llama_model_free(model)


def _hash_of(model: Any) -> str:
    llama, digest = binding.load(), hashlib.sha256()
    vocab = llama.llama_model_get_vocab(model)
    for token in range(int(llama.llama_vocab_n_tokens(vocab))):
        text, kind = llama.llama_vocab_get_text(vocab, token) or b"", int(llama.llama_vocab_get_attr(vocab, token))
        digest.update(b"%d %d %s" % (len(text), kind, text))
    return digest.hexdigest()


class DraftModel:
    """A draft model with a KV cache of its own for each slot."""

    def __init__(self, path: str, target: str, context: int, slots: int, threads: int) -> None:
        """Load a draft for the model in the file `target`. Raises StageError, for example if their tokens differ."""
        self._context: Any = None
        self._llama = binding.load()
        self._model: Any = binding.load_model(path)
        try:
            self._embedding: TokenEmbedding | None = None
            tokenizer = binding.text_of(self._llama.llama_model_meta_val_str, self._model, TOKENIZER_KEY.encode())
            self._ids = _ids_of(path) if tokenizer else None
            if (tokenizer or _hash_of(self._model)) != tokenizer_hash(target):
                raise StageError(f"{path} has other tokens than {target}", "draft_other_tokens")
            if self._ids is not None:
                self._embedding = TokenEmbedding(target, int(self._llama.llama_model_n_embd(self._model)))
            self._n_vocab = int(self._llama.llama_vocab_n_tokens(self._llama.llama_model_get_vocab(self._model)))
            if self._ids is not None and len(self._ids) != self._n_vocab:
                raise StageError(f"{len(self._ids)} tokens for a head of {self._n_vocab}")
            self._context = self._new_context(context, slots, threads)
            if not self._llama.llama_memory_can_shift(self._llama.llama_get_memory(self._context)):
                raise StageError(f"{path} cannot take back what it wrote", "draft_recurrent")
        except StageError:
            self.close()
            raise
        self._memory = self._llama.llama_get_memory(self._context)
        self._batch = Batch(self._llama, BATCH_ROWS, slots, binding.position_planes(self._model))
        self._held = [0] * slots

    def write(self, slot: int, keep: int, ids: Sequence[int], n_tokens: int) -> list[tuple[int, float]]:
        """Keep the first `keep` positions of a slot, read these tokens, and write up to `n_tokens` more.

        Return the tokens and its own probability of each. The last one is not in the KV cache. Raises StageError.
        """
        if not 0 <= slot < len(self._held) or not ids or keep > self._held[slot]:
            raise StageError(f"slot {slot} does not have {keep} positions, or nothing is to be read")
        if not self._llama.llama_memory_seq_rm(self._memory, slot, keep, -1):
            raise StageError(f"slot {slot} cannot be cut back to position {keep}")
        pos = self._held[slot] = keep
        scores: Rows | None = None
        for first in range(0, len(ids), BATCH_ROWS):
            part = ids[first : first + BATCH_ROWS]
            is_last = first + len(part) == len(ids) and n_tokens > 0
            scores = self._read(slot, pos, part, scored=is_last)
            pos += len(part)
        written: list[tuple[int, float]] = []
        while scores is not None and len(written) < n_tokens:
            best = int(scores.argmax())
            chance = float(1 / np.exp(scores - scores[best]).sum())
            token = best if self._ids is None else int(self._ids[best])
            written.append((token, chance))
            if len(written) == n_tokens or chance < LEAST_CHANCE:
                break
            scores = self._read(slot, pos, [token], scored=True)
            pos += 1
        return written

    def close(self) -> None:
        """Release the memory."""
        if self._context:
            self._llama.llama_free(self._context)
        if self._model:
            self._llama.llama_model_free(self._model)
        self._context = self._model = self._embedding = None

    def _read(self, slot: int, pos: int, ids: Sequence[int], *, scored: bool) -> Rows | None:
        """Compute the positions of these tokens. Return the scores after the last one if `scored`."""
        tokens = np.asarray(ids, dtype=np.int32)
        n_rows = self._batch.place((Segment(slot, len(tokens), pos),))
        if self._embedding is not None:
            self._batch.hidden(self._embedding.rows(tokens).reshape(-1))
        elif tokens.min() >= 0 and tokens.max() < self._n_vocab:
            self._batch.tokens(tokens)
        else:
            raise StageError(f"tokens that are not of this vocabulary of {self._n_vocab}")
        self._batch.flag(n_rows, [n_rows - 1] if scored else [])
        binding.take_log()
        if code := self._llama.llama_decode(self._context, self._batch.struct):
            words = binding.take_log()
            raise StageError(f"llama.cpp failed with {code}: {words}", "llama_failed", status=code, words=words)
        self._held[slot] = pos + n_rows
        if not scored:
            return None
        address = ctypes.addressof(self._llama.llama_get_logits(self._context).contents)
        view = memoryview((ctypes.c_float * self._n_vocab).from_address(address)).cast("B")
        return np.frombuffer(view, VALUE)

    def _new_context(self, context: int, slots: int, threads: int) -> Any:
        params = self._llama.llama_context_default_params()
        params.n_ctx = context * slots
        params.n_batch = params.n_ubatch = BATCH_ROWS
        params.n_seq_max = slots
        params.n_outputs_max = slots
        params.n_threads = params.n_threads_batch = threads
        params.kv_unified = True
        params.flash_attn_type = 1
        params.offload_kqv = params.op_offload = False
        binding.take_log()
        made = self._llama.llama_init_from_model(self._model, params)
        if not made:
            words = binding.take_log()
            text = f"llama.cpp has no room for {context * slots} cells: {words}"
            raise StageError(text, "llama_no_room_cells", count=context * slots, words=words)
        return made


def _ids_of(path: str) -> NDArray[np.int32]:
    """Return the token for each row of a draft's head. Raises StageError."""
    field = gguf.GGUFReader(path).fields.get(IDS_KEY)
    ids = np.asarray(field.contents() if field is not None else (), dtype=np.int32)
    if ids.ndim != 1 or not len(ids) or ids.min() < 0:
        raise StageError(f"{path} does not say which tokens it writes")
    return ids
