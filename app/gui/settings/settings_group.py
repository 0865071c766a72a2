"""The components of the Settings page, including input controls, rows, cards, and the base class of groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QDoubleSpinBox, QLayout, QVBoxLayout, QWidget

from app.core.errors import AppError
from app.gui.api.node_client import RAW, Call, T
from app.gui.app.app_context import AppContext
from app.gui.look import sizes
from app.gui.widgets.buttons import button
from app.gui.widgets.fields import DropDown
from app.gui.widgets.flow import Beside, Flow
from app.gui.widgets.labels import label, paragraph, show_if
from app.gui.widgets.layouts import card, column, line

LEAST_LETTERS = 16


class Choice(DropDown):
    """A drop-down list. It calls `chosen(value)` when the user selects an item, but not when `show_value` does."""

    def __init__(self, options: Sequence[tuple[str, str]], chosen: Callable[[str], object]) -> None:
        super().__init__()
        for value, words in options:
            self.addItem(words, value)
        self.setMinimumContentsLength(LEAST_LETTERS)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.activated.connect(lambda _: chosen(self.value))

    @property
    def value(self) -> str:
        return str(self.currentData())

    def show_value(self, value: str) -> None:
        self.setCurrentIndex(max(0, self.findData(value)))

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802  Qt's name
        """Ignore the mouse wheel. Otherwise, scrolling the page could change the setting."""
        event.ignore()


class NumberField(QDoubleSpinBox):
    """A number field. It calls `chosen(value)` when the user changes it, but not when `show_value` does."""

    def __init__(self, least: float, most: float, digits: int, chosen: Callable[[float], object]) -> None:
        super().__init__()
        self._chosen, self._shown = chosen, least
        self.setDecimals(digits)
        self.setRange(least, most)
        self.setSingleStep(10**-digits * (5 if digits > 1 else 1))
        self.setKeyboardTracking(False)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.valueChanged.connect(self._changed)

    def show_value(self, value: float) -> None:
        """Show a value, unless the field has the focus, because the user may be typing."""
        if not self.hasFocus():
            self._shown = value
            self.setValue(value)

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802  Qt's name
        """Ignore the mouse wheel. Otherwise, scrolling the page could change the setting."""
        event.ignore()

    def _changed(self, value: float) -> None:
        if value != self._shown:
            self._shown = value
            self._chosen(value)


class Setting(QWidget):
    """A setting with a title, an explanation, its default and a control.

    wide: whether the control is below the text instead of on the right. words: additional search terms.
    """

    def __init__(
        self,
        title: str,
        about: str = "",
        control: QWidget | QLayout | None = None,
        *,
        default: str = "",
        wide: bool = False,
        words: str = "",
    ) -> None:
        super().__init__()
        self.is_removed = False  # whether its subject no longer exists, so that it is never shown
        self._words = f"{title} {about} {default} {words}".casefold()
        self.title = label(title)
        self.title.setWordWrap(True)
        self.about = paragraph(about, "caption")
        self.default = paragraph(default, "caption")
        self._texts = texts = QWidget()
        texts.setLayout(column(self.title, self.about, self.default, gap=0))
        if isinstance(control, QWidget):
            if not control.accessibleName():
                control.setAccessibleName(title)
            control.setAccessibleDescription(about)
        if isinstance(control, QLayout) and not wide:
            holder = QWidget()
            holder.setLayout(control)
            control = holder
        box: QLayout
        if isinstance(control, QWidget) and not wide:
            box = Beside(texts, control, gap=sizes.XL)
        else:
            box = column(texts, *([control] if control else []), gap=sizes.S)
        box.setContentsMargins(0, sizes.S, 0, sizes.S)
        self.setLayout(box)
        for part in (self.title, self.about, self.default):
            show_if(part, bool(part.text()))
        show_if(texts, bool(title or about or default))  # an empty column would leave a gap

    def set_about(self, about: str) -> None:
        """Replace the explanation below the title."""
        self.about.setText(about)
        show_if(self.about, bool(about))
        show_if(self._texts, True)

    def matches(self, words: list[str]) -> bool:
        """Return whether the setting's texts contain all of these words."""
        said = f"{self._words} {self.about.text().casefold()}"
        return all(word in said for word in words)


class Card:
    """A card with a heading and a list of settings. It is hidden if none of them is shown."""

    def __init__(self, page: QVBoxLayout, title: str) -> None:
        self.heading = label(title, "muted") if title else None
        if self.heading is not None:
            self.heading.setWordWrap(True)
            page.addSpacing(sizes.S)
            page.addWidget(self.heading)
        self.frame = card(gap=0)
        box = self.frame.layout()
        assert box is not None
        self._box = box
        self._box.setContentsMargins(sizes.L, sizes.S, sizes.L, sizes.S)
        self._rows: list[tuple[QWidget | None, Setting]] = []
        page.addWidget(self.frame)

    def put(self, *settings: Setting) -> None:
        """Append settings. They stay hidden until the next call of `show`."""
        for setting in settings:
            between = line() if self._rows else None
            if between is not None:
                self._box.addWidget(between)
            self._box.addWidget(setting)
            self._rows.append((between, setting))

    def show(self, words: list[str]) -> int:
        """Show only the settings that match all words. Return their number."""
        shown = 0
        for between, setting in self._rows:
            matches = not setting.is_removed and setting.matches(words)
            show_if(setting, matches)
            if between is not None:
                show_if(between, matches and shown > 0)
            shown += matches
        show_if(self.frame, shown > 0)
        if self.heading is not None:
            show_if(self.heading, shown > 0)
        return shown


class SettingsGroup(QWidget):
    """The base class of settings groups. A group has a heading, cards of settings and usually a reset button.

    Subclasses add their settings in `__init__`. `refresh` is called whenever the group is shown.
    """

    told = Signal(str, str)  # a sentence to show on the page, and its kind: info or error
    failed = Signal(object)  # AppError to show on the page
    can_reset = True

    def __init__(self, services: AppContext, title: str) -> None:
        super().__init__()
        self.services, self.title = services, title
        self.heading = label(title, "section")
        self._cards: list[Card] = []
        self._words: list[str] = []  # search words
        self._waits: set[object] | None = None  # tokens for the pending requests of a reset
        self._calls: list[Call] = []
        calls = self._calls
        self.destroyed.connect(lambda: _end(calls))  # no answer may reach a deleted page
        self._reset = button(self.tr("Reset this page"), self._reset_all, "link")
        head = Flow(self.heading, self._reset, right_from=1)
        self.box: QVBoxLayout = column(head, gap=sizes.M)
        self.setLayout(self.box)
        self._level()
        services.theme.changed.connect(self._level)

    def add(self, *settings: Setting, title: str = "") -> Card:
        """Add and return a card with these settings."""
        made = Card(self.box, title)
        self._cards.append(made)
        made.put(*settings)
        made.show(self._words)
        return made

    def _level(self) -> None:
        """Give all headings the same height, with or without a button beside them."""
        self.heading.setMinimumHeight(self.services.theme.px(sizes.CONTROL_HEIGHT))

    def search(self, words: list[str]) -> int:
        """Show only the settings that match all words. Return their number."""
        self._words = words
        show_if(self._reset, self.can_reset and not words)
        whole = all(word in self.title.casefold() for word in words)
        return sum(card.show([] if whole else words) for card in self._cards)

    def search_again(self) -> None:
        """Repeat the last search after settings were added or removed."""
        self.search(self._words)

    def refresh(self) -> None:
        """Request the current values and show them.

        This is called when the group is shown and when the node becomes available.
        """

    def take_focus(self) -> None:
        """Focus the control that the user was using when the window was replaced."""

    def reset(self) -> None:
        """Reset all settings in the group to their defaults."""

    def reset_words(self) -> str:
        """Return the confirmation shown after a reset."""
        words = self.tr("{page} was reset to its defaults.")
        return words.format(page=self.title)

    def _reset_all(self) -> None:
        """Reset the group. Show a confirmation when all requests have succeeded, or the error of a failed one."""
        waits = self._waits = set()
        self.reset()
        self._waits = None
        self._tell_reset(waits)

    def _tell_reset(self, waits: set[object]) -> None:
        if not waits:
            self.told.emit(self.reset_words(), "info")

    def ask(
        self,
        method: str,
        path: str,
        done: Callable[[T], None],
        body: dict[str, Any] | None = None,
        *,
        answer: type[T] = RAW,
    ) -> None:
        """Send a request to the node. The page shows any error.

        While the node is unavailable, GET requests are skipped; `refresh` is called when it is available again.
        """
        if method == "GET" and not self.services.pool.is_there:
            return  # the user did not request this, so no error is shown
        self._calls[:] = [call for call in self._calls if call.running]
        then = done if self._waits is None else self._of_reset(done, self._waits)
        call = self.services.client.call(method, path, body, then, self.fail, answer=answer)
        if call is not None:
            self._calls.append(call)

    def _of_reset(self, done: Callable[[T], None], waits: set[object]) -> Callable[[T], None]:
        """Wrap the callback of a request made by a reset, so that the last response triggers the confirmation."""
        mark = object()
        waits.add(mark)

        def then(answer: T) -> None:
            done(answer)
            waits.discard(mark)
            self._tell_reset(waits)

        return then

    def fail(self, error: AppError) -> None:
        self.failed.emit(error)

    def cancel(self) -> None:
        """Cancel all requests in progress."""
        _end(self._calls)


def _end(calls: list[Call]) -> None:
    for call in calls:
        call.cancel()
    calls.clear()
