"""The page Settings: a search over everything, pages in a list, each with its Reset."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QItemSelectionModel, QSize
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QLineEdit, QListWidget, QListWidgetItem, QWidget

from app.gui import theme as sizes
from app.gui.icons import icon
from app.gui.page import Page
from app.gui.parts.buttons import button
from app.gui.parts.empty_state import EmptyState
from app.gui.parts.layouts import column, row, scrolled
from app.gui.parts.sized import bound_width
from app.gui.pool import Link
from app.gui.services import Services
from app.gui.settings.about import About
from app.gui.settings.advanced import Advanced
from app.gui.settings.chat import Chat
from app.gui.settings.general import General
from app.gui.settings.group import Group
from app.gui.settings.household import Household
from app.gui.settings.local_api import LocalApi
from app.gui.settings.models import Models
from app.gui.settings.network import Network
from app.gui.settings.privacy import Privacy
from app.gui.settings.updates import Updates
from app.gui.theme import set_role

LIST_WIDTH = 184
SELECT = QItemSelectionModel.SelectionFlag.ClearAndSelect


class SettingsPage(Page):
    """One group is shown at a time; a search shows what fits, of all groups."""

    def __init__(self, services: Services) -> None:
        super().__init__(services, QCoreApplication.translate("SettingsPage", "Settings"))
        self.groups: list[Group] = [
            General(services), Network(services), Household(services), Models(services),
            Chat(services), LocalApi(services), Privacy(services), Updates(services),
            Advanced(services), About(services),
        ]  # fmt: skip
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
        self.list.setAccessibleName(self.tr("Pages of settings"))
        self.list.currentRowChanged.connect(self._chosen)
        self.list.itemClicked.connect(lambda item: self._chosen(self.list.row(item)))
        self.nothing = EmptyState(
            self.tr("Nothing is called so"), self.tr("Try another word, or look through the pages."),
            button(self.tr("Clear the search"), self.search.clear),
        )  # fmt: skip
        self._fill()
        find = QShortcut(QKeySequence.StandardKey.Find, self)
        find.activated.connect(self.search.setFocus)
        services.theme.changed.connect(self._paint)
        services.pool.link_changed.connect(self._link_changed)
        self.list.setCurrentRow(0)

    @property
    def group(self) -> Group:
        """The one in front."""
        return self.groups[max(0, self.list.currentRow())]

    def open(self, kind: type[Group]) -> None:
        """Show one group."""
        self.search.clear()
        numbers = [number for number, one in enumerate(self.groups) if isinstance(one, kind)]
        self.list.setCurrentRow(numbers[0])

    def shown(self) -> None:
        self.group.refresh()

    # inside

    def _fill(self) -> None:
        for one in (*self.groups, self.nothing):
            one.hide()  # laid out when they are shown: all at once would take a third of a second
        inner = QWidget()
        body = column(*self.groups, self.nothing, gap=sizes.XL)
        body.addStretch(1)
        body.setContentsMargins(0, 0, sizes.L, 0)
        inner.setLayout(body)
        bound_width(self.services.theme, inner, sizes.CHAT_WIDTH)
        self._view = scrolled(inner)
        for group in self.groups:
            self.list.addItem(QListWidgetItem(group.title))
            group.told.connect(self._tell)
        box = row(self.list, gap=sizes.XL)
        box.addWidget(self._view, 1)
        self.content.addLayout(box, 1)
        self._paint()

    def _paint(self) -> None:
        theme = self.services.theme
        side = theme.px(sizes.TITLE)
        self.list.setIconSize(QSize(side, side))
        for number, group in enumerate(self.groups):
            self.list.item(number).setIcon(icon(group.picture, theme.colours.text))
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
        for group in self.groups:
            group.search([])
            group.setVisible(group is self.group)
        self.nothing.hide()
        self._view.verticalScrollBar().setValue(0)

    def _search(self, text: str) -> None:
        words = text.casefold().split()
        if not words:
            self._show_group()
            return
        self.list.clearSelection()
        found = 0
        for group in self.groups:
            many = group.search(words)
            group.setVisible(many > 0)
            if many:
                group.refresh()
            found += many
        self.nothing.setVisible(found == 0)
        self._view.verticalScrollBar().setValue(0)

    def _tell(self, sentence: str, kind: str) -> None:
        self.notice.say(sentence, kind)

    def _link_changed(self) -> None:
        if self.services.pool.link is Link.THERE and self.isVisible():
            self.group.refresh()
