"""A token's time as a sum of parts, and how evenly machines work."""

from __future__ import annotations

import pytest

from bench.parts.time_profile import busy, losses, middle

POOL = {"host": 0.002, "host/worker": 0.05, "lender-1": 0.001, "lender-1/worker": 0.04,
        "client": 0.001, "wall": 0.1}  # fmt: skip


def test_parts_add_up_to_the_whole() -> None:
    parts = losses({"whole": 0.08, "wall": 0.081}, POOL)
    assert sum(seconds for _, seconds in parts[:-1]) == pytest.approx(parts[-1][1])
    assert parts[0][1] == 0.08
    assert parts[1][1] == pytest.approx(0.01)  # the two workers compute more than the whole did


def test_busy() -> None:
    result = busy(POOL)
    assert result["host busy"] == pytest.approx(0.52)
    assert result["lender-1 busy"] == pytest.approx(0.41)
    assert result["lost by imbalance"] == pytest.approx(0.055)
    assert result["lost while the busiest waits"] == pytest.approx(0.48)


def test_middle_takes_each_entry_by_itself() -> None:
    assert middle([{"a": 1.0, "b": 9.0}, {"a": 3.0, "b": 7.0}, {"a": 2.0, "b": 8.0}]) == {"a": 2.0, "b": 8.0}
