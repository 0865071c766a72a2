"""Chats whose answer waits for a machine, or broke off with its model: where news of a lost model lead."""

from __future__ import annotations

from app.core.chat import ChatId
from app.gui.app.mending_places import of_chat


class CutAnswers:
    """By model. The page of chats tells it; the tray asks, also before that page was ever shown."""

    def __init__(self) -> None:
        self._models: dict[ChatId, str] = {}  # in the order in which they were cut

    def cut(self, chat: ChatId, model: str) -> None:
        """Its answer stands still, or has ended before its end."""
        self.mended(chat)
        self._models[chat] = model

    def mended(self, chat: ChatId) -> None:
        """Its answer goes on, came to its end, or is wanted no more."""
        self._models.pop(chat, None)

    def place(self, model: str, otherwise: str) -> str:
        """The page with the chat that was cut last with this model, if there is one."""
        found = (chat for chat, by in reversed(self._models.items()) if by == model)
        chat = next(found, None)
        return otherwise if chat is None else of_chat(chat)
