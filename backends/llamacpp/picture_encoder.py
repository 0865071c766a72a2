"""Pictures on llama.cpp's mtmd: a projector (mmproj) turns a picture into rows, which replace token embeddings.

Only the vocabulary and the sizes of the text model are read, not its weights, which the stages hold.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from backends.contract import NotFinite, StageError
from backends.hidden_state_codec import VALUE, Rows
from backends.llamacpp import binding

MARKER = b"<picture>"
RGB = 3


@dataclass(frozen=True, slots=True)
class PicturePart:
    """A part of what represents a picture: token ids, such as those around it, or its own rows.

    n_columns: the rows in a line of the picture if their positions have two dimensions, and 0 otherwise.
    """

    ids: tuple[int, ...] = ()
    rows: Rows | None = None
    n_columns: int = 0


class PictureEncoder:
    """A projector and the facts about its text model that it needs."""

    def __init__(self, path: str, projector_path: str, threads: int, most_rows: int = 0) -> None:
        """Load a projector for the model at `path`. Raises StageError with llama.cpp's message.

        most_rows: the limit for a picture of any size; 0 for the limit in the file.
        """
        self._llama, self._mtmd = binding.load(), binding.load_mtmd()
        self._context: Any = None
        self._model: Any = binding.load_model(path, without_weights=True)
        try:
            self._open(projector_path, threads, most_rows)
        except StageError:
            self.close()
            raise

    def _open(self, projector_path: str, threads: int, most_rows: int) -> None:
        llama, mtmd = self._llama, self._mtmd
        self.width = int(llama.llama_model_n_embd(self._model))
        if llama.llama_model_n_embd_inp(self._model) != self.width:
            raise StageError("the rows of a picture are wider than a hidden state")
        params = mtmd.mtmd_context_params_default()
        params.use_gpu = params.print_timings = params.warmup = False
        params.n_threads, params.media_marker = threads, MARKER
        if most_rows:
            params.image_max_tokens = most_rows
        # without it, a picture of 4,096 patches takes a gigabyte for the scores of its attention
        params.flash_attn_type = int(llama.LLAMA_FLASH_ATTN_TYPE_ENABLED)
        binding.take_log()
        self._context = mtmd.mtmd_init_from_file(projector_path.encode(), self._model, params)
        if not self._context:
            words = binding.why_not(binding.take_log()) or "llama.cpp gives no reason"
            raise StageError(f"the projector cannot be loaded: {words}", "llama_cannot_load", words=words)
        if not mtmd.mtmd_support_vision(self._context):
            raise StageError("the projector is not for pictures")

    @property
    def is_causal(self) -> bool:
        """Return whether a row of a picture sees only the rows before it. Otherwise, it sees all of the picture."""
        return not self._mtmd.mtmd_decode_use_non_causal(self._context, None)

    def see(self, width: int, height: int, rgb: bytes) -> list[PicturePart]:
        """Return what represents a picture in a prompt, in order. Raises StageError."""
        if min(width, height) < 1 or width * height * RGB != len(rgb):
            raise StageError(f"{len(rgb)} bytes are no picture of {width} x {height}")
        pixels = (ctypes.c_uint8 * len(rgb)).from_buffer_copy(rgb)
        bitmap = self._mtmd.mtmd_bitmap_init(width, height, pixels)
        chunks = self._mtmd.mtmd_input_chunks_init()
        try:
            return list(self._parts(bitmap, chunks))
        finally:
            self._mtmd.mtmd_input_chunks_free(chunks)
            self._mtmd.mtmd_bitmap_free(bitmap)

    def _parts(self, bitmap: Any, chunks: Any) -> Iterator[PicturePart]:
        mtmd = self._mtmd
        text = mtmd.mtmd_input_text(MARKER, len(MARKER), False, True)
        bitmaps = (mtmd.mtmd_bitmap_p_ctypes * 1)(bitmap)
        binding.take_log()
        if code := mtmd.mtmd_tokenize(self._context, chunks, ctypes.byref(text), bitmaps, 1):
            self._fail(code)
        for at in range(mtmd.mtmd_input_chunks_size(chunks)):
            chunk = mtmd.mtmd_input_chunks_get(chunks, at)
            if mtmd.mtmd_input_chunk_get_type(chunk) == mtmd.MTMD_INPUT_CHUNK_TYPE_TEXT:
                yield PicturePart(ids=self._ids(chunk))
            else:
                yield PicturePart(rows=self._rows(chunk), n_columns=self._columns(chunk))

    def _ids(self, chunk: Any) -> tuple[int, ...]:
        size = ctypes.c_size_t()
        start = self._mtmd.mtmd_input_chunk_get_tokens_text(chunk, ctypes.byref(size))
        ids = tuple(int(start[at]) for at in range(size.value))
        if any(token < 0 for token in ids):
            raise StageError("the model's vocabulary lacks a token of the projector")
        return ids

    def _columns(self, chunk: Any) -> int:
        """Return how many rows a line of the picture has, or 0 if its rows follow each other like tokens.

        Raises StageError if their positions are of another kind.
        """
        mtmd = self._mtmd
        n_rows, n_positions = mtmd.mtmd_input_chunk_get_n_tokens(chunk), mtmd.mtmd_input_chunk_get_n_pos(chunk)
        if not mtmd.mtmd_decode_use_mrope(self._context):
            if n_positions != n_rows:
                raise StageError("the positions of a picture are of an unknown kind")
            return 0
        picture = mtmd.mtmd_input_chunk_get_tokens_image(chunk)
        n_columns, n_lines = int(mtmd.mtmd_image_tokens_get_nx(picture)), int(mtmd.mtmd_image_tokens_get_ny(picture))
        if n_columns * n_lines != n_rows or max(n_columns, n_lines) != n_positions:
            raise StageError("the positions of a picture are of an unknown kind")
        return n_columns

    def _rows(self, chunk: Any) -> Rows:
        mtmd = self._mtmd
        if code := mtmd.mtmd_encode_chunk(self._context, chunk):
            self._fail(code)
        n_rows = int(mtmd.mtmd_input_chunk_get_n_tokens(chunk))
        start = mtmd.mtmd_get_output_embd(self._context)
        data = ctypes.string_at(ctypes.addressof(start.contents), n_rows * self.width * VALUE.itemsize)
        rows = np.frombuffer(data, VALUE).reshape(n_rows, self.width)
        if not np.isfinite(rows).all():
            raise NotFinite("what the projector makes of a picture are no numbers")
        return rows

    def _fail(self, code: int) -> None:
        words = binding.take_log()
        raise StageError(f"llama.cpp failed with {code}: {words}", "llama_failed", status=code, words=words)

    def close(self) -> None:
        """Release the memory."""
        if self._context:
            self._mtmd.mtmd_free(self._context)
        if self._model:
            self._llama.llama_model_free(self._model)
        self._context = self._model = None
