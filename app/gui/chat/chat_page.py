"""The Chat page: the list of chats at the left, the open one at the right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QKeySequence, QResizeEvent, QShortcut
from PySide6.QtWidgets import QSplitter, QStackedWidget, QWidget

from app.core import chat as tree
from app.core.chat import Chat, ChatId, MessageId
from app.gui.app import page_names
from app.gui.app.app_context import AppContext
from app.gui.app.mending_places import AT
from app.gui.app.page import Page
from app.gui.chat.answer import Ending
from app.gui.chat.chat_head import ChatHead
from app.gui.chat.chat_settings import ChatSetup, ModelNames
from app.gui.chat.composer import Composer, Hint, TokenCounts
from app.gui.chat.empty_chat import LockedChats, Suggestions
from app.gui.chat.error_actions import TOO_BIG, Buttons, Shortage, WaysOut
from app.gui.chat.list.chat_list import ChatList
from app.gui.chat.message import highlight
from app.gui.chat.message.body import Look
from app.gui.chat.message.branch_view import branch, end_of, is_unanswered, state_of
from app.gui.chat.message.conversation import Conversation
from app.gui.chat.message.highlight import Slices
from app.gui.chat.message.message_actions import MessageDeeds
from app.gui.chat.message.message_view import Deed
from app.gui.chat.session import Running, Session
from app.gui.chat.speaker import Speaker
from app.gui.look import theme as sizes
from app.gui.look.accessibility import announce
from app.gui.look.sentences import GUIDE, model_name
from app.gui.settings import chat_defaults
from app.gui.widgets.file_drops import Drops
from app.gui.widgets.layouts import column, held, row
from app.gui.widgets.scroll_area import Bounded

Json = dict[str, Any]


OPEN = "chat/open"  # the chat that was shown last, in the preferences
LIST_WIDTH = 260
LIST_SHARE = 0.36  # of the page, at most, until somebody moves the border


class ChatPage(Page):
    """Shows what the history holds; `Session` does what is asked."""

    def __init__(self, services: AppContext) -> None:
        super().__init__(services, QCoreApplication.translate("Sidebar", "Chat"))
        self.history = services.lock.history
        self.history.beginning = lambda: chat_defaults.beginning(services.preferences)
        self.session = Session(self.history, services.pool, self, services.cut)
        self._deeds = MessageDeeds(self.history, self.session, services.theme, self.open_chat, self)
        self._shortage = Shortage(services.client, self.notice, self._use_smaller, self)
        self._moved = False  # the border of the list, by a person
        self._models = ModelNames(services.client, services.pool, self._tell_hint, self)
        self._setup = ChatSetup(services, self._models, self.session.asked, self)
        self.chat: Chat = self.history.begin()
        slices = Slices(self)
        slices.add(self, highlight.warm())
        look = Look(services.theme, slices, self._deeds.open_link)
        self.list = ChatList(services, self.history)
        self._guide_fails = False  # the chat that is shown asked it, and it does not fit
        self.chat_head = ChatHead(services.theme, services.pool, self.open_settings, services.go)
        self.conversation = Conversation(look)
        buttons = Buttons(
            services.go,
            self._set_up_and_retry,
            self._leave_out,
            self.conversation.edit_question,
            self._retry,
            partial(self._use_smaller, GUIDE),
        )
        self._ways = WaysOut(self.session, services.pool, self._models.reads, buttons)
        self.suggestions = Suggestions(
            self._send_suggestion, partial(services.go, page_names.MODELS), self._choose_guide
        )
        kept = services.preferences
        self.hint = Hint(kept, lambda name: self._set_up(replace(self.chat, model=name)))
        self.composer = Composer(services.theme, self.fail, kept)
        self._counts = TokenCounts(services, self.composer.count)
        self.composer.field.sends_with_enter = lambda: chat_defaults.sends_with_enter(kept)
        self._lay_out()
        self._listen()
        self._begin()

    # Beginning and end

    def _lay_out(self) -> None:
        outer = self.layout()
        assert outer is not None
        outer.setContentsMargins(0, 0, 0, 0)
        self.title.hide()
        outer.removeWidget(self.notice)
        self._stack = QStackedWidget()
        self._stack.addWidget(self.suggestions)
        self._stack.addWidget(self.conversation)
        self._stack.setMinimumHeight(1)  # before a button of the composer is cut
        top = column(self.chat_head, Bounded(self.notice), gap=sizes.M)
        top.setContentsMargins(sizes.XL, sizes.L, sizes.XL, sizes.S)
        self._narrow = held(column(self.hint, self.composer, gap=sizes.XS))
        below = row(None, gap=0)
        below.addWidget(self._narrow, 1000)
        below.addStretch(1)
        below.setContentsMargins(sizes.XL, 0, sizes.XL, sizes.L)
        right_box = column(top, gap=0)
        right_box.addWidget(self._stack, 1)
        right_box.addLayout(below)
        left_box = column(self.list)
        left_box.setContentsMargins(sizes.L, sizes.L, sizes.S, sizes.L)
        self._split = split = QSplitter()
        for box in (left_box, right_box):
            side = QWidget()
            side.setLayout(box)
            split.addWidget(side)
        self._drops = Drops(side, self.tr("Let go to attach it to your message"))
        split.setStretchFactor(1, 1)
        split.setCollapsible(1, False)
        split.setHandleWidth(1)
        split.splitterMoved.connect(lambda *_: setattr(self, "_moved", True))
        self.content.addWidget(LockedChats(self.services.lock, self.services.theme, split))
        self._fit()

    def _listen(self) -> None:
        self.list.opened.connect(self.open_chat)
        self.list.found.connect(self._open_at)
        self.list.search.textChanged.connect(self.conversation.searched)
        self.history.removed.connect(self._removed)
        self.history.changed.connect(self._renamed)
        self.history.troubled.connect(self.fail)
        self.history.unlocked.connect(self._begin)
        self.session.changed.connect(self._tell)
        self.session.grew.connect(self._grow)
        self.session.progressed.connect(lambda _: self._tell_state())
        self.session.ended.connect(self._answered)
        self.conversation.asked.connect(self._do)
        self.composer.sent.connect(self._send)
        self.composer.stopped.connect(self._stop_answer)
        self.composer.edited.connect(self._keep_draft)
        self.composer.queued.connect(self._queued)
        self._drops.dropped.connect(self.composer.attach)
        self.composer.attached.connect(self._pool_changed)
        for news in (self.services.pool.changed, self.services.pool.link_changed):
            news.connect(self._pool_changed)
        self.services.theme.changed.connect(self._fit)
        Speaker(
            self.session,
            self.services.preferences,
            self.conversation,
            lambda: self.chat.id,
            lambda: end.text if (end := end_of(self.chat)) else "",
        )
        self._stop = QShortcut(QKeySequence(Qt.Key.Key_Escape), self, self._stop_answer)
        self._stop.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        app = QCoreApplication.instance()
        assert app is not None
        app.aboutToQuit.connect(self.close_history)

    def _begin(self) -> None:
        """With the chat that was open last."""
        kept = self.services.preferences.text(OPEN)
        known = self.history.chat(ChatId(kept)) if kept else None
        self.open_chat((known or self.history.begin()).id)
        if self.history.trouble is not None:
            self.fail(self.history.trouble)

    @property
    def is_busy(self) -> bool:
        return bool(self.session.running) or self.list.is_busy or self.conversation.is_editing

    def end(self) -> None:
        self._models.close()
        self._counts.close()
        self.session.close()

    def close_history(self) -> None:
        """Answers end, everything is written."""
        self.end()
        self.history.close()

    def shown(self) -> None:
        self.composer.show_busy(self._running is not None)  # the key that sends may be another now
        self.composer.field.setFocus()
        self._models.look()

    # Which chat

    def open(self, part: str) -> None:
        """A chat with this model: the one that is shown, if it is such a one or nothing was said in it.

        Or the chat of an id, after `AT`.
        """
        if part.startswith(AT):
            self.open_chat(part.removeprefix(AT))
            return
        now = self.session.asked(self.chat)
        if now != part and self.history.locked is None:
            if self.chat.leaf is not None:
                self.open_chat(self.history.begin(model=part).id)
            else:
                self._set_up(replace(self.chat, model=part))

    def open_chat(self, chat: str) -> None:
        """Show another chat, with its draft."""
        known = self.history.chat(ChatId(chat))
        if known is None:
            return
        self.chat, self._guide_fails = known, False
        self.notice.clear()
        self.list.select(chat)
        self.conversation.open(branch(known, self._running, self.services.pool))
        self.composer.show_draft(known.draft, known.draft_files)
        self._tell_rest()
        if is_unanswered(known) and self._running is None:  # the app ended, or the node did
            words = self.tr("This question has no answer yet.")
            self.notice.say(words, "info", (self.tr("Answer it"), self._retry))
        if self.history.locked is None:  # one that cannot be shown is not tried again
            self.services.preferences.keep(OPEN, chat)
        self.composer.field.setFocus()

    def _open_at(self, chat: str, message: str, words: str) -> None:
        """Where a search found them, also on another branch."""
        if chat != self.chat.id:
            self.open_chat(chat)
        if message in self.chat.messages:
            if message not in {one.id for one in tree.path(self.chat)}:
                self.session.switch(self.chat.id, MessageId(message))
            self.conversation.show_message(MessageId(message), words)

    def _removed(self, chat: str) -> None:
        self.session.stop(ChatId(chat))
        if chat == self.chat.id:
            self.open_chat(self.history.begin().id)

    def _renamed(self, chat: str) -> None:
        """The list gave it another name, or it was written."""
        known = self.history.chat(self.chat.id)
        if known is not None and chat in (self.chat.id, "") and known.title != self.chat.title:
            self.chat = known
            self.chat_head.tell(known, guide_fails=self._guide_fails)

    # Showing

    @property
    def _running(self) -> Running | None:
        """The answer under way in the chat that is shown."""
        return self.session.running.get(self.chat.id)

    def _tell(self, chat: str) -> None:
        """Messages of a chat are others now."""
        if chat != self.chat.id:
            return
        self.chat = self.history.chat(self.chat.id) or self.chat
        self.conversation.update_to(branch(self.chat, self._running, self.services.pool))
        self._tell_rest()

    def _tell_rest(self) -> None:
        """Everything around the messages."""
        busy = self._running is not None
        has_messages = self.chat.leaf is not None
        self._stack.setCurrentWidget(self.conversation if has_messages else self.suggestions)
        self.composer.show_busy(busy)
        self._stop.setEnabled(busy)
        self._pool_changed()

    def _pool_changed(self) -> None:
        self._models.pool_changed()
        self._counts.ask(self.composer.files, self.chat.model)
        self.chat_head.tell(self.chat, guide_fails=self._guide_fails)
        pool = self.services.pool
        name = self.chat.model or (pool.loaded or {}).get("model") or GUIDE
        failed = pool.load_failed if self.chat.model is None and pool.hosts is None else ""
        self.suggestions.tell(
            is_guide=pool.hosts is None and name == GUIDE, failed=model_name(failed) if failed else ""
        )
        self._tell_hint()
        self._tell_state()

    def _tell_hint(self) -> None:
        pool = self.services.pool
        full, waits, names = self.chat_head.is_nearly_full, self.composer.waits, self._models.names
        leaves = self.session.leaves_out(self.chat.id)
        self.hint.tell(
            self.chat, names, pool, is_full=full, leaves_out=leaves, waits=waits, guide_fails=self._guide_fails
        )

    def _tell_state(self) -> None:
        running = self._running
        if running is not None and (view := self.conversation.view(running.message)) is not None:
            view.tell_state(state_of(running, self.services.pool))
        self._tell_shortage()

    def _grow(self, chat: str) -> None:
        running = self._running
        if running is None or chat != self.chat.id:
            return
        if (view := self.conversation.view(running.message)) is not None:
            view.grow(running.text)
            n_tokens = running.answer.thought_tokens
            view.grow_thought(running.thought, running.thought_s, n_tokens, growing=running.thinks)
            view.tell_state(state_of(running, self.services.pool))
        self._tell_shortage()

    def _tell_shortage(self) -> None:
        running = self._running
        self._shortage.tell(running, running.model if running else "")

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """The list as wide as its words like it, and never more than its share of the page."""
        if not self._moved:
            list_ = min(self.services.theme.px(LIST_WIDTH), int(LIST_SHARE * self.width()))
            self._split.setSizes([list_, self.width() - list_])
        self._narrow.setMaximumWidth(self.services.theme.px(sizes.CHAT_WIDTH))

    # Asking

    def _send(self, text: str, files: Sequence[Json]) -> None:
        self.notice.clear()
        self._guide_fails = False
        chat = self.history.chat(self.chat.id) or self.chat
        self.composer.show_draft("")
        self.conversation.to_end()
        self.session.send(chat, text, files)

    def _send_suggestion(self, question: str) -> None:
        if self._running is None:
            self._send(question, ())

    def _do(self, deed: Deed, message: str, text: str) -> None:
        if deed in (Deed.REGENERATE, Deed.CONTINUE, Deed.EDIT):
            self.notice.clear()
        if deed is Deed.CONTINUE and (ways := self._ways.if_full(self.chat)):
            words = self.tr("The context is full: there is no room to go on with this answer.")
            self.notice.say(words, "warning", *ways)
            return
        self._deeds.do(self.chat, deed, message, text)
        if deed is Deed.EDIT:  # its editor is gone
            self.composer.field.setFocus()

    def _queued(self) -> None:
        self._tell_hint()
        if self.composer.waits:
            announce(self.composer, self.hint.words.text())

    def _stop_answer(self) -> None:
        self.session.stop(self.chat.id)

    def _answered(self, chat: str, ending: Ending) -> None:
        self.hint.answered(ending.model)
        if chat != self.chat.id:
            return
        asked_guide = self.chat.model is None and self.services.pool.loaded is None
        too_big = ending.error is not None and ending.error.reason.code in TOO_BIG
        self._guide_fails = asked_guide and too_big
        self._pool_changed()
        if ending.error is not None:
            self.fail(ending.error, *self._ways.of(ending.error, self.chat))
        self.composer.send_waiting(well=ending.error is None)

    def _retry(self) -> None:
        """Have the end of the branch answered, or the answer that broke off continued."""
        self.notice.clear()
        end = end_of(self.chat)
        if end is None:
            return
        if is_unanswered(self.chat):
            self.session.answer(self.chat.id, end.id)
        else:
            self.session.go_on(self.chat.id, end.id)

    def _choose_guide(self) -> None:
        """For this chat, where no model answers."""
        self._set_up(replace(self.chat, model=GUIDE))
        self.composer.field.setFocus()

    def _use_smaller(self, model: str) -> None:
        """No model answers, or one waits for a machine: from where it is, another model goes on."""
        self.notice.clear()
        self.session.stop(self.chat.id)
        self._set_up(replace(self.chat, model=model))
        self._retry()

    def _leave_out(self) -> None:
        self.session.leave_out(self.chat.id)
        self._retry()

    def _keep_draft(self) -> None:
        text, files = self.composer.text, tuple(self.composer.files)
        known = self.history.chat(self.chat.id)
        if known is not None and (known.draft, known.draft_files) != (text, files):
            self.chat = replace(known, draft=text, draft_files=files)
            self.history.keep_soon(self.chat)

    # Settings

    def open_settings(self) -> None:
        """Of the chat that is shown."""
        self._setup.open(self.chat, self._set_up)

    def _set_up_and_retry(self) -> None:
        """An answer failed by its settings."""

        def done(chosen: Chat) -> None:
            self._set_up(chosen)
            self._retry()

        self._setup.open(self.chat, done)

    def _set_up(self, chosen: Chat) -> None:
        known = self.history.chat(self.chat.id) or self.chat
        self.chat = replace(
            known, model=chosen.model, context=chosen.context, system=chosen.system, sampling=chosen.sampling
        )
        self.history.keep(self.chat)
        self._tell_rest()
