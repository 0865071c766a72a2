"""Conversion of chats to and from JSON, with all branches and folders. Imported files are fully validated."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

from app.core.chat import (
    ATTACHMENTS,
    EDITED,
    ENDED,
    FIGURES,
    FORM,
    HEIGHT,
    MODEL,
    NOTES,
    PICTURE,
    THOUGHT,
    THOUGHT_S,
    WIDTH,
    Chat,
    ChatId,
    Details,
    Message,
    MessageId,
    Role,
)
from app.core.errors import BadInput, Reason
from app.core.tools.chat_calls import TOOLS, rounds_of, with_rounds
from app.gui.chat.history.history_cipher import storable
from app.gui.chat.presets import valid_sampling

FORMAT, VERSION = "poolhouse-chats", 1
MAX_FILE_BYTES = 128 << 20
MAX_CHATS, MAX_MESSAGES, MAX_LIST = 20_000, 20_000, 1_000
NAME_CHARACTERS, TEXT_CHARACTERS = 200, 8 << 20
FORMS, MOST_PIXELS = ("jpeg", "png"), 1 << 12  # of pictures
MAX_TIME = 1e11  # seconds since 1970, about 3,000 years
MAX_CONTEXT = 1 << 30
MAX_NUMBER = 2**31 - 1  # Qt's limit for numbers in translated plural forms

HEAD = f'{{"format": "{FORMAT}", "version": {VERSION}, "chats": [\n'
TAIL = "\n]}\n"


class _InvalidFile(Exception):
    """An error in an imported file."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason


def chat_json(chat: Chat) -> str:
    """Return a chat as JSON. An exported file consists of `HEAD`, the chats and `TAIL`."""
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


def parse_chats(data: bytes, path: str, report: Callable[[int], None] = lambda n: None) -> list[Chat]:
    """Return the chats in an exported file. Their IDs are temporary: the history must assign new ones.

    Calls `report` with the number of chats parsed. Raises BadInput if any part of the file is invalid.
    """
    if len(data) > MAX_FILE_BYTES:
        raise BadInput("chats_too_large", path=path, most_bytes=MAX_FILE_BYTES)
    chats: list[Chat] = []
    try:
        for item in _items(data.decode("utf-8-sig")):
            if len(chats) == MAX_CHATS:
                raise _InvalidFile(Reason("chats_too_many", {"most": MAX_CHATS}))
            chats.append(_chat(item, len(chats) + 1))
            report(len(chats))
    except (ValueError, RecursionError):
        raise BadInput("chats_odd", path=path, what=Reason("not_json")) from None
    except _InvalidFile as error:
        raise BadInput("chats_odd", path=path, what=error.reason) from None
    return chats


def validated(chat: Chat) -> Chat | None:
    """Return a chat recovered from a damaged file, or None if any part of it is invalid."""
    try:
        return _chat(json.loads(chat_json(chat)), 1)
    except (_InvalidFile, ValueError, TypeError, RecursionError):
        return None


def _items(text: str) -> Iterator[object]:
    """Yield the chats listed in a file. If this app wrote the file, decode one chat at a time to save memory."""
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


def _whole(value: object) -> list[object]:
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise _InvalidFile(Reason("chats_foreign"))
    if value.get("version") != VERSION:
        raise _InvalidFile(Reason("chats_other_version"))
    return _list(value.get("chats"), "chats", MAX_CHATS)


def _past_space(text: str, place: int) -> int:
    while text[place : place + 1] in (" ", "\n", "\r", "\t"):
        place += 1
    return place


def _chat(value: object, number: int) -> Chat:
    try:
        chat = _dict(value, "chat")
        messages = _messages(chat.get("messages"))
        named_leaf = chat.get("leaf")
        leaf = next((ident for ident in messages if ident == named_leaf), next(reversed(messages), None))
        return Chat(
            ChatId(f"imported-{number}"),
            title=_line(chat.get("title", ""), "title"),
            folder=_line(chat.get("folder", ""), "folder"),
            pinned=chat.get("pinned") is True,
            archived=chat.get("archived") is True,
            model=_maybe_line(chat.get("model"), "model"),
            system=_text(chat.get("system", ""), "system"),
            sampling=valid_sampling(chat.get("sampling")),
            context=_context(chat.get("context")),
            messages=messages,
            leaf=leaf,
            changed_at=_time(chat.get("changed_at", 0)),
        )
    except _InvalidFile as error:
        raise _InvalidFile(Reason("chats_in_chat", {"number": number, "problem": error.reason})) from None


def _messages(value: object) -> dict[MessageId, Message]:
    messages: dict[MessageId, Message] = {}
    for item in _list(value, "messages", MAX_MESSAGES):
        said = _dict(item, "message")
        ident = MessageId(_text(said.get("id"), "id", NAME_CHARACTERS))
        parent = said.get("parent")
        if not ident or ident in messages:
            raise _InvalidFile(Reason("chats_same_id"))
        if parent is not None and (not isinstance(parent, str) or parent not in messages):
            raise _InvalidFile(Reason("chats_parent_later"))
        role = said.get("role")
        if role not in (Role.USER, Role.ASSISTANT):
            raise _InvalidFile(Reason("chats_role"))
        messages[ident] = Message(
            ident,
            None if parent is None else MessageId(parent),
            Role(role),
            _text(said.get("text"), "text"),
            _time(said.get("made_at", 0)),
            _details(said.get("details", {})),
        )
    return messages


def _details(value: object) -> Details:
    """Return the validated details of a message. Details unknown to this version are dropped."""
    details = _dict(value, "details")
    kept: dict[str, Any] = {}
    for name in (MODEL, ENDED):
        if isinstance(text := details.get(name), str):
            kept[name] = text[:NAME_CHARACTERS]
    if details.get(EDITED) is True:
        kept[EDITED] = True
    if THOUGHT in details:
        kept[THOUGHT] = _text(details[THOUGHT], THOUGHT)
        kept |= _numbers({name: details[name] for name in (THOUGHT_S,) if name in details})
    if NOTES in details:
        kept[NOTES] = [_text(note, NOTES) for note in _list(details[NOTES], NOTES, MAX_LIST)]
    if TOOLS in details:
        rounds = rounds_of({TOOLS: _list(details[TOOLS], TOOLS, MAX_LIST)})
        for round_ in rounds:
            for call in round_.calls:
                _text(call.arguments + call.result, TOOLS)
        kept = with_rounds(kept, rounds) if rounds else kept
    if ATTACHMENTS in details:
        files = _list(details[ATTACHMENTS], ATTACHMENTS, MAX_LIST)
        kept[ATTACHMENTS] = [_attachment(_dict(file, ATTACHMENTS)) for file in files]
    if FIGURES in details:
        kept[FIGURES] = _figures(_dict(details[FIGURES], FIGURES))
    return kept


def _attachment(file: Mapping[str, object]) -> Details:
    """Return a validated attachment. Its picture is not decoded here, but in a confined process (picture_loader.py)."""
    kept: dict[str, Any] = {"name": _line(file.get("name"), "name"), "text": _text(file.get("text"), "text")}
    if PICTURE not in file:
        return kept
    form, sides = file.get(FORM), [file.get(side) for side in (WIDTH, HEIGHT)]
    if form not in FORMS or not all(type(side) is int and 0 < side <= MOST_PIXELS for side in sides):
        raise _InvalidFile(Reason("chats_no_picture"))
    data = _text(file[PICTURE], PICTURE)
    try:
        base64.b64decode(data, validate=True)
    except ValueError:
        raise _InvalidFile(Reason("chats_no_picture")) from None
    return {**kept, PICTURE: data, FORM: form, WIDTH: sides[0], HEIGHT: sides[1]}


def _figures(figures: Mapping[str, object]) -> dict[str, Any]:
    """Return the validated numbers, forecast and layer placement of an answer."""
    kept: dict[str, Any] = _numbers(figures)
    if isinstance(predicted := figures.get("predicted"), dict):
        kept["predicted"] = _numbers(predicted)
    if "placement" in figures:
        stages = _list(figures["placement"], "placement", MAX_LIST)
        kept["placement"] = [_stage(_dict(stage, "placement")) for stage in stages]
    return kept


def _stage(stage: Mapping[str, object]) -> dict[str, Any]:
    return _numbers(stage) | {"machine": _line(stage.get("machine", ""), "machine")}


def _numbers(values: Mapping[str, object]) -> dict[str, Any]:
    few = list(values.items())[:MAX_LIST]
    return {
        name[:NAME_CHARACTERS]: value
        for name, value in few
        if isinstance(value, int | float) and abs(value) <= MAX_NUMBER
    }


def _dict(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _InvalidFile(Reason("chats_no_object", {"name": name}))
    return value


def _list(value: object, name: str, limit: int) -> list[object]:
    if not isinstance(value, list):
        raise _InvalidFile(Reason("chats_no_list", {"name": name}))
    if len(value) > limit:
        raise _InvalidFile(Reason("chats_long_list", {"name": name, "most": limit}))
    return value


def _text(value: object, name: str, limit: int = TEXT_CHARACTERS) -> str:
    if not isinstance(value, str):
        raise _InvalidFile(Reason("chats_no_text", {"name": name}))
    if len(value) > limit:
        raise _InvalidFile(Reason("chats_long_text", {"name": name, "most": limit}))
    if value != storable(value):
        raise _InvalidFile(Reason("chats_half_character", {"name": name}))
    return value


def _line(value: object, name: str) -> str:
    return " ".join(_text(value, name, NAME_CHARACTERS).split())


def _maybe_line(value: object, name: str) -> str | None:
    return None if value is None else _line(value, name)


def _time(value: object) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value <= MAX_TIME or math.isnan(value):  # type: ignore[operator, arg-type]
        raise _InvalidFile(Reason("chats_time"))
    return float(value)  # type: ignore[arg-type]


def _context(value: object) -> int | None:
    fits = isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MAX_CONTEXT
    return value if fits else None  # type: ignore[return-value]


def _no_number(name: str) -> NoReturn:
    raise ValueError(name)
