"""The services that every page receives, as created by application.py."""

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
    """The search text of the model list, and the selected entries of the two boxes next to it."""

    words: str = ""
    kind: int = 0
    size: int = 0


@dataclass(frozen=True, slots=True)
class AppContext:
    """The services that pages use.

    go: shows a page by its address (see navigation.py), like `settings/Network`. folder: the folder for files of
    the window. lock: the encryption of the chats. motion: whether anything may move. importing: local model files
    that are being imported. interrupted: the chats whose answer was interrupted. model_filter: the filter of the
    model list. renew: recreates the window in the current language; returns False if something in it is unfinished.
    """

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


def restart(services: AppContext) -> None:
    """Restart the node, whichever version it is. Running answers end; layers lent to others are handed back first."""
    client, pool = services.client, services.pool
    followed = client.endpoint
    pool.ends = True
    client.endpoint = followed or services.launcher.find()  # another version's is not followed
    client.post("/shutdown", None, lambda _: None, lambda _: pool.try_again())
    client.endpoint = followed
