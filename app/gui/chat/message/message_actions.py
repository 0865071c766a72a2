"""Handlers that copy, select and fork messages and open links. The chat session handles all other actions."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication, QObject, Qt, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication, QTextDocumentFragment, QTextOption
from PySide6.QtWidgets import QDialogButtonBox, QPlainTextEdit, QWidget

from app.core import chat as tree
from app.core.chat import Chat, Message, MessageId, Role
from app.gui.chat.history.history import History
from app.gui.chat.message import markdown
from app.gui.chat.message.markdown import SegmentKind
from app.gui.chat.message.message_view import MessageAction
from app.gui.chat.session import Session
from app.gui.look import sizes
from app.gui.look.accessibility import announce
from app.gui.look.theme import Theme
from app.gui.widgets.dialog import CompactDialog, Dialog
from app.gui.widgets.labels import paragraph
from app.gui.widgets.layouts import column

MAX_LINE_CHARS = 4_000  # longer lines are broken for display, because laying them out takes seconds


def as_text(text: str) -> str:
    """Convert Markdown to plain text."""
    parts = []
    for segment in markdown.segments(text):
        if segment.kind is SegmentKind.TEXT:
            html = markdown.with_formulas(segment, lambda _, formula: markdown.source_html(formula))
            parts.append(QTextDocumentFragment.fromHtml(html).toPlainText().rstrip())
        else:
            parts.append(segment.content)
    return "\n\n".join(parts)


class TextWindow(Dialog):
    """A window with the selectable text of a message. It is not modal, so the conversation remains usable."""

    def __init__(self, theme: Theme, text: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(self.tr("Message text"))
        self.field = QPlainTextEdit()
        self.field.setAccessibleName(self.tr("Message text"))
        self.field.setReadOnly(True)
        self.field.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.field.setPlainText("\n".join(_broken(text)))
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.close)
        box = column(self.field, buttons, gap=sizes.M)
        box.setContentsMargins(sizes.L, sizes.L, sizes.L, sizes.L)
        self.setLayout(box)
        self.begin_at(theme.px(sizes.CHAT_WIDTH), theme.px(sizes.CHAT_WIDTH * 2 // 3))


def _broken(text: str) -> list[str]:
    return [
        line[at : at + MAX_LINE_CHARS]
        for line in text.split("\n")
        for at in range(0, max(1, len(line)), MAX_LINE_CHARS)
    ]


SCHEMES = ("http", "https", "mailto")
SHOWN_CHARACTERS = 500
BREAK = "\u200b"  # zero-width space; lets an address wrap, which has no spaces


def ask_link(theme: Theme, parent: QWidget, address: str, open_it: Callable[[], object]) -> CompactDialog:
    """Ask before opening a link. If neither a browser nor a mail program can open it, it can only be copied."""
    words = _tr("This link in the answer opens:")
    box = CompactDialog(theme, _tr("Open a link"), words, parent)
    shown = paragraph(BREAK.join(_shown(address)))
    # A copied selection would include the zero-width spaces.
    shown.setTextInteractionFlags(Qt.TextInteractionFlag.NoTextInteraction)
    shown.setAccessibleName(_shown(address))
    box.add(shown)
    copies = box.answer(_tr("Copy address"), lambda: QGuiApplication.clipboard().setText(address))
    acts = [copies]
    if QUrl(address).scheme() in SCHEMES:
        acts.append(box.answer(_tr("Open in browser"), open_it))
    box.offer(_tr("Cancel"), *acts).setFocus()
    box.open()
    return box


def _shown(address: str) -> str:
    """Return an address as browsers show it, with look-alike characters encoded."""
    whole = QUrl(address).toString(QUrl.ComponentFormattingOption.FullyEncoded) or address
    return whole if len(whole) <= SHOWN_CHARACTERS else f"{whole[:SHOWN_CHARACTERS]}…"


def _tr(text: str) -> str:
    return QCoreApplication.translate("Link", text)


class MessageActionHandler(QObject):
    """A handler of the actions that the user selects for messages. It calls `opened` with the ID of each new chat."""

    def __init__(
        self, history: History, session: Session, theme: Theme, opened: Callable[[str], object], window: QWidget
    ) -> None:
        super().__init__(window)
        self._history, self._session, self._theme = history, session, theme
        self._opened, self._window = opened, window

    def do(self, chat: Chat, action: MessageAction, message: str, text: str) -> None:
        """Perform an action. `text` is the new text of an edited message, or the ID of the version to switch to."""
        chosen = chat.messages.get(MessageId(message))
        if chosen is None:
            return
        match action:
            case MessageAction.COPY:
                self._copy(as_text(chosen.text) if chosen.role is Role.ASSISTANT else chosen.text)
            case MessageAction.COPY_MARKDOWN:
                self._copy(chosen.text)
            case MessageAction.SELECT:
                TextWindow(self._theme, chosen.text, self._window).show()
            case MessageAction.REGENERATE:
                self._session.regenerate(chat.id, chosen.id)
            case MessageAction.CONTINUE:
                self._session.continue_answer(chat.id, chosen.id)
            case MessageAction.EDIT:
                self._session.edit(chat.id, chosen.id, text)
            case MessageAction.SWITCH:
                self._session.switch(chat.id, MessageId(text))
            case MessageAction.FORK:
                self._fork(chat, chosen)

    def open_link(self, address: str) -> None:
        """Show the user the address of a link, then open it."""
        ask_link(self._theme, self._window, address, lambda: QDesktopServices.openUrl(QUrl(address)))

    def _copy(self, text: str) -> None:
        QGuiApplication.clipboard().setText(text)
        announce(self._window, self.tr("Copied"))

    def _fork(self, chat: Chat, message: Message) -> None:
        title = self.tr("{title} (branch)").format(title=tree.title_of(chat))
        made = self._history.adopt(tree.fork(chat, message.id, chat.id, title))
        self._opened(made.id)
