"""The search of titles, messages, tool calls, attached files and system messages.

Messages are searched with the full-text index if it supports the query, otherwise by comparing texts. Encrypted
texts have no index, so they are decrypted and compared in small batches.
"""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from app.core.chat import ATTACHMENTS, ChatId, Heading, MessageId
from app.core.tools.chat_calls import TOOLS, rounds_of
from app.gui.chat.history.history_cipher import Codec
from app.gui.chat.history.history_rows import HEADING, chat_place, decode_json, heading, headings, message_place

Read = Callable[[Callable[[sqlite3.Connection], Any], Any], Any]  # the type of HistoryStore.read

EXCERPT_BEFORE, EXCERPT_AFTER = 24, 96  # characters before and after the start of the first match
SEARCHED_CHARACTERS = 100_000  # searched for the excerpt; after that, the excerpt is the beginning of the text
MAX_WORDS = 12
BATCH = 20  # messages decrypted per step
# Scripts without spaces between words, in which the index would treat a whole sentence as one word.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_MARKS = re.compile(r"[*`#]+")
_NO_WORD = re.compile(r"[^\w\s]")
_ACCENTS = re.compile("[\u0300-\u036f]")


@dataclass(frozen=True, slots=True)
class Hit:
    """A search result. `excerpt` is the text around the match, or empty if only the title matches."""

    heading: Heading
    message: MessageId | None
    excerpt: str


def search(db: sqlite3.Connection, typed: str, limit: int, codec: Codec, *, indexed: bool) -> list[Hit]:
    """Return the chats with a text that contains all words: pinned ones first, then the most recently active."""
    words = typed.split()[:MAX_WORDS]
    if not words:
        return []
    plain = not indexed or bool(_UNSPACED.search(typed) or _NO_WORD.search(typed))
    texts = (_by_letters if plain else _by_index)(db, words, limit, codec)
    hits_by_chat: dict[ChatId, Hit] = {}
    inside = (*_by_file(db, words, limit, codec), *_by_call(db, words, limit, codec))
    for hit in (*texts, *inside, *_by_chat(db, words, limit, codec)):
        hits_by_chat.setdefault(hit.heading.id, hit)
    hits = list(hits_by_chat.values())
    hits.sort(key=lambda hit: (hit.heading.pinned, hit.heading.changed_at), reverse=True)
    return hits[:limit]


def _by_chat(db: sqlite3.Connection, words: list[str], limit: int, codec: Codec) -> list[Hit]:
    """Search titles and system messages."""
    titled, in_system = (_every(column, words) for column in ("shown", "system"))
    patterns = tuple(map(_like_pattern, words))
    rows = db.execute(
        f"SELECT {HEADING}, CASE WHEN {titled} THEN '' ELSE system END FROM chats"  # noqa: S608
        f" WHERE deleted_at IS NULL AND ({titled} OR {in_system})"
        " ORDER BY pinned DESC, changed_at DESC LIMIT ?",
        (*patterns, *patterns, *patterns, limit),
    )
    return [Hit(heading(row, codec), None, excerpt(row[-1], words)) for row in rows]


def _by_file(db: sqlite3.Connection, words: list[str], limit: int, codec: Codec) -> list[Hit]:
    """Search the names and contents of attached files."""
    held = _every("json_extract(value, '$.name') || ' ' || json_extract(value, '$.text')", words)
    query = (
        f"SELECT m.number, m.chat FROM messages m WHERE instr(m.details, '\"{ATTACHMENTS}\"') > 0"  # noqa: S608
        " AND CASE WHEN json_valid(m.details) THEN EXISTS (SELECT 1"
        f" FROM json_each(m.details, '$.{ATTACHMENTS}') WHERE {held}) END"
    )
    return _hits(db, query, tuple(map(_like_pattern, words)), words, limit, codec)


def _by_call(db: sqlite3.Connection, words: list[str], limit: int, codec: Codec) -> list[Hit]:
    """Search the arguments and results of tool calls."""
    held = _every(
        "json_extract(c.value, '$.arguments') || ' ' || coalesce(json_extract(c.value, '$.result'), '')", words
    )
    query = (
        f"SELECT m.number, m.chat FROM messages m WHERE instr(m.details, '\"{TOOLS}\"') > 0"  # noqa: S608
        " AND CASE WHEN json_valid(m.details) THEN EXISTS (SELECT 1"
        f" FROM json_each(m.details, '$.{TOOLS}') r, json_each(r.value, '$.calls') c WHERE {held}) END"
    )
    return _hits(db, query, tuple(map(_like_pattern, words)), words, limit, codec)


def _by_index(db: sqlite3.Connection, words: list[str], limit: int, codec: Codec) -> list[Hit]:
    expression = " ".join(f'"{word}"*' for word in words)
    query = "SELECT m.number, m.chat FROM words JOIN messages m ON m.number = words.rowid"
    return _hits(db, f"{query} WHERE words MATCH ?", (expression,), words, limit, codec)


def _by_letters(db: sqlite3.Connection, words: list[str], limit: int, codec: Codec) -> list[Hit]:
    query = f"SELECT m.number, m.chat FROM messages m WHERE {_every('m.text', words)}"  # noqa: S608
    return _hits(db, query, tuple(map(_like_pattern, words)), words, limit, codec)


def _hits(
    db: sqlite3.Connection, query: str, values: tuple[Any, ...], words: list[str], limit: int, codec: Codec
) -> list[Hit]:
    """Return the chats of the latest messages found by `query`, each with an excerpt of its latest match."""
    rows = db.execute(
        f"SELECT {HEADING}, number FROM chats"  # noqa: S608
        f" JOIN (SELECT chat, max(number) AS number FROM ({query}) GROUP BY chat) ON chat = id"
        " WHERE deleted_at IS NULL ORDER BY pinned DESC, changed_at DESC LIMIT ?",
        (*values, limit),
    ).fetchall()
    return [_hit(db, row, words, codec) for row in rows]


def _hit(db: sqlite3.Connection, row: tuple[Any, ...], words: list[str], codec: Codec) -> Hit:
    query = "SELECT id, text, details FROM messages WHERE number = ?"
    message, text, details = db.execute(query, (row[-1],)).fetchone()
    text = _with_words(_texts(text, details), list(map(folded, words))) or text
    return Hit(heading(row, codec), MessageId(message), excerpt(text, words))


def _texts(text: str, details: str) -> Iterator[str]:
    """Yield the text of a message, its tool calls with their results, and the name and text of each attached file."""
    yield text
    decoded = decode_json(details)
    for round_ in rounds_of(decoded):
        for call in round_.calls:
            yield f"{call.arguments} {call.result}"
    attached = decoded.get(ATTACHMENTS)
    for file in attached if isinstance(attached, list) else ():
        if isinstance(file, dict):
            yield f"{file.get('name', '')} {file.get('text', '')}"


def _with_words(texts: Iterable[str], words: list[str]) -> str | None:
    """Return the first text that contains all words, which must be folded."""
    return next((text for text in texts if _has(text, words)), None)


def search_sealed(read: Read, typed: str, limit: int, codec: Codec) -> Iterator[Hit | None]:
    """Search encrypted texts in list order. Yields None after each batch of texts, to let the caller pause."""
    words = [folded(word) for word in typed.split()[:MAX_WORDS]]
    if not words:
        return
    n_hits = 0
    for chat in read(lambda db: headings(db, codec), []):
        if n_hits == limit:
            return
        hit = read(partial(_search_heading, chat, words, typed.split(), codec), None)
        for looked in _messages(read, chat, words, typed.split(), codec):
            yield None
            hit = looked or hit
        if hit is not None:
            n_hits += 1
            yield hit


def _search_heading(
    chat: Heading, words: list[str], typed: list[str], codec: Codec, db: sqlite3.Connection
) -> Hit | None:
    """Return a result if the title or the system message contains all words."""
    if _has(chat.title, words):
        return Hit(chat, None, "")
    (kept,) = db.execute("SELECT system FROM chats WHERE id = ?", (chat.id,)).fetchone() or ("",)
    system = codec.open(kept, *chat_place("system", chat.id)) if kept else ""
    return Hit(chat, None, excerpt(system, typed)) if _has(system, words) else None


def _messages(read: Read, chat: Heading, words: list[str], typed: list[str], codec: Codec) -> Iterator[Hit | None]:
    """Search the messages of a chat, newest first, until one matches. Yields None after each batch without a match."""
    order = "SELECT number, id, text, details FROM messages WHERE chat = ? AND number < ? ORDER BY number DESC LIMIT ?"
    below = 1 << 62
    while rows := read(partial(_rows, order, (chat.id, below, BATCH), codec, chat.id), []):
        for number, message, text, details in rows:
            below = number
            if (matching := _with_words(_texts(text, details), words)) is not None:
                yield Hit(chat, MessageId(message), excerpt(matching, typed))
                return
        yield None


def _rows(
    order: str, values: tuple[Any, ...], codec: Codec, chat: str, db: sqlite3.Connection
) -> list[tuple[int, str, str, str]]:
    return [
        (
            number,
            message,
            codec.open(text, *message_place("text", chat, message)),
            codec.open(details, *message_place("details", chat, message)),
        )
        for number, message, text, details in db.execute(order, values).fetchall()
    ]


def _has(text: str, words: list[str]) -> bool:
    low = folded(text)
    return all(word in low for word in words)


def folded(text: str) -> str:
    """Return text in lower case and without accents, like the text in the full-text index."""
    low = text.casefold()
    return low if low.isascii() else _ACCENTS.sub("", unicodedata.normalize("NFD", low))


def excerpt(text: str, words: list[str]) -> str:
    """Return a line of text around the first occurrence of any word."""
    low = text[:SEARCHED_CHARACTERS].casefold()
    places = [place for word in words if (place := low.find(word.casefold())) >= 0]
    place = min(places, default=0)
    begin = max(0, place - EXCERPT_BEFORE)
    if begin and (space := text.find(" ", begin, place)) >= 0:
        begin = space + 1
    line = " ".join(_MARKS.sub("", text[begin : place + EXCERPT_AFTER]).split())
    return ("…" if begin else "") + line + ("…" if len(text) > place + EXCERPT_AFTER else "")


def _every(column: str, words: list[str]) -> str:
    """Return an SQL condition that requires all words in a column. Its parameters come from `_like_pattern`."""
    return "(" + " AND ".join(f"{column} LIKE ? ESCAPE '\\'" for _ in words) + ")"


def _like_pattern(word: str) -> str:
    for sign in "\\%_":
        word = word.replace(sign, f"\\{sign}")
    return f"%{word}%"
