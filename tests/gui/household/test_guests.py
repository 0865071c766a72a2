"""Guests in the window: how their right is called and chosen, and what a guest's own window says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from PySide6.QtWidgets import QApplication

from app.core.chat import Chat, ChatId
from app.gui.chat.chat_head import ChatHead
from app.gui.household import words
from app.gui.household.add_sheet import ROLE_ORDER
from app.gui.household.machine_sheets import RoleChoice
from app.gui.pool import Pool
from app.gui.standing import standing
from app.gui.theme import Scheme, Theme


def test_the_right_has_a_name_and_is_offered(qapp: object) -> None:
    assert words.roles(["guest"]) == "Use models only"
    assert words.roles(["guest", "lender"]) == "Use models and lend"
    assert set(ROLE_ORDER) == set(words.ROLES)
    choice = RoleChoice(frozenset({"guest"}))
    assert choice.chosen == words.GUEST
    choice.choose(words.LEND)
    assert words.ROLES[choice.chosen] == ("lender",)
    assert RoleChoice(frozenset({"lender"})).chosen == words.LEND


@pytest.mark.parametrize(
    ("hosts", "sentence"),
    [
        (["den-pc"], "Ready. Answers come from den-pc."),
        ([], "No host is here to answer."),
        (None, "Ready. No model is loaded yet."),
    ],
)
def test_a_guest_s_window_says_who_answers(
    qapp: QApplication, hosts: list[str] | None, sentence: str
) -> None:
    pool = cast(
        "Pool", SimpleNamespace(is_there=True, loaded=None, hosts=hosts, node={}, snapshot={})
    )
    assert sentence in vars_of(standing(pool))
    head = ChatHead(Theme(qapp, Scheme.LIGHT, 1.0), pool, lambda: None)
    head.tell(Chat(ChatId("a")))
    named = "den-pc" if hosts else "Guide"
    assert (named in head.model.whole()) == (hosts != [])


def vars_of(found: Any) -> list[Any]:
    return [getattr(found, name) for name in found.__dataclass_fields__]
