"""The state of a slot on its way from a stage to its node, which keeps it on disk, and back into a stage."""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from typing import Protocol

from backends.worker_orders import ReadSlot, SlotPiece, SlotWritten, WriteSlot

PIECE_BYTES = 2 << 20  # in one order or answer, which base64 makes a third longer


class SlotState(Protocol):
    """The part of an engine that copies the state of a slot."""

    def slot_bytes(self, slot: int) -> int:
        """Return the size of the state of a slot. Raises StageError."""
        ...

    def read_slot(self, slot: int, room: mmap.mmap) -> None:
        """Copy the state of a slot to `room`, which has its size. Raises StageError."""
        ...

    def write_slot(self, slot: int, state: mmap.mmap, positions: int) -> bool:
        """Replace the state of a slot. Return False, with the slot empty, if it is not a state of these layers."""
        ...


@dataclass(slots=True)
class _Copy:
    slot: int
    positions: int
    room: mmap.mmap  # shared memory, because the limit for private memory has no room for it
    n_bytes: int = 0  # so many have arrived


class SlotCopies:
    """The copies of a stage: at most one that is being read and, for each slot, one that is being written."""

    def __init__(self, engine: SlotState) -> None:
        self._engine = engine
        self._reading: _Copy | None = None
        self._writing: dict[int, _Copy] = {}

    def read(self, order: ReadSlot, positions: int) -> SlotPiece:
        """Return a piece of the copy of a slot that holds so many positions. Raises StageError."""
        if order.offset == 0:
            self._reading = None
            n_bytes = self._engine.slot_bytes(order.slot) if positions else 0
            if not 0 < n_bytes <= order.most_bytes:
                return SlotPiece(request=order.request, positions=positions, total_bytes=n_bytes)
            copy = _Copy(order.slot, positions, mmap.mmap(-1, n_bytes))
            self._engine.read_slot(order.slot, copy.room)
            self._reading = copy
        held = self._reading
        if held is None or held.slot != order.slot or not 0 <= order.offset < len(held.room):
            self._reading = None
            return SlotPiece(request=order.request, positions=0, total_bytes=0)
        data = held.room[order.offset : order.offset + PIECE_BYTES]
        if order.offset + len(data) == len(held.room):
            self._reading = None
        return SlotPiece(request=order.request, positions=held.positions, total_bytes=len(held.room), data=data)

    def write(self, order: WriteSlot) -> SlotWritten:
        """Take a piece of the state of a slot. Raises StageError."""
        if order.offset == 0:
            self._writing[order.slot] = _Copy(order.slot, order.positions, mmap.mmap(-1, max(1, order.total_bytes)))
        held = self._writing.get(order.slot)
        end = order.offset + len(order.data)
        if held is None or held.n_bytes != order.offset or end > order.total_bytes or len(held.room) < end:
            self.cancel(order.slot)
            return SlotWritten(request=order.request, n_bytes=0)
        held.room[order.offset : end] = order.data
        held.n_bytes = end
        if end < len(held.room):
            return SlotWritten(request=order.request, n_bytes=end)
        del self._writing[order.slot]
        is_taken = self._engine.write_slot(order.slot, held.room, held.positions)
        return SlotWritten(request=order.request, n_bytes=end, positions=held.positions * is_taken)

    def cancel(self, slot: int) -> None:
        """Forget a state that is arriving, because the slot is used otherwise."""
        self._writing.pop(slot, None)

    def clear(self) -> None:
        """Forget all copies."""
        self._reading = None
        self._writing.clear()
