"""The Chat page, with the list of chats, the open chat, and announcements for screen readers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QCoreApplication, QObject, Qt
from PySide6.QtGui import QKeySequence, QResizeEvent, QShortcut
from PySide6.QtWidgets import QSplitter, QStackedWidget, QWidget

from app.api.chat_api import Upstreams
from app.core import chat as tree
from app.core.chat import Chat, ChatId, Details, MessageId, ToolChoice
from app.core.tools.chat_calls import CallRecord
from app.gui.api.node_client import segment
from app.gui.app import navigation, preferences
from app.gui.app.app_context import AppContext
from app.gui.app.navigation import CHAT_ID_PREFIX
from app.gui.app.page import Page
from app.gui.app.preferences import Preferences
from app.gui.chat.answer import MAX_TOKENS, Ending
from app.gui.chat.chat_head import ChatHead
from app.gui.chat.chat_settings import ChatSettingsOpener, ModelNames
from app.gui.chat.completion.completion_view import CompletionView
from app.gui.chat.composer import Composer, ComposerHint, TokenCounts
from app.gui.chat.empty_chat import LockedChats, Suggestions
from app.gui.chat.error_actions import TOO_BIG, ErrorActions, Handlers, SmallerModelOffer
from app.gui.chat.guide_handover import GuideHandover
from app.gui.chat.list.chat_list import ChatList
from app.gui.chat.message import highlight
from app.gui.chat.message.body import MessageServices
from app.gui.chat.message.branch_view import branch, is_unanswered, last_message, state_of
from app.gui.chat.message.conversation import Conversation
from app.gui.chat.message.formula_pictures import FormulaPictures
from app.gui.chat.message.highlight import TimeSlicer
from app.gui.chat.message.message_actions import MessageActionHandler, as_text
from app.gui.chat.message.message_view import MessageAction
from app.gui.chat.message.picture_view import PictureWindow
from app.gui.chat.model_menu import ModelMenu
from app.gui.chat.reading.picture_loader import PictureLoader
from app.gui.chat.session import ANSWER_SHARE, RunningAnswer, Session
from app.gui.look import sizes
from app.gui.look.accessibility import announce
from app.gui.look.sentences import GUIDE, model_name
from app.gui.look.theme import Theme
from app.gui.tools.tool_menu import ToolMenu
from app.gui.widgets.files import FileDrops
from app.gui.widgets.labels import bound_width
from app.gui.widgets.layouts import column, layout_widget, row
from app.gui.widgets.scroll_area import BoundedScrollArea

MAX_ANNOUNCED_CHARACTERS = 2_000  # maximum length of one announcement


LAST_CHAT_KEY = "chat/open"  # preferences key: the chat shown last
LIST_WIDTH = 260
MAX_LIST_SHARE = 0.36  # maximum share of the page's width, until the user moves the divider


class ListAndChat(QSplitter):
    """A splitter with the list of chats and the open chat. The list's width is automatic until the user changes it."""

    def __init__(self, theme: Theme, chats: QWidget, chat: QWidget) -> None:
        super().__init__()
        self._theme = theme
        self._was_moved = False
        self.addWidget(chats)
        self.addWidget(chat)
        self.setStretchFactor(1, 1)
        self.setCollapsible(1, False)
        self.setHandleWidth(1)
        self.splitterMoved.connect(self._moved)
        theme.changed.connect(self._fit)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        super().resizeEvent(event)
        self._fit()

    def _moved(self) -> None:
        self._was_moved = True

    def _fit(self) -> None:
        if not self._was_moved:
            width = min(self._theme.px(LIST_WIDTH), int(MAX_LIST_SHARE * self.width()))
            self.setSizes([width, self.width() - width])


class ChatPage(Page):
    """The Chat page. It shows the chats in the history, and passes the user's requests to a `Session`."""

    def __init__(self, services: AppContext) -> None:
        super().__init__(services, QCoreApplication.translate("Sidebar", "Chat"))
        self.history = services.lock.history
        self.history.beginning = lambda: preferences.new_chat_defaults(services.preferences)
        self.session = Session(self.history, services.pool, self, services.interrupted, services.tools)
        self.chat: Chat = self.history.begin()  # the chat being shown
        self._guide_fails = False  # the Guide was asked in this chat and does not fit in memory
        self._message_actions = MessageActionHandler(self.history, self.session, services.theme, self.open_chat, self)
        self._remark = ""  # who answers, as long as it is shown or an error covers it
        self._smaller_model = SmallerModelOffer(services.client, self.notice, self._use_model_and_retry, self)
        to_models = partial(services.go, navigation.MODELS)
        self._models = ModelNames(services.client, services.pool, self._models_listed, self)
        self._handover = GuideHandover(self.notice, self._ask_instead, to_models, self._models.is_base, self)
        self._settings = ChatSettingsOpener(services, self._models, self.session.model_of, self)
        self.list = ChatList(services, self.history)
        self.tools = ToolMenu(services.theme, services.tools, self._choose_tools, services.go, self)
        self.chat_head = ChatHead(services.theme, services.pool, self.open_settings, services.go, self.tools.button)
        slicer = TimeSlicer(self)
        slicer.add(self, highlight.warm())
        self._formulas = FormulaPictures(self)
        self.pictures = PictureLoader(self)
        open_link = self._message_actions.open_link
        self.conversation = Conversation(
            MessageServices(services.theme, slicer, open_link, self._formulas, self.pictures, self._open_picture)
        )
        self._error_actions = ErrorActions(
            self.session,
            services.pool,
            self._models.context_length,
            Handlers(
                services.go,
                self._set_up_and_retry,
                self._leave_out,
                self.conversation.edit_question,
                self._retry,
                partial(self._use_model_and_retry, GUIDE),
                self._allow_server,
            ),
        )
        self.suggestions = Suggestions(self._send_suggestion, to_models, self._choose_guide)
        self.completion = CompletionView(services.theme, self.session, self.history.chat)
        self._stack = QStackedWidget()  # shows the suggestions, the conversation, or a text to complete
        self.model_menu = ModelMenu(
            self.chat_head.model,
            lambda: self._models.names,
            self._models.shown_name,
            lambda: self.session.model_of(self.chat),
            self._choose_model,
            to_models,
        )
        self.hint = ComposerHint(services.preferences, self._choose_model)
        self.composer = Composer(services.theme, self.fail, services.preferences, self.pictures, self._open_picture)
        self.composer.field.sends_with_enter = lambda: preferences.sends_with_enter(services.preferences)
        self._token_counts = TokenCounts(services, self.composer.count)
        self._escape = QShortcut(QKeySequence(Qt.Key.Key_Escape), self, self._stop_answer)
        self._escape.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        self._lay_out()
        self._connect()
        self._open_last()

    # Setup and shutdown

    def _lay_out(self) -> None:
        outer, theme = self.layout(), self.services.theme
        assert outer is not None
        outer.setContentsMargins(0, 0, 0, 0)
        outer.removeWidget(self.notice)
        self.title.hide()
        self._stack.addWidget(self.suggestions)
        self._stack.addWidget(self.conversation)
        self._stack.addWidget(self.completion)
        self._stack.setMinimumHeight(1)  # lets the conversation shrink before a composer button is clipped
        top = column(self.chat_head, BoundedScrollArea(self.notice), gap=sizes.M)
        top.setContentsMargins(sizes.XL, sizes.L, sizes.XL, sizes.S)
        self._writing = writing = layout_widget(column(self.hint, self.composer, gap=sizes.XS))
        bound_width(theme, writing, sizes.CHAT_WIDTH)
        bottom = row(None, gap=0)
        bottom.addWidget(writing, 1000)
        bottom.addStretch(1)
        bottom.setContentsMargins(sizes.XL, 0, sizes.XL, sizes.L)
        chat_box = column(top, gap=0)
        chat_box.addWidget(self._stack, 1)
        chat_box.addLayout(bottom)
        list_box = column(self.list)
        list_box.setContentsMargins(sizes.L, sizes.L, sizes.S, sizes.L)
        chat = layout_widget(chat_box)
        FileDrops(chat, self.tr("Drop files here to attach them to your message")).dropped.connect(self.composer.attach)
        chats = ListAndChat(theme, layout_widget(list_box), chat)
        self.content.addWidget(LockedChats(self.services.lock, theme, chats))

    def _connect(self) -> None:
        self.list.opened.connect(self.open_chat)
        self.list.found.connect(self._open_match)
        self.list.search.textChanged.connect(self.conversation.search_changed)
        self.history.removed.connect(self._removed)
        self.history.changed.connect(self._history_changed)
        self.history.troubled.connect(self.fail)
        self.history.unlocked.connect(self._open_last)
        self.session.changed.connect(self._messages_changed)
        self.session.grew.connect(self._answer_grew)
        self.session.progressed.connect(self._answer_progressed)
        self.session.ended.connect(self._answer_ended)
        self.session.call_waits.connect(self._call_waits)
        self.conversation.action_requested.connect(self._act)
        self.completion.changed.connect(self._messages_changed)
        self.composer.sent.connect(self._send)
        self.composer.stopped.connect(self._stop_answer)
        self.composer.edited.connect(self._keep_draft)
        self.composer.read_elsewhere.connect(self._add_to_draft)
        self.composer.queued.connect(self._queued)
        self.composer.attached.connect(self._pool_changed)
        for changed in (self.services.pool.changed, self.services.pool.link_changed):
            changed.connect(self._pool_changed)
        Speaker(
            self.session,
            self.services.preferences,
            self.conversation,
            lambda: self.chat.id,
            lambda: end.text if (end := last_message(self.chat)) else "",
        )
        app = QCoreApplication.instance()
        assert app is not None
        app.aboutToQuit.connect(self.close_history)

    def _open_last(self) -> None:
        """Open the most recently shown chat, or a new one."""
        last = self.services.preferences.text(LAST_CHAT_KEY)
        chat = self.history.chat(ChatId(last)) if last else None
        self.open_chat((chat or self.history.begin()).id)
        if self.history.trouble is not None:
            self.fail(self.history.trouble)

    @property
    def is_busy(self) -> bool:
        return bool(self.session.running) or self.list.is_busy or self.conversation.is_editing

    def end(self) -> None:
        self._models.close()
        self._token_counts.close()
        self._formulas.close()
        self.completion.save()
        self.pictures.close()
        self.composer.close_files()
        self.session.close()

    def close_history(self) -> None:
        """Stop all answers, save all changes and close the history."""
        self.end()
        self.history.close()

    def shown(self) -> None:
        self.composer.show_busy(self._running is not None)  # the setting for the Send key may have changed
        self._focus()
        self._models.load()

    def _focus(self) -> None:
        (self.completion.field if self._completes else self.composer.field).setFocus()

    # Switching chats

    def open(self, part: str) -> None:
        """Show a chat with the model `part`, or the chat whose ID follows CHAT_ID_PREFIX in `part`.

        The current chat stays open if it already uses the model. If it is empty, it switches to the model. Another
        model never continues a chat that the Guide has answered, because it would take the Guide's answers for its
        own.
        """
        if part.startswith(CHAT_ID_PREFIX):
            self.open_chat(part.removeprefix(CHAT_ID_PREFIX))
        elif self.history.locked is None and (self.session.model_of(self.chat) != part or self._is_guides(part)):
            if self.chat.leaf is not None:
                self.open_chat(self.history.begin(model=part).id)
            else:
                self._choose_model(part)

    def _is_guides(self, other: str) -> bool:
        """Return whether the Guide gave the last answer in the chat, and `other` is not the Guide."""
        answers = [message for message in tree.path(self.chat) if message.role is tree.Role.ASSISTANT]
        return bool(answers) and answers[-1].details.get(tree.MODEL) == GUIDE != other

    def open_chat(self, chat_id: str) -> None:
        """Show another chat and its draft."""
        chat = self.history.chat(ChatId(chat_id))
        if chat is None:
            return
        self.chat, self._guide_fails = chat, False
        self.notice.clear()
        self.list.select(chat_id)
        self.conversation.open(branch(chat, self._running, self.services.pool))
        self.composer.show_draft(chat.draft, chat.draft_files, chat.id)
        self._show_surroundings()
        if is_unanswered(chat) and self._running is None:  # the app or the node quit before answering
            words = self.tr("This question has no answer yet.")
            self.notice.say(words, "info", (self.tr("Answer it"), self._retry))
        if self.history.locked is None:  # the chat of a locked history cannot be reopened at the next start
            self.services.preferences.keep(LAST_CHAT_KEY, chat_id)
        self._focus()

    def _open_match(self, chat_id: str, message: str, words: str) -> None:
        """Show a message found by a search, switching to its branch if necessary."""
        if chat_id != self.chat.id:
            self.open_chat(chat_id)
        if message in self.chat.messages:
            if message not in {shown.id for shown in tree.path(self.chat)}:
                self.session.switch(self.chat.id, MessageId(message))
            self.conversation.show_message(MessageId(message), words)

    def _removed(self, chat_id: str) -> None:
        self.session.stop(ChatId(chat_id))
        if chat_id == self.chat.id:
            self.open_chat(self.history.begin().id)

    def _history_changed(self, chat_id: str) -> None:
        """Update the title after the chat has been renamed in the list."""
        chat = self.history.chat(self.chat.id)
        if chat is not None and chat_id in (self.chat.id, "") and chat.title != self.chat.title:
            self.chat = chat
            self.chat_head.show_chat(chat, guide_fails=self._guide_fails)

    # Display

    @property
    def _running(self) -> RunningAnswer | None:
        """The answer in progress in the current chat, if any."""
        return self.session.running.get(self.chat.id)

    def _messages_changed(self, chat_id: str) -> None:
        if chat_id == self.chat.id:
            self.chat = self.history.chat(self.chat.id) or self.chat
            self.conversation.update_to(branch(self.chat, self._running, self.services.pool))
            self._show_surroundings()

    def _show_surroundings(self) -> None:
        """Update everything around the messages."""
        is_busy = self._running is not None
        self._show_view()
        self.composer.show_busy(is_busy)
        self._escape.setEnabled(is_busy)
        self._pool_changed()

    @property
    def _completes(self) -> bool:
        """Return whether the chat is a text to complete, or is empty and has a model that only completes text."""
        if self.chat.leaf is not None:
            return tree.completed_text(self.chat) is not None
        return self._models.is_base(self.session.model_of(self.chat))

    def _show_view(self) -> None:
        """Show the suggestions, the conversation or the text to complete, whichever the chat needs."""
        if not self._completes:
            self.completion.save()  # what was typed in an empty chat makes it a text to complete
        completes = self._completes
        had_focus = self.composer.field.hasFocus()
        if completes:
            self.completion.open(self.chat, self.session.model_of(self.chat))
            self._stack.setCurrentWidget(self.completion)
        else:
            self.completion.close_text()
            self._stack.setCurrentWidget(self.suggestions if self.chat.leaf is None else self.conversation)
        self._writing.setVisible(not completes)
        if completes and had_focus:
            self.completion.field.setFocus()

    def _pool_changed(self) -> None:
        now = self.services.pool.now
        self._models.pool_changed()
        if self.chat.leaf is None:  # its model may have changed to one that completes text, or from one
            self._show_view()
        self._token_counts.request(self.composer.files, self.chat.model)
        self.chat_head.show_chat(self.chat, guide_fails=self._guide_fails)
        self._show_tools()
        self._show_room()
        if now.load_failed is not None and self.chat.model is None and now.hosts is None:
            self.suggestions.show_failure(model_name(now.load_failed.model))
        else:
            for_guide = now.hosts is None and self.session.model_of(self.chat) == GUIDE
            self.suggestions.show_questions(for_guide=for_guide)
        self._show_hint()
        self._show_state()

    def _models_listed(self) -> None:
        """Update everything that depends on the list of models, because the node has sent a new one."""
        self._show_view()
        self._show_hint()

    def _show_tools(self) -> None:
        """Show whether the chat uses tools and whether its model can call them."""
        loaded = self.services.pool.now.model(self.chat.model)
        is_guide = self.session.model_of(self.chat) == GUIDE
        self.tools.show_chat(self.chat, False if is_guide else loaded.tools if loaded is not None else None)

    def _choose_tools(self, tools: ToolChoice) -> None:
        chat = self.history.chat(self.chat.id) or self.chat
        self.chat = replace(chat, tools=chat.tools.with_servers(tools.servers))
        self.history.save(self.chat)
        self._show_tools()

    def _call_waits(self, chat_id: str, call: CallRecord) -> None:
        """Announce to screen readers that the user must decide about a tool call."""
        if chat_id == self.chat.id:
            words = self.tr("The model wants to use {tool} from {server}. Allow or refuse it in the conversation.")
            announce(self.composer, words.format(tool=call.tool or call.name, server=call.server))

    def _show_room(self) -> None:
        """Show how much of the context the attached files use. Part of the context is reserved for the answer."""
        head = self.chat_head
        answer = min(MAX_TOKENS, int(head.context * ANSWER_SHARE))
        self.composer.show_room(max(0, head.context - head.used - answer) if head.context else None)

    def _show_hint(self) -> None:
        is_blind = self.composer.has_pictures and not self._models.sees(self.session.model_of(self.chat))
        self.composer.allow_pictures(not is_blind)
        self.hint.show_for(
            self.chat,
            self._models.names,
            self.services.pool,
            is_full=self.chat_head.is_nearly_full,
            may_trim=self.session.may_trim(self.chat.id),
            is_queued=self.composer.is_queued,
            guide_fails=self._guide_fails,
            is_blind=is_blind,
        )

    def _open_picture(self, file: Details) -> None:
        """Show an enlarged picture in its own window."""
        PictureWindow(self.services.theme, self.pictures, file, self.services.preferences, self.fail, self).show()

    def _show_state(self) -> None:
        """Show the state of the answer in progress."""
        running = self._running
        if running is not None and (view := self.conversation.view(running.message)) is not None:
            view.show_state(state_of(running, self.services.pool))
        self._smaller_model.update(running, running.model if running else "")

    def _answer_progressed(self, _: str) -> None:
        self._show_state()
        running = self._running
        if running is not None and running.answer.remark:
            self._remark = running.answer.remark
            self.notice.say(self._remark)
            running.answer.remark = ""  # said; it stays until the user closes it or writes on

    def _answer_grew(self, chat_id: str) -> None:
        running = self._running
        if running is None or chat_id != self.chat.id:
            return
        if (view := self.conversation.view(running.message)) is not None:
            view.grow(running.text)
            tokens = running.answer.thought_tokens
            view.grow_thought(running.thought, running.thought_s, tokens, growing=running.is_thinking)
        self._show_state()

    # Sending and answering

    def _send(self, text: str, files: Sequence[Details]) -> None:
        self._clear_notice()
        self._guide_fails = False
        chat = self.history.chat(self.chat.id) or self.chat
        self.composer.show_draft("")
        self.conversation.to_end()
        self.session.send(chat, text, files)

    def _clear_notice(self) -> None:
        """Remove the notice, and show the remark that an error had replaced, if any.

        The node sends a remark only once.
        """
        remark, self._remark = self._remark, ""
        self.notice.clear()
        if remark:
            self.notice.say(remark)

    def _send_suggestion(self, question: str) -> None:
        if self._running is None:
            self._send(question, ())

    def _act(self, action: MessageAction, message: str, text: str) -> None:
        if action is MessageAction.CALL:
            decision, _, call = text.partition(" ")
            self.session.decide(self.chat.id, call, decision)
            return
        if action in (MessageAction.REGENERATE, MessageAction.CONTINUE, MessageAction.EDIT):
            self._clear_notice()
        if action is MessageAction.CONTINUE and (actions := self._error_actions.when_full(self.chat)):
            words = self.tr("The context is full, so this answer cannot be continued.")
            self.notice.say(words, "warning", *actions)
            return
        self._message_actions.do(self.chat, action, message, text)
        if action is MessageAction.EDIT:  # the editor that had the focus is gone
            self.composer.field.setFocus()

    def _queued(self) -> None:
        self._show_hint()
        if self.composer.is_queued:
            announce(self.composer, self.hint.words.text())

    def _stop_answer(self) -> None:
        self.session.stop(self.chat.id)

    def _answer_ended(self, chat_id: str, ending: Ending) -> None:
        self.hint.note_answer(ending.model)
        answered = self.history.chat(ChatId(chat_id))
        if answered is not None and ending.how != "stopped":  # the user stopped it, and knows
            self.services.answers.ended.emit(chat_id, tree.title_of(answered), ending.error)
        if chat_id != self.chat.id:
            return
        error = ending.error
        if error is None or self.notice.sentence != self._remark:
            self._remark = ""  # it could be read
        asked_guide = self.chat.model is None and self.services.pool.now.loaded is None
        self._guide_fails = asked_guide and error is not None and error.reason.code in TOO_BIG
        self._pool_changed()
        if error is not None:
            self.fail(error, *self._error_actions.for_error(error, self.chat))
        else:
            self._handover.offer(self.chat, self.services.pool.now)
        self.composer.send_queued(succeeded=error is None)

    def _retry(self) -> None:
        """Answer the last question again, or continue the last answer or text if it was interrupted."""
        self.notice.clear()
        if self._completes:  # the text may have been edited since
            self.completion.continue_text()
            return
        end = last_message(self.chat)
        if end is None:
            return
        if is_unanswered(self.chat):
            self.session.answer(self.chat.id, end.id)
        else:
            self.session.continue_answer(self.chat.id, end.id)

    def _allow_server(self, server: str) -> None:
        """Allow another server to answer the owner's questions, and ask again."""
        client, path = self.services.client, f"/api/upstreams/{segment(server)}"
        client.post(path, {"chats": True}, lambda _: self._retry(), self.fail, answer=Upstreams)

    def _choose_model(self, model: str) -> None:
        self._set_up(replace(self.chat, model=model))

    def _choose_guide(self) -> None:
        self._choose_model(GUIDE)
        self.composer.field.setFocus()

    def _use_model_and_retry(self, model: str) -> None:
        """Let another model complete an answer that has failed or is waiting for a machine."""
        self.notice.clear()
        self.session.stop(self.chat.id)
        self._choose_model(model)
        self._retry()

    def _ask_instead(self, model: str, refused: MessageId) -> None:
        """Let another model answer the question that the Guide refused, and all further questions in the chat."""
        self.notice.clear()
        self._choose_model(model)
        self.session.regenerate(self.chat.id, refused)

    def _leave_out(self) -> None:
        self.session.allow_trimming(self.chat.id)
        self._retry()

    def _keep_draft(self) -> None:
        text, files = self.composer.text, tuple(self.composer.files)
        chat = self.history.chat(self.chat.id)
        if chat is not None and (chat.draft, chat.draft_files) != (text, files):
            self.chat = replace(chat, draft=text, draft_files=files)
            self.history.save_soon(self.chat)
        self._show_hint()

    def _add_to_draft(self, chat_id: str, file: Details) -> None:
        """Attach a document to the draft of another chat after it has been read."""
        chat = self.history.chat(ChatId(chat_id))
        if chat is not None:
            self.history.save_soon(replace(chat, draft_files=(*chat.draft_files, file)))

    # Settings

    def open_settings(self) -> None:
        """Open the settings of the current chat."""
        self._settings.open(self.chat, self._set_up)

    def _set_up_and_retry(self) -> None:
        """Open the settings of the current chat, and retry the answer after they are saved."""

        def done(chosen: Chat) -> None:
            self._set_up(chosen)
            self._retry()

        self._settings.open(self.chat, done)

    def _set_up(self, chosen: Chat) -> None:
        chat = self.history.chat(self.chat.id) or self.chat
        self.chat = replace(
            chat, model=chosen.model, context=chosen.context, system=chosen.system, sampling=chosen.sampling
        )
        self.history.save(self.chat)
        self._show_surroundings()


class Speaker(QObject):
    """A helper that announces answers to screen readers, either paragraph by paragraph or when they are complete.

    `shown` returns the ID of the current chat, and `end` the text of its last message.
    """

    def __init__(
        self,
        session: Session,
        preferences: Preferences,
        view: QWidget,
        shown: Callable[[], ChatId],
        end: Callable[[], str],
    ) -> None:
        super().__init__(view)
        self._session, self._preferences, self._view = session, preferences, view
        self._shown, self._end = shown, end
        self._message, self._told = "", 0  # number of characters of this message already announced
        session.grew.connect(self._grew)
        session.ended.connect(self._ended)

    def _grew(self, chat: str) -> None:
        running = self._session.running.get(ChatId(chat))
        if running is None or chat != self._shown():
            return
        if running.message != self._message:
            self._message, self._told = running.message, len(running.before)
        if preferences.reads_paragraphs(self._preferences):
            done = finished(running.text, self._told)
            self._say(running.text[self._told : done])
            self._told = done

    def _ended(self, chat: str, ending: Ending) -> None:
        if chat == self._shown() and ending.error is None:
            self._say(self._end()[self._told :])
        self._message, self._told = "", 0

    def _say(self, markdown: str) -> None:
        if markdown.strip():
            announce(self._view, as_text(markdown[:MAX_ANNOUNCED_CHARACTERS]))


def finished(text: str, start: int) -> int:
    """Return the end of the last complete paragraph in a growing text, or `start` if there is no new one.

    A blank line inside a code block does not end a paragraph.
    """
    end, place, in_code = start, 0, False
    for line in text.splitlines(keepends=True):
        place += len(line)
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not line.strip() and line.endswith("\n") and not in_code:
            end = max(end, place)
    return end
