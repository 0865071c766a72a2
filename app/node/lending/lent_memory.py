"""How much memory this machine gives: to others, and to its own models."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from app.core.errors import BadInput
from app.core.ids import MachineId
from app.core.lending.policy import Room
from app.machine.hardware import devices

if TYPE_CHECKING:
    from app.node.models.model_manager import ModelManager

OWNERS_SHARE = 0.5  # of what is free at start stays with the owner, when nobody chose (SAFETY.md 8)
OWN_MODELS_SHARE = 0.8  # of what is free now, for a model that this machine's own user wants
LEAST_BYTES = 16 << 20  # of a choice: no part of a model fits in less


class MemoryRules:
    """What is lent bounds the others only; `limit_bytes`, where it is not 0, bounds this machine's own models too."""

    def __init__(
        self, chosen_bytes: int | None, memory: Callable[[], devices.Memory] = devices.memory, limit_bytes: int = 0
    ) -> None:
        self._memory = memory
        self.on_call_bytes: Callable[[], int] = lambda: 0  # taken, and had back as soon as wanted
        self._default_bytes = int(memory().free_bytes * OWNERS_SHARE)
        self.chosen_bytes, self.limit_bytes = chosen_bytes, limit_bytes

    def check(self, chosen_bytes: int) -> None:
        """Raises BadInput for a choice that this machine can never keep, or that nobody can mean."""
        if 0 < chosen_bytes < LEAST_BYTES:
            raise BadInput("lend_too_little", asked_bytes=chosen_bytes, least_bytes=LEAST_BYTES)
        total = self._memory().total_bytes
        if chosen_bytes > total:
            raise BadInput("lend_more_than_there", asked_bytes=chosen_bytes, total_bytes=total)

    def room(self, used_bytes: int, unloaded_bytes: int, own_bytes: int) -> Room:
        """The memory now, as it bounds what others may use.

        used_bytes: promised to others; unloaded_bytes: of what is promised, not taken from the free memory
        yet; own_bytes: what this machine's own models hold.
        """
        now = self._now()
        most = self._default_bytes if self.chosen_bytes is None else self.chosen_bytes
        most = min(most, self.limit_bytes or most)
        return Room(most, now.total_bytes, now.free_bytes, used_bytes, unloaded_bytes, own_bytes, self.limit_bytes)

    def own_bytes(self, used_bytes: int, unloaded_bytes: int, own_bytes: int) -> int:
        """What models of this machine's own user may use here in all, in place of those that it holds.

        The arguments are those of `room`. What others use is counted once: the limit is shared with
        them, and free memory is what they left.
        """
        if self.limit_bytes:  # a promise of the owner: it holds whatever is free at this moment
            limit = min(self.limit_bytes, self._memory().total_bytes)
            return max(0, limit - used_bytes)
        return self._without_limit(unloaded_bytes, own_bytes)

    def past_limit_bytes(self, used_bytes: int, unloaded_bytes: int, own_bytes: int) -> int | None:
        """How much more `own_bytes` would be without the limit; None where no limit below this machine's memory is set.

        The arguments are those of `room`.
        """
        if not 0 < self.limit_bytes < self._memory().total_bytes:
            return None
        limited = self.own_bytes(used_bytes, unloaded_bytes, own_bytes)
        return max(0, self._without_limit(unloaded_bytes, own_bytes) - limited)

    def spare_bytes(self, used_bytes: int, unloaded_bytes: int, own_bytes: int) -> int:
        """What could still be loaded here, for this machine's own user, beside all that `room` is told of."""
        most = self.own_bytes(used_bytes, unloaded_bytes, own_bytes)
        return max(0, min(most - own_bytes, self._now().free_bytes - unloaded_bytes))

    def _without_limit(self, unloaded_bytes: int, own_bytes: int) -> int:
        free = max(0, self._now().free_bytes - unloaded_bytes)
        return int((free + own_bytes) * OWN_MODELS_SHARE)

    def _now(self) -> devices.Memory:
        now = self._memory()
        return devices.Memory(now.total_bytes, now.free_bytes + self.on_call_bytes())


def own_uses(hosting: ModelManager, me: MachineId) -> tuple[int, int]:
    """Bytes of this machine that its own models have, and those of them that are not loaded yet."""
    (own, comes), (vectors, vectors_come) = hosting.loaded.uses(me), hosting.embeddings.uses()
    return own + vectors, comes + vectors_come
