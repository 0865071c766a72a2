"""What stands in the list of chats, in order. Pure: chats and folders in, rows out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.core.chat import Heading, MessageId
from app.gui.chat.history.history_search import Hit


@dataclass(frozen=True, slots=True)
class Line:
    """A chat. A search also gives where the words stand."""

    heading: Heading
    excerpt: str = ""
    message: MessageId | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """A folder with its chats; `name` is None for the archive."""

    name: str | None
    lines: tuple[Line, ...]


Row = Line | Section


def rows(current: Sequence[Heading], archived: Sequence[Heading], folders: Sequence[str]) -> tuple[Row, ...]:
    """Pinned chats, folders, the other chats, the archive. Each keeps the order it is given in."""
    inside: dict[str, list[Line]] = {name: [] for name in folders}
    pinned: list[Line] = []
    loose: list[Line] = []
    for heading in current:
        if heading.folder:
            inside.setdefault(heading.folder, []).append(Line(heading))
        else:
            (pinned if heading.pinned else loose).append(Line(heading))
    sections = [Section(name, tuple(lines)) for name, lines in inside.items()]
    archive = [Section(None, tuple(map(Line, archived)))] if archived else []
    return (*pinned, *sections, *loose, *archive)


def found(hits: Sequence[Hit]) -> tuple[Row, ...]:
    """What a search found, without folders."""
    return tuple(Line(hit.heading, hit.excerpt, hit.message) for hit in hits)
