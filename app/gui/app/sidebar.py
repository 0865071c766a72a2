"""The sidebar with the page buttons and the pool's status. In a narrow window, it shows only icons.

A page is imported and created when it is first shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QT_TRANSLATE_NOOP, QCoreApplication, QSize, Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QButtonGroup, QSizePolicy, QToolButton, QWidget

from app.gui.app.app_context import AppContext
from app.gui.app.navigation import ACTIVITY, CHAT, COMPUTER, MODELS, POOL, SETTINGS
from app.gui.app.page import Page
from app.gui.app.pool_status import PoolStatus, StatusKind, current_status
from app.gui.look import sizes
from app.gui.look.accessibility import announce
from app.gui.look.drawing import icon
from app.gui.look.theme import set_role
from app.gui.widgets.buttons import ToolButton
from app.gui.widgets.labels import label, paragraph, tooltip
from app.gui.widgets.layouts import column, line, row


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the sidebar, with a function that creates its page."""

    name: str
    words: object  # translated when shown
    icon: str
    make: Callable[[AppContext], Page]

    @property
    def title(self) -> str:
        return QCoreApplication.translate("Sidebar", str(self.words))


def _pool(services: AppContext) -> Page:
    from app.gui.pool.pool_page import PoolPage

    return PoolPage(services)


def _chat(services: AppContext) -> Page:
    from app.gui.chat.chat_page import ChatPage

    return ChatPage(services)


def _shelf(services: AppContext) -> Page:
    from app.gui.models.models_page import ModelsPage

    return ModelsPage(services)


def _activity(services: AppContext) -> Page:
    from app.gui.activity.activity_page import ActivityPage

    return ActivityPage(services)


def _computer(services: AppContext) -> Page:
    from app.gui.this_computer.computer_page import ComputerPage

    return ComputerPage(services)


def _settings(services: AppContext) -> Page:
    from app.gui.settings.settings_page import SettingsPage

    return SettingsPage(services)


ENTRIES = (
    Entry(POOL, QT_TRANSLATE_NOOP("Sidebar", "Pool"), "pool", _pool),
    Entry(CHAT, QT_TRANSLATE_NOOP("Sidebar", "Chat"), "chat", _chat),
    Entry(MODELS, QT_TRANSLATE_NOOP("Sidebar", "Models"), "models", _shelf),
    Entry(ACTIVITY, QT_TRANSLATE_NOOP("Sidebar", "Activity"), "activity", _activity),
    Entry(COMPUTER, QT_TRANSLATE_NOOP("Sidebar", "This computer"), "computer", _computer),
    Entry(SETTINGS, QT_TRANSLATE_NOOP("Sidebar", "Settings"), "settings", _settings),
)


NARROW = 640  # window width in pixels at 100 % text size, below which only icons are shown


class Sidebar(QWidget):
    """The sidebar. It calls `chosen(name)` when the user selects a page."""

    def __init__(self, services: AppContext, chosen: Callable[[str], None]) -> None:
        super().__init__()
        self._services = services
        set_role(self, "sidebar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._group = QButtonGroup(self)
        self._group.setExclusive(True)
        self._buttons: dict[str, QToolButton] = {}
        box = column(gap=sizes.XS)
        box.setContentsMargins(sizes.S, sizes.XL, sizes.S, sizes.M)
        self._brand = label("Poolhouse", "section")
        self._brand.setContentsMargins(sizes.S, 0, 0, sizes.M)
        box.addWidget(self._brand)
        for number, entry in enumerate(ENTRIES, 1):
            box.addWidget(self._button(entry, number, chosen))
        box.addStretch(1)
        box.addWidget(line())
        self._picture = label()
        self._words = paragraph("", "caption")
        foot = self._foot = row(self._picture, self._words, gap=sizes.S)
        foot.setContentsMargins(sizes.S, sizes.S, 0, 0)
        foot.setAlignment(self._picture, Qt.AlignmentFlag.AlignTop)
        foot.setStretch(1, 1)
        box.addLayout(foot)
        self.setLayout(box)
        services.pool.changed.connect(self._tell)
        services.pool.link_changed.connect(self._tell)
        services.theme.changed.connect(self._paint)
        self._status: PoolStatus | None = None
        self._announced: StatusKind | None = None  # the last status announced to screen readers
        self._room, self._is_narrow = 0, False
        self._paint()
        self._tell()

    def fit(self, room: int) -> None:
        """Switch between icons and full labels for a window of this width."""
        self._room = room
        narrow = 0 < room < self._services.theme.px(NARROW)
        if narrow != self._is_narrow:
            self._is_narrow = narrow
            self._paint()

    def show_chosen(self, name: str) -> None:
        self._buttons[name].setChecked(True)

    def focus(self, name: str) -> None:
        """Move the keyboard focus to the button of a page."""
        self._buttons[name].setFocus()

    def _button(self, entry: Entry, number: int, chosen: Callable[[str], None]) -> QToolButton:
        made = ToolButton()
        made.setText(f"\N{EN SPACE}{entry.title}")  # space between icon and text
        made.setAccessibleName(entry.title)
        made.setCheckable(True)
        made.setShortcut(f"Ctrl+{number}")
        made.setToolTip(f"{entry.title} (Ctrl+{number})")
        made.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        made.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        set_role(made, "nav")
        made.clicked.connect(lambda: chosen(entry.name))
        self._group.addButton(made)
        self._buttons[entry.name] = made
        return made

    def _paint(self) -> None:
        theme, style = self._services.theme, Qt.ToolButtonStyle
        self._is_narrow = 0 < self._room < theme.px(NARROW)
        for widget in (self._brand, self._words):
            widget.setVisible(not self._is_narrow)
        side = theme.px(sizes.TITLE)
        for entry in ENTRIES:
            button = self._buttons[entry.name]
            button.setIcon(icon(entry.icon, theme.colors.text))
            button.setIconSize(QSize(side, side))
            button.setToolButtonStyle(style.ToolButtonIconOnly if self._is_narrow else style.ToolButtonTextBesideIcon)
        widest = max(button.sizeHint().width() for button in self._buttons.values())
        if self._is_narrow:
            self.setFixedWidth(widest + 2 * sizes.S)
            left = (widest - theme.px(sizes.SECTION)) // 2  # aligned with the icons of the pages
        else:  # no wider than needed
            self.setFixedWidth(max(sizes.SIDEBAR_WIDTH, widest + self._bolder() + 2 * sizes.S))
            left = sizes.S
        self._foot.setContentsMargins(left, sizes.S, 0, 0)
        self._status = None
        self._tell()

    def _bolder(self) -> int:
        """Return how much wider the longest title is in bold, the style that marks the current page."""
        usual, bold = (QFontMetrics(self._services.theme.font(bold=is_bold)) for is_bold in (False, True))
        titles = [entry.title for entry in ENTRIES]
        return max(bold.horizontalAdvance(title) - usual.horizontalAdvance(title) for title in titles)

    def _tell(self) -> None:
        now = current_status(self._services.pool)
        if now == self._status:
            return
        if self._announced is not None and now.kind is not self._announced:
            announce(self, now.sentence)  # only if the kind changes, not for each new amount of memory
        self._status, self._announced = now, now.kind
        theme = self._services.theme
        side = theme.px(sizes.SECTION)
        color = getattr(theme.colors, now.color)
        self._picture.setPixmap(icon(now.icon, color).pixmap(side, side))
        self._words.setText(now.sentence)
        self._picture.setToolTip(tooltip(now.sentence))
        named = self._picture if self._is_narrow else self._words
        for widget in (self._picture, self._words):
            state = self.tr("Pool status: {state}").format(state=now.sentence)
            widget.setAccessibleName(state if widget is named else "")
