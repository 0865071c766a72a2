"""The benchmark: what it asks, that it ends in time, what is kept, and that no name is shared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from pytestqt.qtbot import QtBot

from app.api.plans import FirstToken, Forecast, LoadedModel
from app.api.responses import ForecastSpeed
from app.core.errors import BadInput, StageLost
from app.gui.activity import bench_report
from app.gui.activity.activity_page import ActivityPage
from app.gui.activity.bench_report import anonymized, compared_with_forecast, headline, html, markdown
from app.gui.activity.bench_run import FULL, QUICK, BenchmarkSize, BenchRun, expected_seconds, fitted
from app.gui.activity.bench_store import MOST_KEPT, BenchStore
from tests.gui.activity.made import bench, figures
from tests.gui.desk import Desk

SMALL = BenchmarkSize("quick", prompt=16, output=8, streams=(1, 2), runs=2, seconds=60.0)


def test_a_benchmark_fits_into_the_placement() -> None:
    assert fitted(QUICK, 4096, 1) == QUICK
    assert fitted(FULL, 4096, 1).streams == (1, 4)  # slots that every placement has
    assert fitted(FULL, 4096, 8).streams == (1, 8)
    small = fitted(FULL, 96, 1)
    assert (small.prompt, small.output, small.streams) == (64, 32, (1,))


def loaded(qtbot: QtBot, at_lone: Desk) -> LoadedModel:
    pool = at_lone.services.pool

    def is_ready() -> bool:
        return pool.now.loaded is not None and pool.now.loaded.state == "ready"

    if not is_ready():
        order = {"model": "guide", "measure": False}
        at_lone.services.client.call("POST", "/load", order, lambda _: None)
        qtbot.waitUntil(is_ready, timeout=30_000)
    assert pool.now.loaded is not None
    return pool.now.loaded


@pytest.mark.long
def test_it_measures_a_real_model(qtbot: QtBot, at_lone: Desk) -> None:
    run = BenchRun(at_lone.services.client, loaded(qtbot, at_lone), SMALL, None, 7)
    ends: list[Any] = []
    shares: list[float] = []
    run.finished.connect(ends.append)
    run.failed.connect(ends.append)
    run.progressed.connect(lambda share, _: shares.append(share))
    run.start()
    qtbot.waitUntil(lambda: bool(ends), timeout=30_000)
    item, two = ends[0]
    assert (item.streams, item.runs, item.tokens) == (1, 2, [8, 8])
    assert (two.streams, two.tokens) == (2, [8] * 4)
    assert item.reused_tokens == two.reused_tokens == 0
    assert item.mean("decode_tok_s") > 0
    assert shares == sorted(shares)


def test_without_time_each_kind_of_round_happens_once(qtbot: QtBot, at_lone: Desk) -> None:
    hurried = BenchmarkSize("quick", prompt=16, output=8, streams=(1, 2), runs=5, seconds=0.001)
    run = BenchRun(at_lone.services.client, loaded(qtbot, at_lone), hurried, None, 8)
    ends: list[Any] = []
    run.finished.connect(ends.append)
    run.failed.connect(ends.append)
    run.start()
    qtbot.waitUntil(lambda: bool(ends), timeout=30_000)
    assert [result.runs for result in ends[0]] == [1, 1]


def test_how_long_it_takes_is_said_for_the_model_that_is_loaded() -> None:
    """Five answers of 64 tokens, whose prompts are an eighth of a long question; never far beyond its time."""
    first, forecast = FirstToken(1024, 0.8), Forecast(decode_tok_s=640.0)
    swift = LoadedModel(model="m", context=2048, users=1, forecast=forecast, first_token=first)
    assert expected_seconds(QUICK, swift) == pytest.approx(5 * (0.1 + 0.1))
    middling = replace(swift, forecast=Forecast(decode_tok_s=8.0))
    assert expected_seconds(QUICK, middling) == QUICK.seconds
    slow = replace(swift, forecast=Forecast(decode_tok_s=1.0))
    assert expected_seconds(QUICK, slow) == pytest.approx(64.1), "one answer at least"
    for unknown in (None, replace(swift, forecast=None), replace(swift, first_token=None)):
        assert expected_seconds(QUICK, unknown) == QUICK.seconds


@pytest.fixture
def page(qtbot: QtBot, at_lone: Desk) -> ActivityPage:
    made = ActivityPage(at_lone.services)
    qtbot.addWidget(made)
    made.resize(1000, 760)
    made.tabs.setCurrentIndex(2)
    made.show()
    return made


@pytest.mark.long
def test_from_the_button_to_a_kept_result(qtbot: QtBot, at_lone: Desk, page: ActivityPage, tmp_path: Path) -> None:
    view = page.bench
    loaded(qtbot, at_lone)
    kept = len(view.earlier.store.benchmarks)
    view.begin(SMALL)
    assert not view.quick.isEnabled()
    qtbot.waitUntil(lambda: len(view.earlier.store.benchmarks) == kept + 1, timeout=30_000)
    qtbot.waitUntil(view.quick.isEnabled, timeout=1000)
    assert view.earlier.shown is not None
    assert view.earlier.shown.machines == ["den"]
    assert len(BenchStore(at_lone.services.folder).benchmarks) == kept + 1
    view.earlier.save(tmp_path / "report.png")
    assert (tmp_path / "report.png").read_bytes().startswith(b"\x89PNG")
    for name in ("report.html", "report.md", "report.json"):
        view.earlier.save(tmp_path / name)
        text = (tmp_path / name).read_text("utf-8")
        assert "Machine A" in text
        assert "den" not in text.split("</style>")[-1].split()
    assert json.loads((tmp_path / "report.json").read_text("utf-8"))["machines"] == ["Machine A"]
    view.earlier._remove()
    assert len(view.earlier.store.benchmarks) == kept
    assert "removed" in page.notice.sentence
    view.earlier._restore([])


def test_somebody_who_gets_an_answer_is_not_measured_with(qtbot: QtBot, at_lone: Desk, page: ActivityPage) -> None:
    loaded(qtbot, at_lone)
    pool = at_lone.services.pool
    body = {"prompt": "Hello", "max_tokens": 1500, "ignore_end": True}  # until it is cancelled
    other = at_lone.services.client.call("POST", "/ask", body, lambda _: None)
    qtbot.waitUntil(lambda: bool(pool.now.answers.running), timeout=5000)
    page.bench.begin(SMALL)
    assert page.bench.run is None
    assert "too low" in page.notice.sentence
    assert other is not None
    other.cancel()
    qtbot.waitUntil(lambda: not pool.now.answers.running, timeout=5000)


def test_a_cancelled_one_leaves_nothing(qtbot: QtBot, at_lone: Desk, page: ActivityPage) -> None:
    view = page.bench
    loaded(qtbot, at_lone)
    before = list(view.earlier.store.benchmarks)
    view.begin(FULL)
    qtbot.waitUntil(lambda: view.run is not None, timeout=5000)
    view.cancel()
    pool = at_lone.services.pool
    qtbot.waitUntil(lambda: not pool.now.answers.running, timeout=10_000)
    assert view.quick.isEnabled()
    assert view.earlier.store.benchmarks == before


def test_without_a_model_it_says_what_to_do(qtbot: QtBot, away: Desk) -> None:
    page = ActivityPage(away.services)
    qtbot.addWidget(page)
    page.bench.begin(QUICK)
    assert page.notice.sentence
    assert page.bench.run is None


def test_it_says_what_ended_it(qtbot: QtBot, away: Desk) -> None:
    page = ActivityPage(away.services)
    qtbot.addWidget(page)
    page.bench._failed(StageLost("load_stopped", model="guide"))
    assert "Guide" in page.notice.sentence


def test_kept_ones_are_bounded_and_outlive_the_window(tmp_path: Path) -> None:
    store = BenchStore(tmp_path)
    for number in range(MOST_KEPT + 3):
        store.add(bench(at=float(number)))
    again = BenchStore(tmp_path)
    assert again.benchmarks == store.benchmarks
    assert [item.at for item in again.benchmarks[:2]] == [MOST_KEPT + 2.0, MOST_KEPT + 1.0]
    assert len(again.benchmarks) == MOST_KEPT


@pytest.mark.parametrize(
    "content", ["", "[]", "{", '{"benchmarks": [{}]}', '{"benchmarks": [3]}', '{"benchmarks": {}}x']
)
def test_a_damaged_file_is_set_aside(tmp_path: Path, content: str) -> None:
    (tmp_path / "benchmarks.json").write_text(content)
    store = BenchStore(tmp_path)
    assert store.benchmarks == []
    assert (tmp_path / "benchmarks.damaged").read_text() == content
    store.add(bench())
    assert len(BenchStore(tmp_path).benchmarks) == 1


def test_a_report_names_no_machine_and_needs_nothing_else() -> None:
    made = bench(results=[figures(), figures(4)], model="<b>odd</b>")
    page = html(made)
    assert "attic" not in page
    assert "attic" not in markdown(made)
    assert "&lt;b&gt;odd" in page
    assert "http" not in page
    assert "Machine A" in page
    assert "4 simultaneous answers" in page
    assert anonymized(made).machines == ["Machine A", "Machine B"]
    assert "attic" not in str(anonymized(made).results)


def test_figures_stand_beside_their_forecast() -> None:
    made = bench()
    assert compared_with_forecast(made, "decode_tok_s") == "20% slower than forecast (25.0 tok/s)"
    assert compared_with_forecast(made, "ttft_s") == "25% later than forecast (0.4 s)"
    assert compared_with_forecast(bench(forecast=None), "ttft_s") == "no forecast"
    off = bench(forecast=ForecastSpeed(0.1, 8.0))
    assert compared_with_forecast(off, "ttft_s") == "5.0 times as long as forecast (0.1 s)"
    assert compared_with_forecast(off, "decode_tok_s") == "2.5 times as fast as forecast (8.0 tok/s)"
    fast = bench(forecast=ForecastSpeed(0.4, 80.0))
    assert compared_with_forecast(fast, "decode_tok_s") == "75% slower than forecast (80.0 tok/s)"
    assert compared_with_forecast(fast, "ttft_s") == "25% later than forecast (0.4 s)"
    assert headline(made).startswith("Guide on 2 machine")


def test_a_report_that_cannot_be_written_is_said(away: Desk, tmp_path: Path) -> None:
    for name in ("report.html", "report.png"):
        with pytest.raises(BadInput):
            bench_report.save(bench(), tmp_path / "none" / name, away.services.theme)
