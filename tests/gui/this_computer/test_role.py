"""A machine that its household does not let lend: said, and allowed again by whoever may."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.api.snapshot import Lending
from app.gui.this_computer.computer_page import ComputerPage
from tests.gui.desk import Desk, desk, follow
from tests.node.pool import TestNode, paired

WITHIN_MS = 10_000


def page_of(qtbot: QtBot, qapp: QApplication, node: TestNode) -> tuple[Desk, ComputerPage]:
    made = desk(qapp, node.root)
    follow(qtbot, made.services)
    page = ComputerPage(made.services)
    qtbot.addWidget(page)
    page.show()
    qtbot.waitUntil(lambda: page.lending.is_known, timeout=WITHIN_MS)
    return made, page


def test_only_an_admin_can_allow_it(qtbot: QtBot, qapp: QApplication, tmp_path: Path) -> None:
    with paired(tmp_path, "den", "attic") as (den, attic):
        here, own = page_of(qtbot, qapp, den)
        there, theirs = page_of(qtbot, qapp, attic)
        done, failed = list[object](), list[object]()
        for ident, roles in ((den.ready["id"], ["admin", "host"]), (attic.ready["id"], ["host"])):
            here.services.client.post(f"/machines/{ident}/roles", {"roles": roles}, done.append, failed.append)
        qtbot.waitUntil(lambda: len(done) == 2 or bool(failed), timeout=WITHIN_MS)
        assert not failed
        for page in (own, theirs):
            qtbot.waitUntil(page.state.allow.isVisible, timeout=WITHIN_MS)
            assert "doesn't allow this machine to lend" in page.state._sentence.text()
            assert not page.state.pauses[0].isVisible()
            page.state.allow.click()
        qtbot.waitUntil(lambda: (own.lending.state or Lending()).state == "ready", timeout=WITHIN_MS)
        qtbot.waitUntil(lambda: not own.state.allow.isVisible(), timeout=WITHIN_MS)
        qtbot.waitUntil(lambda: bool(theirs.notice.sentence), timeout=WITHIN_MS)
        assert not own.notice.sentence
        assert theirs.state.allow.isVisible()
        here.services.pool.stop()
        there.services.pool.stop()
