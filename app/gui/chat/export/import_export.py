"""Export and import of chats, with background jobs, file dialogs, progress and results."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sqlite3
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QCoreApplication, QLocale, QObject, QStandardPaths, QThreadPool, QTimer, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFileDialog, QWidget

from app.core.chat import Chat, ChatId
from app.core.errors import AppError, BadInput, Damaged, bug
from app.core.reasons import os_cause
from app.gui.app.app_context import AppContext
from app.gui.chat.export.chat_json import HEAD, MAX_FILE_BYTES, TAIL, chat_json, parse_chats, validated
from app.gui.chat.export.documents import HTML_TAIL, PdfBook, html_article, html_head, markdown, without_thoughts
from app.gui.chat.history import history_rows
from app.gui.chat.history.history import History
from app.gui.chat.history.history_cipher import Codec
from app.gui.chat.history.history_file import connect, connect_to_read
from app.gui.look import sizes
from app.gui.widgets.buttons import button
from app.gui.widgets.files import LastFolder, save_file
from app.gui.widgets.labels import label
from app.gui.widgets.layouts import column, row
from app.gui.widgets.notice import NarrowNotice
from app.gui.widgets.progress import Progress

Chats = Generator[Chat, None, None]  # must be closed by its consumer, in the consumer's thread
ReportProgress = Callable[[int], None]  # called with the number of chats done so far; raises to cancel the job


EXPORT_THOUGHTS = "chat/export_thoughts"  # preferences key: whether exports include thoughts
SLICE_S = 0.02  # maximum duration of one import step on the GUI thread
_NOT_IN_NAMES = re.compile(r'[\\/:*?"<>|\x00-\x1f]+')


@dataclass(frozen=True, slots=True)
class Format:
    """A file format for exported chats."""

    name: str
    suffix: str


MARKDOWN, HTML = Format("Markdown", ".md"), Format("HTML", ".html")
PDF, JSON = Format("PDF", ".pdf"), Format("JSON", ".json")
FORMATS = (MARKDOWN, HTML, PDF, JSON)


def read_chats(file: Path, ids: Sequence[ChatId] | None, codec: Codec) -> Chats:
    """Yield the chats with these IDs from the history file, or all chats if `ids` is None.

    Can be called from any thread.
    """
    with contextlib.closing(connect(file)) as db:
        if ids is None:
            ids = [heading.id for heading in history_rows.headings(db, codec)]
        for ident in ids:
            chat = history_rows.read(db, ident, codec)
            if chat is not None:
                yield chat


def export(
    chats: Chats, form: Format, target: Path, title: str, report: ReportProgress, *, thoughts: bool = True
) -> int:
    """Export chats and return their number. On failure, raises AppError and leaves any existing file unchanged.

    thoughts: whether to include the thoughts of answers. JSON always includes them, because it can be imported
    again.
    """
    if not thoughts and form != JSON:
        chats = _without_thoughts(chats)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        write = _pdf if form == PDF else _text
        with contextlib.closing(chats):
            count = write(chats, form, part, title, report)
        part.replace(target)
        return count
    except OSError as error:
        raise AppError("chats_not_exported", path=str(target), why=os_cause(error)) from None
    except sqlite3.Error as error:
        raise AppError("chats_not_exported", path=str(target), why=str(error)) from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def _without_thoughts(chats: Chats) -> Chats:
    with contextlib.closing(chats):
        for chat in chats:
            yield without_thoughts(chat)


def _text(chats: Iterable[Chat], form: Format, part: Path, title: str, report: ReportProgress) -> int:
    head, write_chat, between, tail = _parts(form, title)
    count = 0
    with part.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
        part.chmod(0o600)
        file.write(head)
        for chat in chats:
            file.write((between if count else "") + write_chat(chat))
            count += 1
            report(count)
        file.write(tail)
    return count


def _parts(form: Format, title: str) -> tuple[str, Callable[[Chat], str], str, str]:
    """Return the beginning of the file, a function that writes a chat, the separator, and the end of the file."""
    if form == JSON:
        return HEAD, chat_json, ",\n", TAIL
    if form == HTML:
        language = QLocale().bcp47Name()
        return html_head(title, language), html_article, "", HTML_TAIL
    return "", markdown, "\n---\n\n", ""


def _pdf(chats: Iterable[Chat], form: Format, part: Path, title: str, report: ReportProgress) -> int:
    part.touch(mode=0o600)
    book, count = PdfBook(part, title), 0
    try:
        for chat in chats:
            for _ in book.add(chat):
                report(count)
            count += 1
            report(count)
    finally:
        whole = book.close()
    if not whole:
        raise OSError(0, "the PDF could not be written")
    return count


log = logging.getLogger(__name__)


class _Canceled(Exception):
    """An exception raised inside a job to end it after it was canceled."""


class CancelableJob(QObject):
    """A job that runs in another thread.

    Either `done` or `failed` is emitted once, in the thread that created this object; after `cancel`, neither is.
    """

    progress = Signal(int)
    done = Signal(object)
    failed = Signal(object)  # AppError
    _over = Signal(object)  # carries a callable that emits the outcome, to run in this object's thread

    def __init__(self, job: Callable[[Callable[[int], None]], Any]) -> None:
        """Prepare the job.

        job: receives a function that reports progress and, once the job is canceled, raises an exception.
        """
        super().__init__()
        self._job, self._canceled = job, False
        self._over.connect(self._deliver)

    def begin(self) -> None:
        QThreadPool.globalInstance().start(self._run)

    def cancel(self) -> None:
        """Cancel the job. It stops at its next progress report."""
        self._canceled = True

    def _report(self, n: int) -> None:
        if self._canceled:
            raise _Canceled
        self.progress.emit(n)

    def _run(self) -> None:
        try:
            result = self._job(self._report)
        except _Canceled:
            return
        except AppError as error:
            self._end(self.failed, error)
        except Exception as error:
            log.exception("work on a file of chats")
            self._end(self.failed, bug(error))
        else:
            self._end(self.done, result)

    def _end(self, signal: Any, result: object) -> None:
        self._over.emit(partial(signal.emit, result))

    def _deliver(self, emit: Callable[[], object]) -> None:
        if not self._canceled:
            emit()


Done = Callable[[Any], None]


class ImportExportPanel(QWidget):
    """A panel that runs exports and imports and shows their progress. It is hidden if there is nothing to show."""

    def __init__(self, history: History, notice: NarrowNotice, services: AppContext, parent: QWidget) -> None:
        super().__init__(parent)
        self._history, self._notice = history, notice
        self._go = services.go
        self._preferences = services.preferences
        self._export_folder = LastFolder(services.preferences, "export")
        self._import_folder = LastFolder(services.preferences, "import")
        self._work: CancelableJob | None = None
        self._then: Done = self._read
        self._waiting: list[Chat] = []  # chats that were read but not added yet, in reverse order
        self._added: list[ChatId] = []
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._add_some)
        self._words = label("", "caption")
        self._bar = Progress()
        self._total = 0
        cancel = button(self.tr("Cancel"), self.cancel)
        self.setLayout(column(row(self._words, None, cancel), self._bar, gap=sizes.S))
        self.hide()
        application = QCoreApplication.instance()
        if application is not None:
            application.aboutToQuit.connect(self.cancel)

    def export(self, form: Format, ids: Sequence[ChatId] | None, name: str) -> None:
        """Let the user choose a file, and export these chats to it (all chats if `ids` is None)."""
        words = _NOT_IN_NAMES.sub(" ", name).strip(" .") or self.tr("Chats")
        place = QStandardPaths.StandardLocation.DocumentsLocation
        offered = Path(QStandardPaths.writableLocation(place)) / f"{words[:80]}{form.suffix}"
        title = self.tr("Export as {form}").format(form=form.name)
        kinds = {f"{form.name} (*{form.suffix})": form.suffix}
        target = save_file(self.window(), title, offered, kinds, self._export_folder)
        if target is not None:
            self.write(form, ids, target)

    @property
    def exports_thoughts(self) -> bool:
        """Return whether exports include the thoughts of answers."""
        return self._preferences.flag(EXPORT_THOUGHTS)

    def export_thoughts(self, on: bool) -> None:
        self._preferences.keep(EXPORT_THOUGHTS, on)

    def write(self, form: Format, ids: Sequence[ChatId] | None, target: Path) -> None:
        """Export chats to `target`."""
        self._history.flush()
        ids = [heading.id for heading in self._all()] if ids is None else list(ids)
        file, codec = self._history.file, self._history.codec
        unsaved = [chat for ident in ids if not file and (chat := self._history.chat(ident))]
        title = target.stem
        thoughts = self._preferences.flag(EXPORT_THOUGHTS)

        def job(report: ReportProgress) -> int:
            source = read_chats(file, ids, codec) if file else (chat for chat in unsaved)
            return export(source, form, target, title, report, thoughts=thoughts)

        words = self.tr("Exporting %n chat(s)…", "", len(ids))
        self._begin(CancelableJob(job), words, len(ids), partial(self._exported, target))

    def choose_import(self) -> None:
        """Let the user choose a file and import its chats."""
        title = self.tr("Import chats")
        chosen, _ = QFileDialog.getOpenFileName(
            self.window(), title, self._import_folder.folder(), f"{JSON.name} (*{JSON.suffix})"
        )
        if chosen:
            self._import_folder.keep(Path(chosen))
            self.read(Path(chosen))

    def read(self, source: Path) -> None:
        """Import the chats in `source`. The whole file is validated before any chat is added."""
        words = self.tr("Reading {name}…").format(name=source.name)
        self._begin(CancelableJob(partial(_read, source)), words, 0, self._read)

    def rescue(self, aside: Path) -> None:
        """Import the chats that are still readable in a damaged history file."""
        words = self.tr("Reading {name}…").format(name=aside.name)
        self._begin(CancelableJob(partial(rescue, aside, self._history.codec)), words, 0, self._rescued)

    def cancel(self) -> None:
        """Cancel the job. Chats already added by an import are deleted again."""
        if self._work is not None:
            self._work.cancel()
        self._timer.stop()
        self._waiting = []
        if self._added:
            self._history.delete(self._added)
        self._end()

    @property
    def busy(self) -> bool:
        return self._work is not None or bool(self._waiting)

    def _begin(self, work: CancelableJob, words: str, total: int, done: Done) -> None:
        if self.busy:
            self._notice.say(self.tr("Another file is still being read. Try again when it's done."), "warning")
            return
        self._work, self._added, self._then = work, [], done
        work.progress.connect(self._at)
        work.done.connect(self._done)  # a bound method of a QObject, so that Qt calls it in this object's thread
        work.failed.connect(self._failed)
        self._show(words, total)
        work.begin()

    def _show(self, words: str, total: int) -> None:
        self._words.setText(words)
        self._bar.setAccessibleName(words)
        self._total = total
        self._at(0)
        self._notice.clear()
        self.show()

    def _at(self, n: int) -> None:
        self._bar.tell(n / self._total if self._total else None)

    def _end(self) -> None:
        self._work, self._added = None, []
        self.hide()

    def _done(self, result: object) -> None:
        self._then(result)

    def _exported(self, target: Path, count: int) -> None:
        self._end()
        words = self.tr("%n chat(s) exported to {name}.", "", count).format(name=target.name)
        folder = QUrl.fromLocalFile(str(target.parent))
        show = (self.tr("Show folder"), lambda: QDesktopServices.openUrl(folder))
        self._notice.say(words, "info", show)

    def _failed(self, error: AppError) -> None:
        self._end()
        self._notice.fail(error, self._go)

    def _read(self, chats: list[Chat]) -> None:
        self._waiting = chats[::-1]
        self._show(self.tr("Importing %n chat(s)…", "", len(chats)), len(chats))
        self._timer.start(0)

    def _rescued(self, chats: list[Chat]) -> None:
        """Add the rescued chats, except those that are already in the history."""
        self._read([chat for chat in chats if self._history.heading(chat.id) is None])

    def _add_some(self) -> None:
        """Add chats for one time slice, which keeps the window responsive."""
        until = time.monotonic() + SLICE_S
        while self._waiting and time.monotonic() < until:
            self._added.append(self._history.adopt(self._waiting.pop()).id)
        self._at(len(self._added))
        if not self._waiting:
            self._timer.stop()
            self._imported()

    def _imported(self) -> None:
        added = self._added
        self._end()
        words = self.tr("%n chat(s) imported.", "", len(added))
        undo = (self.tr("Undo"), partial(self._undo, added))
        self._notice.say(words, "info", *([undo] if added else []))

    def _undo(self, added: list[ChatId]) -> None:
        self._notice.clear()
        self._history.delete(added)

    def _all(self) -> list[Any]:
        return [*self._history.headings(), *self._history.headings(archived=True)]


def _read(source: Path, report: ReportProgress) -> list[Chat]:
    """Read and validate the chats in an exported file. Raises BadInput if the file is invalid."""
    try:
        with source.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise BadInput("file_unreadable", path=str(source), why=os_cause(error)) from None
    return parse_chats(data, str(source), report)


def rescue(aside: Path, codec: Codec, report: Callable[[int], None]) -> list[Chat]:
    """Return the intact chats in a damaged history file, which is not modified. Can be called from any thread.

    Calls `report` with the number of chats found so far. Raises Damaged if there are none.
    """
    chats: list[Chat] = []
    with contextlib.closing(connect_to_read(aside)) as db:
        for ident in _ids(db):
            chat = _whole(db, ident, codec)
            if chat is not None:
                chats.append(chat)
                report(len(chats))
    if not chats:
        raise Damaged("history_unreadable", path=str(aside))
    return chats


def _ids(db: sqlite3.Connection) -> list[ChatId]:
    """Return the IDs of all chats stored before the first damaged page, except deleted chats."""
    ids: list[ChatId] = []
    with contextlib.suppress(sqlite3.DatabaseError):
        for (ident,) in db.execute("SELECT id FROM chats NOT INDEXED WHERE deleted_at IS NULL"):
            ids.append(ChatId(str(ident)))
    return ids


def _whole(db: sqlite3.Connection, ident: ChatId, codec: Codec) -> Chat | None:
    """Return a chat, or None if it is incomplete or invalid."""
    try:
        chat = history_rows.read(db, ident, codec)
        whole = validated(chat) if chat is not None else None
        return replace(whole, id=ident) if whole is not None else None
    except (sqlite3.DatabaseError, ValueError, TypeError):
        return None
