"""Guests in the window: how their right is called and chosen, and what a guest's own window says."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.core.chat import Chat, ChatId
from app.gui.app.pool_status import StatusKind, current_status
from app.gui.chat.chat_head import ChatHead
from app.gui.chat.chat_page import ChatPage
from app.gui.look.theme import Scheme, Theme
from app.gui.pool import machine_words
from app.gui.pool.code_panel import ROLE_ORDER
from app.gui.pool.household_dialogs import AddMachineDialog
from app.gui.pool.machine_dialogs import RoleChoice
from app.gui.pool.machine_facts import machines_of
from app.gui.pool.map.card_item import all_lines, last_line
from app.gui.pool.pool_page import PoolPage
from app.gui.pool.pool_tables import MachineTable
from app.gui.welcome.first_page import UseChoice
from testbed.snapshots import household, snapshot_of
from tests.gui.desk import Desk
from tests.gui.typed_api import pool_of


def test_the_right_has_a_name_and_is_offered(qapp: object) -> None:
    assert machine_words.roles_text(["guest"]) == "Use models only"
    assert machine_words.roles_text(["guest", "lender"]) == "Use models and lend"
    assert set(ROLE_ORDER) == set(machine_words.ROLES)
    choice = RoleChoice(frozenset({"guest"}))
    assert choice.chosen == machine_words.GUEST
    choice.choose(machine_words.LEND)
    assert machine_words.ROLES[choice.chosen] == ("lender",)
    assert RoleChoice(frozenset({"lender"})).chosen == machine_words.LEND


def test_a_right_is_called_the_same_where_it_is_given_and_where_it_is_shown(qtbot: QtBot, at_lone: Desk) -> None:
    shown = {name: machine_words.roles_text(rights) for name, rights in machine_words.ROLES.items()}
    services, over = at_lone.services, QWidget()
    choice, sheet, first = RoleChoice(frozenset()), AddMachineDialog(services, over), UseChoice(services)
    for widget in (over, first):
        qtbot.addWidget(widget)
    assert [button.text() for button in choice.buttons] == list(shown.values())
    offered = {sheet.role.itemData(n): sheet.role.itemText(n) for n in range(sheet.role.count())}
    assert offered == shown
    assert (first.both.text(), first.lend.text()) == (shown[machine_words.USE_AND_LEND], shown[machine_words.LEND])


@pytest.mark.parametrize(
    ("hosts", "sentence"),
    [
        (["den-pc"], "Ready. Answers come from den-pc."),
        ([], "No machine is available to answer."),
        (None, "Ready. No model is loaded yet."),
    ],
)
def test_a_guest_s_window_says_who_answers(qapp: QApplication, hosts: list[str] | None, sentence: str) -> None:
    pool = pool_of({"hosts": hosts})
    assert sentence in vars_of(current_status(pool))
    head = ChatHead(Theme(qapp, Scheme.LIGHT, 1.0), pool, lambda: None)
    head.show_chat(Chat(ChatId("a")))
    named = {None: "the Guide answers", 0: "No machine is available to answer", 1: "Answered by den-pc"}
    assert named[hosts if hosts is None else len(hosts)] in head.model.whole()
    assert current_status(pool).kind is (StatusKind.ATTENTION if hosts == [] else StatusKind.IDLE)


@pytest.mark.parametrize(
    ("hosts", "title"), [(["den-pc"], "Ready. Answers come from den-pc"), ([], "No machine is available to answer")]
)
def test_a_guest_is_told_one_thing_by_every_page(qtbot: QtBot, away: Desk, hosts: list[str], title: str) -> None:
    away.services.pool.snapshot = household(1, with_model=False) | {"hosts": hosts}
    page, chat = PoolPage(away.services), ChatPage(away.services)
    for item in (page, chat):
        qtbot.addWidget(item)
        item.finish()
    assert page.headline.title.whole() == title
    assert page.headline.figures.text() == ""
    assert "Guide" not in chat.suggestions.words.text()
    chat.close_history()


def test_a_guest_is_called_one_on_the_map_and_in_the_table(qtbot: QtBot, qapp: QApplication) -> None:
    snapshot = household(2, with_model=False)
    snapshot["machines"][f"{1:064x}"] |= {
        "roles": ["guest"], "state": "guest", "layers": [], "used_bytes": 0, "lent_bytes": 0,
    }  # fmt: skip
    _, visitor = machines_of(snapshot_of(snapshot))
    assert "Guest" in all_lines(visitor)
    assert last_line(visitor) == "Use models only"
    table = MachineTable(Theme(qapp, Scheme.LIGHT, 1.0))
    qtbot.addWidget(table)
    table.show_machines([visitor])
    shown = [str(table.model().index(0, at).data()) for at in range(3)]
    assert shown == [visitor.name, "Guest", "lends nothing"]


def vars_of(result: Any) -> list[Any]:
    return [getattr(result, name) for name in result.__dataclass_fields__]
