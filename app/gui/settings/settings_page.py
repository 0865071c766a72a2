"""The Settings page, with a list of settings groups and a search across all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QT_TRANSLATE_NOOP, QCoreApplication, QItemSelectionModel, QSize, QTimer
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QLineEdit, QListWidget, QListWidgetItem, QWidget

from app.gui.api.node_state import Link
from app.gui.app.app_context import AppContext
from app.gui.app.page import Page
from app.gui.look import sizes
from app.gui.look.drawing import icon
from app.gui.look.theme import set_role
from app.gui.settings.settings_group import SettingsGroup
from app.gui.widgets.buttons import button
from app.gui.widgets.labels import bound_width
from app.gui.widgets.layouts import EmptyState, column, row, scrolled

ADVANCED = "Advanced"


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry in the list of groups.

    name: the class name of the group, which is also its translation context.
    """

    name: str
    words: object  # translated when shown
    icon: str
    make: Callable[[AppContext], SettingsGroup]

    @property
    def title(self) -> str:
        return QCoreApplication.translate(self.name, str(self.words))


def _general(services: AppContext) -> SettingsGroup:
    from app.gui.settings.general import General

    return General(services)


def _network(services: AppContext) -> SettingsGroup:
    from app.gui.settings.network import Network

    return Network(services)


def _household(services: AppContext) -> SettingsGroup:
    from app.gui.settings.household import Household

    return Household(services)


def _models(services: AppContext) -> SettingsGroup:
    from app.gui.settings.models import Models

    return Models(services)


def _chat(services: AppContext) -> SettingsGroup:
    from app.gui.settings.chat import Chat

    return Chat(services)


def _tools(services: AppContext) -> SettingsGroup:
    from app.gui.settings.tools import Tools

    return Tools(services)


def _local_api(services: AppContext) -> SettingsGroup:
    from app.gui.settings.local_api import LocalApi

    return LocalApi(services)


def _phones(services: AppContext) -> SettingsGroup:
    from app.gui.settings.phones import PhoneSettings

    return PhoneSettings(services)


def _privacy(services: AppContext) -> SettingsGroup:
    from app.gui.settings.privacy import Privacy

    return Privacy(services)


def _updates(services: AppContext) -> SettingsGroup:
    from app.gui.settings.updates import Updates

    return Updates(services)


def _advanced(services: AppContext) -> SettingsGroup:
    from app.gui.settings.advanced import Advanced

    return Advanced(services)


def _about(services: AppContext) -> SettingsGroup:
    from app.gui.settings.about import About

    return About(services)


ENTRIES = (
    Entry("General", QT_TRANSLATE_NOOP("General", "General"), "settings", _general),
    Entry("Network", QT_TRANSLATE_NOOP("Network", "Network"), "link", _network),
    Entry("Household", QT_TRANSLATE_NOOP("Household", "Household"), "pool", _household),
    Entry("Models", QT_TRANSLATE_NOOP("Models", "Models"), "models", _models),
    Entry("Chat", QT_TRANSLATE_NOOP("Chat", "Chat"), "chat", _chat),
    Entry("Tools", QT_TRANSLATE_NOOP("Tools", "Tools"), "tools", _tools),
    Entry("LocalApi", QT_TRANSLATE_NOOP("LocalApi", "Local API"), "cable", _local_api),
    Entry("PhoneSettings", QT_TRANSLATE_NOOP("PhoneSettings", "Phones"), "phone", _phones),
    Entry("Privacy", QT_TRANSLATE_NOOP("Privacy", "Privacy"), "key", _privacy),
    Entry("Updates", QT_TRANSLATE_NOOP("Updates", "Updates"), "refresh", _updates),
    Entry(ADVANCED, QT_TRANSLATE_NOOP("Advanced", "Advanced"), "activity", _advanced),
    Entry("About", QT_TRANSLATE_NOOP("About", "About"), "info", _about),
)


LIST_WIDTH = 184
REST_MS = 20
SELECT = QItemSelectionModel.SelectionFlag.ClearAndSelect


class SettingsPage(Page):
    """The Settings page. It shows one group at a time, or the settings of all groups that match a search."""

    def __init__(self, services: AppContext) -> None:
        super().__init__(services, QCoreApplication.translate("SettingsPage", "Settings"))
        self._made: dict[int, SettingsGroup] = {}  # by row in the list
        self._rest = QTimer(self)  # creates the remaining groups between events, so that a search covers them
        self._rest.setInterval(REST_MS)
        self._rest.timeout.connect(self._make_next)
        self.search = QLineEdit()
        self.search.setPlaceholderText(self.tr("Search settings"))
        self.search.setAccessibleName(self.tr("Search settings"))
        self.search.setClearButtonEnabled(True)
        bound_width(services.theme, self.search, 2 * LIST_WIDTH)
        self.search.setMinimumWidth(LIST_WIDTH)
        self.search.textChanged.connect(self._search)
        self.head.addWidget(self.search)
        self.list = QListWidget()
        set_role(self.list, "plain")
        self.list.setAccessibleName(self.tr("Settings pages"))
        self.list.currentRowChanged.connect(self._chosen)
        self.list.itemClicked.connect(lambda item: self._chosen(self.list.row(item)))
        self.nothing = EmptyState(
            self.tr("Nothing found"),
            self.tr("Try another word or browse the pages."),
            button(self.tr("Clear the search"), self.search.clear),
        )
        self._fill()
        self.later(lambda: self._group(0), self._begin)

    def _begin(self) -> None:
        find = QShortcut(QKeySequence.StandardKey.Find, self)
        find.activated.connect(self.search.setFocus)
        self.services.theme.changed.connect(self._paint)
        self.services.pool.link_changed.connect(self._link_changed)
        self.list.setCurrentRow(0)

    @property
    def groups(self) -> list[SettingsGroup]:
        """All groups. Reading this property creates missing ones."""
        return [self._group(number) for number in range(len(ENTRIES))]

    @property
    def group(self) -> SettingsGroup:
        """The selected group."""
        return self._group(max(0, self.list.currentRow()))

    @property
    def part(self) -> str:
        return ENTRIES[max(0, self.list.currentRow())].name

    def take_focus(self) -> None:
        self.group.take_focus()

    def open(self, name: str) -> None:
        """Show the group with this name."""
        self.search.clear()
        self.list.setCurrentRow([entry.name for entry in ENTRIES].index(name))

    def shown(self) -> None:
        self.group.refresh()
        self._rest.start()

    def _fill(self) -> None:
        self.nothing.hide()
        inner = QWidget()
        self._body = column(self.nothing, gap=sizes.XL)
        self._body.addStretch(1)
        self._body.setContentsMargins(0, 0, sizes.L, 0)
        bound_width(self.services.theme, inner, sizes.CHAT_WIDTH)
        self._view = scrolled(inner)
        inner.setLayout(self._body)
        for entry in ENTRIES:
            self.list.addItem(QListWidgetItem(entry.title))
        box = row(self.list, gap=sizes.XL)
        box.addWidget(self._view, 1)
        self.content.addLayout(box, 1)
        self._paint()

    def _group(self, number: int) -> SettingsGroup:
        """Return a group, creating it if necessary.

        Creating all groups at the same time would freeze the window briefly.
        """
        if number not in self._made:
            group = ENTRIES[number].make(self.services)
            group.hide()  # it is laid out when it is shown
            group.told.connect(self._tell)
            group.failed.connect(self.fail)
            place = sum(other < number for other in self._made)
            self._body.insertWidget(place, group)
            self._made[number] = group
        return self._made[number]

    def _make_next(self) -> None:
        missing = [number for number in range(len(ENTRIES)) if number not in self._made]
        if missing:
            self._group(missing[0])
        else:
            self._rest.stop()

    def _paint(self) -> None:
        theme = self.services.theme
        side = theme.px(sizes.TITLE)
        self.list.setIconSize(QSize(side, side))
        for number, entry in enumerate(ENTRIES):
            self.list.item(number).setIcon(icon(entry.icon, theme.colors.text))
        words = self.list.sizeHintForColumn(0) + 2 * self.list.frameWidth() + sizes.M
        self.list.setFixedWidth(max(LIST_WIDTH, words))

    def _chosen(self, number: int) -> None:
        if number < 0:
            return
        self.notice.clear()
        if self.search.text():
            self.search.clear()
        self._show_group()
        self.group.refresh()

    def _show_group(self) -> None:
        self.list.setCurrentRow(self.list.currentRow(), SELECT)
        front = self.group
        for group in self._made.values():
            group.search([])
            group.setVisible(group is front)
        self.nothing.hide()
        self._view.verticalScrollBar().setValue(0)

    def _search(self, text: str) -> None:
        words = text.casefold().split()
        if not words:
            self._show_group()
            return
        self.list.clearSelection()
        n_found = 0
        for group in self.groups:
            many = group.search(words)
            group.setVisible(many > 0)
            if many:
                group.refresh()
            n_found += many
        self.nothing.setVisible(n_found == 0)
        self._view.verticalScrollBar().setValue(0)

    def _tell(self, sentence: str, kind: str) -> None:
        self.notice.say(sentence, kind)

    def _link_changed(self) -> None:
        if self.services.pool.link is Link.THERE and self.isVisible():
            self.group.refresh()
