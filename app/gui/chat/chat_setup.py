"""The settings of a chat, opened with what may be chosen there: models, and how much each of them reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from PySide6.QtWidgets import QWidget

from app.core.chat import Chat
from app.gui.app.app_context import Services
from app.gui.chat.chat_settings import ChatSettings, Reads
from app.gui.chat.model_names import ModelNames
from app.gui.chat.presets import Presets
from app.gui.look.sentences import GUIDE
from app.gui.settings import chat_defaults


class ChatSetup:
    """asked: the model that answers in a chat."""

    def __init__(
        self,
        services: Services,
        models: ModelNames,
        asked: Callable[[Chat], str],
        parent: QWidget,
    ) -> None:
        self._services, self._models, self._asked = services, models, asked
        self._parent = parent
        self._presets = Presets(services.preferences, parent)

    def open(self, chat: Chat, done: Callable[[Chat], None]) -> None:
        """`done` with the chat as it is to be, when that is saved."""
        system, sampling = chat_defaults.beginning(self._services.preferences)
        defaults = Chat(chat.id, system=system, sampling=sampling)

        def reads(model: str | None) -> Reads:
            answering = self._asked(replace(chat, model=model))
            return Reads(self._models.reads(answering), answering == GUIDE)

        dialog = ChatSettings(
            self._services.theme, self._presets, chat, defaults, self._models.names,
            reads, done, self._parent,
        )  # fmt: skip
        dialog.open()
