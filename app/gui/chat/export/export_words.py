"""What every exported form says about a chat: who spoke, when, with which files."""

from __future__ import annotations

from dataclasses import dataclass, replace

from PySide6.QtCore import QCoreApplication, QDateTime, QLocale

from app.core.chat import ATTACHMENTS, MODEL, THOUGHT, Chat, Message, Role, path, title_of


@dataclass(frozen=True, slots=True)
class Spoken:
    """A message as it is exported."""

    who: str
    when: str
    text: str
    attachments: tuple[tuple[str, str], ...]  # name and text
    mine: bool
    thought: str = ""  # empty also where it is left out


def title(chat: Chat) -> str:
    """What the chat is called; never empty."""
    return title_of(chat) or QCoreApplication.translate("Export", "New chat")


def facts(chat: Chat) -> str:
    """One line under the title: folder, model, when something was last said."""
    return " · ".join(one for one in (chat.folder, chat.model or "", when(chat.changed_at)) if one)


def spoken(chat: Chat) -> list[Spoken]:
    """The branch that is shown, from its beginning."""
    return [_spoken(message) for message in path(chat)]


def system_words() -> str:
    return QCoreApplication.translate("Export", "System message")


def attachment_words(name: str) -> str:
    return QCoreApplication.translate("Export", "Attachment {name}").format(name=name)


def thought_words() -> str:
    return QCoreApplication.translate("Export", "Thought before the answer")


def without_thoughts(chat: Chat) -> Chat:
    """The same chat, where only answers are to be read."""
    kept = {
        ident: replace(one, details={k: v for k, v in one.details.items() if k != THOUGHT})
        for ident, one in chat.messages.items()
    }
    return replace(chat, messages=kept)


def when(seconds: float) -> str:
    """A time in the person's own form; "" for none."""
    if seconds <= 0:
        return ""
    moment = QDateTime.fromSecsSinceEpoch(int(seconds))
    return QLocale().toString(moment, QLocale.FormatType.ShortFormat)


def _spoken(message: Message) -> Spoken:
    mine = message.role is Role.USER
    you = QCoreApplication.translate("Export", "You")
    answer = QCoreApplication.translate("Export", "Answer")
    attached = message.details.get(ATTACHMENTS, ())
    return Spoken(
        you if mine else str(message.details.get(MODEL) or answer),
        when(message.made_at),
        message.text,
        tuple((str(one["name"]), str(one["text"])) for one in attached),
        mine,
        str(message.details.get(THOUGHT) or ""),
    )
