"""How much memory this machine gives: to others, and to its own models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from app.machine import devices

OWNERS_SHARE = 0.5  # of what is free at start stays with the owner, when nobody chose (SAFETY.md 8)
OWN_MODELS_SHARE = 0.8  # of what is free now, for a model that this machine's own user wants
RESERVE_BYTES = 1 << 30  # never lent, for what the owner starts next; a tenth of a small machine
STEP_BYTES = 64 << 20  # free memory is told in steps: the others need not hear of every page


class MemoryRules:
    """Limits in bytes. An explicit choice of more than nothing binds this machine's own models as well."""

    def __init__(
        self, chosen_bytes: int | None, memory: Callable[[], devices.Memory] = devices.memory
    ) -> None:
        self._chosen_bytes, self._memory = chosen_bytes, memory
        default_bytes = int(memory().free_bytes * OWNERS_SHARE)
        self._most_bytes = default_bytes if chosen_bytes is None else chosen_bytes

    def lent_bytes(self, used_bytes: int, unloaded_bytes: int, own_bytes: int) -> int:
        """What others may use here in all: never more than they have and what is free now.

        used_bytes: promised to others; unloaded_bytes: of these, not taken from the free memory yet;
        own_bytes: what this machine's own model holds.
        """
        now = self._memory()
        reserve = min(RESERVE_BYTES, now.total_bytes // 10)
        free = max(0, now.free_bytes - unloaded_bytes - reserve)
        return max(
            0, min(self._most_bytes - own_bytes, used_bytes + free // STEP_BYTES * STEP_BYTES)
        )

    def own_bytes(self, used_bytes: int, unloaded_bytes: int, own_bytes: int) -> int:
        """What a model of this machine's own user may use here, in place of the one that it holds.

        The arguments are those of `lent_bytes`. What others use is counted once: a choice is shared
        with them, and free memory is what they left.
        """
        if self._chosen_bytes:
            return max(0, self._chosen_bytes - used_bytes)
        free = max(0, self._memory().free_bytes - unloaded_bytes)
        return int((free + own_bytes) * OWN_MODELS_SHARE)

    def json(self, lent_bytes: int, used_bytes: int, borrowers: list[str]) -> dict[str, Any]:
        now = self._memory()
        state = "working" if used_bytes else "ready" if lent_bytes else "off"
        return {
            "state": state,
            "reason": None,
            "used_by": borrowers,
            "lent_bytes": lent_bytes,
            "used_bytes": used_bytes,
            "total_bytes": now.total_bytes,
            "free_bytes": now.free_bytes,
        }
