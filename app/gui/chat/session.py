"""The user's requests in chats, such as send, stop, regenerate and edit. Every change is saved immediately."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from app.api.plans import LoadedModel
from app.api.responses import AnswerKeys
from app.api.tools import Offered
from app.core import chat as tree
from app.core.chat import (
    BEFORE,
    ENDED,
    FIGURES,
    FULL,
    MODEL,
    NOTES,
    THOUGHT,
    THOUGHT_S,
    UNFINISHED,
    Chat,
    ChatId,
    Details,
    Message,
    MessageId,
    Role,
)
from app.core.errors import AppError, Reason, Refused, StageLost
from app.core.tools.call_outcomes import MAX_ROUNDS
from app.core.tools.chat_calls import characters, rounds_of
from app.core.wire_json import error_of
from app.gui.api.node_state import Link, NodeState
from app.gui.chat import sent_pictures
from app.gui.chat.answer import CALLS, Answer, Ending, InterruptedAnswers, content, question
from app.gui.chat.history.history import History
from app.gui.chat.message.answer_stats import AnswerStats
from app.gui.chat.sent_pictures import picture_tokens, pictures_of
from app.gui.chat.tool_rounds import ToolRounds, has_open_calls
from app.gui.look.sentences import GUIDE, model_name, said
from app.gui.tools.tool_client import ToolClient

THOUGHT_BEFORE, THOUGHT_S_BEFORE = "thought_before", "thought_s_before"  # details of an answer being continued
TEMPORARY_DETAILS = (BEFORE, THOUGHT_BEFORE, THOUGHT_S_BEFORE)  # details that are dropped when the answer ends
PAINT_MS = 40  # text is shown 25 times a second, however fast it arrives
TICKS_BETWEEN_SAVES = 25  # one save per second
FULL_TOKENS = 2  # a context with at most this many free tokens counts as full
ANSWER_SHARE = 0.25  # share of the context reserved for the answer when old messages are left out
MESSAGE_TOKENS = 8  # approximate overhead of the chat template per message
TYPICAL_TOKENS_PER_CHARACTER = 1 / 3
RESULT_SHARE = 0.25  # share of the context that the results of one round of tool calls may take
LEAST_RESULT_CHARACTERS, DEFAULT_RESULT_CHARACTERS = 1_000, 16_000
WAITING_LINKS = (Link.LOOKING, Link.STARTING)  # states in which questions wait for the node
# Fields of POST /load that keep the other model as the default for requests that name no model.
LOAD_ALONGSIDE = {"beside": True, "first": False}
GUIDE_SAMPLING = {"temperature": 0.0}  # the Guide was trained on exactly one answer to each question


class ToolPhase(Enum):
    """The tool phase of an answer: no tools involved, starting the tool servers, or waiting for calls."""

    NONE = auto()
    OPENING = auto()
    CALLING = auto()


@dataclass(slots=True)
class RunningAnswer:
    """An answer in progress. If it continues an earlier one, `before` is the earlier text and `stats` its figures."""

    chat: ChatId
    message: MessageId
    before: str
    answer: Answer
    notes: tuple[str, ...] = ()
    waits: bool = False  # waiting for the node to start
    model: str = ""
    stats: AnswerStats = field(default_factory=AnswerStats)
    tools: ToolPhase = ToolPhase.NONE
    has_calls: bool = False  # whether it paused for tool calls
    asks: bool = False  # whether the user must decide about one of them
    n_rounds: int = 0  # of tool calls since the user last did something
    is_continued: bool = False  # whether `stats` are those of an earlier part, which may have no text
    thought_before: str = ""
    thought_s_before: float = 0.0

    @property
    def text(self) -> str:
        return self.before + self.answer.text

    @property
    def thought(self) -> str:
        """The complete reasoning, including the part from before the answer was continued."""
        return self.thought_before + self.answer.thought

    @property
    def thought_s(self) -> float:
        return self.thought_s_before + self.answer.thought_s

    @property
    def is_thinking(self) -> bool:
        """Return whether the model is still thinking and has not started the answer itself."""
        return bool(self.answer.thought) and not self.text

    def thought_details(self) -> Details:
        return {THOUGHT: self.thought, THOUGHT_S: self.thought_s} if self.thought else {}

    def whole_stats(self, part: AnswerStats) -> AnswerStats:
        """Return the combined statistics of the earlier text and of `part`, the text generated since then."""
        if self.has_calls:  # the parts so far are in `stats`
            return self.stats
        return self.stats.continued(part) if self.before or self.is_continued else part


class Session(QObject):
    """A handler of the user's requests in chats. It tracks the answers in progress, at most one per chat.

    The chats themselves belong to the history.
    """

    changed = Signal(str)  # ID of a chat whose messages have changed or whose answer has ended
    grew = Signal(str)  # ID of a chat whose answer has more text; at most once every PAINT_MS
    progressed = Signal(str)  # ID of a chat with news about loading or recovery
    ended = Signal(str, object)  # chat, Ending
    call_waits = Signal(str, object)  # chat, CallRecord that the user must allow

    def __init__(
        self,
        history: History,
        pool: NodeState,
        parent: QObject | None = None,
        interrupted: InterruptedAnswers | None = None,
        tools: ToolClient | None = None,
    ) -> None:
        super().__init__(parent)
        self._history, self._pool, self._interrupted = history, pool, interrupted or InterruptedAnswers()
        self.running: dict[ChatId, RunningAnswer] = {}
        self._rounds = ToolRounds(history, tools, self.result_characters, self) if tools is not None else None
        if self._rounds is not None:
            self._rounds.changed.connect(self._calls_changed)
            self._rounds.waits.connect(self.call_waits)
            self._rounds.over.connect(self._next_round)
        self._trimmed: set[ChatId] = set()  # chats whose oldest messages may be dropped from the prompt
        self._grown: set[ChatId] = set()
        self._ticks = 0
        self._timer = QTimer(self)
        self._timer.setInterval(PAINT_MS)
        self._timer.timeout.connect(self._tick)
        pool.link_changed.connect(self._link_changed)
        history.unlocked.connect(self.resume)
        self.resume()

    # Actions

    def send(self, chat: Chat, text: str, attachments: Sequence[Details] = ()) -> None:
        """Append a question to the current branch and request an answer."""
        details = {tree.ATTACHMENTS: list(attachments)} if attachments else {}
        message = Message(self._history.new_message_id(), chat.leaf, Role.USER, text, self._history.now(), details)
        chat = replace(tree.add(chat, message), draft="", draft_files=())
        self._history.save(chat)
        self.answer(chat.id, message.id)

    def regenerate(self, chat_id: ChatId, message: MessageId) -> None:
        """Generate another version of an answer."""
        chat = self._history.chat(chat_id)
        if chat is not None and (parent := chat.messages[message].parent) is not None:
            self.answer(chat_id, parent)

    def edit(self, chat_id: ChatId, message: MessageId, text: str) -> None:
        """Add an edited version of a message. If it is a question, it is answered again."""
        chat = self._idle_chat(chat_id)
        if chat is None:
            return
        version = self._history.new_message_id()
        chat = tree.edit(chat, message, text, version, self._history.now())
        self._history.save(chat)
        if chat.messages[version].role is Role.USER:
            self.answer(chat_id, version)
        else:
            self.changed.emit(chat_id)

    def switch(self, chat_id: ChatId, message: MessageId) -> None:
        """Switch to the branch that contains this message."""
        chat = self._idle_chat(chat_id)
        if chat is not None:
            self._history.save(tree.switch(chat, message))
            self.changed.emit(chat_id)

    def answer(self, chat_id: ChatId, question_id: MessageId) -> None:
        """Generate an answer to a question."""
        chat = self._idle_chat(chat_id)
        if chat is None:
            return
        branch, notes = self._fitting(chat, tree.prompt_messages(tree.path_to(chat, question_id)))
        message = Message(self._history.new_message_id(), question_id, Role.ASSISTANT, "", self._history.now())
        self._begin(tree.add(chat, message), message.id, "", branch, notes)

    def continue_answer(self, chat_id: ChatId, message: MessageId) -> None:
        """Continue an answer that ended early. Its text is preserved."""
        chat = self._idle_chat(chat_id)
        if chat is None:
            return
        if self._rounds is not None and has_open_calls(chat.messages[message]):
            self._resume_calls(chat, message)
            return
        branch, notes = self._fitting(chat, tree.prompt_messages(tree.path_to(chat, message)))
        self._begin(chat, message, chat.messages[message].text, branch, notes)

    def decide(self, chat: ChatId, call: str, decision: str) -> None:
        """Carry out the user's decision about a pending call: ONCE, IN_CHAT or DENY."""
        if self._rounds is not None and chat in self.running:
            self.running[chat].n_rounds = 0
            self._rounds.decide(chat, call, decision)

    def keep_text(self, chat: Chat, text: str) -> Chat:
        """Save the text that a base model may continue, and return the updated chat."""
        message = tree.completed_text(chat)
        if message is None:
            ident = self._history.new_message_id()
            first = Message(ident, None, Role.ASSISTANT, text, self._history.now(), {tree.COMPLETION: True})
            chat = replace(tree.add(chat, first), draft="")
        else:
            chat = tree.set_text(chat, message.id, text)
        self._history.save(chat)
        return chat

    def complete(self, chat: Chat, text: str) -> None:
        """Let the model continue a text in place."""
        if chat.id in self.running:
            return
        chat = self.keep_text(chat, text)
        message = tree.completed_text(chat)
        assert message is not None
        self._begin(chat, message.id, text, [message], ())

    def stop(self, chat: ChatId) -> None:
        """Stop the answer in progress in a chat. Its text is preserved."""
        running = self.running.get(chat)
        if running is None:
            return
        if running.has_calls and self._rounds is not None:
            self._rounds.stop(chat)
            self._end(running, Ending("stopped", running.stats))
        else:
            running.answer.stop()

    def may_trim(self, chat: ChatId) -> bool:
        """Return whether the oldest messages of a chat may be dropped from the prompt."""
        return chat in self._trimmed

    def allow_trimming(self, chat: ChatId) -> None:
        """Allow dropping a chat's oldest messages from the prompt if they do not fit in the context."""
        self._trimmed.add(chat)

    def close(self) -> None:
        """Stop all answers. Their text is preserved."""
        for chat in list(self.running):
            self.stop(chat)

    def model_of(self, chat: Chat) -> str:
        """Return the name of the model that would now answer in a chat."""
        loaded, shared = self._pool.now.loaded, self._pool.now.shared_model(None)
        if chat.model:
            return chat.model
        if loaded is not None:
            return loaded.model
        return shared.reference if shared is not None else GUIDE

    def _idle_chat(self, chat: ChatId) -> Chat | None:
        """Return a chat, or None if an answer is in progress in it."""
        return None if chat in self.running else self._history.chat(chat)

    # The lifecycle of an answer

    def _begin(
        self, chat: Chat, message: MessageId, before: str, branch: Sequence[Message], notes: tuple[str, ...]
    ) -> None:
        kept = chat.messages[message].details
        details = {**kept, ENDED: UNFINISHED, BEFORE: len(before)}
        if kept.get(THOUGHT):
            details |= {THOUGHT_BEFORE: kept[THOUGHT], THOUGHT_S_BEFORE: kept.get(THOUGHT_S) or 0}
        model = self.model_of(chat)
        # otherwise it is not known yet which model will answer
        if self._pool.link is Link.THERE and self._pool.now.hosts is None:
            details[MODEL] = model
        chat = tree.set_text(chat, message, before, details)
        body = question(chat, branch, GUIDE_SAMPLING if model == GUIDE else {})
        answer = Answer(self._pool.client, _answer_key(chat.id, message), body, self)
        running = RunningAnswer(chat.id, message, before, answer, notes, model=model)
        self._run(chat, running)
        running.waits = self._pool.link in WAITING_LINKS
        if not running.waits:
            self._ask(running, chat)

    def resume(self) -> None:
        """Receive the answers that the node has continued to generate since an earlier window was killed."""
        if self._pool.link is Link.THERE and self._history.locked is None:
            self._pool.client.get("/answers", self._resume, answer=AnswerKeys)

    def _resume(self, keys: AnswerKeys) -> None:
        for key in keys.answers:
            chat_id, _, message_id = key.partition(".")
            chat = self._history.chat(ChatId(chat_id))
            message = chat.messages.get(MessageId(message_id)) if chat is not None else None
            if chat is None or message is None or chat.id in self.running:
                continue
            if message.details.get(ENDED) != UNFINISHED:  # stopped by the user in the meantime
                self._pool.client.delete(f"/answers/{key}", lambda _: None)
                continue
            before = message.text[: int(message.details.get(BEFORE) or 0)]
            answer = Answer(self._pool.client, key, {}, self)
            running = RunningAnswer(chat.id, message.id, before, answer, model=self.model_of(chat))
            self._run(tree.set_text(chat, message.id, before), running)
            answer.follow()

    def _run(self, chat: Chat, running: RunningAnswer) -> None:
        """Register an answer in progress and connect to its signals."""
        details = chat.messages[running.message].details
        running.stats = AnswerStats.stored(details)
        running.is_continued = bool(rounds_of(details))
        running.thought_before = str(details.get(THOUGHT_BEFORE) or "")
        running.thought_s_before = float(details.get(THOUGHT_S_BEFORE) or 0)
        self.running[chat.id] = running
        self._history.save_soon(chat)
        self.changed.emit(chat.id)
        self._interrupted.remove(chat.id)
        self._connect(running)
        self._timer.start()

    def _connect(self, running: RunningAnswer) -> None:
        answer = running.answer
        answer.grew.connect(lambda: self._grown.add(running.chat))
        answer.progressed.connect(lambda: self._progressed(running))
        answer.ended.connect(lambda ending: self._end(running, ending))

    def _link_changed(self) -> None:
        """Send the questions that were waiting for the node, or report an error if it cannot be reached."""
        link = self._pool.link
        self.resume()
        if link in WAITING_LINKS:
            return
        for running in [running for running in self.running.values() if running.waits]:
            running.waits = False
            chat = self._history.chat(running.chat)
            if link is Link.THERE and chat is not None:
                self._ask(running, chat)
                self.progressed.emit(running.chat)
            else:
                running.answer.fail(AppError("node_away"))

    def _ask(self, running: RunningAnswer, chat: Chat) -> None:
        running.model = self.model_of(chat)
        if self._rounds is not None and self._may_offer_tools(chat, running):
            running.tools = ToolPhase.OPENING
            self._rounds.open(chat, lambda offered: self._offer(running, offered))
            self.progressed.emit(running.chat)
        else:
            running.answer.begin(self._load_first(chat))

    # Tools

    def _may_offer_tools(self, chat: Chat, running: RunningAnswer) -> bool:
        """Return whether this answer may call tools.

        If the model does not support tools, add a note to the answer.
        """
        if not chat.tools.servers or running.model == GUIDE or tree.completed_text(chat) is not None:
            return False
        loaded = self._pool.now.model(chat.model) or (self._pool.now.loaded if chat.model is None else None)
        if loaded is not None and loaded.tools is False:
            running.notes = (*running.notes, said(Reason("tools_not_offered")))
            return False
        return True

    def _offer(self, running: RunningAnswer, offered: Offered) -> None:
        """Request the answer with all tools that could be listed. A note names each server that failed."""
        chat = self._history.chat(running.chat)
        if self.running.get(running.chat) is not running or chat is None:
            return
        running.tools = ToolPhase.NONE
        running.notes = (
            *running.notes,
            *(said(error_of(msgspec.to_builtins(error))) for error in offered.failed.values()),
        )
        running.answer.offer(offered.tools)
        running.answer.begin(self._load_first(chat))

    def _begin_calls(self, running: RunningAnswer, ending: Ending) -> None:
        """Let the user decide about the calls for which an answer has paused."""
        assert self._rounds is not None
        running.stats = running.whole_stats(ending.stats)
        running.is_continued = True
        running.model = ending.model or running.model
        running.n_rounds += 1
        running.has_calls = True
        if running.n_rounds > MAX_ROUNDS:
            error = Refused("tool_rounds_many", most=MAX_ROUNDS)
            self._end(running, Ending("failed", running.stats, ending.model, error))
            return
        self._save_text(running)
        self._rounds.record(running.chat, running.message, len(running.text), len(running.thought), ending.calls)
        self._resume_when_open(running)

    def _resume_when_open(self, running: RunningAnswer) -> None:
        """Let the user decide about an answer's calls as soon as the tools of its chat are known."""
        chat = self._history.chat(running.chat)
        if self._rounds is None or chat is None or self.running.get(running.chat) is not running:
            return
        if self._rounds.is_open(chat.id):
            if (error := self._rounds.obstacle(chat.id, running.message)) is not None:
                self._end(running, Ending("failed", running.stats, error=error))
                return
            running.tools = ToolPhase.CALLING
            self._rounds.resume(chat.id, running.message)
        else:
            running.tools = ToolPhase.OPENING
            self._rounds.open(chat, lambda _: self._resume_when_open(running))
        self.changed.emit(chat.id)

    def _resume_calls(self, chat: Chat, message: MessageId) -> None:
        """Ask again about the calls that had no outcome when their answer ended."""
        assert self._rounds is not None
        details = {**chat.messages[message].details, ENDED: UNFINISHED}
        text = chat.messages[message].text
        answer = Answer(self._pool.client, _answer_key(chat.id, message), {}, self)
        running = RunningAnswer(chat.id, message, text, answer, model=self.model_of(chat), has_calls=True)
        thought = str(details.get(THOUGHT) or "")
        details |= {THOUGHT_BEFORE: thought, THOUGHT_S_BEFORE: details.get(THOUGHT_S) or 0} if thought else {}
        self._run(tree.set_text(chat, message, text, details), running)
        self._resume_when_open(running)

    def _calls_changed(self, chat_id: str) -> None:
        running, chat = self.running.get(ChatId(chat_id)), self._history.chat(ChatId(chat_id))
        if running is not None and chat is not None and running.message in chat.messages:
            rounds = rounds_of(chat.messages[running.message].details)
            running.asks = bool(rounds) and any(call.waits for call in rounds[-1].calls)
        self.changed.emit(chat_id)

    def _next_round(self, chat_id: str) -> None:
        """Let the model continue with the results of its calls."""
        running, chat = self.running.get(ChatId(chat_id)), self._history.chat(ChatId(chat_id))
        if running is None or chat is None or self._rounds is None:
            return
        before, running.before = running.answer, running.text
        running.thought_before, running.thought_s_before = running.thought, running.thought_s
        details = {**chat.messages[running.message].details, ENDED: UNFINISHED, BEFORE: len(running.before)}
        if running.thought_before:
            details |= {THOUGHT_BEFORE: running.thought_before, THOUGHT_S_BEFORE: running.thought_s_before}
        chat = tree.set_text(chat, running.message, running.before, details)
        self._history.save(chat)
        branch, notes = self._fitting(chat, tree.prompt_messages(tree.path_to(chat, running.message)))
        running.notes = (*running.notes, *(note for note in notes if note not in running.notes))
        body = question(chat, branch, {})
        running.answer = Answer(self._pool.client, _answer_key(chat.id, running.message), body, self)
        running.answer.offer(self._rounds.offered(chat.id))
        running.tools, running.has_calls = ToolPhase.NONE, False
        self._connect(running)
        before.deleteLater()
        running.answer.begin(self._load_first(chat))
        self.changed.emit(chat_id)

    def result_characters(self, chat: Chat, n_calls: int) -> int:
        """Return the maximum number of characters for each tool result in a chat, given the number of calls."""
        shared = self._pool.now.shared_model(self.model_of(chat))
        loaded = self._pool.now.model(chat.model) or self._pool.now.loaded
        context = shared.context if shared is not None else loaded.context if loaded is not None else 0
        if not context:
            return DEFAULT_RESULT_CHARACTERS
        return max(
            LEAST_RESULT_CHARACTERS, int(RESULT_SHARE * context / TYPICAL_TOKENS_PER_CHARACTER / max(1, n_calls))
        )

    def _load_first(self, chat: Chat) -> dict[str, Any] | None:
        """Return the body of a POST /load to send before the question, or None if no load is needed.

        The chat may need a longer context, or need the Guide to be loaded alongside another model.
        """
        now = self._pool.now
        if now.hosts is not None or "@" in self.model_of(chat):
            return None  # another machine answers
        named = now.model(chat.model) if chat.model else None
        name = self.model_of(chat)
        # The Guide is small enough to be loaded alongside any other model.
        is_beside = name == GUIDE and now.loaded is not None and now.loaded.model != GUIDE
        if chat.context is None:
            return {"model": GUIDE, **LOAD_ALONGSIDE} if is_beside and now.model(name) is None else None
        if _has_context(named or now.loaded, name, chat.context):
            return None
        if is_beside:
            return {"model": GUIDE, "context": chat.context, **LOAD_ALONGSIDE}
        # Reloading one of several models must not unload the others.
        beside = {"beside": True} if len(now.models) > 1 and now.model(name) is not None else {}
        return {"model": name, "context": chat.context, **beside}

    def _progressed(self, running: RunningAnswer) -> None:
        if running.answer.trouble:
            self._interrupted.add(running.chat, running.model)
        self.progressed.emit(running.chat)

    def _tick(self) -> None:
        self._ticks += 1
        grown, self._grown = self._grown, set()
        for chat in grown:
            self._interrupted.remove(chat)
            if self._ticks % TICKS_BETWEEN_SAVES == 0:
                self._save_text(self.running[chat])
            self.grew.emit(chat)
        if not self.running:
            self._timer.stop()

    def _save_text(self, running: RunningAnswer) -> None:
        chat = self._history.chat(running.chat)
        if chat is not None and running.message in chat.messages:
            details = {**chat.messages[running.message].details, **running.thought_details()}
            self._history.save_soon(tree.set_text(chat, running.message, running.text, details))

    def _end(self, running: RunningAnswer, ending: Ending) -> None:
        if ending.how == CALLS and self._rounds is not None and self._history.chat(running.chat) is not None:
            self._begin_calls(running, ending)
            return
        if self._rounds is not None:
            self._rounds.forget(running.chat)
        del self.running[running.chat]
        self._grown.discard(running.chat)
        self._note_interruption(running, ending)
        chat = self._history.chat(running.chat)
        if chat is not None and running.message in chat.messages:
            self._history.save(self._with_ending(chat, running, ending))
        self.changed.emit(running.chat)
        self.ended.emit(running.chat, ending)
        running.answer.deleteLater()

    def _with_ending(self, chat: Chat, running: RunningAnswer, ending: Ending) -> Chat:
        """Return the chat with the finished answer. An answer that ended early without any text is removed."""
        message = chat.messages[running.message]
        has_calls = bool(rounds_of(message.details))
        if running.text or running.thought or has_calls or ending.how in ("stop", "length", FULL):
            details = _ended_details(message, running, ending)
            # a guest is not told which model answered
            if ending.model is None and self._pool.now.hosts is None:
                details[MODEL] = running.model
            return tree.set_text(chat, running.message, running.text, details)
        chat = tree.remove(chat, running.message)
        # The unanswered question becomes the last message of the branch.
        return replace(chat, leaf=message.parent) if message.parent in chat.messages else chat

    def _note_interruption(self, running: RunningAnswer, ending: Ending) -> None:
        """Record the answer as interrupted if it failed because of a lost model or while waiting for a lost machine."""
        error = ending.error
        if isinstance(error, StageLost) or (error is not None and running.answer.trouble):
            self._interrupted.add(running.chat, running.model)
        else:
            self._interrupted.remove(running.chat)

    def _fitting(self, chat: Chat, branch: Sequence[Message]) -> tuple[Sequence[Message], tuple[str, ...]]:
        """Return the messages to send, and notes if messages or pictures were left out."""
        branch, notes = self._within_context(chat, branch)
        model = self.model_of(chat)
        if sent_pictures.sees(self._pool.now, model) is False:
            sent = sent_pictures.without_pictures(branch)
            words = self.tr("%n picture(s) left out because {model} can't look at pictures.", "", sent.left_out)
        else:
            sent = sent_pictures.within_limits(branch)
            words = self.tr("%n picture(s) left out because a question has no room for more.", "", sent.left_out)
        return sent.branch, (*notes, *([words.format(model=model_name(model))] if sent.left_out else []))

    def _within_context(self, chat: Chat, branch: Sequence[Message]) -> tuple[Sequence[Message], tuple[str, ...]]:
        """Return the messages that fit in the context, and a note if some were left out.

        If not all messages fit and the user has agreed, the oldest ones are left out. The Guide receives only the
        last question: it was trained on single questions, so longer conversations confuse it.
        """
        if self.model_of(chat) == GUIDE:
            return tree.last_turn(branch), ()
        loaded = self._pool.now.model(chat.model) or self._pool.now.loaded
        shared = self._pool.now.shared_model(self.model_of(chat))
        context = shared.context if shared is not None else loaded.context if loaded is not None else 0
        if chat.id not in self._trimmed or not context:
            return branch, ()
        per_character = _tokens_per_character(branch)
        of_picture = picture_tokens(self._pool.now, self.model_of(chat))

        def tokens_of(message: Message) -> int:
            pictures = of_picture * len(pictures_of(message))
            n_characters = len(content(message)) + characters(rounds_of(message.details))
            return MESSAGE_TOKENS + pictures + int(n_characters * per_character)

        trimmed = tree.trim(branch, int(context * (1 - ANSWER_SHARE)), tokens_of)
        if not trimmed.dropped:
            return branch, ()
        note = self.tr("%n older message(s) left out because the context is full.", "", trimmed.dropped)
        return trimmed.kept, (note,)


def _has_context(loaded: LoadedModel | None, name: str, context: int) -> bool:
    """Return whether this model is loaded with at least this context."""
    is_loaded = loaded is not None and loaded.model == name and loaded.can_answer
    return is_loaded and loaded is not None and loaded.context >= context


def _ended_details(message: Message, running: RunningAnswer, ending: Ending) -> dict[str, Any]:
    notes = [*(message.details.get(NOTES) or ()), *running.notes]
    if ending.error is not None:
        notes.append(said(ending.error))
    details: dict[str, Any] = {
        **{name: value for name, value in message.details.items() if name not in TEMPORARY_DETAILS},
        **running.thought_details(),
        FIGURES: running.whole_stats(ending.stats).as_details(),
        ENDED: ending.how,
    }
    if ending.model:
        details[MODEL] = ending.model
    if notes:
        details[NOTES] = notes
    return details


def _answer_key(chat: ChatId, message: MessageId) -> str:
    """Return the key under which the node stores an answer."""
    return f"{chat}.{message}"


def _tokens_per_character(branch: Sequence[Message]) -> float:
    """Return the number of tokens per character, as measured in the branch's last answer, or a typical value."""
    for place in range(len(branch) - 1, 0, -1):
        if tokens := AnswerStats.stored(branch[place].details).prompt_tokens:
            texts = (len(content(message)) + characters(rounds_of(message.details)) for message in branch[:place])
            return tokens / max(1, sum(texts))
    return TYPICAL_TOKENS_PER_CHARACTER
