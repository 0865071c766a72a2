"""A run of layers on stock llama.cpp: hidden states in, and out through the eval callback."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from backends.contract import Hidden, KvType, Logits, Role, Segment, StageConfig, StageError, Tokens
from backends.llamacpp import binding
from backends.llamacpp.batch import Batch
from backends.llamacpp.boundary import Boundary
from backends.llamacpp.embedding import Embedding
from backends.llamacpp.passes import Parts, by_length, neighbours, prompts_alone
from backends.llamacpp.states import States
from backends.wire_numbers import VALUE, Rows, bytes_of
from backends.worker.thread_choice import ThreadChoice

UNCUT_POSITIONS = 256  # llama.cpp looks at cells in steps of 256, and cuts from 512 on


class LlamaStage:
    """A Stage of llama.cpp. The rows it returns are valid until its next `forward`."""

    def __init__(self, config: StageConfig) -> None:
        """Load. Raises StageError with llama.cpp's words."""
        self._config = config
        self._model: Any = None
        self._context: Any = None
        self._embedding: Embedding | None = None
        self._choice = ThreadChoice(config.threads, config.begin_threads)
        self._threads = self._choice.used  # as the context was told
        self._furthest = 0  # position after those of the step placed last
        self._ends: dict[int, int] = {}  # of each slot, the position after its last
        self._most_cells = 0  # that were ever in use at once
        self._scores_at, self._view = (0, 0), memoryview(b"")
        if config.batch_rows > config.kv_cells:
            raise StageError(f"{config.kv_cells} cells cannot hold a step of {config.batch_rows}")
        self._llama = binding.load()
        try:
            self._open(config)
        except StageError:
            self.close()
            raise

    def _open(self, config: StageConfig) -> None:
        if config.role is not Role.WHOLE and not config.any_engine:
            binding.require_proved()
        if config.role is Role.FIRST:
            self._embedding = Embedding(config.embedding_path, config.width)
        self._model = binding.load_model(config.path)
        self._check_model(config)
        traits = config.traits
        self._boundary = None
        if not self._is_tail:
            last = len(config.layers) - 1
            self._boundary = Boundary(traits.boundary, last, by_name=traits.recurrent)
        self._context = self._new_context(config)
        self._memory = self._llama.llama_get_memory(self._context)
        planes = 1 if config.role is Role.WHOLE else traits.position_planes
        self._batch = Batch(self._llama, config.batch_rows, config.slots, planes)
        self._states: States | None = None
        if traits.recurrent:
            self._states = States(self._llama, self._context, config.keep)

    @property
    def _is_tail(self) -> bool:
        return self._config.role in (Role.LAST, Role.WHOLE)

    @property
    def n_vocab(self) -> int:
        """Scores in a row of logits."""
        return int(self._llama.llama_vocab_n_tokens(self._llama.llama_model_get_vocab(self._model)))

    @property
    def vocabulary(self) -> str:
        """The file whose vocabulary grammars need: stage files carry none, so it is the whole model's. Empty when
        that is not known."""
        config = self._config
        return config.path if config.role is Role.WHOLE else config.embedding_path

    def forward(self, batch: Tokens | Hidden, due: Sequence[int]) -> Hidden | Logits:
        if self._states is not None:
            self._states.before(batch.segments)
        groups = self._groups(batch.segments)
        if groups == [list(range(len(batch.segments)))]:
            return self._pass(batch, due)
        parts = Parts(batch, due, self._config.width)
        for group in groups:
            part, part_due = parts.take(group)
            parts.give(group, self._pass(part, part_due))
        return parts.whole()

    def _groups(self, segments: Sequence[Segment]) -> list[list[int]]:
        """Which segments are computed at once, by their indexes."""
        if self._config.apart:
            groups = neighbours(segments)
            return prompts_alone(groups, segments) if self._config.traits.recurrent else groups
        return by_length(segments) if self._config.traits.recurrent else [list(range(len(segments)))]

    def _pass(self, batch: Tokens | Hidden, due: Sequence[int]) -> Hidden | Logits:
        """One run through the layers; slots with cells of their own are neighbours, with as many rows each."""
        segments, n_rows = batch.segments, self.place(batch)
        if self._boundary is None:
            return self._scores(segments, n_rows, due)
        rows = np.empty((n_rows, self._config.width), dtype=VALUE)
        self._batch.flag_all(n_rows)
        self._boundary.expect(rows)
        self._decode(n_rows)
        if not self._boundary.reached:  # the graph was built anew, elsewhere in memory
            self._take_back(segments)
            self._boundary.search()
            self._decode(n_rows)
        self._boundary.came()
        return Hidden(segments, bytes_of(rows))

    def place(self, batch: Tokens | Hidden) -> int:
        """Put a step's rows where llama.cpp reads them; returns how many. Raises StageError."""
        n_rows = self._batch.place(batch.segments)
        self._furthest = max(segment.end for segment in batch.segments)
        self._ends |= {segment.slot: segment.end for segment in batch.segments}
        self._most_cells = max(self._most_cells, sum(self._ends.values()))
        if isinstance(batch, Tokens):
            self._feed_ids(batch.ids, n_rows)
        else:
            self._feed_rows(np.frombuffer(batch.rows, dtype=VALUE), n_rows)
        return n_rows

    def forget(self, slot: int, keep: int = 0) -> None:
        if self._states is not None:
            self._states.cut_back(slot, keep)
        if not self._llama.llama_memory_seq_rm(self._memory, slot, keep, -1):
            raise StageError(f"slot {slot} cannot be cut back to position {keep}")
        self._ends[slot] = min(self._ends.get(slot, 0), keep)

    def share(self, most: int) -> int:
        self._choice.limit(most)
        return self._choice.used

    def close(self) -> None:
        if self._context:
            self._llama.llama_free(self._context)
        if self._model:
            self._llama.llama_model_free(self._model)
        self._context = self._model = self._embedding = None

    def _feed_ids(self, ids: Sequence[int], n_rows: int) -> None:
        numbers = np.asarray(ids, dtype=np.int32)
        if len(numbers) != n_rows:
            raise StageError(f"{len(numbers)} token ids for {n_rows} rows")
        if self._embedding is not None:
            self._feed_rows(self._embedding.rows(numbers).reshape(-1), n_rows)
        elif self._config.role is Role.WHOLE:
            self._batch.tokens(numbers)
        else:
            raise StageError("token ids where hidden states were expected")

    def _feed_rows(self, rows: Rows, n_rows: int) -> None:
        if self._config.role is Role.WHOLE:
            raise StageError("hidden states where token ids were expected")
        if len(rows) != n_rows * self._config.width:
            raise StageError(f"{len(rows)} values for {n_rows} rows of {self._config.width}")
        scale = self._config.traits.input_scale
        self._batch.hidden(rows if scale == 1.0 else rows * np.float32(scale))

    def _scores(self, segments: tuple[Segment, ...], n_rows: int, due: Sequence[int]) -> Logits:
        ends = list(accumulate(segment.n_tokens for segment in segments))
        self._batch.flag(n_rows, [ends[index] - 1 for index in due])
        self._decode(n_rows)
        asked = tuple(segments[index] for index in due)
        if not asked:
            return Logits(asked, memoryview(b""))
        start = self._llama.llama_get_logits(self._context)
        return Logits(asked, self._seen(ctypes.addressof(start.contents), len(asked)))

    def _seen(self, address: int, n_rows: int) -> memoryview:
        """The scores there, without a copy. They mostly lie where they lay: a view is made once."""
        if (address, n_rows) != self._scores_at:
            count = n_rows * self.n_vocab
            self._view = memoryview((ctypes.c_float * count).from_address(address)).cast("B")
            self._scores_at = (address, n_rows)
        return self._view

    def _decode(self, n_rows: int) -> None:
        threads = self._choice.next(n_rows, tied=self._is_tied(n_rows))
        if threads != self._threads:
            self._llama.llama_set_n_threads(self._context, threads, threads)
            self._threads = threads
        began = time.perf_counter()
        code = self._llama.llama_decode(self._context, self._batch.struct)
        self._choice.took(time.perf_counter() - began)
        if code == 1:
            raise StageError(f"the {self._config.kv_cells} cells of the KV cache are full")
        if code:
            raise StageError(f"llama.cpp failed with {code}: {binding.last_words()}")

    def _is_tied(self, n_rows: int) -> bool:
        """Whether flash attention may cut this step's keys by threads (thread_choice.py).

        It looks at all cells up to the last one in use, and free ones are filled from the first on: what was never in
        use together reaches no further.
        """
        config = self._config
        if n_rows != 1 or not config.flash_attention or config.kv is not KvType.F16:
            return False
        own = config.apart or config.slots == 1
        return (self._furthest if own else self._most_cells) > UNCUT_POSITIONS

    def _take_back(self, segments: tuple[Segment, ...]) -> None:
        for segment in segments:
            self.forget(segment.slot, segment.pos)

    def _check_model(self, config: StageConfig) -> None:
        n_layers = self._llama.llama_model_n_layer(self._model)
        width = self._llama.llama_model_n_embd(self._model)
        if n_layers != len(config.layers) or width != config.width:
            raise StageError(f"the file has {n_layers} layers of width {width}")
        planes = binding.position_planes(self._model)
        if config.role is not Role.WHOLE and planes != config.traits.position_planes:
            raise StageError(f"the file has {planes} positions for each hidden state")

    def _new_context(self, config: StageConfig) -> Any:
        params = self._llama.llama_context_default_params()
        params.n_ctx = config.kv_cells
        params.n_batch = params.n_ubatch = config.batch_rows
        params.n_seq_max = config.slots
        params.n_threads = params.n_threads_batch = self._threads
        params.kv_unified = not config.apart
        if config.kv is KvType.Q8_0:
            params.type_k = params.type_v = self._llama.GGML_TYPE_Q8_0
        params.flash_attn_type = int(config.flash_attention)
        params.offload_kqv = params.op_offload = False
        if self._boundary is None:
            # A step has at most one due row a slot; else room for n_batch rows of logits is kept.
            params.n_outputs_max = config.slots
        else:
            params.cb_eval = self._boundary.callback
        binding.last_words()
        context = self._llama.llama_init_from_model(self._model, params)
        if not context:
            words = binding.last_words()
            raise StageError(f"llama.cpp has no room for {config.kv_cells} cells: {words}")
        return context
