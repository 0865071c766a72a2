"""Where one types: the message, the files that go with it, Send or Stop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from PySide6.QtCore import QCoreApplication, QMimeData, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QFileDialog, QFrame, QPlainTextEdit, QSizePolicy, QWidget

from app.core.chat import Chat, Details
from app.core.errors import AppError, BadInput
from app.gui.api.node_client import Call
from app.gui.api.node_state import NodeState
from app.gui.app.app_context import AppContext
from app.gui.app.preferences import Preferences
from app.gui.look import formats
from app.gui.look import theme as sizes
from app.gui.look.language import is_english
from app.gui.look.sentences import GUIDE, model_name
from app.gui.look.theme import Theme, set_role
from app.gui.widgets.buttons import IconButton, button
from app.gui.widgets.flow import Beside
from app.gui.widgets.labels import Chip, paragraph
from app.gui.widgets.layouts import clear, column, row
from app.gui.widgets.save_file import LastFolder

LAST_MODEL = "chat/last_model"  # that answered and is not the Guide


class Hint(QWidget):
    """`use(model)` when the model that answered last is wanted again, or the Guide where none answers."""

    def __init__(self, preferences: Preferences, use: Callable[[str], object]) -> None:
        super().__init__()
        self._preferences = preferences
        self.words = paragraph("", "caption")
        self._offered = ""
        self.other = button("", lambda: use(self._offered), "link")
        self.setLayout(Beside(self.words, self.other, gap=sizes.S))

    @property
    def last(self) -> str:
        return self._preferences.text(LAST_MODEL)

    def answered(self, model: str | None) -> None:
        """This model answered just now."""
        if model and model not in (GUIDE, self.last):
            self._preferences.keep(LAST_MODEL, model)

    def tell(
        self,
        chat: Chat,
        models: Sequence[str],
        pool: NodeState,
        *,
        is_full: bool,
        leaves_out: bool = False,
        waits: bool = False,
        guide_fails: bool = False,
    ) -> None:
        """About the next message of this chat.

        waits: it was sent while an answer comes; guide_fails: that was asked here, and does not fit.
        """
        words, other, self._offered = "", "", self.last
        is_loaded = pool.loaded is not None or pool.hosts is not None or not pool.is_there
        speaker = (pool.model(chat.model) or pool.loaded or {}).get("model")
        by_guide = pool.hosts is None and (chat.model or speaker or GUIDE) == GUIDE
        failed = pool.load_failed if chat.model is None and pool.hosts is None else ""
        only_english = ""
        if by_guide and not failed and chat.messages and not is_english():  # an empty chat says it at length
            only_english = self.tr("The Guide understands English only.")
        if waits:
            words = self.tr("Your message goes as soon as this answer has ended.")
        elif is_full and leaves_out:
            words = self.tr("The context is nearly full: the oldest messages are left out from now on.")
        elif is_full:
            words = self.tr("The context is nearly full: the next answer may stop early.")
        elif not is_loaded and failed:
            if chat.messages:  # an empty chat says it at length
                text = self.tr("{model} could not be loaded, so no model answers.")
                words = text.format(model=model_name(failed))
                other, self._offered = self.tr("Ask the Guide"), GUIDE
        elif not is_loaded and chat.model is None and guide_fails:
            words = self.tr("No model is loaded, and the Guide does not fit either.")
        elif not is_loaded and chat.model is None:
            words = f"{self.tr('No model is loaded, so the Guide answers.')} {only_english}".strip()
            if self.last in models:
                other = self.tr("Use {model}").format(model=self.last)
        else:
            words = only_english
        self.words.setText(words)
        self.other.setText(other)
        self.other.setVisible(bool(other))
        self.setVisible(bool(words))


Json = dict[str, Any]

MAX_FILE_BYTES = 256 << 10
MAX_FILES = 8
MOST_LINES = 8
NAME_CHARACTERS = 40
LEAST_CHARACTERS = 20  # of a line that one types, beside the buttons


def read_text(path: Path) -> Json:
    """A text file as an attachment. Raises BadInput when it is too large or no text."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise BadInput("attachment_unreadable", name=path.name, why=str(error.strerror)) from None
    if len(data) > MAX_FILE_BYTES:
        raise BadInput("attachment_large", name=path.name, most_bytes=MAX_FILE_BYTES)
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise BadInput("attachment_no_text", name=path.name) from None
    if "\0" in text:
        raise BadInput("attachment_no_text", name=path.name)
    return {"name": path.name, "text": text}


def file_words(file: Json) -> str:
    """A file's name and size; a long name without its middle."""
    name = str(file.get("name"))
    if len(name) > NAME_CHARACTERS:
        half = NAME_CHARACTERS // 2
        name = f"{name[:half]}…{name[-half:]}"
    words = f"{name}, {formats.size(len(str(file.get('text')).encode()))}"
    if tokens := file.get("tokens"):
        count = QCoreApplication.translate("Answer", "%n token(s)", "", int(tokens))
        words = f"{words}, {count}"
    return words


class Field(QPlainTextEdit):
    """Grows with its lines. Enter (or only Ctrl+Enter) sends, Shift+Enter begins a new line; files can be dropped."""

    sent = Signal()
    dropped = Signal(list)  # of paths

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.sends_with_enter: Callable[[], bool] = lambda: True  # else Ctrl+Enter does
        set_role(self, "field")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Maximum)
        self.setAccessibleName(self.tr("Message"))
        self.setPlaceholderText(self.tr("Message…"))
        self.setTabChangesFocus(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)  # lines are wrapped
        self.document().setDocumentMargin(0)
        self.document().documentLayout().documentSizeChanged.connect(lambda *_: self.fit())
        self.fit()

    def fit(self) -> None:
        """As high as its text, within limits, and less where there is no room for that."""
        self.updateGeometry()
        QTimer.singleShot(0, self, self._tell_bar)  # once it has the height

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        return QSize(super().sizeHint().width(), self._needs(MOST_LINES))

    def minimumSizeHint(self) -> QSize:  # noqa: N802  Qt's name
        return QSize(super().minimumSizeHint().width(), self._needs(1))

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        super().resizeEvent(event)
        self._tell_bar()

    def _needs(self, most: float) -> int:
        """Its height, with so many lines of its text."""
        shown = min(most, max(1, int(self.document().size().height())))
        return int(shown * self.fontMetrics().lineSpacing() + 2 * self._theme.px(sizes.S))

    def _tell_bar(self) -> None:
        """One that is there for a moment would make the lines shorter, and there would be more of them."""
        policy = Qt.ScrollBarPolicy
        scrolls = self._needs(inf) > self.height()
        self.setVerticalScrollBarPolicy(policy.ScrollBarAsNeeded if scrolls else policy.ScrollBarAlwaysOff)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802  Qt's name
        is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        held = event.modifiers()
        sends = self.sends_with_enter() or held & Qt.KeyboardModifier.ControlModifier
        if is_enter and sends and not held & Qt.KeyboardModifier.ShiftModifier:
            self.sent.emit()
        else:
            super().keyPressEvent(event)

    def canInsertFromMimeData(self, source: QMimeData) -> bool:  # noqa: N802  Qt's name
        return source.hasUrls() or super().canInsertFromMimeData(source)

    def insertFromMimeData(self, source: QMimeData) -> None:  # noqa: N802  Qt's name
        paths = [Path(url.toLocalFile()) for url in source.urls() if url.isLocalFile()]
        if paths:
            self.dropped.emit(paths)
        elif source.hasText():
            self.textCursor().insertText(source.text())


class Composer(QFrame):
    """`sent` when there is something to send and nothing under way; `stopped` while there is.

    What is sent while an answer comes `waits`: `send_waiting` when it has ended.
    """

    sent = Signal(str, list)  # text, attachments
    stopped = Signal()
    edited = Signal()  # the draft is another
    queued = Signal()  # it waits, or does not wait any more
    attached = Signal()  # files are new: their tokens are to be counted

    def __init__(self, theme: Theme, failed: Callable[[AppError], None], preferences: Preferences) -> None:
        super().__init__()
        self._theme, self._failed = theme, failed
        self._last = LastFolder(preferences, "attach")
        self._files: list[Json] = []
        self._busy = self.waits = False
        set_role(self, "composer")
        self.field = Field(theme)
        self.field.sent.connect(self._send)
        self.field.dropped.connect(self.attach)
        self.field.textChanged.connect(self._changed)
        self._chips = row(gap=sizes.S)
        self.attach_button = IconButton(theme, "attach", self.tr("Attach a text file"), self._pick)
        self.send = button(self.tr("Send"), self._press, "primary")
        self._line = row(gap=sizes.XS)
        self._line.addWidget(self.field, 1)
        tools = row(self.attach_button, None, self.send, gap=sizes.XS)
        for widget in (self.attach_button, self.send):
            tools.setAlignment(widget, Qt.AlignmentFlag.AlignBottom)
        self._line.addLayout(tools)
        box = column(self._chips, self._line, gap=sizes.XS)
        box.setContentsMargins(sizes.S, sizes.S, sizes.S, sizes.S)
        self.setLayout(box)
        self._changed()

    @property
    def text(self) -> str:
        return self.field.toPlainText()

    @property
    def files(self) -> list[Json]:
        return list(self._files)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        """Where text is large and the window is not, the buttons go below the field."""
        super().resizeEvent(event)
        taken = self.attach_button.sizeHint().width() + self.send.sizeHint().width()
        words = LEAST_CHARACTERS * self.field.fontMetrics().averageCharWidth()
        beside = event.size().width() - taken >= words
        self._line.setDirection(QBoxLayout.Direction.LeftToRight if beside else QBoxLayout.Direction.TopToBottom)

    def show_draft(self, text: str, files: Sequence[Details] = ()) -> None:
        """What was typed in this chat before."""
        self.waits = False
        # first: who hears of the text looks at them, too
        self._files = [dict(one) for one in files]
        if text != self.text:
            self.field.setPlainText(text)
            self.field.moveCursor(self.field.textCursor().MoveOperation.End)
        self._tell_files()

    def show_busy(self, busy: bool) -> None:
        """While an answer comes the button stops it; one can type on."""
        self._busy = busy
        self.send.setText(self.tr("Stop") if busy else self.tr("Send"))
        with_enter = self.field.sends_with_enter()
        sends = self.tr("Send (Enter)") if with_enter else self.tr("Send (Ctrl+Enter)")
        self.send.setToolTip(self.tr("Stop (Esc)") if busy else sends)
        self._changed(quiet=True)

    def attach(self, paths: Sequence[str | Path]) -> None:
        """Add files to the message."""
        for path in map(Path, paths):
            try:
                if len(self._files) >= MAX_FILES:
                    raise BadInput("attachments_many", most=MAX_FILES)
                self._files.append(read_text(path))
            except BadInput as error:
                self._failed(error)
        self._tell_files()
        self.attached.emit()

    def count(self, file: Json, tokens: int) -> None:
        """How many tokens a file of this message is."""
        if any(one is file for one in self._files):  # else another chat is shown by now
            self._files = [{**one, "tokens": tokens} if one is file else one for one in self._files]
            self._tell_files(quiet=True)  # no person has changed it: what waits goes on waiting
            self.edited.emit()

    def _pick(self) -> None:
        title = self.tr("Attach text files")
        chosen, _ = QFileDialog.getOpenFileNames(self, title, self._last.folder())
        if chosen:
            self._last.keep(Path(chosen[0]))
        self.attach([Path(one) for one in chosen])
        self.field.setFocus()

    def _tell_files(self, *, quiet: bool = False) -> None:
        clear(self._chips)
        for one in self._files:
            chip = QFrame()
            set_role(chip, "chip")
            words = self.tr("Remove {name}").format(name=one["name"])
            remove = IconButton(self._theme, "close", words, partial(self._remove, one))
            inner = row(Chip(file_words(one), "caption"), remove, gap=0)
            inner.setContentsMargins(sizes.S, 0, 0, 0)
            chip.setLayout(inner)
            self._chips.addWidget(chip)
        if self._files:
            self._chips.addStretch(1)
        self._changed(quiet=quiet)

    def _remove(self, file: Json) -> None:
        self._files = [one for one in self._files if one is not file]
        self._tell_files()
        self.field.setFocus()

    def _changed(self, *, quiet: bool = False) -> None:
        self.send.setEnabled(self._busy or bool(self.text.strip() or self._files))
        if not quiet:
            self._wait(False)  # who changes it is not done with it
            self.edited.emit()

    def _press(self) -> None:
        if self._busy:
            self.stopped.emit()
        else:
            self._send()

    def _send(self) -> None:
        if not (self.text.strip() or self._files):
            return
        if self._busy:
            self._wait(True)
        else:
            self.sent.emit(self.text, self.files)

    def send_waiting(self, *, well: bool) -> None:
        """The answer has ended; after one that failed, a person decides."""
        if self.waits and well:
            self._send()
        self._wait(False)

    def _wait(self, waits: bool) -> None:
        if waits != self.waits:
            self.waits = waits
            self.queued.emit()


Key = tuple[str, str]  # the model that counts, and the text


class TokenCounts:
    """`told(file, tokens)` when the node has said it, which is asked once of each text and model.

    Nothing is said where that model is not loaded: then later.
    """

    def __init__(self, services: AppContext, told: Callable[[Json, int], object]) -> None:
        self._pool, self._client, self._told = services.pool, services.client, told
        self._calls: list[Call] = []
        self._known: dict[Key, int | None] = {}  # None: it was asked

    def ask(self, files: Sequence[Json], model: str | None) -> None:
        """Of text files, for a chat with this model; those that have their number are left alone."""
        loaded = self._pool.asked(model)
        for file in files if loaded else ():
            key = (str((loaded or {}).get("model")), str(file["text"]))
            if file.get("tokens"):
                continue
            if (tokens := self._known.get(key)) is not None:
                self._told(file, tokens)
            elif key not in self._known:
                self._ask(file, key, model)

    def close(self) -> None:
        for call in self._calls:
            if call.running:
                call.cancel()

    def _ask(self, file: Json, key: Key, model: str | None) -> None:
        self._known[key] = None
        self._calls = [call for call in self._calls if call.running]
        body = {"text": file["text"], "model": model}
        call = self._client.post("/tokens", body, partial(self._counted, file, key))
        self._calls += [call] if call is not None else []

    def _counted(self, file: Json, key: Key, answer: Json) -> None:
        self._known[key] = int(answer["tokens"])
        self._told(file, int(answer["tokens"]))
