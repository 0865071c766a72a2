"""The services of the window over a running node, connected as in application.py but without a window."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from PySide6.QtWidgets import QApplication

from app.gui.api.launch import Endpoint
from app.gui.api.node_client import NodeClient
from app.gui.api.node_state import NodeState
from app.gui.app.app_context import AppContext
from app.gui.app.preferences import Preferences
from app.gui.chat.history.chat_lock import ChatLock
from app.gui.look.motion import Motion
from app.gui.look.theme import Scheme, Theme
from app.gui.models.importing import ImportQueue
from app.gui.tools.tool_client import ToolClient
from app.machine import running_node
from app.machine.paths import Home
from app.network import identity


class Attached:
    """A launcher for a node that is already running. It does not start any."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.erases = False

    def find(self) -> Endpoint | None:
        runtime = running_node.read(Home.at(self.home).runtime_file)
        return Endpoint(runtime.pid, runtime.port, runtime.token, runtime.version) if runtime else None

    def start(self) -> None:
        """Do nothing, because the node is already running."""

    def end(self) -> None:
        """Do nothing, because the process that started the node ends it."""

    def leave(self) -> None:
        identity.request_leave(Home.at(self.home), None)

    def erase_at_end(self) -> None:
        self.erases = True

    def restart_at_end(self) -> None:
        self.restarts = True

    def note_started(self) -> None:
        """Do nothing, because no launcher watches this window."""

    def fate(self) -> str | None:
        return None

    @property
    def started(self) -> bool:
        return False


@dataclass
class Desk:
    """The `services` that pages need. `went` lists the addresses of the requested pages."""

    services: AppContext
    went: list[str] = field(default_factory=list)


def desk(qapp: QApplication, home: Path, scheme: Scheme = Scheme.LIGHT) -> Desk:
    """Create the services of the window for the node of `home`. Call `follow` to start following the node."""
    folder = home / "window"
    folder.mkdir(parents=True, exist_ok=True)
    went: list[str] = []
    launcher = Attached(home)
    client = NodeClient(qapp)
    pool = NodeState(launcher, client, qapp)
    preferences = Preferences(folder, qapp)
    theme = Theme(qapp, scheme, 1.0)
    services = AppContext(pool, client, theme, preferences, launcher, folder, went.append,
                        ChatLock(client, pool, preferences, folder, qapp), Motion(qapp, preferences),
                        ImportQueue(pool, preferences, qapp), ToolClient(launcher.home, qapp))  # fmt: skip
    return Desk(services, went)
