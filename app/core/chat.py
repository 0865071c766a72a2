"""A chat as an immutable tree of messages, and functions that add, edit, branch, switch, fork and trim it.

Every message names its parent, so an edited question or a second answer is a sibling of the first. `leaf` is the last
message of the displayed branch. Callers supply ids and times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NewType

ChatId = NewType("ChatId", str)
MessageId = NewType("MessageId", str)

Details = Mapping[str, Any]  # JSON values, never changed in place
Sampling = Mapping[str, float | int]  # the values that differ from the default, by the names that the node uses


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat. `details` contains statistics and attachments under the keys defined below."""

    id: MessageId
    parent: MessageId | None
    role: Role
    text: str
    made_at: float  # Unix time
    details: Details = field(default_factory=dict)


# Keys of `details`: "model" is the model that answered. "figures" is the node's `done` message without its text.
# "attachments" is a list of {"name", "text"}; a picture has an empty text and further details. "notes" is a list of
# sentences. "ended" is the reason that the text ends where it does.
MODEL, FIGURES, ATTACHMENTS, NOTES, ENDED = "model", "figures", "attachments", "notes", "ended"
# Details of an attached picture: its file in base64, what file that is ("jpeg" or "png"), and its pixels
PICTURE, FORM, WIDTH, HEIGHT = "picture", "form", "width", "height"
COMPLETION = "completion"  # whether the message is the only one, a text that a base model continues in place
EDITED = "edited"  # whether the user wrote this version of the message
THOUGHT, THOUGHT_S = "thought", "thought_s"  # the reasoning before an answer, and its duration
BEFORE = "before"  # the length of an answer in characters when its generation was last resumed, while it is in progress
UNFINISHED = "unfinished"  # the end that is recorded for an answer in progress, in case the app quits first
FULL = "full"  # the context is full; "length" means that the answer reached its maximum length


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """The tool servers that a chat may use, and the tools that it may call without asking.

    allowed: the server, the name and the fingerprint of each such tool, joined by TOOL_SEPARATOR.
    """

    servers: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()

    def with_servers(self, servers: tuple[str, ...]) -> ToolChoice:
        """Return the choice with these servers. Permissions for tools of other servers are dropped."""
        return ToolChoice(servers, tuple(key for key in self.allowed if key.split(TOOL_SEPARATOR)[0] in servers))


TOOL_SEPARATOR = "\x1f"


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation with its settings and all its branches. Messages are in order of creation."""

    id: ChatId
    title: str = ""  # "" if the user chose no title and there is no message yet
    folder: str = ""  # "" for none
    pinned: bool = False
    archived: bool = False
    model: str | None = None  # None for any model that is loaded
    system: str = ""
    sampling: Sampling = field(default_factory=dict)
    context: int | None = None  # in tokens; None for the context that the model was loaded with
    draft: str = ""
    messages: Mapping[MessageId, Message] = field(default_factory=dict)
    leaf: MessageId | None = None
    changed_at: float = 0.0  # the time of the latest message
    draft_files: tuple[Details, ...] = ()  # in the form of "attachments"
    tools: ToolChoice = ToolChoice()


@dataclass(frozen=True, slots=True)
class Heading:
    """A chat's entry in the list of chats, without its messages."""

    id: ChatId
    title: str
    folder: str
    pinned: bool
    archived: bool
    changed_at: float


def path(chat: Chat) -> tuple[Message, ...]:
    """Return the messages of the displayed branch, from the first to the leaf."""
    return path_to(chat, chat.leaf)


def path_to(chat: Chat, end: MessageId | None) -> tuple[Message, ...]:
    """Return all messages from the first one to `end`. Raises KeyError for an unknown message."""
    messages: list[Message] = []
    while end is not None:
        message = chat.messages[end]
        messages.append(message)
        end = message.parent
    return tuple(reversed(messages))


def prompt_messages(branch: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages of a branch that are sent to the model.

    An unanswered question is omitted unless it is the last message: two questions in a row confuse a model, and many
    templates reject them.
    """
    roles = [message.role for message in branch]
    both = (Role.USER, Role.USER)
    pairs = zip(roles, (*roles[1:], None), strict=False)  # each role with the next one
    return tuple(message for message, pair in zip(branch, pairs, strict=True) if pair != both)


def last_turn(branch: Sequence[Message]) -> tuple[Message, ...]:
    """Return the last question and its answer, which may be incomplete or missing."""
    begin = max((at for at, message in enumerate(branch) if message.role is Role.USER), default=0)
    return tuple(branch[begin:])


def siblings(chat: Chat, message: MessageId) -> tuple[MessageId, ...]:
    """Return all versions of a message, including the message itself, in order of creation."""
    here = chat.messages[message]
    return tuple(
        sibling.id for sibling in chat.messages.values() if sibling.parent == here.parent and sibling.role == here.role
    )


def versions(chat: Chat) -> dict[MessageId, tuple[MessageId, ...]]:
    """Return the `siblings` of every message, computed in one pass because a long chat needs all of them."""
    groups: dict[tuple[MessageId | None, Role], list[MessageId]] = {}
    for message in chat.messages.values():
        groups.setdefault((message.parent, message.role), []).append(message.id)
    return {ident: tuple(group) for group in groups.values() for ident in group}


def add(chat: Chat, message: Message) -> Chat:
    """Add a message and make it the leaf.

    Raises ValueError if its id is already in use or its parent does not exist.
    """
    if message.id in chat.messages:
        raise ValueError("the id of a message is taken")
    if message.parent is not None and message.parent not in chat.messages:
        raise ValueError("a message answers one that is not there")
    return replace(
        chat,
        messages={**chat.messages, message.id: message},
        leaf=message.id,
        changed_at=max(chat.changed_at, message.made_at),
    )


def edit(chat: Chat, message: MessageId, text: str, new: MessageId, made_at: float) -> Chat:
    """Add a new version of a question or an answer as a sibling of the original.

    It keeps the attachments and the model that answered, and is marked as edited.
    """
    old = chat.messages[message]
    kept = {name: old.details[name] for name in (ATTACHMENTS, MODEL) if name in old.details}
    return add(chat, replace(old, id=new, text=text, made_at=made_at, details={**kept, EDITED: True}))


def set_text(chat: Chat, message: MessageId, text: str, details: Details | None = None) -> Chat:
    """Replace the text of a message, such as a growing answer, and its details if they are given."""
    old = chat.messages[message]
    now = replace(old, text=text, details=old.details if details is None else details)
    return replace(chat, messages={**chat.messages, message: now})


def completed_text(chat: Chat) -> Message | None:
    """Return the text that a base model continues in this chat, or None if the chat has questions and answers."""
    if len(chat.messages) != 1:
        return None
    (only,) = chat.messages.values()
    return only if only.details.get(COMPLETION) else None


def switch(chat: Chat, message: MessageId) -> Chat:
    """Display the branch through `message`, following the newest reply to each message after it."""
    newest = {below.parent: below.id for below in chat.messages.values()}  # of several replies, the last one remains
    end = chat.messages[message].id
    while end in newest:
        end = newest[end]
    return replace(chat, leaf=end)


def remove(chat: Chat, message: MessageId) -> Chat:
    """Remove `message` and all its descendants.

    If the leaf is removed, the nearest remaining message becomes the leaf.
    """
    gone = {message}
    for message_below in chat.messages.values():  # parents precede their children
        if message_below.parent in gone:
            gone.add(message_below.id)
    kept = {ident: kept_message for ident, kept_message in chat.messages.items() if ident not in gone}
    left = replace(chat, messages=kept)
    if chat.leaf not in gone:
        return left
    siblings_left = [ident for ident in siblings(chat, message) if ident != message]
    if siblings_left:
        return switch(left, siblings_left[-1])
    return replace(left, leaf=chat.messages[message].parent)


def clone(chat: Chat, new: ChatId, title: str) -> Chat:
    """Return a copy of the chat with all its branches. The copy is neither pinned nor archived and has no draft."""
    tools = ToolChoice(chat.tools.servers)  # what one chat may call without asking, another may not
    return replace(chat, id=new, title=title, pinned=False, archived=False, draft="", draft_files=(), tools=tools)


def fork(chat: Chat, at: MessageId, new: ChatId, title: str) -> Chat:
    """Return a new chat with only the messages that lead to `at`."""
    kept = {message.id: message for message in path_to(chat, at)}
    return replace(clone(chat, new, title), messages=kept, leaf=at)


@dataclass(frozen=True, slots=True)
class Trimmed:
    """The part of a branch that fits into the context.

    `dropped` is the number of messages omitted from its beginning.
    """

    kept: tuple[Message, ...]
    dropped: int
    tokens: int  # the total of the kept messages


def trim(branch: Sequence[Message], budget: int, tokens_of: Callable[[Message], int]) -> Trimmed:
    """Return the last part of `branch` that fits into `budget` tokens, starting with a question.

    Whole turns are dropped, oldest first. The last question and everything after it are always included, even if they
    exceed the budget: nothing is cut silently, and the node reports text that does not fit.
    """
    counts = [tokens_of(message) for message in branch]
    total, begin = sum(counts), 0
    for place, message in enumerate(branch):
        if total <= budget:
            break
        if message.role is Role.USER and place > begin:
            total -= sum(counts[begin:place])
            begin = place
    return Trimmed(tuple(branch[begin:]), begin, total)


def heading(chat: Chat) -> Heading:
    """Return the chat's entry in the list of chats."""
    return Heading(chat.id, title_of(chat), chat.folder, chat.pinned, chat.archived, chat.changed_at)


TITLE_CHARACTERS = 60


def title_of(chat: Chat) -> str:
    """Return the title chosen by the user, the beginning of the first question if no title was chosen, or ""."""
    if chat.title:
        return chat.title
    first = completed_text(chat) or next((m for m in chat.messages.values() if m.role is Role.USER), None)
    words = " ".join(first.text[: 4 * TITLE_CHARACTERS].split()) if first else ""
    if len(words) <= TITLE_CHARACTERS:
        return words
    return words[:TITLE_CHARACTERS].rsplit(" ", 1)[0].rstrip(",;:.") + "…"
