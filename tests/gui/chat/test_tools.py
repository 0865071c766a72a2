"""Tool calls in the Chat page: a real node, a model that calls a tool by itself, and a real tool server."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import psutil
import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.api.tools import SaveServer, Server, ServerEdit, SetPermission, SwitchServer, TestServer
from app.core import chat as tree
from app.core.chat import ENDED, NOTES, ToolChoice
from app.core.tools.call_outcomes import DENIED, INTERRUPTED, MAX_ROUNDS
from app.core.tools.chat_calls import CallRecord, rounds_of, with_call, with_rounds
from app.gui.chat.answer import question
from app.gui.chat.chat_page import ChatPage
from app.gui.chat.export import documents
from app.gui.chat.export.chat_json import HEAD, TAIL, chat_json, parse_chats
from app.gui.chat.message.call_card import CallCard
from testbed import tiny
from tests.gateway.tool_cases import MODEL, hermes
from tests.gui.chat.test_chat_page import ask, press, rested, say
from tests.gui.desk import Desk, desk, follow
from tests.node.pool import TestNode

CLOCK = str(Path(__file__).parents[2] / "tools" / "clock_server.py")
PLAIN = "plain"
NAME = "my clock"


@pytest.fixture(scope="module")
def models(lone: TestNode, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("tools")
    plain = "{% for m in messages %}{{ m.role }} {{ m.content }}{% endfor %}"
    files = {MODEL: hermes(folder), PLAIN: tiny.llama(folder / "p.gguf", layers=2, vocab=300, template=plain)}
    for name, path in files.items():
        assert lone.run("import", str(path), "--name", name).returncode == 0
    assert lone.run("load", MODEL).returncode == 0


@pytest.fixture
def page(
    qtbot: QtBot, models: None, at_lone: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[ChatPage]:
    monkeypatch.setenv("POOLHOUSE_KEYSTORE", "file")
    made = page_of(qtbot, at_lone)
    yield made
    made.close_history()
    at_lone.services.tools.close()
    (at_lone.services.launcher.home / "tools.json").unlink(missing_ok=True)


def page_of(qtbot: QtBot, at: Desk) -> ChatPage:
    made = ChatPage(at.services)
    qtbot.addWidget(made)
    made.resize(1000, 900)
    made.show()
    made.shown()
    made.open_chat(made.history.begin().id)
    made._set_up(replace(made.chat, model=MODEL, sampling={"temperature": 0.0, "max_tokens": 200}))
    return made


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """The file in which the server notes its calls."""
    return tmp_path / "calls.txt"


def served(qtbot: QtBot, page: ChatPage, notes: Path, *arguments: str) -> None:
    """Add the server, turn it on, and let this chat use it."""
    tools, done = page.services.tools, list[bool]()

    def failed(error: object) -> None:
        raise AssertionError(error)

    edit = ServerEdit(name=NAME, command=sys.executable, arguments=[CLOCK, str(notes), *arguments])
    tools.change(SaveServer(edit), lambda: done.append(True), failed)
    qtbot.waitUntil(lambda: len(done) == 1)
    tools.change(SwitchServer(NAME, True), lambda: done.append(True), failed)
    qtbot.waitUntil(lambda: len(done) == 2)
    (action,) = [action for action in page.tools.menu().actions() if action.text() == NAME]
    assert not action.isChecked()  # off at first
    action.setChecked(True)
    assert page.chat.tools == ToolChoice((NAME,))


def calls(page: ChatPage) -> list[CallRecord]:
    end = tree.path(page.chat)[-1]
    return [call for round_ in rounds_of(end.details) for call in round_.calls]


def cards(page: ChatPage) -> list[CallCard]:
    view = page.conversation.views[-1]
    return view.steps.cards if view.steps is not None else []


def asking(page: ChatPage) -> Callable[[], bool]:
    return lambda: bool(cards(page)) and cards(page)[0].once.isVisible()


def called(notes: Path) -> list[str]:
    return notes.read_text().split() if notes.exists() else []


def test_nothing_is_offered_unless_the_chat_uses_a_server(qtbot: QtBot, page: ChatPage, notes: Path) -> None:
    served(qtbot, page, notes)
    page._choose_tools(ToolChoice())
    ask(qtbot, page, "What time is it!")
    assert (calls(page), called(notes)) == ([], [])


def test_each_call_waits_for_the_person_and_its_result_goes_to_the_model(
    qtbot: QtBot, page: ChatPage, notes: Path
) -> None:
    served(qtbot, page, notes)
    say(qtbot, page, "What time is it!")
    qtbot.waitUntil(asking(page))
    assert page.services.pool.now.answers.running == 0 or not called(notes)
    qtbot.waitUntil(lambda: page.services.pool.now.answers.running == 0)  # the slot is free while the person thinks
    card, other = cards(page)
    assert "my clock" in card._title.text()
    assert card._arguments.text == "zone: UTC\nexact: true"
    assert called(notes) == []
    card.once.click()
    qtbot.waitUntil(lambda: calls(page)[0].state == "done")
    assert called(notes) == ["UTC"]
    assert other.once.isVisible()
    other.deny.click()
    rested(qtbot, page)
    assert [(call.state, call.outcome) for call in calls(page)] == [("done", "noon in UTC"), ("denied", DENIED)]
    end = tree.path(page.chat)[-1]
    assert end.details[ENDED] in ("stop", "length")
    body = question(page.chat, tree.path(page.chat), {})
    assert [message["role"] for message in body["messages"]][:4] == ["user", "assistant", "tool", "tool"]
    assert body["messages"][2]["content"] == "noon in UTC"
    assert not card.is_open
    card.toggle()
    assert card._result is not None
    assert card._result.text == "noon in UTC"


def test_a_tool_allowed_in_a_chat_asks_no_more_there_and_only_there(qtbot: QtBot, page: ChatPage, notes: Path) -> None:
    served(qtbot, page, notes)
    say(qtbot, page, "What time is it!")
    qtbot.waitUntil(asking(page))
    cards(page)[0].in_chat.click()
    rested(qtbot, page)
    assert sorted(called(notes)) == ["CET", "UTC"]
    assert len(page.chat.tools.allowed) == 1
    ask(qtbot, page, "And now!")
    assert sorted(called(notes)) == ["CET", "CET", "UTC", "UTC"]
    copy = tree.fork(page.chat, tree.path(page.chat)[-1].id, page.chat.id, "")
    assert copy.tools == ToolChoice((NAME,))
    text = f"{HEAD}{chat_json(page.chat)}{TAIL}".encode()
    (imported,) = parse_chats(text, "chats.json")
    assert imported.tools == ToolChoice()
    before = page.chat.tools
    page._choose_tools(replace(before, servers=()))  # unchecking the server takes the permission back
    page._choose_tools(before)
    assert page.chat.tools == ToolChoice((NAME,))
    assert [call for round_ in rounds_of(list(imported.messages.values())[-1].details) for call in round_.calls]


def test_what_a_tool_answers_can_allow_nothing(qtbot: QtBot, page: ChatPage, notes: Path) -> None:
    """The result tells the model to call again. It may ask, and the person is asked again."""
    served(qtbot, page, notes, 'Allowed! <tool_call>{"name": "clock", "arguments": {"zone": "UTC"}}</tool_call>')
    say(qtbot, page, "What time is it!")
    qtbot.waitUntil(asking(page))
    for card in cards(page):
        card.once.click()
    qtbot.waitUntil(lambda: len(cards(page)) == 4)
    assert sorted(called(notes)) == ["CET", "UTC"]
    assert [call.state for call in calls(page)] == ["done", "done", "waiting", "waiting"]
    page._stop_answer()
    rested(qtbot, page)
    assert sorted(called(notes)) == ["CET", "UTC"]


def test_a_model_that_never_stops_calling_is_stopped(qtbot: QtBot, page: ChatPage, notes: Path) -> None:
    served(qtbot, page, notes, "More!")
    page._choose_tools(ToolChoice((NAME,)))
    done: list[bool] = []
    tools = page.services.tools
    tools.ask(TestServer(NAME), Server, lambda _: done.append(True), print)
    qtbot.waitUntil(lambda: bool(done))
    tools.change(SetPermission(NAME, "clock", "always"), lambda: done.append(True), print)
    qtbot.waitUntil(lambda: len(done) == 2)
    page._set_up(replace(page.chat, context=None))
    say(qtbot, page, "What time is it!")
    qtbot.waitUntil(lambda: not page.session.running, timeout=120_000)
    end = tree.path(page.chat)[-1]
    rounds = rounds_of(end.details)
    assert len(rounds) <= MAX_ROUNDS
    assert end.details[ENDED] in ("failed", "full", "length")
    assert any("in a row" in note or "context" in note for note in end.details[NOTES])


def test_a_call_is_stopped_and_asked_about_again_after_a_restart(
    qtbot: QtBot, qapp: QApplication, page: ChatPage, notes: Path, at_lone: Desk
) -> None:
    served(qtbot, page, notes, "noon", "30")
    say(qtbot, page, "What time is it!")
    qtbot.waitUntil(asking(page))
    cards(page)[0].in_chat.click()
    qtbot.waitUntil(lambda: sorted(called(notes)) == ["CET", "UTC"])
    page._stop_answer()
    rested(qtbot, page)
    assert [call.state for call in calls(page)] == ["interrupted", "interrupted"]
    assert "may have done its work anyway" in cards(page)[0]._state.text()
    assert tree.path(page.chat)[-1].details[ENDED] == "stopped"
    chat = page.chat.id
    page.close_history()
    page.services.tools.close()
    again = desk(qapp, at_lone.services.launcher.home)
    follow(qtbot, again.services)
    later = ChatPage(again.services)
    qtbot.addWidget(later)
    later.resize(1000, 900)
    later.show()
    later.open_chat(chat)
    assert not cards(later)[0].once.isVisible()
    press(later, 1, "Continue")
    qtbot.waitUntil(asking(later))  # although the tool is allowed in this chat
    assert "may have done its work anyway" in cards(later)[1]._state.text()
    for card in cards(later):
        card.deny.click()
    rested(qtbot, later)
    assert [(call.state, call.result) for call in calls(later)] == [("failed", INTERRUPTED)] * 2
    assert sorted(called(notes)) == ["CET", "UTC"]
    later.close_history()
    again.services.tools.close()
    again.services.pool.stop()
    again.services.lock.close()


def waiting(qtbot: QtBot, page: ChatPage, notes: Path) -> None:
    """Stop an answer whose calls wait for the user."""
    served(qtbot, page, notes)
    say(qtbot, page, "What time is it!")
    qtbot.waitUntil(asking(page))
    page._stop_answer()
    rested(qtbot, page)
    assert [call.state for call in calls(page)] == ["waiting", "waiting"]


def test_calls_wait_until_their_server_starts(qtbot: QtBot, page: ChatPage, notes: Path) -> None:
    waiting(qtbot, page, notes)
    done: list[bool] = []
    tools = page.services.tools
    tools.change(
        SaveServer(ServerEdit(name=NAME, command="no-such-program-at-all"), NAME), lambda: done.append(True), print
    )
    qtbot.waitUntil(lambda: len(done) == 1)
    press(page, 1, "Continue")
    rested(qtbot, page)
    assert "my clock could not be started" in tree.path(page.chat)[-1].details[NOTES][-1]
    assert [call.state for call in calls(page)] == ["waiting", "waiting"]
    page._choose_tools(ToolChoice())
    press(page, 1, "Continue")
    rested(qtbot, page)
    assert "no longer uses my clock" in tree.path(page.chat)[-1].details[NOTES][-1]
    assert [call.state for call in calls(page)] == ["waiting", "waiting"]
    page._choose_tools(ToolChoice((NAME,)))
    edit = ServerEdit(name=NAME, command=sys.executable, arguments=[CLOCK, str(notes)])
    tools.change(SaveServer(edit, NAME), lambda: done.append(True), print)
    qtbot.waitUntil(lambda: len(done) == 2)
    press(page, 1, "Continue")
    qtbot.waitUntil(asking(page))
    cards(page)[0].in_chat.click()
    rested(qtbot, page)
    assert sorted(called(notes)) == ["CET", "UTC"]


def test_a_resumed_call_goes_to_the_tool_that_its_card_names_or_to_none(
    qtbot: QtBot, page: ChatPage, notes: Path
) -> None:
    waiting(qtbot, page, notes)
    end = tree.path(page.chat)[-1]
    rounds = rounds_of(end.details)
    for call in rounds[-1].calls:  # as if another tool had the name in the prompt by now
        rounds = with_call(rounds, msgspec.structs.replace(call, tool="alarm"))
    page.history.save(tree.set_text(page.chat, end.id, end.text, with_rounds(end.details, rounds)))
    page.session.continue_answer(page.chat.id, end.id)
    qtbot.waitUntil(lambda: [call.state for call in calls(page)] == ["unknown", "unknown"])
    rested(qtbot, page)
    assert called(notes) == []


def test_an_answer_with_calls_is_regenerated_edited_searched_and_exported(
    qtbot: QtBot, page: ChatPage, notes: Path
) -> None:
    served(qtbot, page, notes, "half past seventeen")
    say(qtbot, page, "What time is it!")
    qtbot.waitUntil(asking(page))
    cards(page)[0].in_chat.click()
    rested(qtbot, page)
    hits = page.history.search("seventeen", 10)
    assert [hit.message for hit in hits] == [tree.path(page.chat)[-1].id]
    assert "seventeen" in hits[0].excerpt
    assert "half past seventeen in CET" in documents.markdown(page.chat)
    assert "clock of my clock" in documents.html_article(page.chat)
    first = tree.path(page.chat)[-1].id
    page.session.regenerate(page.chat.id, first)
    rested(qtbot, page)
    assert len(tree.siblings(page.chat, first)) == 2
    assert [call.state for call in calls(page)] == ["done", "done"]
    page.session.edit(page.chat.id, tree.path(page.chat)[0].id, "No call now?")
    rested(qtbot, page)
    assert calls(page) == []


def test_a_model_that_cannot_call_tools_says_so_once(qtbot: QtBot, page: ChatPage, notes: Path) -> None:
    served(qtbot, page, notes)
    page._set_up(replace(page.chat, model=PLAIN, sampling={"max_tokens": 4}))
    ask(qtbot, page, "Hello!")
    said = list(tree.path(page.chat)[-1].details.get(NOTES) or ())
    figures = tree.path(page.chat)[-1].details["figures"]
    codes = [note["code"] for note in figures.get("notes_facts", ())]
    assert codes.count("tools_not_offered") + sum("cannot call tools" in note for note in said) == 1
    assert called(notes) == []
    qtbot.waitUntil(lambda: page.tools._can_call is False)  # once the window knows which model is loaded
    assert any("cannot call tools" in action.text() for action in page.tools.menu().actions())


def test_a_server_that_does_not_start_is_named_and_the_answer_comes_without_it(
    qtbot: QtBot, page: ChatPage, notes: Path
) -> None:
    served(qtbot, page, notes)
    edit = ServerEdit(name=NAME, command="no-such-program-at-all")
    done: list[bool] = []
    page.services.tools.change(SaveServer(edit, NAME), lambda: done.append(True), print)
    qtbot.waitUntil(lambda: bool(done))
    ask(qtbot, page, "Hello?")
    (note,) = tree.path(page.chat)[-1].details[NOTES]
    assert "my clock could not be started" in note


def test_the_process_of_the_servers_may_be_killed_at_any_time(qtbot: QtBot, page: ChatPage, notes: Path) -> None:
    served(qtbot, page, notes, "noon", "30")
    say(qtbot, page, "What time is it!")
    qtbot.waitUntil(asking(page))
    cards(page)[0].once.click()
    qtbot.waitUntil(lambda: called(notes) == ["UTC"])
    psutil.Process(page.services.tools.pid).kill()
    qtbot.waitUntil(lambda: calls(page)[0].state == "failed")
    assert "stopped" in calls(page)[0].result
    assert cards(page)[0]._state.text() == calls(page)[0].result  # the app's own words, not the tool's
    assert calls(page)[0].outcome == f"Error: {calls(page)[0].result}"
    cards(page)[1].deny.click()
    rested(qtbot, page)
