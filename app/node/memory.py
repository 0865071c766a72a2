"""How much memory this machine gives: to others, and to its own models."""

from __future__ import annotations

from typing import Any

from app.machine import devices

OWNERS_SHARE = 0.5  # of what is free at start stays with the owner, when nobody chose (SAFETY.md 8)
OWN_MODELS_SHARE = 0.8  # of what is free now, for a model that this machine's own user wants


class MemoryRules:
    """Limits in bytes. An explicit choice binds this machine's own models as well."""

    def __init__(self, chosen_bytes: int | None) -> None:
        self._chosen_bytes = chosen_bytes
        self._default_bytes = int(devices.memory().free_bytes * OWNERS_SHARE)

    def lent_bytes(self) -> int:
        """What others may use here in all."""
        return self._default_bytes if self._chosen_bytes is None else self._chosen_bytes

    def own_bytes(self) -> int:
        """What a model of this machine's own user may use here."""
        if self._chosen_bytes is not None:
            return self._chosen_bytes
        return int(devices.memory().free_bytes * OWN_MODELS_SHARE)

    def json(self, used_bytes: int, borrowers: list[str]) -> dict[str, Any]:
        now = devices.memory()
        lent = self.lent_bytes()
        state = "working" if used_bytes else "ready" if lent else "off"
        return {
            "state": state,
            "reason": None,
            "used_by": borrowers,
            "lent_bytes": lent,
            "used_bytes": used_bytes,
            "total_bytes": now.total_bytes,
            "free_bytes": now.free_bytes,
        }
