"""The window's copy of the node's snapshot. It finds the node, follows the event stream, and tracks the connection."""

from __future__ import annotations

import time
from enum import StrEnum
from typing import Any

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtNetwork import QNetworkReply

from app import __version__
from app.api.plans import LoadedModel
from app.api.snapshot import Snapshot
from app.core.errors import AppError
from app.core.wire_json import apply_merge_patch, replace_lone_surrogates
from app.decoding import convert, decode
from app.gui.api.launch import Endpoint, Launcher
from app.gui.api.node_client import NodeClient
from app.gui.look.sentences import said

Json = dict[str, Any]

LOOK_MS = 250  # interval between attempts to find a missing node
SILENT_MS = 35_000  # the node sends a comment every ten seconds
PATIENCE_S = 20.0  # for a new node to become available
STARTS, WITHIN_S = 3, 120.0  # a node that keeps exiting is not restarted forever
SILENT_STREAMS = 3  # consecutive ones, after which another program is assumed to use the port of a crashed node
MAX_EVENT_BYTES = 16 << 20


class Link(StrEnum):
    """The state of the window's connection to the node."""

    LOOKING = "looking"
    STARTING = "starting"
    THERE = "there"
    OTHER_VERSION = "other_version"
    AWAY = "away"  # it has exited or cannot be started; `problem` states why


GONE = (Link.AWAY, Link.OTHER_VERSION)  # states in which work in progress is lost


class NodeState(QObject):
    """The latest snapshot of the node, shared by all pages."""

    changed = Signal()  # the snapshot has changed
    link_changed = Signal()  # `link` or `problem` has changed
    restarted = Signal()  # a different process is serving now, which this window did not request

    def __init__(self, launcher: Launcher, client: NodeClient, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._launcher, self.client = launcher, client
        self.link = Link.LOOKING
        self.problem: str | None = None
        self.snapshot: Json = {}
        self._typed: tuple[Json, Snapshot] = self.snapshot, Snapshot()  # `snapshot`, and the same in typed form
        self._reply: QNetworkReply | None = None
        self._held = b""
        self._last_id = ""  # of the latest event; a node that still knows it sends only later ones
        self._began: list[float] = []
        self.ends = False  # the node was asked to shut down, so a different process is expected
        self._served_by = 0  # process ID of the node
        self._n_silent = 0  # consecutive streams that ended without an event
        self._stale: Endpoint | None = None  # an endpoint that its file still names although no node is serving
        self._look = QTimer(self)
        self._look.setInterval(LOOK_MS)
        self._look.timeout.connect(self.look)
        self._silent = QTimer(self)
        self._silent.setSingleShot(True)
        self._silent.setInterval(SILENT_MS)
        self._silent.timeout.connect(self._lost)

    # Content

    @property
    def is_there(self) -> bool:
        return self.link is Link.THERE and bool(self.snapshot)

    @property
    def now(self) -> Snapshot:
        """The latest snapshot. While the node is unavailable, models that were being loaded are omitted."""
        if self._typed[0] is not self.snapshot:
            self._typed = self.snapshot, _typed(self.snapshot)
        snapshot = self._typed[1]
        if self.link in (Link.THERE, Link.LOOKING):
            return snapshot
        embeds = snapshot.embeds
        return msgspec.structs.replace(
            snapshot,
            loaded=_unless_loading(snapshot.loaded),
            beside=[model for model in snapshot.beside if model.state != "loading"],
            embeds=None if embeds is not None and embeds.state == "loading" else embeds,
        )

    # Connection

    def start(self) -> None:
        """Start looking for the node. If none is running, start one."""
        self._look.start()
        self.look()

    def stop(self) -> None:
        """Stop looking for the node, and close the event stream."""
        self._look.stop()
        self._silent.stop()
        self._drop()

    def look(self) -> None:
        """Look for the node once. If it is running, follow it; otherwise, start one unless that has already failed."""
        endpoint = self._launcher.find()
        if endpoint == self._stale:
            endpoint = None
        if endpoint is not None and endpoint.version != __version__:
            self._say(Link.OTHER_VERSION, said(_other_version(endpoint)))
        elif endpoint is not None:
            self._attach(endpoint)
        elif self.link is Link.STARTING:
            self._wait()
        elif self.link is not Link.AWAY:
            self.start_node()

    def start_node(self) -> None:
        """Start a node, unless several have exited shortly after starting."""
        now = time.monotonic()
        self._began = [at for at in self._began if now - at < WITHIN_S]
        if len(self._began) >= STARTS:
            self._say(Link.AWAY, self._launcher.fate() or said(AppError("node_keeps_ending")))
            return
        self._began.append(now)
        try:
            self._launcher.start()
        except AppError as error:
            self._say(Link.AWAY, said(error))
        else:
            self._say(Link.STARTING, None)

    def try_again(self) -> None:
        """Look for the node again because the user asked for it, ignoring previous failures."""
        self._began.clear()
        self._n_silent, self._stale = 0, None
        self._say(Link.LOOKING, None)
        self._look.start()
        self.look()

    def _wait(self) -> None:
        """Check whether the node that is starting has exited or is taking too long."""
        fate = self._launcher.fate()
        if fate is not None:
            self._say(Link.LOOKING, fate)
        elif time.monotonic() - self._began[-1] > PATIENCE_S:
            self._say(Link.AWAY, said(AppError("node_slow_start", seconds=int(PATIENCE_S))))

    def _attach(self, endpoint: Endpoint) -> None:
        self._look.stop()
        self.client.endpoint = endpoint
        self._held = b""
        self._reply = self.client.events(self._last_id)
        self._reply.readyRead.connect(self._read)
        self._reply.finished.connect(self._lost)
        self._silent.start()

    def _read(self) -> None:
        if self._reply is None:
            return
        self._silent.start()
        self._held += bytes(self._reply.readAll().data())
        *events, self._held = self._held.split(b"\n\n")
        if len(self._held) > MAX_EVENT_BYTES:
            self._lost()
            return
        news = False
        for event in events:
            news = self._take(event) or news
        if news and self._reply is not None:
            if self.link is not Link.THERE:
                self._began.clear()
                self._n_silent = 0
                self._say(Link.THERE, None)
                self._look_whose()
            self.changed.emit()

    def _look_whose(self) -> None:
        """Emit `restarted` if another node process is now serving, unless this window requested the restart."""
        endpoint = self.client.endpoint
        pid, before = endpoint.pid if endpoint is not None else 0, self._served_by
        self._served_by, was_asked, self.ends = pid, self.ends, False
        if before not in (0, pid) and not was_asked:
            self.restarted.emit()

    def _take(self, event: bytes) -> bool:
        """Apply a server-sent event. Return False for heartbeats and for unreadable or out-of-order events."""
        fields = dict(line.split(b": ", 1) for line in event.split(b"\n") if b": " in line and line[:1] != b":")
        try:
            data = decode(replace_lone_surrogates(fields.get(b"data", b"null")), Json)
        except ValueError:
            return False
        event_id = fields.get(b"id", b"").decode("latin-1")
        whole = fields.get(b"event") == b"snapshot"
        resumed = fields.get(b"event") == b"resumed"
        known = self._last_id if resumed else _following(self._last_id)
        if not whole and event_id != known:  # an event was missed, so a complete snapshot is needed
            self._last_id = ""
            self._lost()
            return False
        snapshot = data if whole else apply_merge_patch(self.snapshot, data)
        try:
            self._typed = snapshot, _typed(snapshot)  # takes 0.1 ms for twelve machines
        except ValueError:
            return False
        self._last_id, self.snapshot = event_id, snapshot
        return True

    def _lost(self) -> None:
        """Handle the end of the event stream, which means that the node has exited or is restarting."""
        if self._reply is None:
            return
        self._n_silent += self.link is not Link.THERE
        if self._n_silent >= SILENT_STREAMS:
            self._n_silent, self._stale = 0, self.client.endpoint
        self._drop()
        self._say(Link.LOOKING, self._launcher.fate())
        self._look.start()

    def _drop(self) -> None:
        reply, self._reply = self._reply, None
        self._silent.stop()
        self.client.endpoint = None
        if reply is not None:
            reply.abort()
            reply.deleteLater()

    def _say(self, link: Link, problem: str | None) -> None:
        if (link, problem) != (self.link, self.problem):
            self.link, self.problem = link, problem
            self.link_changed.emit()


def _typed(snapshot: Json) -> Snapshot:
    """Return the snapshot in typed form. Models that are too small for a forecast have none."""
    typed = convert(snapshot, Snapshot)
    loaded = typed.loaded.as_shown() if typed.loaded is not None else None
    return msgspec.structs.replace(typed, loaded=loaded, beside=[model.as_shown() for model in typed.beside])


def _unless_loading(model: LoadedModel | None) -> LoadedModel | None:
    return None if model is not None and model.state == "loading" else model


def _following(event: str) -> str:
    """Return the ID of the next event. An ID consists of a name for the node process and a sequence number."""
    life, _, number = event.rpartition("-")
    return f"{life}-{int(number) + 1}" if number.isdecimal() else ""


def _other_version(endpoint: Endpoint) -> AppError:
    return AppError("node_other_version", node=endpoint.version, own=__version__)
