"""The lending state and rules of this machine, rule changes that can be undone, and texts about the state."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from typing import Any

from PySide6.QtCore import QCoreApplication, QDateTime, QLocale, QObject, QTimer, Signal

from app.api.snapshot import Lending, LendingReadings, LendingRules, LendingState
from app.core.errors import AppError
from app.gui.api.node_client import Call, NodeClient
from app.gui.api.node_state import NodeState
from app.gui.look import formats
from app.gui.look.sentences import said

BY_HAND = ("pause_owner", "pause_stopped")  # reason codes of pauses that the user started
NO_ROLE = "lend_no_role"
QUIT = "pause_quit"  # its sentence addresses other machines
Json = dict[str, Any]

LOOK_MS = 3000  # the node takes readings every five seconds
MOST_UNDOS = 30
RULES, CARDS = "/lending", "/cards"


@dataclass(frozen=True, slots=True)
class _Change:
    """A request that changes the rules or the state.

    before: the previous values of the changed rules, or None if the change cannot be undone.
    """

    path: str
    body: Json
    before: Json | None = None


class LendingStore(QObject):
    """The latest lending state, rules and sensor readings of this machine. `watch(True)` starts polling them."""

    changed = Signal()  # rules or readings have changed
    cards_changed = Signal()  # the limits for graphics cards have been changed
    saved = Signal()  # a change has taken effect; see `can_undo`
    failed = Signal(object)  # AppError of a refused change

    def __init__(self, client: NodeClient, pool: NodeState, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._client, self._pool = client, pool
        self._answer: LendingState | None = None
        self.state: Lending | None = None  # None until the node answers
        self._look: Call | None = None
        self._in_progress: list[_Change] = []
        self._undos: list[_Change] = []
        self._refused_change: _Change | None = None
        self._timer = QTimer(self)
        self._timer.setInterval(LOOK_MS)
        self._timer.timeout.connect(self.refresh)
        pool.link_changed.connect(self._link_changed)
        pool.changed.connect(self._pool_changed)
        self._pool_changed()

    @property
    def is_known(self) -> bool:
        """Return whether the node has sent the rules."""
        return self._answer is not None

    @property
    def rules(self) -> LendingRules:
        return self._answer.rules if self._answer else LendingRules()

    @property
    def readings(self) -> LendingReadings:
        return self._answer.readings if self._answer else LendingReadings()

    @property
    def most_bytes(self) -> int:
        """The maximum amount of memory that can be lent."""
        return self._answer.most_bytes if self._answer else 0

    @property
    def most_threads(self) -> int:
        """The maximum number of processor threads that can be lent."""
        return self._answer.most_threads if self._answer else 0

    @property
    def own_most_bytes(self) -> int:
        """The maximum amount of memory for models loaded on this machine."""
        return self._answer.own_most_bytes if self._answer else 0

    @property
    def is_on(self) -> bool:
        """Return whether lending is turned on with a limit above zero."""
        return self.rules.on and self.rules.memory_bytes != 0

    @property
    def is_changing(self) -> bool:
        """Return whether a rule change is in progress, so that the latest values are outdated."""
        return any(change.path == RULES for change in self._in_progress)

    @property
    def can_undo(self) -> bool:
        return bool(self._undos)

    def watch(self, on: bool) -> None:
        """Start or stop polling the node."""
        if on:
            self._timer.start()
            self.refresh()
        else:
            self._timer.stop()

    def refresh(self) -> None:
        """Request the state. Does nothing during a request or change, because its response will contain the state."""
        if self._in_progress or self._look is not None or not self._pool.is_there:
            return
        # if this fails, the window already reports that the node is unavailable
        self._look = self._client.get(RULES, self._looked, self._not_looked, answer=LendingState)

    def switch(self, on: bool) -> None:
        """Turn lending on or off. The memory limit is preserved, but turning lending on removes a limit of zero."""
        rules: Json = {"on": on}
        if on and self.rules.memory_bytes == 0:
            rules["memory_bytes"] = None
        self.change(rules)

    def change(self, rules: Json) -> None:
        """Change these rules. `undo` restores their previous values."""
        before = {name: getattr(self.rules, name) for name in rules} if self.is_known else {}
        if rules != before:
            self._send(_Change(RULES, rules, before))

    def undo(self) -> None:
        """Undo the most recent change of a rule or graphics card limit that has not been undone yet."""
        if self._undos:
            self._send(self._undos.pop())

    def change_cards(self, limits: Json, before: Json) -> None:
        """Change these limits for graphics cards. `undo` restores the values in `before`."""
        if limits != before:
            self._send(_Change(CARDS, limits, before))

    def grant_lender_role(self) -> None:
        """Give this machine the lender role. This machine must be an admin."""
        key = self._pool.now.node.id
        machine = self._pool.now.machines.get(key)
        roles = sorted({*(machine.roles if machine else ()), "lender"})
        self._send(_Change(f"/machines/{key}/roles", {"roles": roles}))

    def retry(self) -> None:
        """Retry the change that was most recently refused."""
        change, self._refused_change = self._refused_change, None
        if change is not None:
            self._send(change)

    def pause(self, seconds: float | None = None, *, at_once: bool = False) -> None:
        """Pause lending for this many seconds, or until it is resumed.

        at_once: whether to stop answers that are using this machine.
        """
        self._send(_Change("/lending/pause", {"seconds": seconds, "at_once": at_once}))

    def resume(self) -> None:
        self._send(_Change("/lending/resume", {}))

    def _send(self, change: _Change) -> None:
        if self._look is not None:  # the answer in progress would be older than this change
            self._look.cancel()
            self._look = None
        self._in_progress.append(change)
        done, refused = partial(self._done, change), partial(self._refused, change)
        if change.path.startswith(RULES):
            take = partial(self._take_answer, change)
            self._client.post(change.path, change.body, take, refused, answer=LendingState)
        else:
            self._client.post(change.path, change.body, done, refused)

    def _take_answer(self, change: _Change, answer: LendingState) -> None:
        self._answer, self.state = answer, answer.lending
        self._done(change)

    def _done(self, change: _Change, _: object = None) -> None:
        if change in self._in_progress:
            self._in_progress.remove(change)
        if change.before is not None:
            self._undos = [*self._undos, _Change(change.path, change.before)][-MOST_UNDOS:]
        self.changed.emit()
        if change.path == CARDS:
            self.cards_changed.emit()
        if change.path in (RULES, CARDS):
            self.saved.emit()

    def _refused(self, change: _Change, error: AppError) -> None:
        if change in self._in_progress:
            self._in_progress.remove(change)
        self._refused_change = change
        self.changed.emit()  # widgets show the actual state again
        self.failed.emit(error)

    def _looked(self, answer: LendingState) -> None:
        self._look = None
        self._answer, self.state = answer, answer.lending
        self.changed.emit()

    def _not_looked(self, _: AppError) -> None:
        self._look = None

    def _pool_changed(self) -> None:
        node = self._pool.now.node
        self.state = node.lending if node.id else None
        self.changed.emit()

    def _link_changed(self) -> None:
        if not self._pool.is_there:
            self._look = None
            self._in_progress.clear()
        elif self._timer.isActive():
            self.refresh()


def is_manual_pause(lending: Lending) -> bool:
    """Return whether the user has paused lending. Such a pause never ends because of a rule."""
    return lending.code in BY_HAND and lending.state in ("paused", "draining")


def lacks_lender_role(lending: Lending) -> bool:
    """Return whether this machine lacks the lender role. Unlike a pause, this lasts until an admin changes the role."""
    return lending.code == NO_ROLE and lending.state != "draining"


def state_sentence(lending: Lending, away: Collection[str] = ()) -> str:
    """Return a sentence about the lending state and its reason.

    away: the names of all offline machines. If all machines with layers here are offline, the sentence says that
    their memory is reserved.
    """
    size = formats.size
    match lending.state:
        case "lending" if lending.used_by and set(lending.used_by) <= set(away):
            text = _tr("{size} is reserved for {names} for 10 minutes.")
            return text.format(size=size(lending.used_bytes), names=user_names(lending))
        case "working" | "lending":
            return _tr("Lending {size} to {names}.").format(size=size(lending.used_bytes), names=user_names(lending))
        case "ready" | "paused" if lacks_lender_role(lending):
            return _tr("Your household doesn't allow this machine to lend.")
        case "ready":
            return _tr("Ready. Others can use {size}.").format(size=size(lending.lent_bytes))
        case "draining":
            text = _tr("Pausing after the current answer (in at most {time}).")
            sentence = text.format(time=formats.whole_seconds(max(1, lending.gives_back_in_s or 0)))
            is_plain = is_manual_pause(lending) or lending.code == QUIT or lending.reason_facts is None
            return sentence if is_plain else f"{sentence} {_reason(lending)}"
        case "paused" if is_manual_pause(lending):
            return _paused_by_hand(lending)
        case "paused" if lending.code == QUIT:
            return _tr("Not lending any memory now.")
        case "off":
            return _tr("Lending is turned off on this machine.")
    return _reason(lending) or _tr("Not lending any memory now.")


def _reason(lending: Lending) -> str:
    return said(lending.reason_facts) if lending.reason_facts else ""


def user_names(lending: Lending) -> str:
    """Return the names of the machines that have layers here."""
    return ", ".join(lending.used_by) or _tr("another machine")


def since_text(lending: Lending) -> str:
    """Return when the state began, or "" if unknown. The date is included if it is not today."""
    if not lending.since:
        return ""
    at = QDateTime.fromSecsSinceEpoch(lending.since)
    is_today = at.date() == QDateTime.currentDateTime().date()
    time = QLocale().toString(at.time() if is_today else at, QLocale.FormatType.ShortFormat)
    return _tr("Since {time}").format(time=time)


def state_word(state: str) -> str:
    """Return the state of a machine in one or two words, for use in lists."""
    known = {
        "ready": _tr("ready"),
        "lending": _tr("lending"),
        "working": _tr("working"),
        "loaded": _tr("loaded"),
        "draining": _tr("pausing"),
        "paused": _tr("paused"),
        "offline": _tr("offline"),
        "off": _tr("lends nothing"),
        "guest": _tr("guest"),
        "user": _tr("uses models"),
    }
    return known.get(state, state)


def _paused_by_hand(lending: Lending) -> str:
    if lending.resumes_in_s is None:
        if lending.code == "pause_stopped":
            return _tr("Lending is stopped until you resume it.")
        return _tr("Lending is paused until you resume it.")
    until = QDateTime.currentDateTime().addSecs(lending.resumes_in_s)
    time = QLocale().toString(until.time(), QLocale.FormatType.ShortFormat)
    return _tr("Paused until {time}.").format(time=time)


def _tr(text: str) -> str:
    return QCoreApplication.translate("Lending", text)
