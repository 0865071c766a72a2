"""Announces answers to a screen reader: complete ones, or optionally each finished paragraph."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from app.core.chat import ChatId
from app.gui.app import preferences
from app.gui.app.preferences import Preferences
from app.gui.chat.answer import Ending
from app.gui.chat.message.message_actions import as_text
from app.gui.chat.session import Session
from app.gui.look.accessibility import announce

MOST_CHARACTERS = 2_000  # at once: nobody listens to more


class Speaker(QObject):
    """Announces the answers of the chat that is shown. shown: returns its ID; end: returns its last text."""

    def __init__(
        self,
        session: Session,
        preferences: Preferences,
        view: QWidget,
        shown: Callable[[], ChatId],
        end: Callable[[], str],
    ) -> None:
        super().__init__(view)
        self._session, self._preferences, self._view = session, preferences, view
        self._shown, self._end = shown, end
        self._message, self._told = "", 0  # characters of this message that were read
        session.grew.connect(self._grew)
        session.ended.connect(self._ended)

    def _grew(self, chat: str) -> None:
        running = self._session.running.get(ChatId(chat))
        if running is None or chat != self._shown():
            return
        if running.message != self._message:
            self._message, self._told = running.message, len(running.before)
        if preferences.reads_paragraphs(self._preferences):
            done = finished(running.text, self._told)
            self._say(running.text[self._told : done])
            self._told = done

    def _ended(self, chat: str, ending: Ending) -> None:
        if chat == self._shown() and ending.error is None:
            self._say(self._end()[self._told :])
        self._message, self._told = "", 0

    def _say(self, markdown: str) -> None:
        if markdown.strip():
            announce(self._view, as_text(markdown[:MOST_CHARACTERS]))


def finished(text: str, start: int) -> int:
    """Return where the last finished paragraph of a growing text ends; `start` if none has ended since.

    Inside a block of code a blank line ends nothing.
    """
    end, place, in_code = start, 0, False
    for line in text.splitlines(keepends=True):
        place += len(line)
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not line.strip() and line.endswith("\n") and not in_code:
            end = max(end, place)
    return end
