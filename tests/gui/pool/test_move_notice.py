"""The notice that layers moved by themselves: the reason, the time, and the way back."""

from __future__ import annotations

import time
from typing import Any

from PySide6.QtWidgets import QApplication, QPushButton
from pytestqt.qtbot import QtBot

from app.api.plans import LoadedModel
from app.gui.look.theme import Scheme, Theme
from app.gui.pool.headline import MoveNotice
from app.gui.pool.pool_page import PoolPage
from testbed.snapshots import household
from tests.gui.desk import Desk
from tests.gui.typed_api import loaded_model

JOINING = {"code": "recovery_joining", "facts": {"machine": "attic"}}
STAYS = {"code": "move_stays", "facts": {}}


def moved(at: float, **more: Any) -> dict[str, Any]:
    return {"text": "", "text_facts": JOINING, "at": at, "undoable": True, **more}


def ways_back(notice: MoveNotice) -> list[QPushButton]:
    buttons = notice.findChildren(QPushButton)
    return [button for button in buttons if button.text() == "Move back" and button.isVisibleTo(notice)]


def model(name: str, move: dict[str, Any] | None) -> LoadedModel:
    return loaded_model({"model": name, "state": "ready", "moved": move})


def test_the_reason_and_the_time_are_told_with_a_way_back(qtbot: QtBot, qapp: QApplication) -> None:
    undone, now = list[str](), time.time()
    notice = MoveNotice(Theme(qapp, Scheme.LIGHT, 1.0), undone.append)
    qtbot.addWidget(notice)
    notice.show_moves([model("small", None)])
    assert notice.isHidden()
    models = [model("small", moved(now - 60)), model("qwen", moved(now))]
    notice.show_moves(models)
    assert notice.sentence.startswith("qwen, ")
    assert notice.sentence.endswith(": attic is being used again, so answers will be faster.")
    (back,) = ways_back(notice)
    notice.show_moves(models)  # the same again leaves the button, and so its focus
    back.click()
    assert undone == ["qwen"]
    notice.show_moves([model("qwen", moved(now, undoing=True, undoable=False))])
    assert "The layers are moving back" in notice.sentence
    notice.show_moves([model("qwen", moved(now, undoable=False, problem_facts=STAYS))])
    assert notice.sentence.endswith("They stay where they are.")
    assert not ways_back(notice)
    notice.show_moves([model("qwen", None)])
    assert notice.isHidden()


def test_a_closed_notice_stays_closed_until_the_next_move(qtbot: QtBot, qapp: QApplication) -> None:
    notice = MoveNotice(Theme(qapp, Scheme.LIGHT, 1.0), lambda _: None)
    qtbot.addWidget(notice)
    notice.show_moves([model("qwen", moved(1000.0))])
    notice._dismiss()
    notice.show_moves([model("qwen", moved(1000.0))])
    assert notice.isHidden()
    notice.show_moves([model("qwen", moved(1001.0))])
    assert not notice.isHidden()


def test_the_page_shows_it(qtbot: QtBot, away: Desk) -> None:
    snapshot = household(2)
    snapshot["loaded"]["moved"] = moved(time.time())
    away.services.pool.snapshot = snapshot
    page = PoolPage(away.services)
    qtbot.addWidget(page)
    page.finish()
    assert "attic is being used again" in page.moves.sentence
