"""Tests of what NVIDIA's library reports. The library is a fake: no card was at hand."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from app.machine.sensors.card_use import DriverReport
from app.machine.sensors.nvidia_cards import NvidiaCards, bus_place

GIB = 1 << 30


def process(pid: int, n_bytes: int | None) -> Any:
    return SimpleNamespace(pid=pid, usedGpuMemory=n_bytes)


def sample(pid: int, at_us: int, percent: int) -> Any:
    return SimpleNamespace(pid=pid, timeStamp=at_us, smUtil=percent)


class FakeNvml:
    """The functions of NVML that are called, for one card. `fails` names those that the card does not support."""

    NVMLError = pynvml.NVMLError
    NVMLError_NotFound = pynvml.NVMLError_NotFound
    NVML_TEMPERATURE_GPU = pynvml.NVML_TEMPERATURE_GPU

    def __init__(self) -> None:
        self.fails: dict[str, int] = {}
        self.samples: list[Any] = []
        self.since_us: list[int] = []
        self.is_open = 0
        self.degrees = 61

    def _may(self, name: str) -> None:
        if name in self.fails:
            raise pynvml.NVMLError(self.fails[name])

    def nvmlInit(self) -> None:  # noqa: N802  NVML's names, here and below
        self._may("nvmlInit")
        self.is_open += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.is_open -= 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 1

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        self._may("nvmlDeviceGetHandleByIndex")
        return index

    def nvmlDeviceGetPciInfo(self, card: int) -> Any:  # noqa: N802
        return SimpleNamespace(busId="00000000:0A:00.0")

    def nvmlDeviceGetTemperature(self, card: int, sensor: int) -> int:  # noqa: N802
        self._may("nvmlDeviceGetTemperature")
        return self.degrees

    def nvmlDeviceGetUtilizationRates(self, card: int) -> Any:  # noqa: N802
        self._may("nvmlDeviceGetUtilizationRates")
        return SimpleNamespace(gpu=98, memory=20)

    def nvmlDeviceGetMemoryInfo(self, card: int) -> Any:  # noqa: N802
        return SimpleNamespace(used=4 * GIB)

    def nvmlDeviceGetComputeRunningProcesses(self, card: int) -> list[Any]:  # noqa: N802
        return [process(77, 3 * GIB)]

    def nvmlDeviceGetGraphicsRunningProcesses(self, card: int) -> list[Any]:  # noqa: N802
        self._may("nvmlDeviceGetGraphicsRunningProcesses")
        return [process(1000, None)]

    def nvmlDeviceGetProcessUtilization(self, card: int, since_us: int) -> list[Any]:  # noqa: N802
        self._may("nvmlDeviceGetProcessUtilization")
        self.since_us.append(since_us)
        return self.samples


@pytest.fixture
def nvml() -> FakeNvml:
    return FakeNvml()


@pytest.fixture
def cards(nvml: FakeNvml, tmp_path: Path) -> NvidiaCards:
    return NvidiaCards(lambda: nvml, tmp_path / "no bus")


def test_all_that_a_card_tells(nvml: FakeNvml, cards: NvidiaCards) -> None:
    nvml.samples = [sample(77, 2_000, 90), sample(77, 1_000, 10), sample(1000, 1_500, 3)]
    held = {77: 3 * GIB, 1000: None}
    percents = {77: 90.0, 1000: 3.0}
    expected = DriverReport("0000:0a:00.0", True, 61.0, 98.0, 4 * GIB, frozenset(held), percents, held)
    assert cards.read() == [expected]
    nvml.samples = []
    assert cards.read()[0].percents == {}
    assert nvml.since_us == [0, 2_000]
    assert nvml.is_open == 0, "the library is open only while it is read"


def test_what_a_card_does_not_support_is_unknown(nvml: FakeNvml, cards: NvidiaCards) -> None:
    nvml.fails = dict.fromkeys(
        (
            "nvmlDeviceGetTemperature",
            "nvmlDeviceGetUtilizationRates",
            "nvmlDeviceGetProcessUtilization",
            "nvmlDeviceGetGraphicsRunningProcesses",
        ),
        pynvml.NVML_ERROR_NOT_SUPPORTED,
    )
    (reported,) = cards.read()
    assert (reported.celsius, reported.busy_percent, reported.percents, reported.holders) == (
        None,
        None,
        None,
        frozenset({77}),
    )


def test_nothing_computed_since_is_no_use_at_all(nvml: FakeNvml, cards: NvidiaCards) -> None:
    nvml.fails = {"nvmlDeviceGetProcessUtilization": pynvml.NVML_ERROR_NOT_FOUND}
    assert cards.read()[0].percents == {}


def test_a_broken_sensor_is_unknown(nvml: FakeNvml, cards: NvidiaCards) -> None:
    nvml.degrees = 0
    assert cards.read()[0].celsius is None


@pytest.mark.parametrize("name", ["nvmlInit", "nvmlDeviceGetHandleByIndex"])
def test_a_driver_that_is_not_there_or_was_lost_reports_no_card(nvml: FakeNvml, cards: NvidiaCards, name: str) -> None:
    nvml.fails = {name: pynvml.NVML_ERROR_GPU_IS_LOST}
    assert cards.read() == []
    assert nvml.is_open == 0
    nvml.fails = {}
    assert len(cards.read()) == 1


def test_the_real_library_without_a_driver_reports_no_card(tmp_path: Path) -> None:
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        assert NvidiaCards(bus=tmp_path).read() == []
    else:
        pynvml.nvmlShutdown()
        assert NvidiaCards().read()


def test_cards_that_sleep_are_not_woken(nvml: FakeNvml, tmp_path: Path) -> None:
    device = tmp_path / "0000:0a:00.0"
    (device / "power").mkdir(parents=True)
    (device / "vendor").write_text("0x10de\n")
    (device / "class").write_text("0x030000\n")
    status = device / "power" / "runtime_status"
    status.write_text("suspended\n")
    cards = NvidiaCards(lambda: pytest.fail("the library was loaded"), tmp_path)
    assert cards.read() == []
    shutil.copytree(device, tmp_path / "0000:0b:00.0")
    status.write_text("active\n")  # of one of the two
    assert len(NvidiaCards(lambda: nvml, tmp_path).read()) == 1


@pytest.mark.parametrize("text", ["00000000:01:00.0", b"00000000:01:00.0", "0000:01:00.0"])
def test_a_place_on_the_bus(text: str | bytes) -> None:
    assert bus_place(text) == "0000:01:00.0"
