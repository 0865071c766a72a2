"""One machine against the household: both are measured, and what was loaded comes back as it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.api.plans import LoadedModel, Plan
from app.api.responses import LoadResponse
from app.core.errors import DoesNotFit
from app.decoding import convert
from app.gui.activity.activity_page import ActivityPage
from app.gui.activity.bench_report import anonymized, compared_with_host, html, markdown
from app.gui.activity.bench_run import (
    ALONE,
    BACK,
    FULL,
    LOADING,
    QUICK,
    TOGETHER,
    BenchmarkSize,
    BenchRun,
    Comparison,
    bench_record,
    host_only_request,
)
from app.gui.activity.bench_store import Bench, BenchStore, HostAlone
from app.gui.app.app_context import AppContext
from tests.gui.activity.made import bench, figures
from tests.gui.desk import Desk, desk, follow
from tests.node.pool import TestNode, paired

Json = dict[str, Any]
WITHIN_MS = 60_000
SMALL = BenchmarkSize("quick", prompt=16, output=8, streams=(1,), runs=1, seconds=60.0)


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[TestNode]]:
    with paired(tmp_path_factory.mktemp("pool"), "den", "attic", lend="256MiB") as nodes:
        yield nodes


@pytest.fixture
def parts(qtbot: QtBot, qapp: QApplication, pool: list[TestNode]) -> Iterator[Desk]:
    made = desk(qapp, pool[0].root)
    follow(qtbot, made.services)
    yield made
    made.services.pool.stop()


def is_ready(services: AppContext) -> bool:
    loaded = services.pool.now.loaded
    return loaded is not None and loaded.state == "ready"


@pytest.mark.long
@pytest.mark.timeout(240)  # two nodes, and three loads of a model
def test_a_press_measures_both_and_puts_the_layers_back(
    qtbot: QtBot, parts: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = parts.services
    done: list[Any] = []
    shelf: list[Json] = []
    services.client.get("/models", shelf.append)
    qtbot.waitUntil(lambda: bool(shelf), timeout=WITHIN_MS)
    layers = next(model["n_layers"] for model in shelf[0]["models"] if model["name"] == "guide")
    split = [1, layers - 2, 1]  # by hand: the planner would take one machine
    body = {"model": "guide", "split": split}
    services.client.call("POST", "/load", body, done.append, done.append)
    qtbot.waitUntil(lambda: is_ready(services), timeout=WITHIN_MS)
    page = ActivityPage(services)
    qtbot.addWidget(page)
    page.show()
    page.bench.begin(SMALL, compare=True, anyway=True)
    qtbot.waitUntil(lambda: not page.bench.is_busy, timeout=WITHIN_MS)
    assert page.notice.sentence == ""
    made = page.bench.earlier.shown
    assert made is not None
    assert made.machines == ["den", "attic"]
    assert made.one is not None
    alone = {stage.machine for stage in made.one.results[0].stages}
    assert alone == {"den"}
    assert made.speedup("decode_tok_s") is not None
    assert "times as fast" in compared_with_host(made)
    qtbot.waitUntil(lambda: is_ready(services), timeout=WITHIN_MS)
    loaded = services.pool.now.loaded
    held = [stage.last - stage.first for stage in loaded.stages] if loaded is not None else []
    assert held == split
    assert page.bench.compare.isVisibleTo(page.bench)
    begun: list[tuple[BenchmarkSize, bool]] = []
    monkeypatch.setattr(page.bench, "begin", lambda extent, *, compare: begun.append((extent, compare)))
    for action in page.bench.compare.menu().actions():
        action.trigger()
    assert begun == [(QUICK, True), (FULL, True)]
    assert BenchStore(services.folder).benchmarks[0].one == made.one


LOADED = convert({
    "model": "m", "context": 512, "users": 2, "shape": "split", "kv": "f16", "number": "q8", "state": "ready",
    "stages": [{"id": "d", "machine": "den", "first": 0, "last": 1},
               {"id": "a", "machine": "attic", "first": 1, "last": 3},
               {"id": "d", "machine": "den", "first": 3, "last": 4}],
}, LoadedModel)  # fmt: skip


def test_the_host_alone_is_asked_for_with_the_same_settings() -> None:
    assert host_only_request(LOADED, ["d", "a", "k"]) == {
        "model": "m", "context": 512, "users": 2, "kv": "f16", "number": "q8", "exact": False, "measure": False,
        "without": ["a", "k"],
    }  # fmt: skip


class Asked:
    """Stands for a call that is under way."""

    def cancel(self) -> None:
        """Nothing runs."""


def compared(at: Desk) -> tuple[Comparison, list[Any]]:
    """A comparison that has not begun, and where all that it ends with comes to lie."""
    both, ends = Comparison(at.services.client, LOADED, ["d", "a"], SMALL, None, 1), list[Any]()
    both.failed.connect(ends.append)
    both.finished.connect(ends.append)
    return both, ends


def test_where_one_machine_cannot_hold_it_the_layers_come_back_and_it_is_said(
    away: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[Json] = []

    def call(method: str, path: str, body: Json, done: Any, failed: Any, *_: Any, **types: object) -> Asked:
        requests.append(body)
        if "split" in body:
            done(LoadResponse(LOADED))
        else:
            failed(DoesNotFit("does_not_fit_anywhere"))
        return Asked()

    monkeypatch.setattr(away.services.client, "call", call)
    both, ends = compared(away)
    both._restore = both._orders[1]
    both._load(LOADING, host_only_request(LOADED, ["d", "a"]))
    assert [isinstance(item, DoesNotFit) for item in ends] == [True]
    assert both.step == BACK
    assert requests[-1]["split"] == [1, 2, 1]


def test_what_was_measured_is_kept_where_the_layers_do_not_come_back(
    away: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are said: the figures, and that the household is not as it was."""

    def call(method: str, path: str, body: Json, done: Any, failed: Any, *_: Any, **types: object) -> Asked:
        failed(DoesNotFit("does_not_fit_anywhere"))
        return Asked()

    monkeypatch.setattr(away.services.client, "call", call)
    both, ends = compared(away)
    run = BenchRun(away.services.client, LOADED, SMALL, None, 1)
    both._benches.append(bench_record(LOADED, run, [figures(tok_s=20.0)]))
    both._step = ALONE
    both._measured(LOADED, run, [figures(tok_s=8.0)])
    assert [type(item) for item in ends] == [Bench, DoesNotFit]
    assert ends[0].speedup("decode_tok_s") == 2.5


@pytest.mark.parametrize(
    ("same", "split", "shape"),
    [(lambda body: "shape" in body, False, True), (lambda body: "split" in body, True, False),
     (lambda body: False, False, True)],
)  # fmt: skip
def test_the_order_that_puts_it_back_is_found_before_anything_changes(
    away: Desk, monkeypatch: pytest.MonkeyPatch, same: Any, split: bool, shape: bool
) -> None:
    """Counts go to machines in the order of their names: they are told only where that is the same."""
    requests: list[tuple[str, Json]] = []

    def call(method: str, path: str, body: Json, done: Any, failed: Any, *_: Any, **types: object) -> Asked:
        requests.append((path, body))
        if path == "/plan":
            done(Plan(model="m", stages=LOADED.stages if same(body) else LOADED.stages[:1]))
        return Asked()

    monkeypatch.setattr(away.services.client, "call", call)
    both = Comparison(away.services.client, LOADED, ["d", "a", "k"], SMALL, None, 1)
    both.start()
    assert both.step == TOGETHER
    assert requests[-1][0] == "/ask"  # measuring has begun
    assert all(body["number"] == "q8" for path, body in requests if path == "/plan")
    both._load(BACK, both._restore)
    back = requests[-1][1]
    assert ("split" in back, "shape" in back) == (split, shape)
    assert (back["number"], back["without"]) == ("q8", ["k"])
    both.cancel()


def test_a_cancelled_one_loads_what_was_loaded(away: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[Json] = []

    def call(method: str, path: str, body: Json, *_: Any, **types: object) -> Asked:
        requests.append(body)
        return Asked()

    monkeypatch.setattr(away.services.client, "call", call)
    both = Comparison(away.services.client, LOADED, ["d", "a", "k"], SMALL, None, 1)
    both._load(LOADING, {})
    both.cancel()
    assert requests[-1]["without"] == ["k"]
    assert "split" not in requests[-1]  # the planner places it so by itself


def test_the_ratio_is_in_every_report_and_names_nobody(tmp_path: Path) -> None:
    made = bench(one=HostAlone(results=[figures(tok_s=8.0)]))
    assert made.speedup("decode_tok_s") == 2.5
    said = "2 machine(s) together: 20.0 tok/s. The host alone: 8.0 tok/s. The pool is 2.50 times as fast."
    assert compared_with_host(made).startswith(said)
    for report in (html(made), markdown(made)):
        assert said in report
        assert "attic" not in report
    assert "attic" not in str(anonymized(made).one)
    assert compared_with_host(bench()) == ""
    store = BenchStore(tmp_path)
    store.add(made)
    assert BenchStore(tmp_path).benchmarks == [made]
