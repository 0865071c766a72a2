"""What the doctor finds on this computer itself."""

from __future__ import annotations

from typing import Any

import pytest

from app.core.policy import Battery
from app.machine import checks
from app.machine.engines import Device, Engine

GPU = Device("CUDA0", "NVIDIA RTX 3060", "gpu", "CUDA", 8 << 30, 12 << 30)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (
            Engine(
                "llamacpp", "0.3", features=["AVX2", "FMA"], devices=[Device("CPU", kind="cpu")]
            ),
            [(True, "llamacpp 0.3 on A CPU with AVX2, FMA.")],
        ),
        (
            Engine("llamacpp", "0.3", devices=[GPU]),
            [
                (True, "llamacpp 0.3 on A CPU."),
                (True, "NVIDIA RTX 3060 by CUDA: 8.0 GiB of 12.0 GiB are free."),
            ],
        ),
        (
            Engine("llamacpp", missing="llama.cpp cannot be loaded: no libgomp"),
            [(False, "llamacpp: llama.cpp cannot be loaded: no libgomp.")],
        ),
        (
            Engine("llamacpp", missing="no answer within 30 seconds"),
            [(False, "llamacpp: no answer within 30 seconds.")],
        ),
    ],
)
async def test_what_a_worker_says_of_its_engines(
    monkeypatch: pytest.MonkeyPatch, found: Engine, expected: Any
) -> None:
    async def answer() -> list[Engine]:
        return [found]

    monkeypatch.setattr(checks, "probe_all", answer)
    monkeypatch.setattr(checks, "processor_name", lambda: "A CPU")
    assert [(check.ok, check.cause) for check in await checks.engines()] == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (None, []),
        (Battery(43, plugged=False), [(None, "On battery, 43 % left.")]),
        (Battery(43, plugged=True), [(True, "Plugged in.")]),
    ],
)
def test_power_is_told_where_there_is_a_battery(
    monkeypatch: pytest.MonkeyPatch, found: Battery | None, expected: Any
) -> None:
    monkeypatch.setattr(checks, "battery", lambda: found)
    assert [(check.ok, check.cause) for check in checks.power()] == expected


def test_too_little_room_is_a_problem_and_some_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    assert checks._enough(5, 1, 4) is True
    assert checks._enough(3, 1, 4) is None
    assert checks._enough(0, 1, 4) is False
