"""Which models are of a size that a person looks for, by the size that the list shows."""

from __future__ import annotations

import math
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication

from app.gui.look.formats import GIB, whole_size
from app.gui.models.model_item import Item, Kind

translate = QCoreApplication.translate

BYTES_PER_PARAMETER = 0.61  # of Q4_K_M, which is recommended most: 4.85 bits


@dataclass(frozen=True, slots=True)
class SizeClass:
    """Files of more than `above` bytes and of at most `most`."""

    above: float
    most: float

    @property
    def words(self) -> str:
        if not self.above:
            return translate("Models", "Up to {size}").format(size=whole_size(self.most))
        if math.isinf(self.most):
            return translate("Models", "Over {size}").format(size=whole_size(self.above))
        return whole_size(self.above, self.most)

    def holds(self, item: Item) -> bool:
        """A model whose size nobody knows is in none."""
        return self.above < size_of(item) <= self.most


# a small computer, a usual one or a graphics card, a large one, several together
CLASSES = (
    SizeClass(0, 4 * GIB), SizeClass(4 * GIB, 16 * GIB), SizeClass(16 * GIB, 48 * GIB),
    SizeClass(48 * GIB, math.inf),
)  # fmt: skip


def size_of(item: Item) -> float:
    """Bytes of the file that its line names; 0 where they are not known.

    Of what a search found, as large as the usual quantisation of so many parameters is, also once its files are
    known: a line must not go while one looks at it.
    """
    facts = item.facts
    match item.kind:
        case Kind.SHELF:
            found = facts.get("file_bytes")
        case Kind.OTHER_APP:
            found = facts.get("size_bytes")
        case Kind.OFFER:
            found = (item.file() or {}).get("size_bytes")
        case Kind.FOUND:
            found = (facts.get("parameters") or 0) * BYTES_PER_PARAMETER
    return float(found or 0)
