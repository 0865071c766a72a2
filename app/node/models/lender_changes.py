"""What lenders told last, as far as plans depend on it: other news of them is no reason to plan anew."""

from __future__ import annotations

from app.core.errors import StageLost
from app.core.household.household import Told
from app.core.ids import MachineId
from app.core.reasons import said

Known = tuple[str, int, int, str, str]  # name, what it lends, what is used, what it does, engine


class LenderChanges:
    """Of those that are linked. Watts and degrees change all the time."""

    def __init__(self) -> None:
        self._known: dict[MachineId, Known] = {}

    def is_new(self, told: Told) -> bool:
        """Whether a plan may be another one after this."""
        about = (
            told.name,
            told.lends_bytes,
            told.used_bytes,
            told.lending,
            told.about.engine,
        )
        before, self._known[told.id] = self._known.get(told.id), about
        return about != before

    def left(self, machine: MachineId) -> None:
        """When it comes again, that is news, whatever it says."""
        self._known.pop(machine, None)


def wants_back(told: Told) -> StageLost | None:
    """What ends a run there, if its owner takes the memory back."""
    if told.lending != "draining":
        return None
    sentence = said(told.lending_reason) if told.lending_reason else ""
    return StageLost("lend_taken_back", machine=told.name, why=sentence)
