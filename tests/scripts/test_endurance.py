"""The judges of the long run: what counts as grown, which turns are too long, and that the measuring measures."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from PySide6.QtCore import QEvent, QObject, QTimer, qInstallMessageHandler
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from scripts.endurance.busy_thread import FIRST, LONG_S, PALETTE, USUAL, Passes, Watch
from scripts.endurance.leak_figures import BOUNDS, Ledger, Reading
from scripts.endurance.process_figures import Said, reading
from scripts.endurance.verdict import BARS, verdict

STILL = Reading(60, 100_000, 20, 3_000, 2_800, 5, 85_000, 60_000, 6_000)
WORK_S = 0.08


def ledger(last: Reading) -> Ledger:
    """Eight rounds as at first, then four as `last`."""
    return Ledger([STILL] * 8 + [last] * 4)


def passes(*cpu_s: float) -> dict[str, Passes]:
    """The usual work took so long."""
    made = {kind: Passes() for kind in BARS}
    for number in cpu_s:
        made[USUAL].add(number, "page chat", "chat_page.py:shown")
    return made


@pytest.mark.parametrize("name", [name for name, bound in BOUNDS.items() if bound.rise is not None])
def test_what_rises_is_told(name: str) -> None:
    most = BOUNDS[name].rise
    assert most is not None
    was = getattr(STILL, name)
    assert not ledger(replace(STILL, **{name: was + most})).faults()
    (fault,) = ledger(replace(STILL, **{name: was + most + 1})).faults()
    assert fault.startswith(f"{name} rose")


@pytest.mark.parametrize("name", ["nones", "trues"])
def test_references_that_are_lost_are_told(name: str) -> None:
    """The process ends when the count reaches zero."""
    (fault,) = ledger(replace(STILL, **{name: getattr(STILL, name) - 3000})).faults()
    assert fault.startswith(f"{name} fell")


def test_references_to_none_may_rise() -> None:
    assert not ledger(replace(STILL, nones=200_000)).faults()


def test_warming_up_is_no_fault() -> None:
    cold = replace(STILL, own_kib=1, nones=0, qt_objects=0)
    assert not Ledger([cold] * 4 + [STILL] * 8).faults()


def test_the_verdict_fails_for_every_fault_and_says_which() -> None:
    lines, is_well = verdict(ledger(STILL), passes(0.01), [], 12)
    assert is_well
    assert lines[-1] == "All stays as it is."
    for reports, word in (
        (verdict(ledger(replace(STILL, handles=90)), passes(0.01), [], 12), "handles rose by 70"),
        (verdict(ledger(STILL), passes(0.01), [], 5), "only 5 of 12 questions"),
        (verdict(ledger(STILL), passes(0.01), ["QTimer: bad"], 12), "Qt says: QTimer: bad"),
        (verdict(ledger(STILL), passes(*[0.001] * 9, 0.06), [], 12), "one turn in a hundred"),
        (verdict(ledger(STILL), passes(*[0.001] * 200, 0.2), [], 12), "a turn took 200 ms"),
    ):
        lines, is_well = reports
        assert not is_well
        assert "WRONG" in lines[-1]
        assert word in lines[-1]


def test_pages_that_are_made_may_take_longer() -> None:
    kinds = passes(0.01)
    kinds[FIRST].add(0.09, "page settings", "")
    kinds[PALETTE].add(0.04, "palette", "")
    lines, is_well = verdict(ledger(STILL), kinds, [], 12)
    assert is_well
    assert any("page settings" in line and "90 ms" in line for line in lines)
    kinds[FIRST].add(0.2, "page settings", "")  # a page made in one go, on a slow computer
    assert not verdict(ledger(STILL), kinds, [], 12)[1]


def test_the_table_has_its_first_and_its_last_round() -> None:
    table = Ledger([replace(STILL, second=at) for at in range(40)]).table()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table]
    assert [cells[2][:2], cells[-2][:2]] == [["1", "0"], ["40", "39"]]
    assert len(cells) == 2 + 12 + 1
    assert cells[-1][0] == "last third"


@pytest.mark.long
def test_a_reading_is_of_this_process(qapp: QApplication) -> None:
    before = qInstallMessageHandler(None)
    said = Said()
    try:
        qapp.sendPostedEvents(None, QEvent.Type.DeferredDelete)  # what other tests left
        first = reading(1.4, said, qapp)
        many = [QObject(qapp) for _ in range(50)]
        second = reading(2.0, said, qapp)
        for child in many:
            child.deleteLater()
        qapp.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        third = reading(2.0, said, qapp)
    finally:
        qInstallMessageHandler(before)
    assert second.qt_objects == first.qt_objects + 50
    assert second.wrappers >= first.wrappers + 50
    assert third.gone == second.gone + 50
    assert first.own_kib > 1024
    assert first.handles > 2
    assert first.second == 1
    assert not said.warnings


def test_a_long_slot_is_seen_and_named_and_waiting_is_none(qtbot: QtBot, qapp: QApplication) -> None:
    watch = Watch(qapp)
    worked: list[float] = []

    def work() -> None:
        ends = time.thread_time() + WORK_S
        while time.thread_time() < ends:
            pass
        worked.append(WORK_S)

    watch.step = "waiting"
    qtbot.wait(100)
    watch.step = "working"
    QTimer.singleShot(0, qapp, work)
    qtbot.waitUntil(lambda: bool(worked))
    qtbot.wait(20)
    watch.end()
    kind = watch.kinds[USUAL]
    (slow,) = [slow for slow in kind.slow if slow.cpu_s >= WORK_S]
    assert slow.step == "working"
    assert not [slow for slow in kind.slow if slow.step == "waiting"]
    assert kind.count > 1
    assert kind.share(1.0) >= WORK_S > LONG_S
