"""One answer on its way: asked of the node, taken in as it comes, stopped."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QObject, Signal

from app.core.chat import ATTACHMENTS, FULL, THOUGHT, Chat, ChatId, Message, path_to
from app.core.errors import AppError
from app.gui.api.node_client import Call, NodeClient
from app.gui.app.mending_places import of_chat
from app.gui.look.sentences import here


class CutAnswers:
    """By model. The page of chats tells it; the tray asks, also before that page was ever shown."""

    def __init__(self) -> None:
        self._models: dict[ChatId, str] = {}  # in the order in which they were cut

    def cut(self, chat: ChatId, model: str) -> None:
        """Its answer stands still, or has ended before its end."""
        self.mended(chat)
        self._models[chat] = model

    def mended(self, chat: ChatId) -> None:
        """Its answer goes on, came to its end, or is wanted no more."""
        self._models.pop(chat, None)

    def place(self, model: str, otherwise: str) -> str:
        """The page with the chat that was cut last with this model, if there is one."""
        found = (chat for chat, by in reversed(self._models.items()) if by == model)
        chat = next(found, None)
        return otherwise if chat is None else of_chat(chat)


Json = dict[str, Any]

THINK, THINK_TOKENS = "think", "think_tokens"  # of a chat's sampling: 1 or 0; the longest thought
MAX_TOKENS = 2_048  # of an answer, when nobody says
FIGURES = (
    "prompt_tokens", "reused_tokens", "queued_s", "ttft_s", "decode_tok_s", "guessed",
    "guessed_right", "thought_tokens", "predicted", "recoveries", "recovered", "doubted", "placement", "notes",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ending:
    """How an answer ended: "stop", "length", FULL (the context), "stopped" by a person, "failed" with its error."""

    how: str
    figures: Mapping[str, Any]
    model: str | None = None
    error: AppError | None = None


class Answer(QObject):
    """Begins with `begin`, or `follow`; then `grew` with each piece, and `ended` once.

    `key`: under which the node writes it on if this window is killed, until one follows it.
    """

    grew = Signal()
    progressed = Signal()  # a model is loaded first; `progress` says how far it is
    ended = Signal(object)  # Ending

    def __init__(self, client: NodeClient, key: str, question: Json, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._client, self._path, self._question = client, f"/answers/{key}", question
        self.text = self.thought = ""
        self.thought_s = 0.0  # until the thought was over
        self.thought_tokens = 0
        self.n_tokens = 0
        self.progress: Json | None = None
        self.trouble = ""  # a machine is gone: what happened, and what is done about it
        self.is_short = False  # and the rest is too small: it waits for the machine
        self._call: Call | None = None
        self._over = False
        self._began = time.monotonic()
        self._first = self._last = 0.0
        self._first_tokens = 0  # that came with the first piece

    def begin(self, load: Json | None = None) -> None:
        """Ask. load: what to load before (POST /load), where its context must be another."""
        if load is not None:
            self._call = self._client.call("POST", "/load", load, lambda _: self._ask(), self._fail, self._take)
        else:
            self._ask()

    def follow(self) -> None:
        """It was asked by a window that is gone."""
        self._call = self._client.call("GET", self._path, None, self._done, self._fail, self._take)

    def stop(self) -> None:
        """A person has read enough: what came stays."""
        self._client.delete(self._path, lambda _: None)
        if self._call is not None:
            self._call.cancel()
        if not self._over:
            self._end(Ending("stopped", self.measured()))

    def fail(self, error: AppError) -> None:
        """What it waited for does not come."""
        self._fail(error)

    def _ask(self) -> None:
        self._call = self._client.call("POST", self._path, self._question, self._done, self._fail, self._take)

    def _take(self, line: Json) -> None:
        if "delta" in line:
            now = time.monotonic()
            n_tokens = len(line["delta"].get("token_ids") or ())
            if not self._first:
                self._first, self._first_tokens = now, n_tokens
            self._last = now
            self.n_tokens += n_tokens
            self._take_text(line["delta"], now, n_tokens)
            self.progress = None
            self.trouble, self.is_short = "", False
            self.grew.emit()
        elif "progress" in line:
            self.progress = line["progress"]
            self.progressed.emit()
        elif "recovery" in line:
            self.trouble = here(str(line["recovery"].get("text") or ""))
            self.is_short = line["recovery"].get("state") == "short"
            self.progressed.emit()

    def _take_text(self, delta: Json, now: float, n_tokens: int) -> None:
        if delta.get("was_thought"):  # what was told as the answer
            self.thought, self.text = self.thought + self.text, ""
        self.thought += str(delta.get("thought") or "")
        self.text += str(delta.get("text") or "")
        if self.thought and not self.text:
            self.thought_s = now - self._first
            self.thought_tokens += n_tokens

    def _done(self, done: Json) -> None:
        figures = {name: done[name] for name in FIGURES if done.get(name) is not None}
        figures["tokens"] = len(done.get("token_ids") or ())
        self.thought_s = float(done.get("thought_s") or self.thought_s)  # also of what came before
        how = "length" if done.get("finish_reason") == "length" else "stop"
        if done.get("cut_by") == "context":
            how = FULL
        self._end(Ending(how, figures, done.get("model")))

    def _fail(self, error: AppError) -> None:
        self._end(Ending("failed", self.measured(), error=error))

    def _end(self, ending: Ending) -> None:
        self._call, self._over = None, True
        self.ended.emit(ending)

    def measured(self) -> Json:
        """What can be said of an answer that has not come to its end."""
        found: Json = {"tokens": self.n_tokens}
        if self._first:
            found["ttft_s"] = self._first - self._began
        later = self.n_tokens - self._first_tokens
        if later and self._last > self._first:
            found["decode_tok_s"] = later / (self._last - self._first)
        return found


def question(chat: Chat, branch: Sequence[Message], usual: Mapping[str, float]) -> Json:
    """The body of POST /ask for the next words after `branch`. usual: sampling where the chat says nothing of it."""
    sampling = {**usual, **chat.sampling}
    most = sampling.pop("max_tokens", MAX_TOKENS)
    thinking: Json = {}
    if (think := sampling.pop(THINK, None)) is not None:
        thinking["think"] = bool(think)
    if (limit := sampling.pop(THINK_TOKENS, None)) is not None:
        thinking["think_tokens"] = int(limit)
    messages = [{"role": "system", "content": chat.system}] if chat.system.strip() else []
    messages += [_said(one) for one in branch]
    return {
        "messages": messages,
        "model": chat.model,
        "conversation": chat.id,
        "begun_at": _begun_at(chat, branch),
        "max_tokens": int(most),
        "sampling": sampling,
        **thinking,
    }


def _said(message: Message) -> Json:
    """An answer with what was thought before it: the model's template says what of that is told again."""
    said = {"role": str(message.role), "content": content(message)}
    thought = message.details.get(THOUGHT)
    return said | ({"thought": str(thought)} if thought else {})


def _begun_at(chat: Chat, branch: Sequence[Message]) -> float | None:
    """When the first message of this branch was written, though it may not be told any more."""
    ends = branch[-1].id if branch else chat.leaf
    return next((max(0.0, one.made_at) for one in path_to(chat, ends)), None)


def content(message: Message) -> str:
    """What the model is given of a message: its text, and the files that go with it."""
    parts = [message.text] if message.text else []
    parts += [
        f"File {one.get('name')}:\n\n{_fenced(str(one.get('text')))}" for one in message.details.get(ATTACHMENTS) or ()
    ]
    return "\n\n".join(parts)


def _fenced(text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"
