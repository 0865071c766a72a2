"""The header of a conversation, which shows the chat's title, its model, and the fraction of the context in use."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QMenu, QProgressBar, QWidget

from app.api.models import SharedModel
from app.api.plans import LoadedModel, Stage
from app.core import chat as tree
from app.core.chat import Chat
from app.gui.api.node_state import NodeState
from app.gui.app import navigation
from app.gui.chat.message.answer_stats import AnswerStats
from app.gui.chat.model_menu import ModelLine
from app.gui.look import formats, sizes
from app.gui.look.sentences import model_name
from app.gui.look.theme import Theme, set_role
from app.gui.pool import machine_words
from app.gui.pool.machine_facts import merged_ranges
from app.gui.widgets.buttons import IconButton
from app.gui.widgets.flow import Beside
from app.gui.widgets.labels import ElidedLabel, label
from app.gui.widgets.layouts import column

WHOLE = "whole"  # role of a stage that holds all layers


def processing_lines(loaded: LoadedModel | None, pool: NodeState, shared: SharedModel | None = None) -> list[str]:
    """Return a line for each machine that processes a chat, and one about the data sent to other machines.

    shared: the model of another host that answers in this chat. Returns an empty list if no model is loaded.
    """
    if pool.now.hosts is not None and loaded is None:
        if not pool.now.hosts:
            return []
        text = _tr("{machine} runs the model. Your messages are encrypted and sent there.")
        return [text.format(machine=", ".join(pool.now.hosts))]
    if loaded is None and shared is not None:
        text = _tr("{machine} runs the model. Your messages are encrypted and sent there.")
        return [text.format(machine=shared.machine)]
    if loaded is None or not loaded.can_answer or not loaded.held:
        return []
    own_id = pool.now.node.id
    stages: dict[str, list[Stage]] = {}
    for stage in loaded.held:
        stages.setdefault(stage.id, []).append(stage)
    lines = [_machine_line(held, is_own=key == own_id) for key, held in stages.items()]
    return [*lines, _what_others_receive([stage for stage in loaded.held if stage.id != own_id])]


def _machine_line(stages: list[Stage], *, is_own: bool) -> str:
    name = stages[0].machine
    if is_own:
        name = _tr("{name} (this machine)").format(name=name)
    if any(stage.role == WHOLE for stage in stages):
        return _tr("{machine}: whole model").format(machine=name)
    layers = machine_words.layer_ranges(merged_ranges([(stage.first, stage.last) for stage in stages]))
    return _tr("{machine}: {layers}").format(machine=name, layers=layers)


def _what_others_receive(stages: list[Stage]) -> str:
    if not stages:
        return _tr("Nothing in this chat leaves this machine.")
    if any(stage.role == WHOLE for stage in stages):
        return _tr("Your question is encrypted and sent to a machine that runs the whole model.")
    return _tr("Your text stays on this machine. The other machines only process numbers from inside the model.")


def _tr(text: str) -> str:
    return QCoreApplication.translate("Processing", text)


NEARLY_FULL = 0.85
METER_WIDTH = 96


class ChatHead(QWidget):
    """The header of a conversation. `settings` opens the chat's settings, and `go` opens a page of the window.

    tools: the button that opens the menu of the chat's tools.
    """

    def __init__(
        self,
        theme: Theme,
        pool: NodeState,
        settings: Callable[[], object],
        go: Callable[[str], object] = lambda _: None,
        tools: QWidget | None = None,
    ) -> None:
        super().__init__()
        self._theme, self._pool, self._go = theme, pool, go
        self.machine_lines: list[str] = []  # one line about each machine that processes this chat
        self.title, self.model = ElidedLabel("", "section"), ModelLine(theme)
        self.words = label("", "caption")
        self.meter = QProgressBar()
        self.meter.setTextVisible(False)
        self.meter.setAccessibleName(self.tr("Context used"))
        self.meter.setMinimumWidth(theme.px(METER_WIDTH))
        self.settings = IconButton(theme, "settings", self.tr("Chat settings"), settings)
        machines = self.tr("Machines that process this chat")
        self.machines = IconButton(theme, "pool", machines, self._show_machines)
        self._context = QWidget()
        self._context.setLayout(column(None, self.words, self.meter, None, gap=sizes.XS))
        names = QWidget()
        names.setLayout(column(self.title, self.model, gap=0))
        controls = (self._context, *([tools] if tools is not None else []), self.machines, self.settings)
        self.setLayout(Beside(names, *controls, gap=sizes.M, below=0))
        self.used, self.context = 0, 0
        self._guide_fails = False

    @property
    def is_nearly_full(self) -> bool:
        return bool(self.context) and self.used >= NEARLY_FULL * self.context

    def show_chat(self, chat: Chat, *, guide_fails: bool = False) -> None:
        """Show a chat and the current state of the pool.

        guide_fails: whether the Guide was asked in this chat but does not fit in memory.
        """
        self._guide_fails = guide_fails
        self.title.say(tree.title_of(chat) or self.tr("New chat"))
        self.model.say(self._model_text(chat))
        answering = self._answering(chat)
        shared = None if answering is not None else self._pool.now.shared_model(chat.model)
        self.machine_lines = processing_lines(answering, self._pool, shared) if self._pool.is_there else []
        served = self._pool.now.served_model(chat.model) if answering is None and shared is None else None
        if served is not None and self._pool.is_there:
            text = self.tr("{server}, another server, runs the model. Your messages leave your household.")
            self.machine_lines = [text.format(server=served[0].name)]
        self.machines.setVisible(bool(self.machine_lines))
        self.used, self.context = used_tokens(chat), answering.context if answering is not None else 0
        if shared is not None:
            self.context = shared.context
        is_known = bool(self.used and self.context)
        self._context.setVisible(is_known)
        if not is_known:
            return
        text = self.tr("Context {used} of {all}").format(
            used=formats.number(self.used), all=formats.number(self.context)
        )
        self.words.setText(text)
        set_role(self.words, "warning" if self.is_nearly_full else "caption")
        self.meter.setRange(0, self.context)
        self.meter.setValue(min(self.used, self.context))

    def menu(self) -> QMenu:
        """Return a menu that lists the machines and links to the Pool page."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.setAccessibleName(self.machines.accessibleName())
        for line in self.machine_lines:
            menu.addAction(line.replace("&", "&&")).setEnabled(False)
        menu.addSeparator()
        menu.addAction(self.tr("Show on the Pool page"), lambda: self._go(navigation.POOL))
        return menu

    def _show_machines(self) -> None:
        self.menu().popup(self.machines.mapToGlobal(self.machines.rect().bottomLeft()))

    def _answering(self, chat: Chat) -> LoadedModel | None:
        """Return the model that will answer next, or None if it is not loaded."""
        return self._pool.now.model(chat.model)

    def _model_text(self, chat: Chat) -> str:
        """Return a text that says which model answers next, and on which machines."""
        now = self._pool.now
        if not self._pool.is_there:
            return ""  # the status bar above every page explains that the node is away
        if now.hosts == []:
            return self.tr("No machine is available to answer")
        if now.hosts is not None:
            return self.tr("Answered by {machine}").format(machine=", ".join(now.hosts))
        loaded = self._answering(chat)
        if loaded is None and (shared := now.shared_model(chat.model)) is not None:
            return model_name(shared.reference)
        if loaded is None and (served := now.served_model(chat.model)) is not None:
            text = self.tr("{model} on {server}, another server")
            return text.format(model=model_name(served[1]), server=served[0].name)
        if loaded is None and chat.model is not None and "@" in chat.model:
            return self.tr("{model} is not available now").format(model=model_name(chat.model))
        if loaded is None and chat.model is not None:
            return self.tr("{model} (loads with your next message)").format(model=model_name(chat.model))
        if loaded is None and now.load_failed is not None:
            text = self.tr("No model is available: {model} could not be loaded")
            return text.format(model=model_name(now.load_failed.model))
        if loaded is None and self._guide_fails:
            return self.tr("No model is loaded, and there is not enough memory for the Guide")
        if loaded is None:
            return self.tr("No model is loaded, so the Guide answers")
        count = len(loaded.machines)
        words = self.tr("{model} on %n machine(s)", "", count) if count > 1 else self.tr("{model} on this machine")
        return str(words).format(model=model_name(loaded.model))


def used_tokens(chat: Chat) -> int:
    """Return the number of context tokens in use after the last answer of the branch, or 0 if unknown."""
    known = (AnswerStats.stored(message.details).context_tokens for message in reversed(tree.path(chat)))
    return next((tokens for tokens in known if tokens is not None), 0)
