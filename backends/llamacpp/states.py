"""States of recurrent layers, kept and put back (backends/worker/kept_states.py says when)."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from backends.contract import Keep, Segment, StageError
from backends.worker.kept_states import Kept

State = ctypes.Array[ctypes.c_uint8]


class States:
    """The kept states of all slots of one context."""

    def __init__(self, llama: Any, context: Any, rule: Keep) -> None:
        self._llama, self._context = llama, context
        self._empty = Kept(rule=rule)
        self._flags = llama.LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY  # not the KV cache
        self._slots: dict[int, Kept] = {}
        self._states: dict[tuple[int, int], State] = {}  # by slot and position

    def before(self, segments: Sequence[Segment]) -> None:
        """These are computed next: keep what could not be had again afterwards."""
        for segment in segments:
            slot = self._slots.get(segment.slot, self._empty)
            if slot.keeps(segment):
                self._states[segment.slot, slot.end] = self._read(segment.slot)
            self._set(segment.slot, slot.after(segment))

    def cut_back(self, slot: int, keep: int) -> None:
        """Have the state after `keep` positions again. Raises StageError where it was not kept."""
        held = self._slots.get(slot, self._empty)
        if held.reach(keep) != min(keep, held.end):
            raise StageError(f"slot {slot} has no state after position {keep}")
        if 0 < keep < held.end:
            self._write(slot, self._states[slot, keep])
        self._set(slot, held.cut_back(keep))

    def _set(self, slot: int, kept: Kept) -> None:
        self._slots[slot] = kept
        for key in [key for key in self._states if key[0] == slot and key[1] not in kept.marks]:
            del self._states[key]

    def _read(self, slot: int) -> State:
        n_bytes = self._llama.llama_state_seq_get_size_ext(self._context, slot, self._flags)
        state: State = (ctypes.c_uint8 * n_bytes)()
        got = self._llama.llama_state_seq_get_data_ext(self._context, state, n_bytes, slot, self._flags)
        if got != n_bytes:
            raise StageError(f"the state of slot {slot} cannot be kept")
        return state

    def _write(self, slot: int, state: State) -> None:
        n_bytes = len(state)
        done = self._llama.llama_state_seq_set_data_ext(self._context, state, n_bytes, slot, self._flags)
        if done != n_bytes:
            raise StageError(f"the state of slot {slot} cannot be put back")
