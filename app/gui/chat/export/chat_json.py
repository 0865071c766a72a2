"""Chats <-> our JSON, with all branches and folders. What is read is not trusted: size and shape first."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

from app.core.chat import (
    ATTACHMENTS,
    ENDED,
    FIGURES,
    MODEL,
    NOTES,
    THOUGHT,
    THOUGHT_S,
    Chat,
    ChatId,
    Details,
    Message,
    MessageId,
    Role,
)
from app.core.errors import BadInput, Reason
from app.gui.chat.history.history_cipher import storable
from app.gui.chat.presets import usable

FORMAT, VERSION = "poolhouse-chats", 1
MAX_FILE_BYTES = 128 << 20
MAX_CHATS, MAX_MESSAGES, MAX_LIST = 20_000, 20_000, 1_000
NAME_CHARACTERS, TEXT_CHARACTERS = 200, 8 << 20
MAX_TIME = 1e11  # seconds since 1970: some thousand years
MAX_CONTEXT = 1 << 30
MAX_FIGURE = 2**31 - 1  # what Qt takes as the number in a sentence

HEAD = f'{{"format": "{FORMAT}", "version": {VERSION}, "chats": [\n'
TAIL = "\n]}\n"


class _Odd(Exception):
    """What is wrong with the file, in words."""


def chat_json(chat: Chat) -> str:
    """One chat, to stand between HEAD and TAIL."""
    said = {
        "title": chat.title,
        "folder": chat.folder,
        "pinned": chat.pinned,
        "archived": chat.archived,
        "model": chat.model,
        "system": chat.system,
        "sampling": dict(chat.sampling),
        "context": chat.context,
        "changed_at": chat.changed_at,
        "leaf": chat.leaf,
        "messages": [
            {
                "id": message.id,
                "parent": message.parent,
                "role": message.role,
                "text": message.text,
                "made_at": message.made_at,
                "details": dict(message.details),
            }
            for message in chat.messages.values()
        ],
    }
    return json.dumps(said, ensure_ascii=False, indent=1)


def chats_of(data: bytes, path: str, told: Callable[[int], None] = lambda n: None) -> list[Chat]:
    """The chats in a file of ours. Their ids are those of the file: keep them under new ones.

    `told` hears how many are read. Raises BadInput with what is wrong; then nothing is to be used.
    """
    if len(data) > MAX_FILE_BYTES:
        raise BadInput("chats_too_large", path=path, most_bytes=MAX_FILE_BYTES)
    found: list[Chat] = []
    try:
        for one in _items(data.decode("utf-8-sig")):
            if len(found) == MAX_CHATS:
                raise _Odd(f"it has more than {MAX_CHATS} chats")
            found.append(_chat(one, len(found) + 1))
            told(len(found))
    except (ValueError, RecursionError):
        raise BadInput("chats_odd", path=path, what=Reason("not_json")) from None
    except _Odd as odd:
        raise BadInput("chats_odd", path=path, what=str(odd)) from None
    return found


def checked(chat: Chat) -> Chat | None:
    """A chat read from a damaged file, if all in it has its shape."""
    try:
        return _chat(json.loads(chat_json(chat)), 1)
    except (_Odd, ValueError, TypeError, RecursionError):
        return None


def _items(text: str) -> Iterator[object]:
    """What stands in the list of chats, one by one if the file begins as we write it."""
    decoder = json.JSONDecoder(parse_constant=_no_number)
    if not text.startswith(HEAD):
        yield from _whole(decoder.decode(text))
        return
    place = _past_space(text, len(HEAD))
    while not text.startswith("]", place):
        item, place = decoder.raw_decode(text, place)
        yield item
        place = _past_space(text, place)
        if text.startswith(",", place):
            place = _past_space(text, place + 1)
        elif not text.startswith("]", place):
            raise ValueError("neither a comma nor the end")
    if "".join(text[place:].split()) != "]}":
        raise ValueError("more than the list")


def _whole(found: object) -> list[object]:
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise _Odd("Poolhouse did not write it")
    if found.get("version") != VERSION:
        raise _Odd("another version of Poolhouse wrote it")
    return _list(found.get("chats"), "chats", MAX_CHATS)


def _past_space(text: str, place: int) -> int:
    while text[place : place + 1] in (" ", "\n", "\r", "\t"):
        place += 1
    return place


def _chat(found: object, number: int) -> Chat:
    try:
        chat = _dict(found, "chat")
        messages = _messages(chat.get("messages"))
        asked = chat.get("leaf")
        leaf = next((one for one in messages if one == asked), next(reversed(messages), None))
        return Chat(
            ChatId(f"imported-{number}"),
            title=_line(chat.get("title", ""), "title"),
            folder=_line(chat.get("folder", ""), "folder"),
            pinned=chat.get("pinned") is True,
            archived=chat.get("archived") is True,
            model=_maybe_line(chat.get("model"), "model"),
            system=_text(chat.get("system", ""), "system"),
            sampling=usable(chat.get("sampling")),
            context=_context(chat.get("context")),
            messages=messages,
            leaf=leaf,
            changed_at=_time(chat.get("changed_at", 0)),
        )
    except _Odd as odd:
        raise _Odd(f"in chat {number}, {odd}") from None


def _messages(found: object) -> dict[MessageId, Message]:
    messages: dict[MessageId, Message] = {}
    for one in _list(found, "messages", MAX_MESSAGES):
        said = _dict(one, "message")
        ident = MessageId(_text(said.get("id"), "id", NAME_CHARACTERS))
        parent = said.get("parent")
        if not ident or ident in messages:
            raise _Odd("two messages have the same id")
        if parent is not None and (not isinstance(parent, str) or parent not in messages):
            raise _Odd("a message answers one that is not before it")
        role = said.get("role")
        if role not in (Role.USER, Role.ASSISTANT):
            raise _Odd("a message has an unknown role")
        messages[ident] = Message(
            ident,
            None if parent is None else MessageId(parent),
            Role(role),
            _text(said.get("text"), "text"),
            _time(said.get("made_at", 0)),
            _details(said.get("details", {})),
        )
    return messages


def _details(found: object) -> Details:
    """Only what the window knows, in the shape it expects."""
    given = _dict(found, "details")
    kept: dict[str, Any] = {}
    for name in (MODEL, ENDED):
        if isinstance(value := given.get(name), str):
            kept[name] = value[:NAME_CHARACTERS]
    if THOUGHT in given:
        kept[THOUGHT] = _text(given[THOUGHT], THOUGHT)
        kept |= _numbers({name: given[name] for name in (THOUGHT_S,) if name in given})
    if NOTES in given:
        kept[NOTES] = [_text(one, NOTES) for one in _list(given[NOTES], NOTES, MAX_LIST)]
    if ATTACHMENTS in given:
        kept[ATTACHMENTS] = [
            {"name": _line(one.get("name"), "name"), "text": _text(one.get("text"), "text")}
            for item in _list(given[ATTACHMENTS], ATTACHMENTS, MAX_LIST)
            for one in (_dict(item, ATTACHMENTS),)
        ]
    if FIGURES in given:
        kept[FIGURES] = _figures(_dict(given[FIGURES], FIGURES))
    return kept


def _figures(found: Mapping[str, object]) -> dict[str, Any]:
    """Numbers, the forecast beside them, and who held which layers."""
    kept: dict[str, Any] = _numbers(found)
    if isinstance(predicted := found.get("predicted"), dict):
        kept["predicted"] = _numbers(predicted)
    if "placement" in found:
        stages = _list(found["placement"], "placement", MAX_LIST)
        kept["placement"] = [_stage(_dict(stage, "placement")) for stage in stages]
    return kept


def _stage(found: Mapping[str, object]) -> dict[str, Any]:
    return _numbers(found) | {"machine": _line(found.get("machine", ""), "machine")}


def _numbers(found: Mapping[str, object]) -> dict[str, Any]:
    few = list(found.items())[:MAX_LIST]
    return {
        name[:NAME_CHARACTERS]: value
        for name, value in few
        if isinstance(value, int | float) and abs(value) <= MAX_FIGURE
    }


def _dict(found: object, what: str) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise _Odd(f"“{what}” is not an object")
    return found


def _list(found: object, what: str, most: int) -> list[object]:
    if not isinstance(found, list):
        raise _Odd(f"“{what}” is not a list")
    if len(found) > most:
        raise _Odd(f"“{what}” has more than {most} entries")
    return found


def _text(found: object, what: str, most: int = TEXT_CHARACTERS) -> str:
    if not isinstance(found, str):
        raise _Odd(f"“{what}” is not text")
    if len(found) > most:
        raise _Odd(f"“{what}” is longer than {most} characters")
    if found != storable(found):
        raise _Odd(f"“{what}” has half a character")
    return found


def _line(found: object, what: str) -> str:
    return " ".join(_text(found, what, NAME_CHARACTERS).split())


def _maybe_line(found: object, what: str) -> str | None:
    return None if found is None else _line(found, what)


def _time(found: object) -> float:
    number = isinstance(found, int | float) and not isinstance(found, bool)
    if not number or not 0 <= found <= MAX_TIME or math.isnan(found):  # type: ignore[operator, arg-type]
        raise _Odd("a time is none")
    return float(found)  # type: ignore[arg-type]


def _context(found: object) -> int | None:
    fits = isinstance(found, int) and not isinstance(found, bool) and 0 < found <= MAX_CONTEXT
    return found if fits else None  # type: ignore[return-value]


def _no_number(name: str) -> NoReturn:
    raise ValueError(name)
