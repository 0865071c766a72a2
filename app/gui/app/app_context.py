"""The services passed to every page, created in application.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.gui.api.launch import Launcher
from app.gui.api.node_client import NodeClient
from app.gui.api.node_state import NodeState
from app.gui.app.preferences import Preferences
from app.gui.chat.answer import AnswerFeed, InterruptedAnswers
from app.gui.chat.history.chat_lock import ChatLock
from app.gui.look.motion import Motion
from app.gui.look.theme import Theme
from app.gui.models.importing import ImportQueue
from app.gui.tools.tool_client import ToolClient


@dataclass(slots=True)
class ModelFilter:
    """The filter of the model list, with the search text and the selected indexes of the two drop-down lists."""

    words: str = ""
    kind: int = 0
    size: int = 0


class StartFeed(QObject):
    """A feed of models that could not be loaded after their page was closed. The window and the tray show them."""

    failed = Signal(str, object)  # the model as the user knows it, and AppError


@dataclass(frozen=True, slots=True)
class AppContext:
    """The services that pages use.

    folder: the folder for the window's own files. go: shows the page at an address such as `settings/Network` (see
    navigation.py). lock: encrypts stored chats. motion: returns whether animations are allowed. importing: the queue
    of model files being imported. tools: the tool servers. interrupted: the chats whose answer was interrupted.
    answers: reports answers that have ended. starts: reports models that could not be loaded after their page was
    closed. renew: recreates the window in the chosen language, or returns False if a page has unfinished work.
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
    importing: ImportQueue
    tools: ToolClient
    interrupted: InterruptedAnswers = field(default_factory=InterruptedAnswers)
    answers: AnswerFeed = field(default_factory=AnswerFeed)
    starts: StartFeed = field(default_factory=StartFeed)
    model_filter: ModelFilter = field(default_factory=ModelFilter)
    renew: Callable[[], bool] = bool


def restart(services: AppContext) -> None:
    """Restart the node, even one of a different version.

    Answers in progress are canceled. The node drains before it exits.
    """
    client, pool = services.client, services.pool
    followed = client.endpoint
    pool.ends = True
    # a node of another version is not followed, so it must be found
    client.endpoint = followed or services.launcher.find()
    client.post("/shutdown", None, lambda _: None, lambda _: pool.try_again())
    client.endpoint = followed
