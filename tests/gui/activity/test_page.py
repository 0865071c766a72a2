"""The Activity page over a real node: what runs, what ran, the log with its filter."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.api.computer import AnswerInProgress, LentTotal
from app.core.scheduler.requester import Requester
from app.gui.activity.activity_page import ActivityPage
from app.gui.activity.now_card import NowCard, jobs_of
from app.gui.activity.overview import REQUESTER, SPEED_FORECAST, TOKENS, AnswersModel
from app.gui.api.node_state import Link
from app.gui.app.window import SMALLEST
from app.gui.look import sizes
from app.gui.look.theme import Scheme
from tests.gui.activity.made import answer
from tests.gui.desk import Desk, window_over
from tests.gui.models.offers import download
from tests.gui.speaking import speaking

SHORT = {"prompt": "Hello", "max_tokens": 12, "ignore_end": True}


@pytest.fixture
def page(qtbot: QtBot, at_lone: Desk) -> ActivityPage:
    made = ActivityPage(at_lone.services)
    qtbot.addWidget(made)
    made.resize(1000, 760)
    made.show()
    return made


def ask(qtbot: QtBot, at_lone: Desk) -> None:
    ends: list[Any] = []
    at_lone.services.client.call("POST", "/ask", SHORT, ends.append, ends.append, lambda _: None)
    qtbot.waitUntil(lambda: bool(ends), timeout=30_000)


@pytest.mark.long
def test_an_answer_stands_in_the_table_the_timeline_and_the_log(
    qtbot: QtBot, at_lone: Desk, page: ActivityPage
) -> None:
    before = len(page.feed.answers)
    ask(qtbot, at_lone)
    qtbot.waitUntil(lambda: len(page.feed.answers) > before, timeout=5000)
    table = page.overview.table
    assert table.rows.data(table.rows.index(0, TOKENS)) == "12"
    assert table.rows.data(table.rows.index(0, REQUESTER)) == "you"
    assert [line.name for line in page.overview.timeline.lines] == ["Answer", "den"]
    page.tabs.setCurrentIndex(1)
    answered = "Guide wrote 12 tokens"  # on a busy computer, a measurement may follow it
    qtbot.waitUntil(lambda: any(answered in sentence for sentence in page.log.sentences()), timeout=5000)
    page.log.kind.setCurrentIndex(page.log.kind.findData("model"))
    qtbot.waitUntil(lambda: any("Guide is ready" in sentence for sentence in page.log.sentences()), timeout=5000)
    assert not any("answered" in sentence for sentence in page.log.sentences())
    page.log.kind.setCurrentIndex(0)
    page.log.words.setText("STARTED")
    assert all("started" in sentence for sentence in page.log.sentences())
    page.log.words.setText("no such words")
    assert page.log.sentences() == []


def test_a_line_of_the_log_is_no_higher_than_its_words(qtbot: QtBot, at_lone: Desk, page: ActivityPage) -> None:
    """Its column has its width only after the log was first shown."""
    ask(qtbot, at_lone)
    qtbot.waitUntil(lambda: bool(page.feed.answers), timeout=5000)
    page.tabs.setCurrentIndex(1)
    qtbot.waitUntil(lambda: bool(page.log.sentences()), timeout=5000)
    table = page.log.table

    def heights() -> list[int]:
        return [table.rowHeight(at) for at in range(len(page.log.sentences()))]

    usual = {at_lone.services.theme.px(sizes.CONTROL_HEIGHT)}
    qtbot.waitUntil(lambda: set(heights()) == usual)
    at_lone.services.theme.choose(Scheme.LIGHT, 2.0)
    page.resize(960, 600)
    qtbot.wait(50)
    page.tabs.setCurrentIndex(0)
    page.tabs.setCurrentIndex(1)
    qtbot.wait(50)
    high = [table.rowHeight(at) for at in range(len(page.log.sentences()))]
    words = table.fontMetrics()
    lines = [words.horizontalAdvance(sentence) // (table.columnWidth(1) - 60) + 1 for sentence in page.log.sentences()]
    at_lone.services.theme.choose(Scheme.LIGHT, 1.0)
    least = 2 * sizes.CONTROL_HEIGHT
    assert [number for number, many in zip(high, lines, strict=True) if many == 1 and number > least] == []


def test_a_chosen_answer_stays_chosen_when_others_come(qtbot: QtBot, at_lone: Desk, page: ActivityPage) -> None:
    table = page.overview.table
    answer_entry, two, three = (answer(number=n, tokens=n + 20) for n in (1, 2, 3))
    table.show_answers([answer_entry, two])
    table.setCurrentIndex(table.rows.index(1, 0))
    table.show_answers([answer_entry, two, three])
    assert table.rows.answer(table.currentIndex().row()) == answer_entry
    table.setCurrentIndex(table.rows.index(0, 0))
    table.show_answers([answer_entry, two, three, answer(number=4)])
    assert table.currentIndex().row() == 0


def test_both_palettes_and_large_text(qtbot: QtBot, at_lone: Desk, page: ActivityPage) -> None:
    theme = at_lone.services.theme
    for scheme, scale in ((Scheme.DARK, 1.0), (Scheme.LIGHT, 1.5), (Scheme.LIGHT, 1.0)):
        theme.choose(scheme, scale)
        for at in range(page.tabs.count()):
            page.tabs.setCurrentIndex(at)
            assert not page.grab().isNull()


def test_a_forecast_is_a_range_wider_for_a_fast_model() -> None:
    rows = AnswersModel()
    rows.show([answer(forecast_tok_s=80.0), answer()])
    words = [rows.data(rows.index(row, SPEED_FORECAST)) for row in range(rows.rowCount())]
    assert words == ["8–12 tok/s", "53–120 tok/s"]


def test_each_forecast_says_what_it_is_of() -> None:
    rows = AnswersModel()
    heads = [rows.headerData(at, Qt.Orientation.Horizontal) for at in range(rows.columnCount())]
    assert len(set(heads)) == len(heads)


def test_figures_of_ones_own_answers_have_room_in_a_small_window_in_german(
    qtbot: QtBot, qapp: QApplication, at_lone: Desk
) -> None:
    """The owner of each answer is shown once somebody else has asked."""
    mine, guest = {"kind": "owner", "name": ""}, {"kind": "guest", "name": "loft"}
    own = [answer(whose=mine, ttft_s=0.0087, forecast_tok_s=269.0)] * 9
    with speaking(qapp, "de"):
        window = window_over(qtbot, at_lone.services, "activity", size=SMALLEST)
        page = window.page("activity")
        assert isinstance(page, ActivityPage)
        table = page.overview.table
        table.show_answers(own)
        qtbot.wait(200)
        results = table.isColumnHidden(REQUESTER), table.horizontalScrollBar().maximum()
        table.show_answers([*own, answer(whose=guest)])
    assert results == (True, 0)
    assert not table.isColumnHidden(REQUESTER)


def test_whose_an_answer_was_is_told() -> None:
    rows = AnswersModel()
    requests = [
        {"kind": "owner", "name": ""}, {"kind": "program", "name": "editor"},
        {"kind": "program", "name": ""}, {"kind": "guest", "name": "loft"},
        {"kind": "machine", "name": "attic"}, None,
    ]  # fmt: skip
    rows.show([*(answer(whose=owner) for owner in requests[::-1]), answer()])
    words = [rows.data(rows.index(row, REQUESTER)) for row in range(rows.rowCount())]
    assert words == [
        "not recorded", "you", "program editor", "program without a key", "guest loft", "attic",
        "not recorded",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("requester", "writing", "reading"),
    [
        (Requester("owner"), "is writing your answer", "is reading your question"),
        (
            Requester("program", "editor"),
            "is answering the program editor",
            "is reading a question from the program editor",
        ),
        (
            Requester("program"),
            "is answering a program without a key",
            "is reading a question from a program without a key",
        ),
        (Requester("guest", "loft"), "is answering the guest loft", "is reading a question from the guest loft"),
        (Requester("machine", "attic"), "is answering attic", "is reading a question from attic"),
    ],
)
def test_the_requester_of_an_answer_is_named(away: Desk, requester: Requester, writing: str, reading: str) -> None:
    writes = AnswerInProgress(1, "guide", seconds=2.0, tokens=30, tok_s=12.5, whose=requester)
    reads = AnswerInProgress(2, "guide", seconds=0.5, whose=requester)
    assert [job.what for job in jobs_of(pool_of(away), [writes, reads], away.services.importing)] == [
        f"Guide {writing}", f"Guide {reading}",
    ]  # fmt: skip


def pool_of(away: Desk, **snapshot: Any) -> Any:
    pool = away.services.pool
    pool.snapshot = {"answers": {"running": 0, "waiting": 0}, **snapshot}
    return pool


def test_what_runs_is_said_in_lines(qtbot: QtBot, away: Desk) -> None:
    steps = {"den": {"step": "sending", "machine": "attic", "done": 1 << 20, "total": 4 << 20,
                     "unit": "bytes"}}  # fmt: skip
    pool = pool_of(
        away,
        answers={"running": 2, "waiting": 3},
        loaded={"state": "loading", "model": "guide", "progress": steps},
        downloads={
            "a": download("running", name="phi", seconds_left=50),
            "b": {"id": "b", "name": "old", "state": "done"},
            "c": download("running", name="qwen", machine="attic"),
        },
        giving={"machine": "attic", "model": "phi", "done_bytes": 1 << 30, "total_bytes": 4 << 30},
        node={"lending": {"used_by": ["loft"], "used_bytes": 3 << 20}},
    )
    writes = AnswerInProgress(1, "guide", seconds=2.0, tokens=30, tok_s=12.5)
    reads = AnswerInProgress(2, "guide", seconds=0.5)
    jobs = jobs_of(pool, [writes, reads], away.services.importing)
    assert [(job.what, job.figures) for job in jobs] == [
        ("Guide is writing your answer", "12.5 tok/s, 30 tokens"),
        ("Guide is reading your question", "0.5 s"),
        ("3 question(s) waiting", ""),
        ("Sending layers of Guide to attic", "1.0 MiB of 4.0 MiB"),
        ("Downloading phi", "10.0 GiB of 40.0 GiB · from huggingface.co · 100 MiB/s · 50 s left"),
        ("Copying qwen", "10.0 GiB of 40.0 GiB · from huggingface.co · 100 MiB/s · 5 min 07 s left"),
        ("Sending phi to attic", "1.0 GiB of 4.0 GiB"),
        ("This machine has layers loaded for loft", "3.0 MiB"),
    ]
    assert jobs[3].share == jobs[6].share == 0.25
    again = {"state": "recovering", "model": "guide", "progress": {}}
    pool.snapshot = {"loaded": again}
    assert [job.what for job in jobs_of(pool, [], away.services.importing)] == ["Rebuilding Guide"]
    pool.link = Link.AWAY
    assert jobs_of(pool, [writes, reads], away.services.importing) == []
    shown = NowCard(away.services.theme)
    qtbot.addWidget(shown)
    shown.show_jobs(jobs)
    shown.show_jobs([])
    assert shown.jobs == []


def test_what_was_lent_names_its_energy_where_that_is_known(qtbot: QtBot, away: Desk) -> None:
    page = ActivityPage(away.services)
    qtbot.addWidget(page)
    page.feed.lent = LentTotal(since=1_700_000_000.0, seconds=3600.0, rows=7, bytes_in=1, bytes_out=1)
    page.feed.running_changed.emit()
    assert "held layers for other machines for a total of 1 h" in page.overview.lent.text()
    assert "Wh" not in page.overview.lent.text()
    page.feed.lent = replace(page.feed.lent, watt_hours=42.0)
    page.feed.running_changed.emit()
    assert page.overview.lent.text().endswith("During that time, the whole machine used 42 Wh.")
