"""States of recurrent layers, kept after prompts: they cannot be cut back by position as a KV cache can.

A state is kept where a row of its own follows a longer segment: at the end of a prompt, before the answer.
Whoever drives the stages can tell from the steps alone where that is (core/kept.py).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from backends.contract import KEPT_STATES, Segment, StageError


@dataclass(frozen=True, slots=True)
class _State:
    pos: int  # positions it has seen
    data: ctypes.Array[ctypes.c_uint8]


class States:
    """The kept states of all slots of one context."""

    def __init__(self, llama: Any, context: Any) -> None:
        self._llama, self._context = llama, context
        self._kept: dict[int, list[_State]] = {}
        self._ends: dict[
            int, tuple[int, bool]
        ] = {}  # positions held, and whether a prompt ended there

    def before(self, segments: Sequence[Segment]) -> None:
        """These are computed next: keep what could not be had again afterwards."""
        for segment in segments:
            pos, of_prompt = self._ends.get(segment.slot, (0, False))
            if of_prompt and segment.n_tokens == 1 and segment.pos == pos:
                self._keep(segment.slot, pos)
            self._ends[segment.slot] = (segment.end, segment.n_tokens > 1)

    def cut_back(self, slot: int, keep: int) -> None:
        """Have the state after `keep` positions again. Raises StageError where it was not kept."""
        held, _ = self._ends.get(slot, (0, False))
        if keep >= held:
            return
        kept = [state for state in self._kept.get(slot, []) if state.pos <= keep]
        self._kept[slot] = kept
        self._ends[slot] = (keep, False)
        if keep == 0:
            return
        if not kept or kept[-1].pos != keep:
            raise StageError(f"slot {slot} has no state after position {keep}")
        state, flags = kept[-1], self._llama.LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY
        n_bytes = len(state.data)
        done = self._llama.llama_state_seq_set_data_ext(
            self._context, state.data, n_bytes, slot, flags
        )
        if done != n_bytes:
            raise StageError(f"the state of slot {slot} cannot be put back")

    def _keep(self, slot: int, pos: int) -> None:
        flags = self._llama.LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY
        n_bytes = self._llama.llama_state_seq_get_size_ext(self._context, slot, flags)
        data = (ctypes.c_uint8 * n_bytes)()
        got = self._llama.llama_state_seq_get_data_ext(self._context, data, n_bytes, slot, flags)
        if got != n_bytes:
            raise StageError(f"the state of slot {slot} cannot be kept")
        kept = [state for state in self._kept.get(slot, []) if state.pos < pos]
        self._kept[slot] = [*kept, _State(pos, data)][-KEPT_STATES:]
