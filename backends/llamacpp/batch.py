"""What a step gives llama.cpp: rows with their slots and positions, and which of them are outputs."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backends.contract import Segment, StageError
from backends.wire_numbers import Rows


class Batch:
    """A llama_batch whose arrays are ours: filled for each step, never allocated again."""

    def __init__(self, llama: Any, n_rows: int, n_slots: int, planes: int = 1) -> None:
        """planes: positions that llama.cpp reads of each hidden state that enters."""
        self._slots = np.arange(n_slots, dtype=np.int32)
        self._first_slot = self._slots.ctypes.data
        self._n_rows, self._planes = n_rows, planes
        self._pos = np.zeros(n_rows * planes, dtype=np.int32)
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
            if end > self._n_rows or not 0 <= segment.slot < len(self._slots):
                raise StageError(f"{segment} is beyond the room of this stage")
            self._pos[start:end] = np.arange(segment.pos, segment.end, dtype=np.int32)
            self._ids[start:end] = self._first_slot + segment.slot * self._slots.itemsize
            start = end
        self.struct.n_tokens = start
        if self._planes > 1:
            self._copy_planes(start)
        return start

    def _copy_planes(self, n_rows: int) -> None:
        """Text has the same position in every plane but the last, which llama.cpp wants to be 0."""
        planes = self._pos[: n_rows * self._planes].reshape(self._planes, n_rows)
        planes[1:-1] = planes[0]
        planes[-1] = 0

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
