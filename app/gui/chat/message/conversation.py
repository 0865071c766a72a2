"""The messages of the branch that is shown: the last ones at first, earlier ones when one scrolls up."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QObject, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QMoveEvent, QResizeEvent
from PySide6.QtWidgets import QApplication, QScrollArea, QWidget

from app.core.chat import MessageId, Role
from app.gui.chat.message.body import Look
from app.gui.chat.message.message_view import MessageView, Shown
from app.gui.look import theme as sizes
from app.gui.look.theme import set_role
from app.gui.widgets.buttons import IconButton
from app.gui.widgets.layouts import column, row

# The Tab key goes through messages as one reads them, in whatever order their widgets were made.

SOON_MS = 200  # after the last change


class ReadingOrder(QObject):
    """`begin` stands before the first of what `views` gives."""

    def __init__(self, begin: QWidget, views: Callable[[], Sequence[QWidget]]) -> None:
        super().__init__(begin)
        self._begin, self._views = begin, views
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(SOON_MS)
        self._soon.timeout.connect(self._sort)

    def changed(self) -> None:
        """Widgets came or went."""
        self._soon.start()

    def _sort(self) -> None:
        before = self._begin
        for view in self._views():
            for widget in (view, *_inside(view)):
                QWidget.setTabOrder(before, widget)
                before = widget


def _inside(view: QWidget) -> list[QWidget]:
    """What of a message Tab reaches, line by line."""
    found = [
        widget
        for widget in view.findChildren(QWidget)
        if widget.focusPolicy() & Qt.FocusPolicy.TabFocus and not widget.isHidden()
    ]
    places = {widget: widget.mapTo(view, QPoint(0, 0)) for widget in found}
    return sorted(found, key=lambda widget: (places[widget].y(), places[widget].x()))


PAGE = 40  # messages that are made at once
AT_ONCE = 12  # of these: before the first picture; the rest follows between events
LAYOUTS = 3  # a message in its column in its view: so often is laid out until all is
NEAR = 32  # pixels from an end that count as being there


class Conversation(QScrollArea):
    """It follows its end only while one looks at the end."""

    asked = Signal(object, str, str)  # Deed, message, text or version

    def __init__(self, look: Look, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._look = look
        self._shown: Sequence[Shown] = ()
        self._views: list[MessageView] = []  # of the last messages, in their order
        self._follows = True
        self._anchor: MessageView | None = None  # what is looked at: it stays where it is
        self._sought: MessageView | None = None  # what is to be looked at, until somebody scrolls
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAccessibleName(self.tr("Conversation"))
        set_role(self, "page")
        self._inner = inner = QWidget()
        set_role(inner, "body")
        self._column = column(gap=sizes.M)
        self._column.addStretch(1)  # below: a short chat begins at the top
        self._middle = QWidget()
        self._middle.setLayout(self._column)
        box = row(None, gap=0)
        box.addWidget(self._middle, 1000)
        box.addStretch(1)
        self._box = box
        inner.setLayout(box)
        self.setWidget(inner)
        self._end = IconButton(look.theme, "down", self.tr("To the end"), self.to_end, self)
        set_role(self._end, "floating")
        self._end.hide()
        self._more = QTimer(self)
        self._more.setSingleShot(True)
        self._more.setInterval(0)
        self._more.timeout.connect(self._one_earlier)
        self._order = ReadingOrder(self, lambda: self._views)
        self._wanted = 0  # how many views shall be there
        bar = self.verticalScrollBar()
        bar.rangeChanged.connect(self._range_changed)
        bar.valueChanged.connect(self._scrolled)
        bar.actionTriggered.connect(lambda _: self._seek_no_more())
        look.theme.changed.connect(self.restyle)
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        app.focusChanged.connect(self._focus_moved)
        self._fit()

    @property
    def views(self) -> list[MessageView]:
        """The messages that are there as widgets."""
        return list(self._views)

    @property
    def is_editing(self) -> bool:
        """Whether somebody is in the middle of changing a message."""
        return any(view.is_editing for view in self._views)

    def open(self, shown: Sequence[Shown]) -> None:
        """Another chat, at its end."""
        self._clear()
        self._shown, self._follows = shown, True
        self.setUpdatesEnabled(False)
        try:
            for one in reversed(shown[-AT_ONCE:]):
                self._add_before(one)
        finally:
            self.setUpdatesEnabled(True)
        self._wanted = min(PAGE, len(shown))
        self._more.start()

    def update_to(self, shown: Sequence[Shown]) -> None:
        """The same chat with other messages: what is equal stays as it is."""
        known = {view.message.id: view for view in self._views}
        first = next((n for n, one in enumerate(shown) if one.message.id in known), None)
        if first is None:
            self.open(shown)
            return
        self._shown = shown
        wanted = shown[first:]
        ids = {one.message.id for one in wanted}
        had_focus = self._place_of_focus()
        held = None if had_focus is None else self._views[had_focus]
        for view in [view for view in self._views if view.message.id not in ids]:
            self._drop(view)
        for place, one in enumerate(wanted):
            if one.message.id in known:
                known[one.message.id].show_message(one)
            else:
                self._views.insert(place, self._view(one))
                self._column.insertWidget(place, self._views[place])
        self._order.changed()
        if had_focus is not None and held not in self._views and self._views:
            self._views[min(had_focus, len(self._views) - 1)].setFocus()

    def _place_of_focus(self) -> int | None:
        """Which message the keyboard is in: one that takes its place takes the keyboard too."""
        focus: QObject | None = self.window().focusWidget()  # also while another window is in front
        while focus is not None and not isinstance(focus, MessageView):
            focus = focus.parent()
        inside = (n for n, one in enumerate(self._views) if one is focus)
        return next(inside, None)

    def view(self, message: str) -> MessageView | None:
        """The widget of a message, if it is made."""
        return next((view for view in self._views if view.message.id == message), None)

    def show_message(self, message: MessageId, words: str = "") -> None:
        """Bring a message into sight, making what lies between, and mark these words in it."""
        place = next((n for n, one in enumerate(self._shown) if one.message.id == message), None)
        if place is None:
            return
        self._follows = False
        while len(self._shown) - len(self._views) > place:
            self._add_before(self._shown[-len(self._views) - 1])
        found = self.view(message)
        assert found is not None
        self.mark(words, message)
        found.setFocus()
        self._bring(found)
        self._sought = found

    def mark(self, words: str, message: str = "") -> None:
        """In this message, and in no other."""
        for view in self._views:
            view.body.mark(words if view.message.id == message else "")

    def searched(self, words: str) -> None:
        """For these; for "" no more."""
        if not words:
            self.mark("")

    def edit_question(self) -> None:
        """The last one."""
        asked = [view for view in self._views if view.message.role is Role.USER]
        if asked:
            asked[-1].edit()

    def to_end(self) -> None:
        """Look at the end, and follow it."""
        self._follows, self._sought = True, None
        self.verticalScrollBar().setValue(self.verticalScrollBar().maximum())

    def restyle(self) -> None:
        """The theme is another."""
        self._fit()
        for view in self._views:
            view.restyle()

    # Making views

    def _bring(self, view: MessageView) -> None:
        """Into sight, once its place is known."""
        self._follows, self._anchor, self._sought = False, view, None

        def scroll() -> None:
            for _ in range(LAYOUTS):
                QApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest.value)
            if self._sought is view:
                self._look_at(view)
            else:
                self.ensureWidgetVisible(view, 0, NEAR)

        QTimer.singleShot(0, view, scroll)

    def _seek_no_more(self) -> None:
        self._sought = None

    def _look_at(self, view: MessageView) -> None:
        """At its beginning; where what is marked in it would not be seen then, at that."""
        top = view.mapTo(self._inner, QPoint()).y() - NEAR
        marked = view.body.marked_at
        if marked is not None:
            place = view.body.mapTo(self._inner, marked).y()
            room = self.viewport().height()
            top = top if place < top + room - 2 * NEAR else place - room // 2
        self.verticalScrollBar().setValue(top)
        self._anchor = view

    def _clear(self) -> None:
        self._more.stop()
        self._anchor = self._sought = None
        for view in self._views:
            view.hide()
            self._column.removeWidget(view)
            view.deleteLater()
        self._views.clear()

    def _drop(self, view: MessageView) -> None:
        self._anchor = None if view is self._anchor else self._anchor
        self._sought = None if view is self._sought else self._sought
        self._views.remove(view)
        self._column.removeWidget(view)
        view.hide()
        view.deleteLater()

    def _view(self, shown: Shown) -> MessageView:
        made = MessageView(self._look, shown)
        made.installEventFilter(self)
        made.asked.connect(self.asked)
        made.editing.connect(lambda: self._bring(made))
        made.refilled.connect(self._order.changed)
        return made

    def _add_before(self, shown: Shown) -> None:
        made = self._view(shown)
        self._views.insert(0, made)
        self._column.insertWidget(0, made)
        made.lower()  # screen readers go through widgets in this order
        self._order.changed()

    def _one_earlier(self) -> None:
        """One more message above, without moving what is seen."""
        if len(self._views) >= min(self._wanted, len(self._shown)):
            return
        self._add_before(self._shown[-len(self._views) - 1])
        self._more.start()

    # Scrolling

    def _scrolled(self, value: int) -> None:
        bar = self.verticalScrollBar()
        height = self.viewport().height()
        self._follows = self._sought is None and bar.maximum() - value <= NEAR
        self._end.setVisible(bar.maximum() - value > height // 2)
        self._choose_anchor(value)
        if value <= height // 2 and not self._more.isActive():
            if len(self._views) >= self._wanted:
                self._wanted = len(self._views) + PAGE
            self._more.start()

    def _choose_anchor(self, value: int) -> None:
        """The first message of which something is seen."""
        top = value - self._middle.y()
        self._anchor = next((view for view in self._views if view.geometry().bottom() > top), None)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802  Qt's name
        """Messages came above, or grew: what is looked at stays where it is."""
        if watched is self._anchor and isinstance(event, QMoveEvent) and not self._follows:
            bar, anchor = self.verticalScrollBar(), self._anchor
            bar.setValue(bar.value() + event.pos().y() - event.oldPos().y())
            self._anchor = anchor
        return super().eventFilter(watched, event)

    def _range_changed(self, _: int, maximum: int) -> None:
        self._fit()
        if self._sought is not None:  # layouts are not at their end when it was looked at first
            self._look_at(self._sought)
        elif self._follows:
            self.verticalScrollBar().setValue(maximum)

    def _fit(self) -> None:
        """The column stands over the composer, with a scroll bar beside it or without."""
        self._middle.setMaximumWidth(self._look.theme.px(sizes.CHAT_WIDTH))
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
            self._sought = None if view is self._sought else self._sought
            QApplication.sendEvent(view, QEvent(QEvent.Type.Leave))
