"""The forecast of the Pool page is answered also where what is lent changes faster than the planner thinks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from app.api.plans import Forecast, Plan
from app.core.errors import AppError, Unreachable
from app.gui.api.node_state import Link
from app.gui.pool.load_forecast import LoadForecast
from app.gui.pool.pool_page import PoolPage
from testbed.snapshots import household
from tests.gui.desk import Desk

Json = dict[str, Any]


class Asked:
    """A question under way, which the test answers."""

    def __init__(self, body: Json, done: Callable[[Plan], None], failed: Callable[[AppError], None]) -> None:
        self.body, self._done, self._failed = body, done, failed
        self.running = True

    def answer(self, tok_s: float) -> None:
        self.running = False
        self._done(Plan(model=self.body["model"], forecast=Forecast(decode_tok_s=tok_s)))

    def fail(self, error: AppError) -> None:
        self.running = False
        self._failed(error)

    def cancel(self) -> None:
        self.running = False


@pytest.fixture
def requests(away: Desk, monkeypatch: pytest.MonkeyPatch) -> list[Asked]:
    results: list[Asked] = []

    def post(
        path: str, body: Json, done: Callable[[Plan], None], failed: Callable[[AppError], None], **_: Any
    ) -> Asked:
        results.append(Asked(body, done, failed))
        return results[-1]

    monkeypatch.setattr(away.services.client, "post", post)
    monkeypatch.setattr(away.services.pool, "link", Link.THERE)
    return results


@pytest.fixture
def load_forecast(qtbot: QtBot, away: Desk, requests: list[Asked]) -> LoadForecast:
    made = LoadForecast(away.services, away.services.pool)
    made._soon.setInterval(0)
    lend(away, 1)
    qtbot.waitUntil(lambda: len(requests) == 1, timeout=5000)
    return made


def lend(away: Desk, n_bytes: int) -> None:
    """The news: a machine lends so much now."""
    made = household(2)
    made["machines"][f"{1:064x}"]["lent_bytes"] = n_bytes
    away.services.pool.snapshot = made
    away.services.pool.changed.emit()


def test_news_of_memory_leave_a_question_to_its_end_and_ask_once_more(
    qtbot: QtBot, away: Desk, requests: list[Asked], load_forecast: LoadForecast
) -> None:
    for n_bytes in (2, 3, 4):
        lend(away, n_bytes)
        qtbot.wait(10)
    assert len(requests) == 1
    assert requests[0].running
    requests[0].answer(7.0)
    assert load_forecast.now.tok_s == 7.0
    assert len(requests) == 2
    requests[1].answer(8.0)
    assert load_forecast.now.tok_s == 8.0
    assert len(requests) == 2


def test_what_a_person_wants_to_know_instead_is_asked_at_once(
    qtbot: QtBot, requests: list[Asked], load_forecast: LoadForecast
) -> None:
    load_forecast.leave_out(f"{1:064x}", out=True)
    qtbot.waitUntil(lambda: len(requests) == 3, timeout=5000)
    assert not requests[0].running
    assert [item.body["without"] for item in requests[1:]] == [[], [f"{1:064x}"]]
    requests[2].answer(3.0)
    requests[1].answer(7.0)
    assert load_forecast.then is not None
    assert (load_forecast.now.tok_s, load_forecast.then.tok_s) == (7.0, 3.0)
    assert len(requests) == 3


def test_a_question_that_did_not_arrive_is_asked_again_with_the_next_news(
    qtbot: QtBot, away: Desk, requests: list[Asked], load_forecast: LoadForecast
) -> None:
    requests[0].fail(Unreachable("node_went_away"))
    assert load_forecast.now.problem
    lend(away, 1)  # the same as before
    qtbot.waitUntil(lambda: len(requests) == 2, timeout=5000)
    requests[1].answer(7.0)
    assert not load_forecast.now.problem


def test_news_without_a_pause_do_not_put_the_question_off(
    qtbot: QtBot, away: Desk, load_forecast: LoadForecast, requests: list[Asked]
) -> None:
    requests[-1].answer(1.0)
    n_before = len(requests)
    load_forecast._soon.setInterval(50)
    for n in range(50):  # a second of news, each before the question of the last one
        lend(away, 10 + n)
        load_forecast.refresh()
        qtbot.wait(20)
        if len(requests) > n_before:
            return
    pytest.fail("it was never asked")


def test_what_another_page_measured_is_known_when_the_pool_is_shown_again(
    qtbot: QtBot, away: Desk, requests: list[Asked]
) -> None:
    """The page used to offer a measurement that had already been made."""
    page = PoolPage(away.services)
    qtbot.addWidget(page)
    page.load_forecast._soon.setInterval(0)
    lend(away, 1)
    page.shown()
    qtbot.waitUntil(lambda: len(requests) == 1, timeout=5000)
    requests[0].answer(2.0)
    page.shown()
    qtbot.waitUntil(lambda: len(requests) == 2, timeout=5000)
    requests[1].answer(11.0)
    assert page.load_forecast.now.tok_s == 11.0
