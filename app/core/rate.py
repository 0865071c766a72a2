"""A token bucket as a value: when the next bytes may pass, so that no more pass a second than allowed. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

BURST_S = 0.02  # what an idle time leaves to be used at once; a decoded token mostly fits
SLICE_S = 0.02  # what passes in one go: whoever shares the bucket waits no longer for each other
LEAST_SLICE_BYTES, MOST_SLICE_BYTES = 4 << 10, 256 << 10
BYTES_OF_MBIT = 125_000


@dataclass(frozen=True, slots=True)
class Bucket:
    """bytes_per_s may pass; by free_at_s (of a clock that only goes forward) all that was taken will have."""

    bytes_per_s: float
    free_at_s: float = 0.0

    def taken(self, n_bytes: int, now_s: float) -> Bucket:
        """After n_bytes more."""
        begins_s = max(self.free_at_s, now_s - BURST_S)
        return replace(self, free_at_s=begins_s + n_bytes / self.bytes_per_s)

    def wait_s(self, now_s: float) -> float:
        """How long the next bytes must wait."""
        return max(0.0, self.free_at_s - now_s)

    @property
    def slice_bytes(self) -> int:
        """Into pieces of so much a long message is cut."""
        return max(LEAST_SLICE_BYTES, min(MOST_SLICE_BYTES, int(self.bytes_per_s * SLICE_S)))
