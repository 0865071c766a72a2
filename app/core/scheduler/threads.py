"""How many processor threads a worker may take, and with how many it begins. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Threads:
    """`most`: no step is computed by more. `begin`: with so many its stages begin to look for the number that is
    quickest (backends/worker/thread_choice.py); 0: they always take `most`, which somebody chose."""

    most: int
    begin: int = 0

    def at_most(self, limit: int) -> Threads:
        """Within what the owner lends; 0: no limit."""
        if not limit or limit >= self.most:
            return self
        return Threads(limit, min(self.begin, limit))


MOVES = 0.4  # of a core: what others use beside this, a thread of ours must make room for


def beside_others(most: int, others_cores: float) -> int:
    """Threads that layers of others may take where programs of the owner keep so many cores busy: none of theirs waits
    for us. At least one."""
    return max(1, min(most, int(most - others_cores + MOVES)))
