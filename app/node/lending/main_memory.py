"""The main memory next to a graphics card. The processor uses it for the model families that the card does not
compute.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.core.ids import MachineId
from app.machine.hardware.cards import ComputingCard
from app.node.lending.lending_policy import LendingPolicy
from app.node.lending.lending_service import LendingService
from app.node.models.model_manager import ModelManager

Uses = tuple[int, int, int]  # the arguments of MemoryRules.room


@dataclass(frozen=True, slots=True)
class MainMemory:
    """The uses of this machine's memory, divided between its graphics card and its main memory.

    "Beside" means main memory next to a card. Without a card that computes, there is only one memory and nothing beside
    it.
    """

    me: MachineId
    graphics: ComputingCard
    policy: LendingPolicy
    service: LendingService
    models: ModelManager

    def uses(self) -> Uses:
        """Return the uses of the card's memory or, if no card computes, of main memory."""
        return self._uses(beside=False)

    def own_bytes(self, released: Mapping[MachineId, int]) -> int:
        """Return how many bytes of the card's memory another model of this machine may use after `released` is
        freed.

        Without a card that computes, this is about main memory.
        """
        kept_bytes = self._kept_bytes(released, beside=False)
        return max(0, self.policy.memory.own_bytes(*self.uses()) - kept_bytes)

    def own_bytes_beside(self, released: Mapping[MachineId, int]) -> int:
        """Return how many bytes of main memory beside the card another model of this machine may use after
        `released` is freed.
        """
        if self.graphics.card is None:
            return 0
        kept_bytes = self._kept_bytes(released, beside=True)
        return max(0, self.policy.main_memory.own_bytes(*self._uses(beside=True)) - kept_bytes)

    def lent_bytes_beside(self) -> int | None:
        """Return how much main memory other machines may use in total, or None without a card that computes."""
        if self.graphics.card is None:
            return None
        if not self.policy.lends_processor():
            return 0
        return self.policy.main_memory.room(*self._uses(beside=True)).lent_bytes

    def free_bytes_beside(self) -> int:
        """Return how much more main memory other machines may use."""
        return max(0, (self.lent_bytes_beside() or 0) - self.service.stage_host.reserved(on_device=False)[0])

    def elsewhere(self, *, beside: bool) -> tuple[int, int]:
        """Return how many bytes of one kind of memory other hosts use, and how many all models use.

        beside: whether to count the card's memory. Otherwise, main memory beside the card is counted.
        """
        if self.graphics.card is None:
            return 0, 0
        used, _, own = self._uses(beside=not beside)
        return used, used + own

    def _kept_bytes(self, released: Mapping[MachineId, int], *, beside: bool) -> int:
        """Return how many bytes of one kind of memory this machine's own models still use after `released` is
        freed.

        beside: whether this is main memory beside the card, not the card's memory. Released bytes are first attributed
            to the other kind, because it is unknown which kind they are in.
        """
        loaded = self.models.loaded
        if self.graphics.card is None:
            return loaded.kept_bytes(self.me, released)
        here, _ = loaded.uses(self.me, lambda family: self._is_refused(family) == beside)
        there, _ = loaded.uses(self.me, lambda family: self._is_refused(family) != beside)
        return max(0, here - max(0, released.get(self.me, 0) - there))

    def _uses(self, *, beside: bool) -> Uses:
        vectors, vectors_come = self.models.embeddings.uses()  # always in main memory
        if self.graphics.card is None:
            own, comes = self.models.loaded.uses(self.me)
            used, unloaded = self.service.used_bytes, self.service.unloaded_bytes
            return used, unloaded + comes + vectors_come, own + vectors
        own, comes = self.models.loaded.uses(self.me, lambda family: self._is_refused(family) == beside)
        used, unloaded = self.service.stage_host.reserved(on_device=not beside)
        if beside:
            own, comes = own + vectors, comes + vectors_come
        return used, unloaded + comes, own

    def _is_refused(self, family: str) -> bool:
        return self.graphics.card_for(family) is None
