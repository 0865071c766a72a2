"""The rows of pictures that a first stage keeps, so that steps can refer to them by id like to tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from backends.contract import FIRST_PICTURE_ID, StageError
from backends.hidden_state_codec import VALUE, bytes_of

Kept = tuple[int, NDArray[np.float32]]  # the number of the first row, and the rows


class ShownPictures:
    """The rows of pictures, by the slot whose sequence needs them.

    Ids count down from FIRST_PICTURE_ID. Equal pictures of one model have equal ids, so any slot's rows will do.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._slots: dict[int, list[Kept]] = {}

    def keep(self, slot: int, first: int, rows: bytes, *, begins: bool) -> None:
        """Keep rows for the sequence in a slot. Raises StageError if they have another width."""
        if first > FIRST_PICTURE_ID or not rows or len(rows) % (self._width * VALUE.itemsize):
            raise StageError(f"{len(rows)} bytes are no rows of width {self._width} for a picture")
        values = np.frombuffer(rows, dtype=VALUE).reshape(-1, self._width)
        if not np.isfinite(values).all():
            raise StageError("the rows of a picture are no numbers")
        if begins:
            self._slots[slot] = []
        self._slots.setdefault(slot, []).append((FIRST_PICTURE_ID - first, values))

    def computed(self, slot: int, ids: Sequence[int]) -> None:
        """Drop the rows of a slot whose last one is among the ids of a computed step. Nothing refers to them again:
        a sequence that is computed again is shown its pictures again."""
        kept = self._slots.get(slot, [])
        for number in (FIRST_PICTURE_ID - token for token in ids if token <= FIRST_PICTURE_ID):
            ended = next((at for at, (first, rows) in enumerate(kept) if first + len(rows) - 1 == number), None)
            if ended is not None:  # if a sequence has a picture twice, this is the earlier one
                del kept[ended]

    def drop(self, slot: int) -> None:
        """Drop all rows for the sequence in a slot."""
        self._slots.pop(slot, None)

    def rows(self, ids: Sequence[int]) -> memoryview:
        """Return the rows with these ids. Raises StageError if one is unknown."""
        numbers = FIRST_PICTURE_ID - np.asarray(ids, dtype=np.int64)
        rows = np.empty((len(numbers), self._width), dtype=VALUE)
        missing = np.ones(len(numbers), dtype=bool)
        for first, values in (kept for slot in self._slots.values() for kept in slot):
            here = missing & (numbers >= first) & (numbers < first + len(values))
            if here.any():
                rows[here] = values[numbers[here] - first]
                missing &= ~here
        if missing.any():
            raise StageError("a step refers to a picture that was not shown")
        return bytes_of(rows)
