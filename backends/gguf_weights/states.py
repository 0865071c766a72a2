"""The current states of recurrent layers, and the states saved at the end of prompts.

A step replaces states instead of modifying them, so saving a state only takes a reference. SlotCheckpoints decides
when a state is saved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from backends.contract import CheckpointRule, Segment, SlotCheckpoints, StageError

Tensor = Any  # of the engine
Slot = dict[str, Tensor]  # by the name of the layer and of what it carries


class States:
    """The current and saved recurrent states of all slots."""

    def __init__(self, slots: int, rule: CheckpointRule) -> None:
        self._now: list[Slot] = [{} for _ in range(slots)]
        self._saved: dict[tuple[int, int], Slot] = {}  # by slot and position
        self._checkpoints = [SlotCheckpoints(rule=rule)] * slots

    def of(self, slot: int, name: str) -> Tensor | None:
        """Return a slot's state by its name, or None at the beginning of a sequence."""
        return self._now[slot].get(name)

    def set(self, slot: int, name: str, state: Tensor) -> None:
        self._now[slot][name] = state

    def of_slots(self, segments: Sequence[Segment]) -> list[Tensor]:
        """Return all states of these segments' slots."""
        return [state for segment in segments for state in self._now[segment.slot].values()]

    def before(self, segments: Sequence[Segment]) -> None:
        """Save each state that may be needed later, before these segments are computed."""
        for segment in segments:
            checkpoints = self._checkpoints[segment.slot]
            if checkpoints.keeps(segment):
                self._saved[segment.slot, checkpoints.end] = dict(self._now[segment.slot])
            self._follow(segment.slot, checkpoints.after(segment))

    def cut_back(self, slot: int, keep: int) -> None:
        """Restore the state after `keep` positions. Raises StageError if it was not saved."""
        checkpoints = self._checkpoints[slot]
        if checkpoints.reach(keep) != min(keep, checkpoints.end):
            raise StageError(f"slot {slot} has no state after position {keep}")
        if keep < checkpoints.end:
            self._now[slot] = dict(self._saved[slot, keep]) if keep else {}
        self._follow(slot, checkpoints.cut_back(keep))

    def copy(self, slots: Sequence[int]) -> dict[int, tuple[Slot, SlotCheckpoints]]:
        """Return a copy of the slots' states, from which `restore` can undo the next step if it fails."""
        return {slot: (dict(self._now[slot]), self._checkpoints[slot]) for slot in slots}

    def restore(self, copied: dict[int, tuple[Slot, SlotCheckpoints]]) -> None:
        """Restore states that `copy` returned before a step that failed."""
        for slot, (now, checkpoints) in copied.items():
            self._now[slot] = now
            self._follow(slot, checkpoints)

    def _follow(self, slot: int, checkpoints: SlotCheckpoints) -> None:
        self._checkpoints[slot] = checkpoints
        for key in [key for key in self._saved if key[0] == slot and key[1] not in checkpoints.marks]:
            del self._saved[key]
