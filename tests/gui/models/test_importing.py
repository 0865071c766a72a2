"""A file of this computer on its way to the shelf: how far it is, and what becomes of one that broke off."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.api.plans import Progress
from app.api.responses import ProgressLine
from app.gui.activity.now_card import jobs_of
from app.gui.api.node_state import Link
from app.gui.models import importing as module
from app.gui.models.importing import ImportQueue
from app.gui.models.transfers import IMPORT_ID, Transfers
from testbed import tiny
from tests.gui.desk import Desk

MIB = 1 << 20


def test_it_says_how_much_how_fast_and_how_long(qtbot: QtBot, away: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("app.gui.models.importing.time.monotonic", lambda: now[0])
    importing = away.services.importing
    importing.path = "/models/mine.gguf"
    shown = Transfers(away.services, importing)
    qtbot.addWidget(shown)
    for done in (0, 20):
        importing._stepped(ProgressLine(Progress("hashing", None, done * MIB, 50 * MIB, "bytes")))
        now[0] += 2
    now[0] -= 2
    importing.changed.emit()
    words = "Computing the file's checksum · 20 MiB of 50 MiB · 10 MiB/s · 3 s left"
    assert shown.rows[IMPORT_ID]._shown.words == words
    away.services.pool.link = Link.THERE
    (job,) = jobs_of(away.services.pool, [], importing)
    assert (job.what, job.figures, job.share) == ("Importing mine.gguf", words, 0.4)


def test_what_broke_off_is_kept_and_begins_anew_in_the_next_window(
    qtbot: QtBot, away: Desk, at_lone: Desk, tmp_path: Path
) -> None:
    first, second = tiny.llama(tmp_path / "first.gguf"), tiny.llama(tmp_path / "second.gguf")
    importing = away.services.importing
    heard: list[object] = []
    importing.failed.connect(lambda: heard.append(importing.take_unseen_error()))
    importing.add(str(first), "one-more")  # no node is there
    importing.add(str(second))
    assert importing.is_broken
    assert len(heard) == 2, "a person hears why nothing comes"
    shown = Transfers(away.services, importing)
    qtbot.addWidget(shown)
    row = shown.rows[IMPORT_ID]
    assert not row.resume.isHidden()
    assert row._bar.isHidden(), "nothing moves"
    later = ImportQueue(at_lone.services.pool, away.services.preferences)
    assert later.paths == [str(first), str(second)]
    with qtbot.waitSignal(later.imported) as imported:
        later._link_changed()
    assert imported.args[0].name == "one-more"
    qtbot.waitUntil(lambda: not later.paths)
    assert ImportQueue(at_lone.services.pool, away.services.preferences).paths == []


def test_what_broke_off_can_be_left(qtbot: QtBot, away: Desk) -> None:
    importing = away.services.importing
    shown = Transfers(away.services, importing)
    qtbot.addWidget(shown)
    importing.add("/models/mine.gguf")
    shown.rows[IMPORT_ID].resume.click()
    assert importing.is_broken, "no node is there still"
    shown.rows[IMPORT_ID].cancel.click()
    assert importing.paths == []
    assert IMPORT_ID not in shown.rows


def test_what_is_kept_badly_is_nothing(away: Desk) -> None:
    away.services.preferences.keep(module.QUEUE_KEY, '[["a"], 3]')
    assert ImportQueue(away.services.pool, away.services.preferences).paths == []
