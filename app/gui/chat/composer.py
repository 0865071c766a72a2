"""The composer, with the message field, attached files, the Send or Stop button, and a hint above the field."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from pathlib import Path

from PySide6.QtCore import QBuffer, QCoreApplication, QMimeData, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QImage, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QFileDialog, QFrame, QPlainTextEdit, QSizePolicy, QWidget

from app.api.responses import TokenCount
from app.core.chat import Chat, Details
from app.core.errors import AppError, BadInput
from app.core.reasons import os_cause
from app.gui.api.node_client import Call
from app.gui.api.node_state import NodeState
from app.gui.app.app_context import AppContext
from app.gui.app.preferences import Preferences
from app.gui.chat.message.picture_view import Open, PictureRow, picture_name
from app.gui.chat.reading.attachment_reader import (
    ALL_PAGES,
    PAGES,
    SHORTENED,
    UNIT,
    AttachmentReader,
    Kind,
    is_picture,
    kind_of,
    shortened,
)
from app.gui.chat.reading.picture_loader import PictureLoader
from app.gui.look import formats, sizes
from app.gui.look.accessibility import announce
from app.gui.look.language import is_english
from app.gui.look.sentences import GUIDE, model_name
from app.gui.look.theme import Theme, set_role
from app.gui.widgets.buttons import IconButton, button
from app.gui.widgets.files import LastFolder
from app.gui.widgets.flow import Beside
from app.gui.widgets.labels import Chip, paragraph
from app.gui.widgets.layouts import clear_layout, column, row

MAX_FILE_BYTES = 256 << 10
MAX_FILES = 8
CUT_MARGIN = 0.95  # of the text that should fit, because tokens are not spread evenly
MAX_LINES = 8
NAME_CHARACTERS = 40
PASTED_FORMATS = ("image/png", "image/jpeg", "image/webp", "image/gif")
MIN_LINE_CHARACTERS = 20  # minimum line length of the field with the buttons beside it


def read_text(path: Path) -> Details:
    """Read a text file as an attachment. Raises BadInput if the file is too large or not text."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise BadInput("attachment_unreadable", name=path.name, why=os_cause(error)) from None
    if len(data) > MAX_FILE_BYTES:
        raise BadInput("attachment_large", name=path.name, most_bytes=MAX_FILE_BYTES)
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise BadInput("attachment_no_text", name=path.name) from None
    if "\0" in text:
        raise BadInput("attachment_no_text", name=path.name)
    return {"name": path.name, "text": text}


def file_words(file: Details) -> str:
    """Return the caption of an attached file: its name (shortened if long), pages or size, and token count.

    A long name is elided in the middle. For a document, the size is omitted, because its extracted text has a
    different size than the file.
    """
    if is_picture(file):
        return picture_name(file)
    words = _short_name(str(file.get("name")))
    words = f"{words}, {_pages_words(file) or formats.size(len(str(file.get('text')).encode()))}"
    if tokens := file.get("tokens"):
        count = QCoreApplication.translate("Answer", "%n token(s)", "", int(tokens))
        words = f"{words}, {count}"
    return words


def _short_name(name: str) -> str:
    half = NAME_CHARACTERS // 2
    return name if len(name) <= NAME_CHARACTERS else f"{name[:half]}…{name[-half:]}"


def _pages_words(file: Details) -> str:
    """Return the number of pages of a file, or which pages were kept. Return "" for text without pages."""
    tr = QCoreApplication.translate
    if file.get(SHORTENED):
        return tr("Attachment", "shortened")
    unit, pages = str(file.get(UNIT) or ""), int(file.get(PAGES) or 0)
    count = int(file.get(ALL_PAGES) or pages)
    if unit == "page":
        whole, part = tr("Attachment", "%n page(s)", "", count), tr("Attachment", "pages 1–{last} of {count}")
    elif unit == "slide":
        whole, part = tr("Attachment", "%n slide(s)", "", count), tr("Attachment", "slides 1–{last} of {count}")
    elif unit == "sheet":
        whole, part = tr("Attachment", "%n sheet(s)", "", count), tr("Attachment", "sheets 1–{last} of {count}")
    else:
        return ""
    return whole if pages >= count else part.format(last=pages, count=count)


class Field(QPlainTextEdit):
    """The message field. It grows with its text and accepts dropped files.

    Enter, or Ctrl+Enter if so configured, sends the message. Shift+Enter starts a new line.
    """

    sent = Signal()
    dropped = Signal(list)  # paths
    pasted = Signal(bytes)  # the file of a picture

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.sends_with_enter: Callable[[], bool] = lambda: True  # if False, only Ctrl+Enter sends
        set_role(self, "field")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Maximum)
        self.setAccessibleName(self.tr("Message"))
        self.setPlaceholderText(self.tr("Message…"))
        self.setTabChangesFocus(True)
        # lines wrap, so no horizontal scrolling is needed
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.document().setDocumentMargin(0)
        self.document().documentLayout().documentSizeChanged.connect(lambda *_: self.fit())
        self.fit()

    def fit(self) -> None:
        """Adjust the height to the text, within limits."""
        self.updateGeometry()
        QTimer.singleShot(0, self, self._show_scroll_bar)  # after the layout has applied the new height

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        return QSize(super().sizeHint().width(), self._height_of(MAX_LINES))

    def minimumSizeHint(self) -> QSize:  # noqa: N802  Qt's name
        return QSize(super().minimumSizeHint().width(), self._height_of(1))

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        super().resizeEvent(event)
        self._show_scroll_bar()

    def _height_of(self, max_lines: float) -> int:
        """Return the height needed for the text, or for `max_lines` lines if the text is longer."""
        n_lines = min(max_lines, max(1, int(self.document().size().height())))
        return int(n_lines * self.fontMetrics().lineSpacing() + 2 * self._theme.px(sizes.S))

    def _show_scroll_bar(self) -> None:
        """Show the scroll bar only if it is needed. It narrows the text, which may then wrap into more lines."""
        policy = Qt.ScrollBarPolicy
        scrolls = self._height_of(inf) > self.height()
        self.setVerticalScrollBarPolicy(policy.ScrollBarAsNeeded if scrolls else policy.ScrollBarAlwaysOff)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802  Qt's name
        is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        modifiers = event.modifiers()
        sends = self.sends_with_enter() or modifiers & Qt.KeyboardModifier.ControlModifier
        if is_enter and sends and not modifiers & Qt.KeyboardModifier.ShiftModifier:
            self.sent.emit()
        else:
            super().keyPressEvent(event)

    def canInsertFromMimeData(self, source: QMimeData) -> bool:  # noqa: N802  Qt's name
        return source.hasUrls() or source.hasImage() or super().canInsertFromMimeData(source)

    def insertFromMimeData(self, source: QMimeData) -> None:  # noqa: N802  Qt's name
        paths = [Path(url.toLocalFile()) for url in source.urls() if url.isLocalFile()]
        if paths:
            self.dropped.emit(paths)
        elif not source.hasText() and (picture := pasted_picture(source)):
            self.pasted.emit(picture)
        elif source.hasText():
            self.textCursor().insertText(source.text())


def pasted_picture(source: QMimeData) -> bytes:
    """Return a picture on the clipboard in the format that another program provided, or b"" if there is none.

    The picture is not decoded here. If the clipboard contains only pixels, Qt encodes them as an uncompressed file,
    which is fast.
    """
    offered = [form for form in source.formats() if form.startswith("image/")]
    for form in (*PASTED_FORMATS, *offered):
        if form in offered:
            return bytes(source.data(form).data())
    if not source.hasImage():
        return b""
    made = QBuffer()
    made.open(QBuffer.OpenModeFlag.WriteOnly)
    QImage(source.imageData()).save(made, "BMP")  # type: ignore[call-overload]
    return bytes(made.data().data())


class Composer(QFrame):
    """The message field with its buttons.

    `sent` is emitted with a message, and `stopped` to stop the current answer.

    A message that the user sends during an answer is queued until `send_queued` is called. Pictures, PDF and Office
    files are read in the background, and the message can be sent when they have been read.
    """

    sent = Signal(str, list)  # text, attachments
    stopped = Signal()
    edited = Signal()  # the draft has changed
    queued = Signal()  # `is_queued` has changed
    read_elsewhere = Signal(str, object)  # a file for the draft of another chat: its ID, and the attachment
    attached = Signal()  # files were attached whose tokens are not counted yet

    def __init__(
        self,
        theme: Theme,
        failed: Callable[[AppError], None],
        preferences: Preferences,
        pictures: PictureLoader,
        open_picture: Open,
    ) -> None:
        super().__init__()
        self._theme, self._failed = theme, failed
        self._last_folder = LastFolder(preferences, "attach")
        self._files: list[Details] = []
        self._draft = ""  # the ID of the chat whose draft is shown
        self._readings: list[tuple[str, str]] = []  # draft and name of each document that is being read
        self._room: int | None = None  # tokens that the chat has room for, or None if that is unknown
        self._reader = AttachmentReader(self)
        self._may_send = True  # the chat's model can look at the pictures, if there are any
        self._is_busy = self.is_queued = False
        set_role(self, "composer")
        self.field = Field(theme)
        self.field.sent.connect(self._send)
        self.field.dropped.connect(self.attach)
        self.field.pasted.connect(self.paste)
        self.field.textChanged.connect(self._draft_changed)
        self._chips = row(gap=sizes.S)
        self._pictures = PictureRow(theme, pictures, open_picture, self._remove)
        self.attach_button = IconButton(theme, "attach", self.tr("Attach a file"), self._pick)
        self.send = button(self.tr("Send"), self._press, "primary")
        self._line = row(gap=sizes.XS)
        self._line.addWidget(self.field, 1)
        tools = row(self.attach_button, None, self.send, gap=sizes.XS)
        for widget in (self.attach_button, self.send):
            tools.setAlignment(widget, Qt.AlignmentFlag.AlignBottom)
        self._line.addLayout(tools)
        self.budget = FileBudget(self._shorten)
        box = column(self._pictures, self._chips, self.budget, self._line, gap=sizes.XS)
        box.setContentsMargins(sizes.S, sizes.S, sizes.S, sizes.S)
        self.setLayout(box)
        self._draft_changed()

    @property
    def text(self) -> str:
        return self.field.toPlainText()

    @property
    def _reading(self) -> list[str]:
        """The names of the documents that are still being read for the displayed draft."""
        return [name for draft, name in self._readings if draft == self._draft]

    @property
    def files(self) -> list[Details]:
        return list(self._files)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        """Move the buttons below the field if they would leave it too narrow."""
        super().resizeEvent(event)
        buttons = self.attach_button.sizeHint().width() + self.send.sizeHint().width()
        words = MIN_LINE_CHARACTERS * self.field.fontMetrics().averageCharWidth()
        beside = event.size().width() - buttons >= words
        self._line.setDirection(QBoxLayout.Direction.LeftToRight if beside else QBoxLayout.Direction.TopToBottom)

    def show_draft(self, text: str, files: Sequence[Details] = (), draft: str | None = None) -> None:
        """Show the draft of the current chat, or of the chat with the ID `draft`.

        Documents for other drafts continue to be read.
        """
        self.is_queued = False
        self._draft = self._draft if draft is None else draft
        # Set before the text, because slots connected to textChanged also read the files.
        self._files = list(files)
        if text != self.text:
            self.field.setPlainText(text)
            self.field.moveCursor(self.field.textCursor().MoveOperation.End)
        self._show_files()

    def show_busy(self, busy: bool) -> None:
        """Show a Stop button while an answer is in progress, and a Send button otherwise."""
        self._is_busy = busy
        self.send.setText(self.tr("Stop") if busy else self.tr("Send"))
        with_enter = self.field.sends_with_enter()
        sends = self.tr("Send (Enter)") if with_enter else self.tr("Send (Ctrl+Enter)")
        self.send.setToolTip(self.tr("Stop (Esc)") if busy else sends)
        self._draft_changed(by_person=False)

    @property
    def has_pictures(self) -> bool:
        return any(map(is_picture, self._files))

    def attach(self, paths: Sequence[str | Path]) -> None:
        """Attach files to the message.

        Text is attached immediately, documents and pictures after they have been read.
        """
        for path in map(Path, paths):
            try:
                self._require_room()
                kind = kind_of(path)
                if kind is Kind.TEXT:
                    self._files.append(read_text(path))
                else:
                    self._readings.append((self._draft, path.name))
                    done, failed = self._outcomes(path.name)
                    self._reader.read(path, kind, done, failed, self._draft)
            except BadInput as error:
                self._failed(error)
        self._show_files()
        self.attached.emit()

    def paste(self, picture: bytes) -> None:
        """Attach a picture from the clipboard after it has been read."""
        try:
            self._require_room()
        except BadInput as error:
            self._failed(error)
            return
        name = self.tr("Pasted picture")
        self._readings.append((self._draft, name))
        done, failed = self._outcomes(name)
        self._reader.read_pasted(name, picture, done, failed, self._draft)
        self._show_files()

    def _require_room(self) -> None:
        """Raise BadInput if the message already has the maximum number of files."""
        if len(self._files) + len(self._reading) >= MAX_FILES:
            raise BadInput("attachments_many", most=MAX_FILES)

    def _outcomes(self, name: str) -> tuple[Callable[[Details], None], Callable[[BadInput], None]]:
        return partial(self._file_read, self._draft), partial(self._file_failed, self._draft, name)

    def allow_pictures(self, allowed: bool) -> None:
        """Set whether pictures can be sent, which depends on whether the chat's model can process them."""
        if allowed != self._may_send:
            self._may_send = allowed
            self._draft_changed(by_person=False)

    def show_room(self, room: int | None) -> None:
        """Show how many of the available tokens the attached files use. Hide this if the number is unknown."""
        self._room = room
        self.budget.show_for(self._files, room)

    def close_files(self) -> None:
        """Stop reading files."""
        self._reader.close()

    def _file_read(self, draft: str, file: Details) -> None:
        self._readings.remove((draft, str(file["name"])))
        if draft != self._draft:
            self.read_elsewhere.emit(draft, file)
            return
        self._files.append(file)
        self._show_files()
        self.attached.emit()
        announce(self, self.tr("Attached: {file}").format(file=file_words(file)))

    def _file_failed(self, draft: str, name: str, error: BadInput) -> None:
        self._readings.remove((draft, name))
        if draft == self._draft:
            self._show_files()
        self._failed(error)

    def _shorten(self, room: int) -> None:
        """Shorten the longest files until all files fit into `room` tokens."""
        self._files = fitting(self._files, room)
        self._show_files()
        self.attached.emit()
        self.field.setFocus()

    def count(self, file: Details, tokens: int) -> None:
        """Show the token count of an attached file."""
        if any(attached is file for attached in self._files):  # otherwise another chat is shown by now
            self._files = [{**attached, "tokens": tokens} if attached is file else attached for attached in self._files]
            self._show_files(by_person=False)  # must not take a queued message out of the queue
            self.edited.emit()

    def _pick(self) -> None:
        title = self.tr("Attach pictures, text, PDF or Office files")
        chosen, _ = QFileDialog.getOpenFileNames(self, title, self._last_folder.folder())
        if chosen:
            self._last_folder.keep(Path(chosen[0]))
        self.attach(list(map(Path, chosen)))
        self.field.setFocus()

    def _show_files(self, *, by_person: bool = True) -> None:
        clear_layout(self._chips)
        self._pictures.show_files([file for file in self._files if is_picture(file)])
        texts = [file for file in self._files if not is_picture(file)]
        for file in texts:
            self._add_chip(str(file["name"]), file_words(file), partial(self._remove, file))
        if self._reading:
            text = self.tr("Reading {names}…").format(names=", ".join(map(_short_name, self._reading)))
            self._add_chip(", ".join(self._reading), text, self._cancel_reading)
        if texts or self._reading:
            self._chips.addStretch(1)
        self.budget.show_for(self._files, self._room)
        self._draft_changed(by_person=by_person)

    def _add_chip(self, name: str, text: str, remove: Callable[[], object]) -> None:
        chip = QFrame()
        set_role(chip, "chip")
        words = self.tr("Remove {name}").format(name=name)
        inner = row(Chip(text, "caption"), IconButton(self._theme, "close", words, remove), gap=0)
        inner.setContentsMargins(sizes.S, 0, 0, 0)
        chip.setLayout(inner)
        self._chips.addWidget(chip)

    def _cancel_reading(self) -> None:
        self._reader.forget(self._draft)
        self._readings = [reading for reading in self._readings if reading[0] != self._draft]
        self._show_files()
        self.field.setFocus()

    def _remove(self, file: Details) -> None:
        self._files = [attached for attached in self._files if attached is not file]
        self._show_files()
        self.field.setFocus()

    def _draft_changed(self, *, by_person: bool = True) -> None:
        can_send = self._can_send
        if self.send.hasFocus() and not (self._is_busy or can_send):
            self.field.setFocus()  # the disabled button would pass the focus on to a message of the conversation
        self.send.setEnabled(self._is_busy or can_send)
        if by_person:
            self._set_queued(False)  # editing the draft withdraws the queued message
            self.edited.emit()

    @property
    def _can_send(self) -> bool:
        has_message = bool(self.text.strip() or self._files) and not self._reading
        return has_message and (self._may_send or not self.has_pictures)

    def _press(self) -> None:
        if self._is_busy:
            self.stopped.emit()
        else:
            self._send()

    def _send(self) -> None:
        if not self._can_send:
            return
        if self._is_busy:
            self._set_queued(True)
        else:
            self.sent.emit(self.text, self.files)

    def send_queued(self, *, succeeded: bool) -> None:
        """Send the queued message if the answer succeeded. Otherwise, leave it in the field, no longer queued."""
        if self.is_queued and succeeded:
            self._send()
        self._set_queued(False)

    def _set_queued(self, is_queued: bool) -> None:
        if is_queued != self.is_queued:
            self.is_queued = is_queued
            self.queued.emit()


def fitting(files: Sequence[Details], room: int) -> list[Details]:
    """Return the files, with the longest ones shortened until all of them fit into `room` tokens."""
    made = list(files)
    excess = sum(int(file.get("tokens") or 0) for file in made) - room
    for file in sorted(files, key=lambda file: -int(file.get("tokens") or 0)):
        tokens = int(file.get("tokens") or 0)
        if excess <= 0 or not tokens:
            break
        keeps = max(0, tokens - excess)
        excess -= tokens - keeps
        text = str(file["text"])
        place = next(n for n, other in enumerate(made) if other is file)
        made[place] = shortened(file, int(len(text) * keeps / tokens * CUT_MARGIN))
    return made


class FileBudget(QWidget):
    """A line that shows how much of the chat's context the attached files use, and offers to shorten them."""

    def __init__(self, shorten: Callable[[int], object]) -> None:
        super().__init__()
        self._room = 0
        self.words = paragraph("", "caption")
        self.shorten = button(self.tr("Shorten to fit"), lambda: shorten(self._room), "link")
        self.setLayout(Beside(self.words, self.shorten, gap=sizes.S))
        self.hide()

    def show_for(self, files: Sequence[Details], room: int | None) -> None:
        """Show the line for these files.

        It is hidden if their token counts or the available context are unknown.
        """
        tokens = [int(file.get("tokens") or 0) for file in files if not is_picture(file)]
        is_known = room is not None and bool(tokens) and all(tokens)
        self.setVisible(is_known)
        if room is None or not is_known:
            return
        self._room, used = room, sum(tokens)
        fits = used <= room
        if fits:
            text = self.tr("The files take up {used} of the {room} tokens available in this chat.")
        else:
            text = self.tr("The files take up {used} tokens, but this chat has room for only {room}.")
        self.words.setText(text.format(used=formats.number(used), room=formats.number(room)))
        set_role(self.words, "caption" if fits else "warning")
        self.shorten.setVisible(not fits and room > 0)


class TokenCounts:
    """The token counts of the text files attached to a draft, computed once per text and model.

    `counted(file, tokens)` is called with each result. Files are counted only while the model is loaded.
    """

    def __init__(self, services: AppContext, counted: Callable[[Details, int], object]) -> None:
        self._pool, self._client, self._counted = services.pool, services.client, counted
        self._calls: list[Call] = []
        self._counts: dict[tuple[str, str], int | None] = {}  # by model and text; None while the count is pending

    def request(self, files: Sequence[Details], model: str | None) -> None:
        """Count the tokens of files that have no count yet, using the chat's model."""
        loaded = self._pool.now.model(model)
        for file in files if loaded is not None else ():
            key = (loaded.model if loaded is not None else "", str(file["text"]))
            if file.get("tokens") or is_picture(file):
                continue
            if (tokens := self._counts.get(key)) is not None:
                self._counted(file, tokens)
            elif key not in self._counts:
                self._request(file, key, model)

    def close(self) -> None:
        for call in self._calls:
            if call.running:
                call.cancel()

    def _request(self, file: Details, key: tuple[str, str], model: str | None) -> None:
        self._counts[key] = None
        self._calls = [call for call in self._calls if call.running]
        body = {"text": file["text"], "model": model}
        call = self._client.post("/tokens", body, partial(self._answered, file, key), answer=TokenCount)
        self._calls += [call] if call is not None else []

    def _answered(self, file: Details, key: tuple[str, str], count: TokenCount) -> None:
        self._counts[key] = count.tokens
        self._counted(file, count.tokens)


LAST_MODEL_KEY = "chat/last_model"  # preferences key: the model that answered last, other than the Guide


class ComposerHint(QWidget):
    """A line above the composer that explains the effect of sending a message, if it is not obvious.

    It may offer the model that answered last, or the Guide. If the user accepts, `use(model)` is called.
    """

    def __init__(self, preferences: Preferences, use: Callable[[str], object]) -> None:
        super().__init__()
        self._preferences = preferences
        self._offered = ""
        self.words = paragraph("", "caption")
        self.other = button("", lambda: use(self._offered), "link")
        self.setLayout(Beside(self.words, self.other, gap=sizes.S))

    @property
    def last_model(self) -> str:
        return self._preferences.text(LAST_MODEL_KEY)

    def note_answer(self, model: str | None) -> None:
        """Remember the model that has just answered as the one to offer, unless it is the Guide."""
        if model and model not in (GUIDE, self.last_model):
            self._preferences.keep(LAST_MODEL_KEY, model)

    def show_for(
        self,
        chat: Chat,
        models: Sequence[str],
        pool: NodeState,
        *,
        is_full: bool,
        may_trim: bool = False,
        is_queued: bool = False,
        guide_fails: bool = False,
        is_blind: bool = False,
    ) -> None:
        """Show the hint for the next message of a chat.

        is_queued: whether a message is queued until the current answer ends. may_trim: whether the oldest messages may
        be dropped from the prompt. guide_fails: whether the Guide was asked here but does not fit in memory. is_blind:
        whether pictures are attached that the chat's model cannot process.
        """
        text = offer = ""
        self._offered = self.last_model
        is_answered = pool.now.hosts is not None or pool.now.shared_model(chat.model) is not None
        is_loaded = pool.now.loaded is not None or is_answered or not pool.is_there
        failed = pool.now.load_failed if chat.model is None and pool.now.hosts is None else None
        # The view of an empty chat already says that the Guide understands only English and that loading has failed.
        english_only = ""
        if failed is None and chat.messages and self._is_for_guide(chat, pool) and not is_english():
            english_only = self.tr("The Guide understands English only.")
        if is_blind:
            text = self.tr("This chat's model can't look at pictures. Choose one that can, or remove the pictures.")
        elif is_queued:
            text = self.tr("Your message will be sent when this answer is done.")
        elif is_full and may_trim:
            text = self.tr("The context is nearly full. From now on, the oldest messages will be left out.")
        elif is_full:
            text = self.tr("The context is nearly full. The next answer may stop early.")
        elif not is_loaded and failed is not None:
            if chat.messages:
                text = self.tr("{model} could not be loaded, so no model is available.")
                text = text.format(model=model_name(failed.model))
                offer, self._offered = self.tr("Ask the Guide"), GUIDE
        elif not is_loaded and chat.model is None and guide_fails:
            text = self.tr("No model is loaded, and there is not enough memory for the Guide.")
        elif not is_loaded and chat.model is None:
            text = f"{self.tr('No model is loaded, so the Guide answers.')} {english_only}".strip()
            if self.last_model in models:
                offer = self.tr("Use {model}").format(model=self.last_model)
        else:
            text = english_only
        self.words.setText(text)
        self.other.setText(offer)
        self.other.setVisible(bool(offer))
        self.setVisible(bool(text))

    def _is_for_guide(self, chat: Chat, pool: NodeState) -> bool:
        loaded = pool.now.model(chat.model) or pool.now.loaded
        model = chat.model or (loaded.model if loaded is not None else GUIDE)
        return pool.now.hosts is None and pool.now.shared_model(chat.model) is None and model == GUIDE
