"""A run of layers on stock llama.cpp: hidden states in, and out through the eval callback."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backends.contract import Hidden, Logits, Role, Segment, StageConfig, StageError, Tokens
from backends.llamacpp import binding
from backends.llamacpp.embedding import Embedding
from backends.numbers import VALUE, Rows, bytes_of


class LlamaStage:
    """A Stage of llama.cpp. The rows it returns are valid until its next `forward`."""

    def __init__(self, config: StageConfig) -> None:
        """Load. Raises StageError with llama.cpp's words."""
        self._config = config
        self._model: Any = None
        self._context: Any = None
        self._vocabulary: Any = None
        self._embedding: Embedding | None = None
        if config.batch_rows > config.kv_cells:
            raise StageError(f"{config.kv_cells} cells cannot hold a step of {config.batch_rows}")
        self._llama = binding.load()
        try:
            self._open(config)
        except StageError:
            self.close()
            raise

    def _open(self, config: StageConfig) -> None:
        if config.role is Role.FIRST:
            self._embedding = Embedding(config.embedding_path, config.width)
        self._model = binding.load_model(config.path)
        self._check_model(config)
        self._boundary = None if self._is_tail else Boundary(len(config.layers) - 1)
        self._context = self._new_context(config)
        self._memory = self._llama.llama_get_memory(self._context)
        self._batch = Batch(self._llama, config.batch_rows, config.slots)

    @property
    def _is_tail(self) -> bool:
        return self._config.role in (Role.LAST, Role.WHOLE)

    @property
    def n_vocab(self) -> int:
        """Scores in a row of logits."""
        return int(self._llama.llama_vocab_n_tokens(self._llama.llama_model_get_vocab(self._model)))

    @property
    def vocab(self) -> Any:
        """llama.cpp's vocabulary, for grammars: stage files carry none, so it comes from the whole
        model's file. None when that is not known."""
        if self._config.role is Role.WHOLE:
            return self._llama.llama_model_get_vocab(self._model)
        if self._vocabulary is None and self._config.embedding_path:
            self._vocabulary = binding.load_model(self._config.embedding_path, vocabulary_only=True)
        return self._vocabulary and self._llama.llama_model_get_vocab(self._vocabulary)

    def forward(self, batch: Tokens | Hidden, due: Sequence[int]) -> Hidden | Logits:
        segments = batch.segments
        n_rows = self._batch.place(segments)
        if isinstance(batch, Tokens):
            self._feed_ids(batch.ids, n_rows)
        else:
            self._feed_rows(np.frombuffer(batch.rows, dtype=VALUE), n_rows)
        if self._boundary is None:
            return self._scores(segments, n_rows, due)
        rows = np.empty((n_rows, self._config.width), dtype=VALUE)
        self._batch.flag_all(n_rows)
        self._boundary.expect(rows)
        self._decode()
        self._boundary.check()
        return Hidden(segments, bytes_of(rows))

    def forget(self, slot: int, keep: int = 0) -> None:
        if not self._llama.llama_memory_seq_rm(self._memory, slot, keep, -1):
            raise StageError(f"slot {slot} cannot be cut back to position {keep}")

    def close(self) -> None:
        if self._context:
            self._llama.llama_free(self._context)
        for model in (self._model, self._vocabulary):
            if model:
                self._llama.llama_model_free(model)
        self._context = self._model = self._vocabulary = self._embedding = None

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
        self._batch.hidden(rows)

    def _scores(self, segments: tuple[Segment, ...], n_rows: int, due: Sequence[int]) -> Logits:
        ends = np.cumsum([segment.n_tokens for segment in segments])
        self._batch.flag(n_rows, [int(ends[index]) - 1 for index in due])
        self._decode()
        asked = tuple(segments[index] for index in due)
        if not asked:
            return Logits(asked, memoryview(b""))
        start = self._llama.llama_get_logits(self._context)
        scores = np.ctypeslib.as_array(start, shape=(len(asked) * self.n_vocab,))
        return Logits(asked, bytes_of(scores))

    def _decode(self) -> None:
        code = self._llama.llama_decode(self._context, self._batch.struct)
        if code == 1:
            raise StageError(f"the {self._config.kv_cells} cells of the KV cache are full")
        if code:
            raise StageError(f"llama.cpp failed with {code}: {binding.last_words()}")

    def _check_model(self, config: StageConfig) -> None:
        n_layers = self._llama.llama_model_n_layer(self._model)
        width = self._llama.llama_model_n_embd(self._model)
        if n_layers != len(config.layers) or width != config.width:
            raise StageError(f"{config.path} has {n_layers} layers of width {width}")

    def _new_context(self, config: StageConfig) -> Any:
        params = self._llama.llama_context_default_params()
        params.n_ctx = config.kv_cells
        params.n_batch = params.n_ubatch = config.batch_rows
        params.n_seq_max = config.slots
        params.n_threads = params.n_threads_batch = config.threads
        params.kv_unified = True  # rows keep their order
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


class Boundary:
    """Reads the last layer's output from the graph, and stops the graph there."""

    def __init__(self, layer: int) -> None:
        self._name = b"l_out-%d" % layer
        self._get: Callable[..., None] = binding.ggml(
            "ggml_backend_tensor_get",
            None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t,
        )  # fmt: skip
        self._n_bytes = binding.ggml("ggml_nbytes", ctypes.c_size_t, ctypes.c_void_p)
        self._name_of = binding.ggml("ggml_get_name", ctypes.c_char_p, ctypes.c_void_p)
        self._rows: Rows | None = None
        self._found = 0  # bytes of the tensor that was reached
        self.callback = binding.load().ggml_backend_sched_eval_callback(self._make())

    def expect(self, rows: Rows) -> None:
        """Where the output of the next step goes."""
        self._rows, self._found = rows, 0

    def check(self) -> None:
        """Raise StageError unless the output has been read."""
        if self._rows is None or self._found != self._rows.nbytes:
            name = self._name.decode()
            raise StageError(f"the model's graph gave {self._found} bytes at {name}")

    def _make(self) -> Callable[[int, bool, int | None], bool]:
        name, name_of = self._name, self._name_of

        def on_node(tensor: int, ask: bool, _user_data: int | None) -> bool:
            """Called for each node of the graph: about 40 a layer, so it does next to nothing."""
            if ask:
                return name_of(tensor) == name  # type: ignore[no-any-return]
            self._read(tensor)
            return False  # the rest of the graph is norm and head

        return on_node

    def _read(self, tensor: int) -> None:
        self._found = self._n_bytes(tensor)
        if self._rows is not None and self._found == self._rows.nbytes:
            self._get(tensor, self._rows.ctypes.data, 0, self._found)


class Batch:
    """A llama_batch whose arrays are ours: filled for each step, never allocated again."""

    def __init__(self, llama: Any, n_rows: int, n_slots: int) -> None:
        self._slots = np.arange(n_slots, dtype=np.int32)
        self._pos = np.zeros(n_rows, dtype=np.int32)
        self._n_ids = np.ones(n_rows, dtype=np.int32)
        self._ids = np.zeros(n_rows, dtype=np.uintp)  # pointers into _slots
        self._outputs = np.zeros(n_rows, dtype=np.int8)
        self._input: NDArray[Any] = self._pos  # kept alive while llama.cpp reads it
        self._types = dict(llama.llama_batch._fields_)
        self.struct = llama.llama_batch()
        self.struct.pos = self._pointer("pos", self._pos)
        self.struct.n_seq_id = self._pointer("n_seq_id", self._n_ids)
        self.struct.seq_id = self._pointer("seq_id", self._ids)
        self.struct.logits = self._pointer("logits", self._outputs)

    def place(self, segments: tuple[Segment, ...]) -> int:
        """Write slots and positions; returns the rows. Raises StageError when they are too many."""
        start = 0
        for segment in segments:
            end = start + segment.n_tokens
            if end > len(self._pos) or not 0 <= segment.slot < len(self._slots):
                raise StageError(f"{segment} is beyond the room of this stage")
            self._pos[start:end] = np.arange(segment.pos, segment.end, dtype=np.int32)
            self._ids[start:end] = self._slots.ctypes.data + segment.slot * self._slots.itemsize
            start = end
        self.struct.n_tokens = start
        return start

    def tokens(self, ids: NDArray[np.int32]) -> None:
        """These ids go in."""
        self._input = np.ascontiguousarray(ids)
        self.struct.token = self._pointer("token", self._input)
        self.struct.embd = None

    def hidden(self, rows: Rows) -> None:
        """These hidden states go in."""
        self._input = np.ascontiguousarray(rows)
        self.struct.embd = self._pointer("embd", self._input)
        self.struct.token = None

    def flag_all(self, n_rows: int) -> None:
        """Every row is wanted: the last layer drops the others."""
        self._outputs[:n_rows] = 1

    def flag(self, n_rows: int, rows: list[int]) -> None:
        """Logits are wanted of these rows."""
        self._outputs[:n_rows] = 0
        self._outputs[rows] = 1

    def _pointer(self, field: str, array: NDArray[Any]) -> Any:
        return ctypes.cast(array.ctypes.data, self._types[field])
