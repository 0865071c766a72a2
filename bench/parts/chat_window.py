"""The window process of the `chat` part. It prints its measurements as a JSON object."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QEvent, QTimer
from PySide6.QtWidgets import QApplication

from app import __version__
from app.core import chat as tree
from app.core.chat import Chat, Message, Role
from app.gui.api.launch import Endpoint
from app.gui.api.node_state import Link
from app.gui.chat.chat_page import ChatPage
from testbed.desk import desk

OPENS = 7
TICK_MS = 5  # between looks at the clock; the window was busy during anything longer
SETTLE_S = 2.0  # for the earlier messages, which are created between events
SIZE = (1200, 760)


def filled(page: ChatPage, n_messages: int, piece: str) -> Chat:
    """Create a chat of `n_messages` messages in the history, and return it."""
    chat = page.history.begin()
    for number in range(n_messages):
        role = Role.ASSISTANT if number % 2 else Role.USER
        text = piece.format(n=number) * 2 if number % 2 else f"How does part {number} work?"
        made = Message(page.history.new_message_id(), chat.leaf, role, text, float(number))
        chat = tree.add(chat, made)
    page.history.save(chat)
    page.history.flush()
    return chat


def opened_s(app: QApplication, page: ChatPage, chat: Chat, empty: Chat) -> float:
    """Return the seconds until the chat is painted for the first time."""
    page.open_chat(empty.id)
    rest(app, SETTLE_S / 4)
    began = time.perf_counter()
    page.open_chat(chat.id)
    page.repaint()
    app.processEvents()
    return time.perf_counter() - began


def streamed(app: QApplication, page: ChatPage, chat: Chat) -> list[float]:
    """Return the duration of each stretch during which the window was busy while an answer streamed in."""
    busy: list[float] = []
    last = time.perf_counter()

    def look() -> None:
        nonlocal last
        now = time.perf_counter()
        busy.append(max(0.0, now - last - TICK_MS / 1000))
        last = now

    timer = QTimer()
    timer.timeout.connect(look)
    timer.start(TICK_MS)
    page.session.ended.connect(lambda *_: app.exit())
    page.session.send(chat, "Explain it step by step.")
    app.exec()
    return busy


def rest(app: QApplication, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        app.processEvents()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)  # as an event loop would
        time.sleep(TICK_MS / 1000)


def main(port: int, n_messages: int, piece: str) -> None:
    app = QApplication([])
    with tempfile.TemporaryDirectory() as folder:
        parts = desk(app, Path(folder)).services
        parts.client.endpoint = Endpoint(0, port, "", __version__)
        parts.pool.link = Link.THERE  # otherwise questions wait for a node
        page = ChatPage(parts)
        page.resize(*SIZE)
        page.show()
        page.shown()
        chat, empty = filled(page, n_messages, piece), page.history.begin()
        opens = [opened_s(app, page, chat, empty) for _ in range(OPENS)]
        rest(app, SETTLE_S)
        busy = streamed(app, page, chat)
        page.close_history()
    print(json.dumps({"open_s": opens, "busy_s": busy}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
