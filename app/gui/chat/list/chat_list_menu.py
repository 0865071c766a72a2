"""What can be done with chosen chats or a folder: the menu, and the keys that do the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction, QIcon, QKeySequence
from PySide6.QtWidgets import QMenu, QWidget

from app.core.chat import Heading
from app.gui.chat.export.export import FORMATS, Format
from app.gui.look.icons import icon
from app.gui.look.theme import Theme


class Deeds(Protocol):
    """What the list does when it is asked to; `ChatList` is it."""

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
    """Builds the menus anew each time: they name the folders there are."""

    def __init__(self, theme: Theme, deeds: Deeds, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme, self._deeds, self._parent = theme, deeds, parent

    def of_chats(self, chosen: Sequence[Heading], folders: Sequence[str]) -> QMenu:
        """For one chat or several."""
        deeds, menu = self._deeds, QMenu(self._parent)
        pinned = all(one.pinned for one in chosen)
        archived = all(one.archived for one in chosen)
        if len(chosen) == 1:
            self._add(menu, "edit", self.tr("Rename"), deeds.rename, "F2")
            self._add(menu, "copy", self.tr("Duplicate"), deeds.duplicate)
        words = self.tr("Unpin") if pinned else self.tr("Pin to the top")
        self._add(menu, "pin", words, lambda: deeds.pin(not pinned))
        self._folders(menu, chosen, folders)
        words = self.tr("Take out of the archive") if archived else self.tr("Archive")
        self._add(menu, "archive", words, lambda: deeds.archive(not archived))
        self._forms(menu, self.tr("Export"), deeds.export)
        menu.addSeparator()
        self._add(menu, "delete", self.tr("Delete"), deeds.delete, "Del")
        return menu

    def of_folder(self, name: str) -> QMenu:
        """For one folder."""
        deeds, menu = self._deeds, QMenu(self._parent)
        self._add(menu, "add", self.tr("New chat here"), lambda: deeds.new_chat(name))
        self._add(menu, "edit", self.tr("Rename"), deeds.rename, "F2")
        self._forms(menu, self.tr("Export"), deeds.export)
        menu.addSeparator()
        self._add(menu, "delete", self.tr("Delete folder, keep its chats"), deeds.delete, "Del")
        return menu

    def of_list(self, *, any_chats: bool) -> QMenu:
        """For the list as a whole."""
        menu = QMenu(self._parent)
        self._add(menu, "folder", self.tr("New folder"), self._deeds.new_folder)
        self._add(menu, "import", self.tr("Import chats…"), self._deeds.import_chats)
        self._forms(menu, self.tr("Export all chats"), self._deeds.export_all).setEnabled(any_chats)
        return menu

    def _folders(self, menu: QMenu, chosen: Sequence[Heading], folders: Sequence[str]) -> None:
        inner = menu.addMenu(self._picture("folder"), self.tr("Move to folder"))
        here = {one.folder for one in chosen}
        for name in folders:
            action = inner.addAction(name.replace("&", "&&"))
            action.setCheckable(True)
            action.setChecked(here == {name})
            action.triggered.connect(lambda _=False, name=name: self._deeds.move_to(name))
        if folders:
            inner.addSeparator()
        self._add(inner, "add", self.tr("New folder…"), self._deeds.move_to_new_folder)
        out = self._add(inner, "close", self.tr("No folder"), lambda: self._deeds.move_to(""))
        out.setEnabled(here != {""})

    def _forms(self, menu: QMenu, words: str, export: Callable[[Format], None]) -> QMenu:
        inner = menu.addMenu(self._picture("upload"), words)
        for form in FORMATS:
            action = inner.addAction(form.name + "…")
            action.triggered.connect(lambda _=False, form=form: export(form))
        inner.addSeparator()
        thoughts = inner.addAction(self.tr("Include thoughts"))
        thoughts.setCheckable(True)
        thoughts.setChecked(self._deeds.exports_thoughts)
        thoughts.toggled.connect(self._deeds.export_thoughts)
        return inner

    def _add(self, menu: QMenu, picture: str, words: str, deed: Callable[[], None], key: str = "") -> QAction:
        action = menu.addAction(self._picture(picture), words)
        if key:  # shown; the list itself hears the key
            action.setShortcut(QKeySequence(key))
        action.triggered.connect(lambda *_: deed())
        return action

    def _picture(self, name: str) -> QIcon:
        return icon(name, self._theme.colours.text)
