"""The services that every page receives. application.py creates them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from app.gui.api.launch import Launcher
from app.gui.api.node_client import NodeClient
from app.gui.api.node_state import NodeState
from app.gui.app.preferences import Preferences
from app.gui.chat.answer import InterruptedAnswers
from app.gui.chat.history.chat_lock import ChatLock
from app.gui.look.motion import Motion
from app.gui.look.theme import Theme
from app.gui.models.importing import Importing


@dataclass(slots=True)
class ModelFilter:
    """Words of the search, and the places of the two boxes beside it."""

    words: str = ""
    kind: int = 0
    size: int = 0


@dataclass(frozen=True, slots=True)
class AppContext:
    """`go` shows a page by its name (`pages.Name`), or a part of it (`settings/Network`);
    `folder` holds the window's own files; `lock` the chats, and whether they are encrypted;
    `motion`: whether anything may move; `importing`: files of this computer on their way to the shelf;
    `cut`: the chats whose answer was cut; `sought`: what the list of models is narrowed to;
    `renew` makes the window anew, in the language of now: False where something in it is not finished."""

    pool: NodeState
    client: NodeClient
    theme: Theme
    preferences: Preferences
    launcher: Launcher
    folder: Path
    go: Callable[[str], None]
    lock: ChatLock
    motion: Motion
    importing: Importing
    interrupted: InterruptedAnswers = field(default_factory=InterruptedAnswers)
    model_filter: ModelFilter = field(default_factory=ModelFilter)
    renew: Callable[[], bool] = bool
