"""Energy of a benchmark: what counts as read, and where it is told, or left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app.api.plans import LoadedModel, Stage
from app.api.snapshot import Machine, Snapshot
from app.gui.activity import bench_report
from app.gui.activity.bench_report import BenchCard, compared_with_host, html, markdown
from app.gui.activity.bench_run import SETTLE_S, BenchmarkSize, BenchRun, PowerMeter, power_draw_watts
from app.gui.activity.bench_store import BenchStore, HostAlone
from tests.gui.activity.made import bench, figures
from tests.gui.desk import Desk

PLACED = LoadedModel(model="guide", stages=[Stage("den", "d"), Stage("attic", "a"), Stage("den", "d")])
DREW = {"watts": 62.0, "watt_hours": 0.2, "joules_per_token": 3.104}
ONCE = BenchmarkSize("quick", prompt=4, output=4, streams=(1,), runs=1, seconds=60.0)


@pytest.mark.parametrize(
    ("watts", "together"), [({"d": 40, "a": 22}, 62.0), ({"d": 40, "a": None}, None), ({"d": 40}, None), ({}, None)]
)
def test_all_machines_of_the_placement_must_tell(watts: dict[str, int | None], together: float | None) -> None:
    machines = {key: Machine(key, watts=value) for key, value in (watts | {"k": 500}).items()}
    assert power_draw_watts(Snapshot(machines=machines), PLACED) == together


def test_what_was_drawn_before_does_not_count(qtbot: QtBot) -> None:
    now, values = [100.0], [900.0]
    meter = PowerMeter(lambda: values[0], clock=lambda: now[0])
    meter.begin()
    meter.sample()  # what the machine tells is of before
    assert meter.end() is None
    meter.begin()
    for seconds, watts in ((1.0, 900.0), (SETTLE_S, 60.0), (1.0, 64.0)):
        now[0], values[0] = now[0] + seconds, watts
        meter.sample()
    assert meter.end() == 62.0


def test_a_machine_that_goes_silent_leaves_nothing_to_tell(qtbot: QtBot) -> None:
    now, reports = [0.0], [40.0, None]
    meter = PowerMeter(lambda: reports.pop(0), clock=lambda: now[0])
    meter.begin()
    now[0] = SETTLE_S
    meter.sample()
    meter.sample()
    assert meter.end() is None


@pytest.mark.long
def test_a_run_measures_what_its_own_placement_draws(
    qtbot: QtBot, at_lone: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.gui.activity.bench_run.SETTLE_S", 0.0)
    monkeypatch.setattr("app.gui.activity.bench_run.METER_MS", 1)
    pool = at_lone.services.pool
    order = {"model": "guide", "measure": False}
    at_lone.services.client.call("POST", "/load", order, lambda _: None)
    qtbot.waitUntil(lambda: bool(pool.now.loaded and pool.now.loaded.state == "ready"), timeout=30_000)
    models: list[LoadedModel] = []

    def watts(placed: LoadedModel) -> float | None:
        models.append(placed)
        return 50.0

    loaded = pool.now.loaded
    assert loaded is not None
    run, ends = BenchRun(at_lone.services.client, loaded, ONCE, None, 3, watts), list[Any]()
    run.finished.connect(ends.append)
    run.failed.connect(ends.append)
    run.start()
    qtbot.waitUntil(lambda: bool(ends), timeout=30_000)
    drew = ends[0][0].energy
    assert drew.watts == 50.0
    assert 0 < drew.joules_per_token < 50 * 30
    assert models[0] == loaded


def test_it_is_told_in_every_report_where_it_is_known(qtbot: QtBot, away: Desk, tmp_path: Path) -> None:
    made = bench(results=[figures(energy=DREW), figures(4)])
    words = "62 W on 2 machine(s), as reported by the system"
    assert f"- Energy: **3.10 J/token** ({words})" in markdown(made).splitlines()
    assert f"Energy<b>3.10 J/token</b><span class=muted>{words}" in html(made)
    bench_report.save(made, tmp_path / "report.json", away.services.theme)
    data = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert data["results"][0]["energy"] == DREW
    card = BenchCard(away.services.theme)  # the picture is one of it
    qtbot.addWidget(card)
    card.show_bench(made)
    assert {"Energy", "3.10 J/token", words} <= {label.text() for label in card.findChildren(QLabel)}
    store = BenchStore(tmp_path)
    store.add(made)
    assert BenchStore(tmp_path).benchmarks == [made]


def test_nothing_is_said_of_it_where_it_is_not(qtbot: QtBot, away: Desk) -> None:
    made = bench()
    assert "nergy" not in markdown(made) + html(made)


def test_the_household_stands_beside_the_host_alone() -> None:
    alone = HostAlone(results=[figures(energy=DREW | {"joules_per_token": 12.0})])
    made = bench(results=[figures(energy=DREW)], one=alone)
    assert compared_with_host(made).endswith("Energy: 3.10 J/token with all machines, 12 J/token with only the host.")
