"""Tests of this computer's power draw, as far as its system reports it."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.machine.sensors.power_draw import PowerMeter


def silent(_: object) -> str | None:
    return None


def wrote(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text + "\n", "ascii")


@pytest.fixture(autouse=True)
def no_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)


def test_the_processor_counts_and_two_looks_make_watts(tmp_path: Path) -> None:
    now = [100.0]
    power = PowerMeter(silent, tmp_path, tmp_path / "none", lambda: now[0])
    wrote(tmp_path / "intel-rapl:0", energy_uj="1000000")
    wrote(tmp_path / "intel-rapl:0:0", energy_uj="5")  # a part of the same package
    wrote(tmp_path / "intel-rapl:1", energy_uj="0")
    assert power.watts() is None  # one look says nothing
    now[0] += 10
    wrote(tmp_path / "intel-rapl:0", energy_uj="401000000")
    wrote(tmp_path / "intel-rapl:1", energy_uj="60000000")
    assert power.watts() == pytest.approx(46.0)
    now[0] += 10
    wrote(tmp_path / "intel-rapl:0", energy_uj="7")  # it began anew
    assert power.watts() is None


def test_a_battery_that_discharges_tells_of_the_whole_computer(tmp_path: Path) -> None:
    wrote(tmp_path / "BAT0", status="Discharging", power_now="12500000")
    wrote(tmp_path / "BAT1", status="Discharging", voltage_now="12000000", current_now="500000")
    wrote(tmp_path / "AC", online="0")
    assert PowerMeter(silent, tmp_path / "none", tmp_path).watts() == pytest.approx(18.5)
    wrote(tmp_path / "BAT0", status="Charging")
    wrote(tmp_path / "BAT1", status="Full")
    assert PowerMeter(silent, tmp_path / "none", tmp_path).watts() is None


@pytest.mark.parametrize(("printed", "watts"), [("70.25\n[N/A]\n12.75\n", 83.0), ("[N/A]\n", None), ("", None)])
def test_cards_are_added_where_their_tool_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: str, watts: float | None
) -> None:
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/nvidia-smi")
    assert PowerMeter(lambda _: printed, tmp_path, tmp_path).watts() == watts


def test_the_cards_tool_is_not_started_at_every_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/nvidia-smi")
    now, messages = [0.0], ["70\n", "80\n"]
    power = PowerMeter(lambda _: messages.pop(0), tmp_path, tmp_path, lambda: now[0])
    seen = []
    for now[0] in (0.0, 5.0, 9.9, 10.0):
        seen.append(power.watts())
    assert seen == [70.0, 70.0, 70.0, 80.0]


def test_a_broken_sensor_is_passed_over(tmp_path: Path) -> None:
    wrote(tmp_path / "BAT0", status="Discharging", power_now="999999999999999")
    wrote(tmp_path / "BAT1", status="Discharging", power_now="odd")
    assert PowerMeter(silent, tmp_path / "none", tmp_path).watts() is None
