"""The line above a conversation: its name, who answers, how much of the context is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QMenu, QProgressBar, QWidget

from app.core import chat as tree
from app.core.chat import FIGURES, Chat
from app.gui.api.node_state import NodeState
from app.gui.app import page_names
from app.gui.chat.message import answer_stats
from app.gui.look import formats
from app.gui.look import theme as sizes
from app.gui.look.sentences import model_name
from app.gui.look.theme import Theme, set_role
from app.gui.pool import machine_words
from app.gui.pool.machine_facts import joined
from app.gui.widgets.buttons import IconButton
from app.gui.widgets.flow import Beside
from app.gui.widgets.labels import Elided, label
from app.gui.widgets.layouts import column

# Which machines process a chat: the lines of the popover in its head.

Json = dict[str, Any]
WHOLE = "whole"  # the role of a stage that holds every layer
ANSWERS = ("ready", "recovering")


def processing(loaded: Json, pool: NodeState) -> list[str]:
    """Each machine with its layers, and what of the chat it gets. Empty while no model answers."""
    if pool.hosts is not None and not loaded:
        return _by_hosts(pool.hosts)
    stages = _present(loaded)
    if not stages:
        return []
    own = str(pool.node.get("id") or "")
    runs: dict[str, list[Json]] = {}
    for stage in stages:
        runs.setdefault(str(stage.get("id")), []).append(stage)
    found = [_line(own, key, held) for key, held in runs.items()]
    return [*found, _what_they_get(own, stages)]


def _present(loaded: Json) -> list[Json]:
    """Of several pipelines those that are not lost."""
    if loaded.get("state") not in ANSWERS:
        return []
    stages = loaded.get("stages") or []
    holders = loaded.get("holders")
    return [one for one in stages if holders is None or one.get("id") in holders]


def _by_hosts(hosts: list[str]) -> list[str]:
    if not hosts:
        return []
    text = _tr("{machine} answers for this machine: what you write goes there, encrypted.")
    return [text.format(machine=", ".join(hosts))]


def _line(own: str, key: str, held: list[Json]) -> str:
    name = str(held[0].get("machine"))
    if key == own:
        name = _tr("{name} (this machine)").format(name=name)
    if any(stage.get("role") == WHOLE for stage in held):
        return _tr("{machine}: the whole model").format(machine=name)
    layers = machine_words.layer_ranges(joined([(stage["first"], stage["last"]) for stage in held]))
    return _tr("{machine}: {layers}").format(machine=name, layers=layers)


def _what_they_get(own: str, stages: list[Json]) -> str:
    """So much of what is written leaves this machine, and no more."""
    others = [stage for stage in stages if stage.get("id") != own]
    if not others:
        return _tr("Nothing of this chat leaves this machine.")
    if any(stage.get("role") == WHOLE for stage in others):
        return _tr("A machine with the whole model gets a question as token numbers, encrypted.")
    return _tr("The text stays here; the others get only numbers from inside the model.")


def _tr(text: str) -> str:
    return QCoreApplication.translate("Processing", text)


NEARLY_FULL = 0.85
METER_WIDTH = 96


class ChatHead(QWidget):
    """`settings` is called by its button, `go` with the page that shows more."""

    def __init__(
        self,
        theme: Theme,
        pool: NodeState,
        settings: Callable[[], object],
        go: Callable[[str], object] = lambda _: None,
    ) -> None:
        super().__init__()
        self._theme, self._pool, self._go = theme, pool, go
        self.lines: list[str] = []  # who processes this chat
        self.title, self.model = Elided("", "section"), Elided("", "caption")
        self.words = label("", "caption")
        self.meter = QProgressBar()
        self.meter.setTextVisible(False)
        self.meter.setAccessibleName(self.tr("Context used"))
        self.meter.setMinimumWidth(theme.px(METER_WIDTH))
        self.settings = IconButton(theme, "settings", self.tr("Settings of this chat"), settings)
        who = self.tr("Which machines process this chat")
        self.machines = IconButton(theme, "pool", who, self._show_machines)
        self._context = QWidget()
        self._context.setLayout(column(None, self.words, self.meter, None, gap=sizes.XS))
        names = QWidget()
        names.setLayout(column(self.title, self.model, gap=0))
        own = (self._context, self.machines, self.settings)
        self.setLayout(Beside(names, *own, gap=sizes.M, below=0))
        self.used, self.context = 0, 0
        self._guide_fails = False

    @property
    def is_nearly_full(self) -> bool:
        return bool(self.context) and self.used >= NEARLY_FULL * self.context

    def tell(self, chat: Chat, *, guide_fails: bool = False) -> None:
        """About this chat, as it and the pool are now. guide_fails: it was asked here, and does not fit."""
        self._guide_fails = guide_fails
        self.title.say(tree.title_of(chat) or self.tr("New chat"))
        self.model.say(self._model(chat))
        there = self._pool.is_there
        self.lines = processing(self._answering(chat), self._pool) if there else []
        self.machines.setVisible(bool(self.lines))
        self.used, self.context = used_tokens(chat), self._room(chat)
        known = bool(self.used and self.context)
        self._context.setVisible(known)
        if not known:
            return
        text = self.tr("Context {used} of {all}").format(
            used=formats.number(self.used), all=formats.number(self.context)
        )
        self.words.setText(text)
        set_role(self.words, "warning" if self.is_nearly_full else "caption")
        self.meter.setRange(0, self.context)
        self.meter.setValue(min(self.used, self.context))

    def menu(self) -> QMenu:
        """The popover: a line for each machine, and the way to where they are shown whole."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.setAccessibleName(self.machines.accessibleName())
        for line in self.lines:
            menu.addAction(line.replace("&", "&&")).setEnabled(False)
        menu.addSeparator()
        menu.addAction(self.tr("Show them on the page Pool"), lambda: self._go(page_names.POOL))
        return menu

    def _show_machines(self) -> None:
        self.menu().popup(self.machines.mapToGlobal(self.machines.rect().bottomLeft()))

    def _answering(self, chat: Chat) -> Json:
        """The model that answers next, as far as it is loaded."""
        loaded = self._pool.model(chat.model) or self._pool.loaded or {}
        other = chat.model is not None and chat.model != loaded.get("model")
        return {} if other else loaded

    def _model(self, chat: Chat) -> str:
        """Who answers next, and where."""
        loaded = self._pool.model(chat.model) or self._pool.loaded or {}
        name = loaded.get("model")
        if not self._pool.is_there:
            return ""  # nobody answers just now, and the bar over every page says so
        if self._pool.hosts == []:
            return self.tr("No host is here to answer")
        if self._pool.hosts is not None:
            return self.tr("Answered by {machine}").format(machine=", ".join(self._pool.hosts))
        if chat.model is not None and chat.model != name:
            return self.tr("{model}, loaded with the next message").format(model=model_name(chat.model))
        if name is None and self._pool.load_failed:
            text = self.tr("No model answers: {model} could not be loaded")
            return text.format(model=model_name(self._pool.load_failed))
        if name is None and self._guide_fails:
            return self.tr("No model is loaded, and the Guide does not fit")
        if name is None:
            return self.tr("No model is loaded: the Guide answers")
        machines = loaded.get("machines") or ()
        if len(machines) > 1:
            words = self.tr("{model} on %n machine(s)", "", len(machines))
        else:
            words = self.tr("{model} on this machine")
        return words.format(model=model_name(str(name)))

    def _room(self, chat: Chat) -> int:
        return int(self._answering(chat).get("context") or 0)


def used_tokens(chat: Chat) -> int:
    """As the last answer of the branch told it; 0: not known."""
    for message in reversed(tree.path(chat)):
        used = answer_stats.used_tokens(message.details.get(FIGURES) or {})
        if used is not None:
            return used
    return 0
