"""What can be done in a chat: send, stop, regenerate, edit, continue. Each deed is in the history at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

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
    Message,
    MessageId,
    Role,
)
from app.core.errors import AppError, StageLost
from app.gui.api.node_state import Link, NodeState
from app.gui.chat.answer import Answer, CutAnswers, Ending, content, question
from app.gui.chat.history.history import History
from app.gui.chat.message import answer_stats
from app.gui.look.sentences import GUIDE, said

Json = dict[str, Any]

THOUGHT_BEFORE, THOUGHT_S_BEFORE = "thought_before", "thought_s_before"  # of an answer that goes on
PASSING = (BEFORE, THOUGHT_BEFORE, THOUGHT_S_BEFORE)  # of one that still comes
PAINT_MS = 40  # text is shown 25 times a second, however fast it comes
KEEP_EVERY = 25  # of these: an answer under way is written once a second
FULL_TOKENS = 2  # that a full context may still have room for
RESERVE = 0.25  # of the context, for the answer, where old turns are left out
MESSAGE_TOKENS = 8  # what a chat template adds to a message, about
COMING = (Link.LOOKING, Link.STARTING)  # of the node: what is asked meanwhile waits for it
LAST = {"beside": True, "first": False}  # in a load: what has no name stays with another model
GUIDES = {"temperature": 0.0}  # it learned one answer to each question, and hears no other well
THERE = ("ready", "recovering")  # of a model: it answers, or will go on


@dataclass(slots=True)
class Running:
    """An answer under way. `before`: the text it continues, and `figures` of that; `waits`: for the node; `model`:
    makes it.
    """

    chat: ChatId
    message: MessageId
    before: str
    answer: Answer
    notes: tuple[str, ...] = ()
    waits: bool = False
    model: str = ""
    figures: Json = field(default_factory=dict)
    thought_before: str = ""  # in what it continues
    thought_s_before: float = 0.0

    @property
    def text(self) -> str:
        return self.before + self.answer.text

    @property
    def thought(self) -> str:
        """What was thought, also in what it continues."""
        return self.thought_before + self.answer.thought

    @property
    def thought_s(self) -> float:
        return self.thought_s_before + self.answer.thought_s

    @property
    def thinks(self) -> bool:
        """Whether a thought comes now, and no answer yet."""
        return bool(self.answer.thought) and not self.text

    def thoughts(self) -> Json:
        """As details of a message."""
        return {THOUGHT: self.thought, THOUGHT_S: self.thought_s} if self.thought else {}

    def measured(self, part: Mapping[str, Any]) -> Mapping[str, Any]:
        """Of the whole answer, with these figures of what came now."""
        return answer_stats.joined(self.figures, part) if self.before else part


class Session(QObject):
    """Answers of several chats may be under way at once; the history has the chats."""

    changed = Signal(str)  # the messages of this chat are others now, or its answer ended
    grew = Signal(str)  # its answer has more text; at most every PAINT_MS
    progressed = Signal(str)  # a model is loaded for it
    ended = Signal(str, object)  # chat, Ending

    def __init__(
        self, history: History, pool: NodeState, parent: QObject | None = None, cut: CutAnswers | None = None
    ) -> None:
        super().__init__(parent)
        self._history, self._pool, self._cut = history, pool, cut or CutAnswers()
        self.running: dict[ChatId, Running] = {}
        self._trimmed: set[ChatId] = set()  # chats whose oldest turns may be left out
        self._grown: set[ChatId] = set()
        self._ticks = 0
        self._timer = QTimer(self)
        self._timer.setInterval(PAINT_MS)
        self._timer.timeout.connect(self._tick)
        pool.link_changed.connect(self._link_changed)
        history.unlocked.connect(self.take_up)
        self.take_up()

    # Deeds

    def send(self, chat: Chat, text: str, attachments: Sequence[Json] = ()) -> None:
        """Say `text` at the end of the branch that is shown, and have it answered."""
        details = {tree.ATTACHMENTS: list(attachments)} if attachments else {}
        made = Message(self._history.new_message_id(), chat.leaf, Role.USER, text, self._history.now(), details)
        chat = replace(tree.add(chat, made), draft="", draft_files=())
        self._history.keep(chat)
        self.answer(chat.id, made.id)

    def regenerate(self, chat: ChatId, message: MessageId) -> None:
        """Another answer beside this one."""
        known = self._history.chat(chat)
        if known is not None and (parent := known.messages[message].parent) is not None:
            self.answer(chat, parent)

    def edit(self, chat: ChatId, message: MessageId, text: str) -> None:
        """Another version of a message beside it; a question is answered."""
        known = self._history.chat(chat)
        if known is None or chat in self.running:
            return
        made = self._history.new_message_id()
        known = tree.edit(known, message, text, made, self._history.now())
        self._history.keep(known)
        if known.messages[made].role is Role.USER:
            self.answer(chat, made)
        else:
            self.changed.emit(chat)

    def switch(self, chat: ChatId, message: MessageId) -> None:
        """Show another branch."""
        known = self._history.chat(chat)
        if known is not None and chat not in self.running:
            self._history.keep(tree.switch(known, message))
            self.changed.emit(chat)

    def answer(self, chat: ChatId, to: MessageId) -> None:
        """Have the message `to` answered."""
        known = self._history.chat(chat)
        if known is None or chat in self.running:
            return
        branch, notes = self._fitting(known, tree.told(tree.path_to(known, to)))
        made = Message(self._history.new_message_id(), to, Role.ASSISTANT, "", self._history.now())
        known = tree.add(known, made)
        self._begin(known, made.id, "", branch, notes)

    def go_on(self, chat: ChatId, message: MessageId) -> None:
        """More of an answer that was cut; its text stays as it is."""
        known = self._history.chat(chat)
        if known is None or chat in self.running:
            return
        branch, notes = self._fitting(known, tree.told(tree.path_to(known, message)))
        self._begin(known, message, known.messages[message].text, branch, notes)

    def stop(self, chat: ChatId) -> None:
        """Keep what came."""
        if chat in self.running:
            self.running[chat].answer.stop()

    def leaves_out(self, chat: ChatId) -> bool:
        return chat in self._trimmed

    def leave_out(self, chat: ChatId) -> None:
        """From now on the oldest turns are left out where the context is too short for all."""
        self._trimmed.add(chat)

    def close(self) -> None:
        """End all answers; what came of them is kept."""
        for chat in list(self.running):
            self.stop(chat)

    # An answer's life

    def _begin(
        self, chat: Chat, message: MessageId, before: str, branch: Sequence[Message], notes: tuple[str, ...]
    ) -> None:
        kept = chat.messages[message].details
        details = {**kept, ENDED: UNFINISHED, BEFORE: len(before)}
        if kept.get(THOUGHT):
            details |= {THOUGHT_BEFORE: kept[THOUGHT], THOUGHT_S_BEFORE: kept.get(THOUGHT_S) or 0}
        if self._pool.link is Link.THERE and self._pool.hosts is None:  # else nobody knows yet who answers
            details[MODEL] = self.asked(chat)
        chat = tree.say(chat, message, before, details)
        is_guide = self.asked(chat) == GUIDE
        asked = question(chat, branch, GUIDES if is_guide else {})
        answer = Answer(self._pool.client, _key(chat.id, message), asked, self)
        running = Running(chat.id, message, before, answer, notes, model=self.asked(chat))
        self._run(chat, running)
        running.waits = self._pool.link in COMING
        if not running.waits:
            self._ask(running, chat)

    def take_up(self) -> None:
        """What a window that was killed had asked: the node has written it on."""
        if self._pool.link is Link.THERE and self._history.locked is None:
            self._pool.client.get("/answers", self._written_on)

    def _written_on(self, found: Json) -> None:
        for key in found["answers"]:
            chat, _, message = str(key).partition(".")
            known = self._history.chat(ChatId(chat))
            kept = known.messages.get(MessageId(message)) if known is not None else None
            if known is None or kept is None or known.id in self.running:
                continue
            if kept.details.get(ENDED) != UNFINISHED:
                self._pool.client.delete(f"/answers/{key}", lambda _: None)  # it was stopped
                continue
            before = kept.text[: int(kept.details.get(BEFORE) or 0)]
            answer = Answer(self._pool.client, key, {}, self)
            running = Running(known.id, kept.id, before, answer, model=self.asked(known))
            self._run(tree.say(known, kept.id, before), running)
            answer.follow()

    def _run(self, chat: Chat, running: Running) -> None:
        """From now on it is shown as it comes."""
        answer = running.answer
        running.figures = dict(chat.messages[running.message].details.get(FIGURES) or {})
        kept = chat.messages[running.message].details
        running.thought_before = str(kept.get(THOUGHT_BEFORE) or "")
        running.thought_s_before = float(kept.get(THOUGHT_S_BEFORE) or 0)
        self.running[chat.id] = running
        self._history.keep_soon(chat)
        self.changed.emit(chat.id)
        self._cut.mended(chat.id)
        answer.grew.connect(lambda: self._grown.add(running.chat))
        answer.progressed.connect(lambda: self._progressed(running))
        answer.ended.connect(lambda ending: self._end(running, ending))
        self._timer.start()

    def _link_changed(self) -> None:
        """The node is there: what waited for it is asked. Or it does not come."""
        link = self._pool.link
        self.take_up()
        for running in [one for one in self.running.values() if one.waits and link not in COMING]:
            running.waits = False
            known = self._history.chat(running.chat)
            if link is Link.THERE and known is not None:
                self._ask(running, known)
                self.progressed.emit(running.chat)
            else:
                running.answer.fail(AppError("node_away"))

    def _ask(self, running: Running, chat: Chat) -> None:
        running.model = self.asked(chat)
        running.answer.begin(self._load_first(chat))

    def asked(self, chat: Chat) -> str:
        """Which model answers in it now."""
        return chat.model or str((self._pool.loaded or {}).get("model") or GUIDE)

    def _load_first(self, chat: Chat) -> Json | None:
        """What to load before, if this chat wants more context than there is; or the Guide beside what is loaded."""
        loaded = self._pool.model(chat.model) or self._pool.loaded or {}
        name = chat.model or loaded.get("model") or GUIDE
        if self._pool.hosts is not None:
            return None
        # the Guide is small: no model goes for it, or answers less
        stays = name == GUIDE and (self._pool.loaded or {}).get("model") not in (None, GUIDE)
        there = self._pool.model(name)
        if chat.context is None:
            return {"model": GUIDE, **LAST} if stays and there is None else None
        enough = int(loaded.get("context") or 0) >= chat.context
        if loaded.get("model") == name and loaded.get("state") in THERE and enough:
            return None
        if stays:
            return {"model": GUIDE, "context": chat.context, **LAST}
        # more of one that is loaded takes nothing from those beside it
        beside = {"beside": True} if len(self._pool.models) > 1 and there else {}
        return {"model": name, "context": chat.context, **beside}

    def _progressed(self, running: Running) -> None:
        if running.answer.trouble:
            self._cut.cut(running.chat, running.model)
        self.progressed.emit(running.chat)

    def _tick(self) -> None:
        self._ticks += 1
        grown, self._grown = self._grown, set()
        for chat in grown:
            self._cut.mended(chat)
            if self._ticks % KEEP_EVERY == 0:
                self._keep_text(self.running[chat])
            self.grew.emit(chat)
        if not self.running:
            self._timer.stop()

    def _keep_text(self, running: Running) -> None:
        known = self._history.chat(running.chat)
        if known is not None and running.message in known.messages:
            details = {**known.messages[running.message].details, **running.thoughts()}
            self._history.keep_soon(tree.say(known, running.message, running.text, details))

    def _end(self, running: Running, ending: Ending) -> None:
        del self.running[running.chat]
        self._grown.discard(running.chat)
        self._note_cut(running, ending)
        known = self._history.chat(running.chat)
        if known is not None and running.message in known.messages:
            if running.text or running.thought or ending.how in ("stop", "length", FULL):
                details = _details(known.messages[running.message], running, ending)
                if ending.model is None and self._pool.hosts is None:  # a guest's host does not say
                    details[MODEL] = running.model
                known = tree.say(known, running.message, running.text, details)
            else:
                known = tree.remove(known, running.message)
                known = replace(known, leaf=_asked(known, running, self._history))
            self._history.keep(known)
        self.changed.emit(running.chat)
        self.ended.emit(running.chat, ending)
        running.answer.deleteLater()

    def _note_cut(self, running: Running, ending: Ending) -> None:
        """Whether it broke off with its model: by its error, or because it stood still already."""
        error = ending.error
        if isinstance(error, StageLost) or (error is not None and running.answer.trouble):
            self._cut.cut(running.chat, running.model)
        else:
            self._cut.mended(running.chat)

    def _fitting(self, chat: Chat, branch: Sequence[Message]) -> tuple[Sequence[Message], tuple[str, ...]]:
        """The branch without its oldest turns, if that was agreed to and all would not fit; of the Guide, which learned
        single questions and is confused by a long talk, the last question."""
        if self.asked(chat) == GUIDE:
            return tree.last_turn(branch), ()
        loaded = self._pool.model(chat.model) or self._pool.loaded or {}
        context = int(loaded.get("context") or 0)
        if chat.id not in self._trimmed or not context:
            return branch, ()
        per_character = _tokens_per_character(branch)

        def tokens_of(message: Message) -> int:
            return MESSAGE_TOKENS + int(len(content(message)) * per_character)

        found = tree.trim(branch, int(context * (1 - RESERVE)), tokens_of)
        if not found.dropped:
            return branch, ()
        note = self.tr("%n oldest message(s) were left out: the context is full.", "", found.dropped)
        return found.kept, (note,)


def _details(message: Message, running: Running, ending: Ending) -> Json:
    """What is known of an answer at its end."""
    notes = [*(message.details.get(NOTES) or ()), *running.notes]
    if ending.error is not None:
        notes.append(_sentence(ending.error))
    found: Json = {
        **{name: one for name, one in message.details.items() if name not in PASSING},
        **running.thoughts(),
        FIGURES: dict(running.measured(ending.figures)),
        ENDED: ending.how,
    }
    if ending.model:
        found[MODEL] = ending.model
    if notes:
        found[NOTES] = notes
    return found


def _key(chat: ChatId, message: MessageId) -> str:
    """Under which the node keeps an answer."""
    return f"{chat}.{message}"


def _sentence(error: AppError) -> str:
    return said(error)


def _asked(chat: Chat, running: Running, history: History) -> MessageId | None:
    """The question whose answer never came stays the end of the branch."""
    before = history.chat(running.chat)
    found = before.messages.get(running.message) if before else None
    return found.parent if found is not None and found.parent in chat.messages else chat.leaf


def _tokens_per_character(branch: Sequence[Message]) -> float:
    """As the last answer of the branch showed it; a third where nothing was measured."""
    for place in range(len(branch) - 1, 0, -1):
        figures = branch[place].details.get(FIGURES) or {}
        if tokens := figures.get("prompt_tokens"):
            characters = sum(len(content(one)) for one in branch[:place])
            return float(tokens) / max(1, characters)
    return 1 / 3
