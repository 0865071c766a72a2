"""The scrollable view of the current branch. The last messages are created first, earlier ones on demand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QObject, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QMoveEvent, QResizeEvent
from PySide6.QtWidgets import QApplication, QScrollArea, QWidget

from app.core.chat import MessageId, Role
from app.gui.chat.message.body import MessageServices
from app.gui.chat.message.message_view import MessageView, ShownMessage
from app.gui.look import sizes
from app.gui.look.theme import set_role
from app.gui.widgets.buttons import IconButton
from app.gui.widgets.layouts import column, row

SORT_DELAY_MS = 200  # delay after the last change


class ReadingOrder(QObject):
    """A helper that keeps the Tab order of message widgets in reading order, starting after `begin`."""

    def __init__(self, begin: QWidget, views: Callable[[], Sequence[QWidget]]) -> None:
        super().__init__(begin)
        self._begin, self._views = begin, views
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(SORT_DELAY_MS)
        self._soon.timeout.connect(self._sort)

    def changed(self) -> None:
        """Schedule an update of the Tab order after widgets were added or removed."""
        self._soon.start()

    def _sort(self) -> None:
        before = self._begin
        for view in self._views():
            for widget in (view, *_inside(view)):
                QWidget.setTabOrder(before, widget)
                before = widget


def _inside(view: QWidget) -> list[QWidget]:
    """Return the widgets of a message that can be reached with Tab, from top to bottom and left to right."""
    widgets = [
        widget
        for widget in view.findChildren(QWidget)
        if widget.focusPolicy() & Qt.FocusPolicy.TabFocus and not widget.isHidden()
    ]
    places = {widget: widget.mapTo(view, QPoint(0, 0)) for widget in widgets}
    return sorted(widgets, key=lambda widget: (places[widget].y(), places[widget].x()))


PAGE = 40  # message widgets added at a time while scrolling up
FIRST_VIEWS = 12  # message widgets created before the first paint; the rest follow between events
LAYOUT_PASSES = 3  # layout passes needed until message, column and scroll area have settled
NEAR_PX = 32  # distance from an end, in pixels, that still counts as being there


class Conversation(QScrollArea):
    """A scroll area with the messages of a chat. While it is scrolled to the end, it follows new text."""

    action_requested = Signal(object, str, str)  # MessageAction, message ID, text or version

    def __init__(self, services: MessageServices, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._services = services
        self._shown: Sequence[ShownMessage] = ()
        self._views: list[MessageView] = []  # widgets of the last messages, in order
        self._follows = True
        self._anchor: MessageView | None = None  # the message that must keep its place on screen
        self._target: MessageView | None = None  # the message to scroll to, until the user scrolls
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAccessibleName(self.tr("Conversation"))
        set_role(self, "page")
        self._inner = inner = QWidget()
        set_role(inner, "body")
        self._column = column(gap=sizes.M)
        self._column.addStretch(1)  # the stretch stays at the bottom, so that a short chat begins at the top
        self._middle = QWidget()
        self._middle.setLayout(self._column)
        box = row(None, gap=0)
        box.addWidget(self._middle, 1000)
        box.addStretch(1)
        self._box = box
        inner.setLayout(box)
        self.setWidget(inner)
        self._end = IconButton(services.theme, "down", self.tr("Jump to the end"), self.to_end, self)
        set_role(self._end, "floating")
        self._end.hide()
        self._more = QTimer(self)
        self._more.setSingleShot(True)
        self._more.setInterval(0)
        self._more.timeout.connect(self._add_earlier)
        self._order = ReadingOrder(self, lambda: self._views)
        self._target_count = 0  # number of message widgets to create
        bar = self.verticalScrollBar()
        bar.rangeChanged.connect(self._range_changed)
        bar.valueChanged.connect(self._scrolled)
        bar.actionTriggered.connect(lambda _: self._stop_seeking())
        services.theme.changed.connect(self.restyle)
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        app.focusChanged.connect(self._focus_moved)
        self._fit()

    @property
    def views(self) -> list[MessageView]:
        """The message widgets created so far."""
        return list(self._views)

    @property
    def is_editing(self) -> bool:
        """Return whether the user is editing a message."""
        return any(view.is_editing for view in self._views)

    def open(self, shown: Sequence[ShownMessage]) -> None:
        """Show another chat, scrolled to its end."""
        self._clear()
        self._shown, self._follows = shown, True
        self.setUpdatesEnabled(False)
        try:
            for message in reversed(shown[-FIRST_VIEWS:]):
                self._add_before(message)
        finally:
            self.setUpdatesEnabled(True)
        self._target_count = min(PAGE, len(shown))
        self._more.start()

    def update_to(self, shown: Sequence[ShownMessage]) -> None:
        """Show changed messages of the same chat. The widgets of remaining messages are reused."""
        known = {view.message.id: view for view in self._views}
        first = next((n for n, message in enumerate(shown) if message.message.id in known), None)
        if first is None:
            self.open(shown)
            return
        self._shown = shown
        messages = shown[first:]
        ids = {message.message.id for message in messages}
        had_focus = self._place_of_focus()
        held = None if had_focus is None else self._views[had_focus]
        for view in [view for view in self._views if view.message.id not in ids]:
            self._drop(view)
        for place, message in enumerate(messages):
            if message.message.id in known:
                known[message.message.id].show_message(message)
            else:
                self._views.insert(place, self._view(message))
                self._column.insertWidget(place, self._views[place])
        self._order.changed()
        if had_focus is not None and held not in self._views and self._views:
            self._views[min(had_focus, len(self._views) - 1)].setFocus()

    def _place_of_focus(self) -> int | None:
        """Return the index of the focused message, so that the focus can be restored if the message is removed."""
        # unlike QApplication.focusWidget, also valid while another window is active
        focus: QObject | None = self.window().focusWidget()
        while focus is not None and not isinstance(focus, MessageView):
            focus = focus.parent()
        inside = (n for n, view in enumerate(self._views) if view is focus)
        return next(inside, None)

    def view(self, message: str) -> MessageView | None:
        """Return the widget of a message, or None if it does not exist yet."""
        return next((view for view in self._views if view.message.id == message), None)

    def show_message(self, message: MessageId, words: str = "") -> None:
        """Scroll to a message and highlight words in it. Creates its widget and those of all later messages."""
        place = next((n for n, other in enumerate(self._shown) if other.message.id == message), None)
        if place is None:
            return
        self._follows = False
        while len(self._shown) - len(self._views) > place:
            self._add_before(self._shown[-len(self._views) - 1])
        view = self.view(message)
        assert view is not None
        self.mark(words, message)
        view.setFocus()
        self._scroll_to(view)
        self._target = view

    def mark(self, words: str, message: str = "") -> None:
        """Highlight words in this message and clear the highlights of all others."""
        for view in self._views:
            view.body.mark(words if view.message.id == message else "")

    def search_changed(self, words: str) -> None:
        """Clear the highlights when the search field becomes empty."""
        if not words:
            self.mark("")

    def edit_question(self) -> None:
        """Edit the last question."""
        questions = [view for view in self._views if view.message.role is Role.USER]
        if questions:
            questions[-1].edit()

    def to_end(self) -> None:
        """Scroll to the end and follow new text."""
        self._follows, self._target = True, None
        self.verticalScrollBar().setValue(self.verticalScrollBar().maximum())

    def restyle(self) -> None:
        """Apply the new theme."""
        self._fit()
        for view in self._views:
            view.restyle()

    # Creating views

    def _scroll_to(self, view: MessageView) -> None:
        """Scroll to a message once the layout has positioned it."""
        self._follows, self._anchor, self._target = False, view, None

        def scroll() -> None:
            for _ in range(LAYOUT_PASSES):
                QApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest.value)
            if self._target is view:
                self._scroll_to_match(view)
            else:
                self.ensureWidgetVisible(view, 0, NEAR_PX)

        QTimer.singleShot(0, view, scroll)

    def _stop_seeking(self) -> None:
        self._target = None

    def _scroll_to_match(self, view: MessageView) -> None:
        """Scroll to the top of a message, or to its first match if that would not be visible."""
        top = view.mapTo(self._inner, QPoint()).y() - NEAR_PX
        marked = view.body.match_position
        if marked is not None:
            place = view.body.mapTo(self._inner, marked).y()
            room = self.viewport().height()
            top = top if place < top + room - 2 * NEAR_PX else place - room // 2
        self.verticalScrollBar().setValue(top)
        self._anchor = view

    def _clear(self) -> None:
        self._more.stop()
        self._anchor = self._target = None
        for view in self._views:
            view.hide()
            self._column.removeWidget(view)
            view.deleteLater()
        self._views.clear()

    def _drop(self, view: MessageView) -> None:
        self._anchor = None if view is self._anchor else self._anchor
        self._target = None if view is self._target else self._target
        self._views.remove(view)
        self._column.removeWidget(view)
        view.hide()
        view.deleteLater()

    def _view(self, shown: ShownMessage) -> MessageView:
        made = MessageView(self._services, shown)
        made.installEventFilter(self)
        made.action_requested.connect(self.action_requested)
        made.editing.connect(lambda: self._scroll_to(made))
        made.buttons_changed.connect(self._order.changed)
        return made

    def _add_before(self, shown: ShownMessage) -> None:
        made = self._view(shown)
        self._views.insert(0, made)
        self._column.insertWidget(0, made)
        made.lower()  # screen readers visit widgets in stacking order
        self._order.changed()

    def _add_earlier(self) -> None:
        """Add one earlier message at the top without moving the visible ones, and schedule the next."""
        if len(self._views) >= min(self._target_count, len(self._shown)):
            return
        self._add_before(self._shown[-len(self._views) - 1])
        self._more.start()

    # Scrolling

    def _scrolled(self, value: int) -> None:
        bar = self.verticalScrollBar()
        height = self.viewport().height()
        self._follows = self._target is None and bar.maximum() - value <= NEAR_PX
        self._end.setVisible(bar.maximum() - value > height // 2)
        self._choose_anchor(value)
        if value <= height // 2 and not self._more.isActive():
            if len(self._views) >= self._target_count:
                self._target_count = len(self._views) + PAGE
            self._more.start()

    def _choose_anchor(self, value: int) -> None:
        """Use the first visible message as the scroll anchor."""
        top = value - self._middle.y()
        self._anchor = next((view for view in self._views if view.geometry().bottom() > top), None)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802  Qt's name
        """Keep the scroll anchor in the same position when messages above it are added or grow."""
        if watched is self._anchor and isinstance(event, QMoveEvent) and not self._follows:
            bar, anchor = self.verticalScrollBar(), self._anchor
            bar.setValue(bar.value() + event.pos().y() - event.oldPos().y())
            self._anchor = anchor
        return super().eventFilter(watched, event)

    def _range_changed(self, _: int, maximum: int) -> None:
        self._fit()
        if self._target is not None:  # the layouts had not settled at the first scroll
            self._scroll_to_match(self._target)
        elif self._follows:
            self.verticalScrollBar().setValue(maximum)

    def _fit(self) -> None:
        """Align the column of messages with the composer, with or without a scroll bar."""
        self._middle.setMaximumWidth(self._services.theme.px(sizes.CHAT_WIDTH))
        bar = self.verticalScrollBar()
        beside = bar.sizeHint().width() if bar.maximum() else 0
        self._box.setContentsMargins(sizes.XL, sizes.S, sizes.XL - beside, sizes.M)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        super().resizeEvent(event)
        hint = self._end.sizeHint()
        x = (self.viewport().width() - hint.width()) // 2
        self._end.setGeometry(x, self.height() - hint.height() - sizes.S, hint.width(), hint.height())
        self._end.raise_()

    # Keyboard

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802  Qt's name
        bar, key = self.verticalScrollBar(), event.key()
        if key == Qt.Key.Key_End and event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.to_end()
        elif key == Qt.Key.Key_Home and event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            bar.setValue(0)
        else:
            super().keyPressEvent(event)

    def _focus_moved(self, before: QWidget | None, _: QWidget | None) -> None:
        view: QObject | None = before
        while view is not None and not isinstance(view, MessageView):
            view = view.parent()
        if view is not None:
            self._target = None if view is self._target else self._target
            QApplication.sendEvent(view, QEvent(QEvent.Type.Leave))
