"""The panel with the list of chats, with search, folders, menus, and deletion with undo."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import QObject, QPoint, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QAction, QIcon, QKeySequence, QShortcut
from PySide6.QtWidgets import QLineEdit, QMenu, QStackedWidget, QWidget

from app.core.chat import ChatId, Heading
from app.gui.app.app_context import AppContext
from app.gui.chat.export.import_export import FORMATS, Format, ImportExportPanel
from app.gui.chat.history.chat_lock import CLOSED_FOLDERS_KEY
from app.gui.chat.history.history import History
from app.gui.chat.history.history_search import Hit
from app.gui.chat.list import chat_list_model
from app.gui.chat.list.chat_list_model import ChatRow, Row
from app.gui.chat.list.chat_list_view import ChatListView
from app.gui.look import sizes
from app.gui.look.drawing import icon
from app.gui.look.theme import Theme
from app.gui.widgets.buttons import IconButton, button
from app.gui.widgets.dialog import NameDialog
from app.gui.widgets.fields import Escape
from app.gui.widgets.layouts import EmptyState, column, row
from app.gui.widgets.notice import NarrowNotice

STEP_S = 0.02  # maximum duration of one step on the GUI thread
PARTIAL_RESULTS_S = 0.3  # time after which the results so far are shown


class HistorySearch(QObject):
    """A search of the history that runs in short steps to keep the window responsive.

    `found` is emitted at the end with all results. During a long search, it is also emitted with the results so far.
    """

    found = Signal(object, bool)  # list[Hit], and whether the search is complete

    def __init__(self, history: History, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._history = history
        self._words = ""
        self._hits: list[Hit] = []
        self._steps: Iterator[Hit | None] | None = None  # None if no search is running
        self._again = False  # search again, because the history has changed
        self._shown_at = 0.0
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._some)

    @property
    def busy(self) -> bool:
        return self._steps is not None

    def begin(self, words: str) -> None:
        """Start a search, or repeat it if the words are unchanged. The first step runs immediately."""
        if self.busy and words == self._words:
            self._again = True  # repeat after the running search
            return
        first = words != self._words
        self._words, self._hits, self._again = words, [], False
        self._steps = self._history.search_steps(words)
        # a repeated search shows the old results until it is complete
        self._shown_at = time.monotonic() if first else float("inf")
        self._timer.start(0)
        self._some()

    def stop(self) -> None:
        """Stop the search and discard its results."""
        self._timer.stop()
        self._words, self._hits, self._steps = "", [], None

    def _some(self) -> None:
        until = time.monotonic() + STEP_S
        for hit in self._steps or ():
            if hit is not None:
                self._hits.append(hit)
            if time.monotonic() > until:
                self._show_some()
                return
        self._timer.stop()
        self._steps = None
        self.found.emit(list(self._hits), True)
        if self._again:
            self.begin(self._words)

    def _show_some(self) -> None:
        now = time.monotonic()
        if now - self._shown_at > PARTIAL_RESULTS_S:
            self._shown_at = now
            self.found.emit(list(self._hits), False)


class ChatListActions(Protocol):
    """The actions in the menus of the list."""

    def new_chat(self, folder: str = "") -> None: ...
    def rename(self) -> None: ...
    def pin(self, pinned: bool) -> None: ...
    def move_to(self, folder: str) -> None: ...
    def move_to_new_folder(self) -> None: ...
    def duplicate(self) -> None: ...
    def archive(self, archived: bool) -> None: ...
    def delete(self) -> None: ...
    def export(self, form: Format) -> None: ...
    def export_all(self, form: Format) -> None: ...
    @property
    def exports_thoughts(self) -> bool: ...
    def export_thoughts(self, on: bool) -> None: ...
    def new_folder(self) -> None: ...
    def import_chats(self) -> None: ...


class ChatListMenu(QObject):
    """The menus of the list. They are built on demand, because they list the current folders."""

    def __init__(self, theme: Theme, actions: ChatListActions, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme, self._actions, self._parent = theme, actions, parent

    def of_chats(self, chosen: Sequence[Heading], folders: Sequence[str]) -> QMenu:
        """Build the menu for the selected chats."""
        actions, menu = self._actions, QMenu(self._parent)
        pinned = all(heading.pinned for heading in chosen)
        archived = all(heading.archived for heading in chosen)
        if len(chosen) == 1:
            self._add(menu, "edit", self.tr("Rename"), actions.rename, "F2")
            self._add(menu, "copy", self.tr("Duplicate"), actions.duplicate)
        words = self.tr("Unpin") if pinned else self.tr("Pin to the top")
        self._add(menu, "pin", words, lambda: actions.pin(not pinned))
        self._folders(menu, chosen, folders)
        words = self.tr("Unarchive") if archived else self.tr("Archive")
        self._add(menu, "archive", words, lambda: actions.archive(not archived))
        self._forms(menu, self.tr("Export"), actions.export)
        menu.addSeparator()
        self._add(menu, "delete", self.tr("Delete"), actions.delete, "Del")
        return menu

    def of_folder(self, name: str) -> QMenu:
        """Build the menu for a folder."""
        actions, menu = self._actions, QMenu(self._parent)
        self._add(menu, "add", self.tr("New chat here"), lambda: actions.new_chat(name))
        self._add(menu, "edit", self.tr("Rename"), actions.rename, "F2")
        self._forms(menu, self.tr("Export"), actions.export)
        menu.addSeparator()
        self._add(menu, "delete", self.tr("Delete folder but keep its chats"), actions.delete, "Del")
        return menu

    def of_list(self, *, any_chats: bool) -> QMenu:
        """Build the menu for the entire list."""
        menu = QMenu(self._parent)
        self._add(menu, "folder", self.tr("New folder"), self._actions.new_folder)
        self._add(menu, "import", self.tr("Import chats…"), self._actions.import_chats)
        self._forms(menu, self.tr("Export all chats"), self._actions.export_all).setEnabled(any_chats)
        return menu

    def _folders(self, menu: QMenu, chosen: Sequence[Heading], folders: Sequence[str]) -> None:
        inner = menu.addMenu(self._picture("folder"), self.tr("Move to folder"))
        here = {heading.folder for heading in chosen}
        for name in folders:
            action = inner.addAction(name.replace("&", "&&"))
            action.setCheckable(True)
            action.setChecked(here == {name})
            action.triggered.connect(lambda _=False, name=name: self._actions.move_to(name))
        if folders:
            inner.addSeparator()
        self._add(inner, "add", self.tr("New folder…"), self._actions.move_to_new_folder)
        out = self._add(inner, "close", self.tr("No folder"), lambda: self._actions.move_to(""))
        out.setEnabled(here != {""})

    def _forms(self, menu: QMenu, words: str, export: Callable[[Format], None]) -> QMenu:
        inner = menu.addMenu(self._picture("upload"), words)
        for form in FORMATS:
            action = inner.addAction(form.name + "…")
            action.triggered.connect(lambda _=False, form=form: export(form))
        inner.addSeparator()
        thoughts = inner.addAction(self.tr("Include the model's thinking"))
        thoughts.setCheckable(True)
        thoughts.setChecked(self._actions.exports_thoughts)
        thoughts.toggled.connect(self._actions.export_thoughts)
        return inner

    def _add(self, menu: QMenu, picture: str, words: str, act: Callable[[], None], key: str = "") -> QAction:
        action = menu.addAction(self._picture(picture), words)
        if key:  # only for display; the list has its own shortcut
            action.setShortcut(QKeySequence(key))
        action.triggered.connect(lambda *_: act())
        return action

    def _picture(self, name: str) -> QIcon:
        return icon(name, self._theme.colors.text)


SEARCH_DELAY_MS = 150  # delay after the last keystroke
UNDO_MS = 15_000
SEPARATOR = "\n"  # separator; never part of a folder name


class ChatList(QWidget):
    """The panel with the list of chats.

    `opened(chat)` is emitted to show a chat, and `found(chat, message, search words)` to show a search result.
    """

    opened = Signal(str)
    found = Signal(str, str, str)

    def __init__(self, services: AppContext, history: History, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._services, self._history = services, history
        self._undo: Callable[[], None] | None = None
        self._open: ChatId | None = None
        self.search = QLineEdit()
        self.view = ChatListView(services.theme, history)
        self.notice = NarrowNotice(services.theme)
        self._menu = ChatListMenu(services.theme, self, self)
        self._import_export = ImportExportPanel(history, self.notice, services, self)
        self._history_search = HistorySearch(history, self)
        self._history_search.found.connect(self._show_found)
        self._refresh_timer = self._timer(0, self.refresh)
        self._search_timer = self._timer(SEARCH_DELAY_MS, self._searched)
        self._undo_timer = self._timer(UNDO_MS, self._forget_undo)
        self._lay_out()
        self._listen()
        self.refresh()
        self._offer_rescue()
        history.troubled.connect(self._offer_rescue)

    # Called by the page

    def select(self, chat: str) -> None:
        """Mark a chat as the current one without emitting `opened`."""
        self._open = ChatId(chat)
        self.view.mark(self._open)

    def begin_search(self) -> None:
        """Focus the search field."""
        self.search.setFocus()
        self.search.selectAll()

    def refresh(self) -> None:
        """Show the current contents of the history, or repeat the active search."""
        if self.view.busy:  # the user is typing a name or dragging a chat
            self._refresh_timer.start(SEARCH_DELAY_MS)
            return
        words = self.search.text().strip()
        if words:
            self._history_search.begin(words)  # its `found` signal shows the results
            return
        self._history_search.stop()
        current, archived = self._history.headings(), self._history.headings(archived=True)
        rows = chat_list_model.rows(current, archived, self._history.folders())
        self._show_rows(rows, whole=True, empty=self._no_chats)

    def _show_found(self, hits: list[Hit], over: bool) -> None:
        """Show search results. "Nothing found" is shown only after the search is complete."""
        if self.view.busy:  # the search is repeated afterwards
            self._refresh_timer.start(SEARCH_DELAY_MS)
        elif hits or over:
            self._show_rows(chat_list_model.search_rows(hits), whole=False, empty=self._nothing_found)

    def _show_rows(self, rows: tuple[Row, ...], *, whole: bool, empty: QWidget) -> None:
        self.view.show_rows(rows, whole=whole)
        self.view.mark(self._open)
        self._stack.setCurrentWidget(self.view if self.view.rows else empty)

    # Actions of the menu and the keyboard

    def new_chat(self, folder: str = "") -> None:
        """Start a new chat and open it."""
        self.search.clear()
        made = self._history.begin(folder)
        self._open = made.id
        self.view.mark(None)
        self.opened.emit(made.id)

    def rename(self) -> None:
        """Start renaming the selected chat or folder in place."""
        if self.view.currentIndex().isValid():
            self.view.edit(self.view.currentIndex())

    def pin(self, pinned: bool) -> None:
        self._history.pin(self._ids(), pinned)

    def move_to(self, folder: str) -> None:
        self._history.move(self._ids(), folder)

    def move_to_new_folder(self) -> None:
        ids = self._ids()
        self._ask_name(lambda name: self._history.move(ids, name))

    def new_folder(self) -> None:
        self._ask_name(self._history.make_folder)

    def duplicate(self) -> None:
        """Duplicate the selected chat and open the copy."""
        for heading in self.view.chosen()[:1]:
            title = self.tr("{title} (copy)").format(title=heading.title or self.tr("New chat"))
            made = self._history.duplicate(heading.id, title)
            if made is not None:
                self._open = made.id
                self.opened.emit(made.id)

    def archive(self, archived: bool) -> None:
        self._forget_undo()
        ids = self._ids()
        self._history.archive(ids, archived)
        words = self.tr("%n chat(s) archived.", "", len(ids))
        if archived:
            self._offer_undo(words, lambda: self._history.archive(ids, False))

    def delete(self) -> None:
        """Delete the selected chats, or the selected folder without its chats. Offer to undo the deletion."""
        self._forget_undo()
        folder = self.view.folder()
        if folder is not None:
            self._delete_folder(folder)
            return
        chosen = self.view.chosen()
        ids = [heading.id for heading in chosen]
        if not ids:
            return
        was_open = self._open if self._open in ids else None
        self._history.delete(ids)
        words = self.tr("%n chat(s) deleted.", "", len(ids))
        if len(chosen) == 1:
            title = chosen[0].title or self.tr("New chat")
            words = self.tr("Deleted “{title}”.").format(title=title)
        self._offer_undo(words, lambda: self._restore(ids, was_open))

    def export(self, form: Format) -> None:
        """Export the selected chats, or all chats of the selected folder."""
        folder = self.view.folder()
        ids = self._history.inside(folder) if folder is not None else self._ids()
        self._import_export.export(form, ids, folder or self._one_title())

    @property
    def exports_thoughts(self) -> bool:
        return self._import_export.exports_thoughts

    def export_thoughts(self, on: bool) -> None:
        self._import_export.export_thoughts(on)

    def export_all(self, form: Format) -> None:
        self._import_export.export(form, None, "")

    def import_chats(self) -> None:
        self._import_export.choose_import()

    # Internals

    def _lay_out(self) -> None:
        theme = self._services.theme
        self.search.setPlaceholderText(self.tr("Search all chats"))
        self.search.setAccessibleName(self.tr("Search all chats"))
        self.search.setClearButtonEnabled(True)
        self._new = button(self.tr("New chat"), self.new_chat)
        self._new.setToolTip(self.tr("New chat ({key})").format(key="Ctrl+N"))
        self._more = IconButton(theme, "more", self.tr("More options for all chats"), self._show_more)
        self._no_chats = EmptyState(
            self.tr("No chats yet"),
            self.tr("Your chats are stored only on this computer."),
            button(self.tr("Start a chat"), self.new_chat),
        )
        self._nothing_found = EmptyState(
            self.tr("Nothing found"),
            self.tr("No chats contain all of these words."),
            button(self.tr("Show all chats"), self.search.clear),
        )
        self._stack = QStackedWidget()
        for widget in (self.view, self._no_chats, self._nothing_found):
            self._stack.addWidget(widget)
        box = column(row(self._new, self._more), self.search, gap=sizes.S)
        box.itemAt(0).layout().setStretch(0, 1)  # type: ignore[union-attr]
        box.addWidget(self._stack, 1)
        box.addWidget(self._import_export)
        box.addWidget(self.notice)
        self.setLayout(box)
        theme.changed.connect(self._paint)
        self._paint()

    def _listen(self) -> None:
        for news in (self._history.changed, self._history.removed):
            # not a lambda, which would stay connected after the list is gone, because the history outlives it
            news.connect(self._refresh_soon)
        self.search.textChanged.connect(lambda _: self._search_timer.start())
        for place in (self.search, self.view):
            Escape(place, self._end_search, lambda: bool(self.search.text()))
        self.search.returnPressed.connect(self.view.setFocus)
        self.view.picked.connect(self._picked)
        self.view.folded.connect(self._save_folded)
        self.view.customContextMenuRequested.connect(self._show_menu)
        closed = self._services.preferences.text(CLOSED_FOLDERS_KEY)
        self.view.closed = set(closed.split(SEPARATOR)) if closed else set()
        deletes = QShortcut(QKeySequence.StandardKey.Delete, self.view, self.delete)
        deletes.setContext(Qt.ShortcutContext.WidgetShortcut)
        # on the whole panel, because opening a chat moves the focus to the composer
        QShortcut(QKeySequence(Qt.Key.Key_F2), self, self.rename)
        QShortcut(QKeySequence.StandardKey.New, self, self.new_chat)
        QShortcut(QKeySequence.StandardKey.Find, self, self.begin_search)

    @property
    def is_busy(self) -> bool:
        """Return whether an export or import is running or a deletion can still be undone."""
        return self._import_export.busy or self._undo is not None

    def _refresh_soon(self) -> None:
        self._refresh_timer.start()

    def _timer(self, wait_ms: int, act: Callable[[], None]) -> QTimer:
        made = QTimer(self)
        made.setSingleShot(True)
        made.setInterval(wait_ms)
        made.timeout.connect(act)
        return made

    def _paint(self) -> None:
        theme = self._services.theme
        side = theme.px(sizes.L)
        self._new.setIcon(icon("add", theme.colors.text))
        self._new.setIconSize(QSize(side, side))

    def _searched(self) -> None:
        self.refresh()

    def _end_search(self) -> None:
        """Clear the search and show all chats again."""
        self.search.clear()
        self.search.setFocus()

    def _picked(self, row: ChatRow) -> None:
        self._open = row.heading.id
        if row.message is None:
            self.opened.emit(row.heading.id)
        else:
            self.found.emit(row.heading.id, row.message, self.search.text())

    def _ids(self) -> list[ChatId]:
        return [heading.id for heading in self.view.chosen()]

    def _one_title(self) -> str:
        chosen: Sequence[Heading] = self.view.chosen()
        return chosen[0].title if len(chosen) == 1 else ""

    def _save_folded(self) -> None:
        # otherwise the preferences would reveal folder names that the history encrypts
        if not self._history.codec.seals:
            self._services.preferences.keep(CLOSED_FOLDERS_KEY, SEPARATOR.join(sorted(self.view.closed)))

    def _show_menu(self, at: QPoint) -> None:
        chosen, folder = self.view.chosen(), self.view.folder()
        if chosen:
            menu = self._menu.of_chats(chosen, self._history.folders())
        elif folder is not None:
            menu = self._menu.of_folder(folder)
        else:
            menu = self._menu.of_list(any_chats=bool(self.view.rows))
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(self.view.viewport().mapToGlobal(at))

    def _show_more(self) -> None:
        menu = self._menu.of_list(any_chats=bool(self._history.headings()))
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(self._more.mapToGlobal(self._more.rect().bottomLeft()))

    def _ask_name(self, then: Callable[[str], None]) -> None:
        title, asks = self.tr("New folder"), self.tr("Folder name")
        NameDialog(self._services.theme, title, asks, then, self).open()

    def _offer_rescue(self) -> None:
        """Offer to rescue chats from a damaged history file. The Chat page reports the damage itself."""
        trouble = self._history.trouble
        if trouble is None or trouble.reason.code != "history_set_aside":
            return
        aside = Path(str(trouble.reason.facts["path"]))
        words = self.tr("Some of the damaged chats may still be readable.")
        act = (self.tr("Restore them"), lambda: self._import_export.rescue(aside))
        self.notice.say(words, "warning", act)

    def _restore(self, ids: Sequence[ChatId], was_open: ChatId | None) -> None:
        self._history.restore(ids)
        if was_open is not None:
            self.opened.emit(was_open)

    def _delete_folder(self, folder: str) -> None:
        inside = self._history.delete_folder(folder)

        def undo() -> None:
            self._history.make_folder(folder)
            self._history.move(inside, folder)

        words = self.tr("Folder “{name}” was deleted. Its chats were kept.").format(name=folder)
        self._offer_undo(words, undo)

    def _offer_undo(self, words: str, undo: Callable[[], None]) -> None:
        self._undo = undo
        self.notice.say(words, "info", (self.tr("Undo"), self._undo_now))
        self._undo_timer.start()

    def _undo_now(self) -> None:
        undo, self._undo = self._undo, None
        self._undo_timer.stop()
        self.notice.clear()
        if undo is not None:
            undo()

    def _forget_undo(self) -> None:
        """Withdraw the offer to undo, and purge the deleted chats. Each new deletion does this first."""
        self._undo_timer.stop()
        if self._undo is not None:
            self._undo = None
            self.notice.clear()
        self._history.purge()
