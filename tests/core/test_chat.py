"""A chat as a tree: branches never lose a word, and trimming says what it leaves out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.chat import (
    ATTACHMENTS,
    COMPLETION,
    EDITED,
    MODEL,
    Chat,
    ChatId,
    Message,
    MessageId,
    Role,
    add,
    clone,
    completed_text,
    edit,
    fork,
    heading,
    last_turn,
    path,
    path_to,
    prompt_messages,
    remove,
    set_text,
    siblings,
    switch,
    title_of,
    trim,
    versions,
)

USER, ASSISTANT = Role.USER, Role.ASSISTANT


def said(chat: Chat, ident: str, role: Role, text: str = "", at: float = 1.0) -> Chat:
    """`chat` with one more message at the end of its branch."""
    return add(chat, Message(MessageId(ident), chat.leaf, role, text or ident, at))


@pytest.fixture
def chat() -> Chat:
    """q1 a1 q2 a2, one after another."""
    made = Chat(ChatId("c"))
    for number, (ident, role) in enumerate([("q1", USER), ("a1", ASSISTANT), ("q2", USER), ("a2", ASSISTANT)], 1):
        made = said(made, ident, role, at=float(number))
    return made


def ids(chat: Chat) -> list[str]:
    return [message.id for message in path(chat)]


def test_a_text_to_complete_is_the_only_message() -> None:
    text = Message(MessageId("t"), None, ASSISTANT, "Once upon", 1.0, {COMPLETION: True})
    alone = add(Chat(ChatId("c")), text)
    assert completed_text(alone) == text
    assert completed_text(said(alone, "q1", USER)) is None
    assert completed_text(Chat(ChatId("c"))) is None


def test_messages_follow_one_another(chat: Chat) -> None:
    assert ids(chat) == ["q1", "a1", "q2", "a2"]
    assert chat.changed_at == 4.0
    assert path(Chat(ChatId("empty"))) == ()


@pytest.mark.parametrize(("ident", "parent"), [("q1", None), ("new", "nobody")])
def test_what_cannot_be_added(chat: Chat, ident: str, parent: str | None) -> None:
    there = MessageId(parent) if parent else None
    with pytest.raises(ValueError, match="message"):
        add(chat, Message(MessageId(ident), there, USER, "", 0))


def test_an_edit_is_a_branch(chat: Chat) -> None:
    new = edit(chat, MessageId("q2"), "other", MessageId("q2b"), 9.0)
    assert ids(new) == ["q1", "a1", "q2b"]
    assert siblings(new, MessageId("q2")) == ("q2", "q2b")
    assert versions(new)[MessageId("q2b")] == ("q2", "q2b")
    assert ids(switch(new, MessageId("q2"))) == ["q1", "a1", "q2", "a2"]
    assert ids(chat) == ["q1", "a1", "q2", "a2"]  # the old value is as it was


def test_the_first_question_can_have_versions(chat: Chat) -> None:
    new = edit(chat, MessageId("q1"), "other", MessageId("q1b"), 9.0)
    assert ids(new) == ["q1b"]
    assert siblings(new, MessageId("q1b")) == ("q1", "q1b")


def test_attachments_stay_with_an_edited_question() -> None:
    files = [{"name": "notes.txt", "text": "x"}]
    first = Message(MessageId("q"), None, USER, "", 0, {ATTACHMENTS: files, "figures": {}})
    new = edit(add(Chat(ChatId("c")), first), first.id, "other", MessageId("r"), 1.0)
    assert new.messages[MessageId("r")].details == {ATTACHMENTS: files, EDITED: True}


def test_an_edited_answer_keeps_the_name_of_its_model() -> None:
    answer = Message(MessageId("a"), None, ASSISTANT, "", 0, {MODEL: "qwen", "figures": {}})
    new = edit(add(Chat(ChatId("c")), answer), answer.id, "other", MessageId("b"), 1.0)
    assert new.messages[MessageId("b")].details == {MODEL: "qwen", EDITED: True}


def test_switching_goes_to_the_newest_end(chat: Chat) -> None:
    again = add(chat, Message(MessageId("a1b"), MessageId("q1"), ASSISTANT, "", 5.0))
    again = said(again, "q3", USER)
    assert ids(switch(again, MessageId("a1"))) == ["q1", "a1", "q2", "a2"]
    assert ids(switch(again, MessageId("a1b"))) == ["q1", "a1b", "q3"]


def test_an_answer_grows(chat: Chat) -> None:
    new = set_text(chat, MessageId("a2"), "more")
    new = set_text(new, MessageId("a2"), "more text", {"model": "m"})
    assert new.messages[MessageId("a2")].text == "more text"
    assert new.messages[MessageId("a2")].details == {"model": "m"}
    assert set_text(new, MessageId("a2"), "x").messages[MessageId("a2")].details == {"model": "m"}


def test_removing_takes_what_follows(chat: Chat) -> None:
    assert ids(remove(chat, MessageId("q2"))) == ["q1", "a1"]
    assert len(remove(chat, MessageId("q1")).messages) == 0
    assert remove(chat, MessageId("q1")).leaf is None
    two = edit(chat, MessageId("q2"), "", MessageId("q2b"), 9.0)
    assert ids(remove(two, MessageId("q2b"))) == ["q1", "a1", "q2", "a2"]
    assert ids(remove(two, MessageId("q2"))) == ["q1", "a1", "q2b"]


def test_of_questions_in_a_row_a_model_is_told_the_last() -> None:
    chat = Chat(ChatId("c"))
    assert prompt_messages(path(chat)) == ()
    for number, sign in enumerate("qqaqaqqq"):
        chat = said(chat, f"{sign}{number}", USER if sign == "q" else ASSISTANT)
    assert [prompt_message.id for prompt_message in prompt_messages(path(chat))] == ["q1", "a2", "q3", "a4", "q7"]


def test_the_last_turn_begins_with_the_last_question(chat: Chat) -> None:
    branch = path(chat)
    ends = [place for place, message in enumerate(branch) if message.role is Role.USER]
    assert last_turn(branch) == branch[ends[-1] :]
    assert last_turn(branch[: ends[-1] + 1]) == (branch[ends[-1]],)
    assert last_turn(()) == ()


def test_a_fork_holds_only_its_branch(chat: Chat) -> None:
    two = edit(chat, MessageId("q2"), "", MessageId("q2b"), 9.0)
    new = fork(two, MessageId("a1"), ChatId("d"), "Fork")
    assert (ids(new), len(new.messages), new.title) == (["q1", "a1"], 2, "Fork")
    whole = clone(two, ChatId("e"), "Copy")
    assert (whole.messages, whole.id, whole.draft) == (two.messages, "e", "")


def test_all_that_fits_stays(chat: Chat) -> None:
    trimmed = trim(path(chat), 4, lambda _: 1)
    assert (len(trimmed.kept), trimmed.dropped, trimmed.tokens) == (4, 0, 4)
    assert trim((), 10, lambda _: 1).kept == ()


def test_the_oldest_turns_go_first(chat: Chat) -> None:
    trimmed = trim(path(chat), 3, lambda _: 1)
    assert ([m.id for m in trimmed.kept], trimmed.dropped, trimmed.tokens) == (["q2", "a2"], 2, 2)


def test_the_last_question_always_stays(chat: Chat) -> None:
    trimmed = trim(path(chat), 1, lambda _: 100)
    assert ([m.id for m in trimmed.kept], trimmed.tokens) == (["q2", "a2"], 200)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=30), st.integers(1, 500))
def test_trimming_keeps_the_end_and_counts_right(sizes: list[int], budget: int) -> None:
    made = Chat(ChatId("c"))
    for n in range(len(sizes)):
        made = said(made, str(n), USER if n % 2 == 0 else ASSISTANT)
    branch = path(made)
    trimmed = trim(branch, budget, lambda m: sizes[int(m.id)])
    assert trimmed.kept == branch[trimmed.dropped :]
    assert trimmed.tokens == sum(sizes[trimmed.dropped :])
    assert trimmed.kept[0].role is USER
    before = branch[max(0, trimmed.dropped - 2) :]
    assert trimmed.tokens <= budget or len(trimmed.kept) <= 2
    assert not trimmed.dropped or sum(sizes[int(m.id)] for m in before) > budget


@pytest.mark.parametrize(
    ("title", "question", "shown"),
    [
        ("Mine", "Hello", "Mine"),
        ("", "Hello\n  there", "Hello there"),
        ("", "word " * 30, " ".join(["word"] * 12) + "…"),
        ("", "", ""),
    ],
)
def test_a_chat_is_called_by_its_first_question(title: str, question: str, shown: str) -> None:
    made = Chat(ChatId("c"), title=title)
    if question:
        made = add(made, Message(MessageId("q"), None, USER, question, 0))
    assert title_of(made) == shown
    assert heading(made).title == shown


def test_unknown_ends_are_bugs(chat: Chat) -> None:
    with pytest.raises(KeyError):
        path_to(chat, MessageId("nobody"))
