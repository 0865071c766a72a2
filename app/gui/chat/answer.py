"""An answer in progress, with the request to the node, the text received and the outcome."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QObject, Signal

from app.api.plans import Progress
from app.api.responses import Answer as FinishedAnswer
from app.api.responses import AnswerLine, Delta, LoadResponse, ToolCall
from app.api.tools import OfferedTool
from app.core.chat import ATTACHMENTS, COMPLETION, FULL, THOUGHT, Chat, ChatId, Message, path_to
from app.core.errors import AppError
from app.core.tools.chat_calls import prompt_bodies, rounds_of
from app.gui.api.node_client import Call, NodeClient
from app.gui.app.navigation import chat_address
from app.gui.chat.message.answer_stats import AnswerStats
from app.gui.chat.reading.attachment_reader import is_picture
from app.gui.chat.sent_pictures import pictures_of
from app.gui.look.sentences import said

# Keys in a chat's sampling settings: whether to think (1 or 0), and the maximum length of a thought.
THINK, THINK_TOKENS = "think", "think_tokens"
CALLS = "calls"  # how an answer ends that waits for the results of tool calls
MAX_TOKENS = 2_048  # per answer, unless the chat sets its own limit


class InterruptedAnswers:
    """The chats whose answers were interrupted because their model was lost.

    The Chat page updates this list. The tray menu uses it to open such a chat, even before the page has been shown.
    """

    def __init__(self) -> None:
        self._models: dict[ChatId, str] = {}  # the latest interruption last

    def add(self, chat: ChatId, model: str) -> None:
        """Record that the answer in a chat is waiting for a lost machine, or failed because its model was lost."""
        self.remove(chat)
        self._models[chat] = model

    def remove(self, chat: ChatId) -> None:
        """Record that the answer in a chat is no longer interrupted."""
        self._models.pop(chat, None)

    def page(self, model: str, default: str) -> str:
        """Return the address of the chat in which this model was most recently interrupted, or `default`."""
        for chat, interrupting in reversed(self._models.items()):
            if interrupting == model:
                return chat_address(chat)
        return default


class AnswerFeed(QObject):
    """A feed of answers that have ended, whichever chat and page are shown. The tray notifies the user of them."""

    ended = Signal(str, str, object)  # chat ID, the chat's title, and the error or None


@dataclass(frozen=True, slots=True)
class Ending:
    """The outcome of an answer.

    how: "stop" (finished), "length" (token limit reached), FULL (context full), CALLS (the model waits for the results
    of its `calls`), "stopped" (by the user) or "failed" (see `error`).
    """

    how: str
    stats: AnswerStats
    model: str | None = None
    error: AppError | None = None
    calls: Sequence[ToolCall] = ()


class Answer(QObject):
    """An answer from the node, started by `begin` or `follow`. `grew` is emitted for each delta, `ended` only once.

    If the window is killed, the node stores the answer under `key` until another window requests it.
    """

    grew = Signal()
    progressed = Signal()  # `trouble`, `remark` or the `progress` of loading the model has changed
    ended = Signal(object)  # Ending

    def __init__(self, client: NodeClient, key: str, question: dict[str, Any], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._client, self._path, self._question = client, f"/answers/{key}", question
        self.text = self.thought = ""
        self.thought_s = 0.0
        self.thought_tokens = 0
        self.n_tokens = 0
        self.progress: Progress | None = None
        self.trouble = ""  # a sentence about the lost machine; empty once the answer continues
        self.remark = ""  # a sentence about who answers, which the node sends once
        self.is_short = False  # the answer waits for the lost machine, because the others have too little memory
        self._call: Call | None = None
        self._is_over = False
        self._began_at = time.monotonic()
        self._first_at = self._last_at = 0.0
        self._first_tokens = 0  # number of tokens in the first delta, which the decode rate leaves out

    def offer(self, tools: Sequence[OfferedTool]) -> None:
        """Set the tools that the model may call. Must be called before `begin`."""
        described = [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters} for tool in tools
        ]
        self._question = {**self._question, **({"tools": described} if described else {})}

    def begin(self, load: dict[str, Any] | None = None) -> None:
        """Send the question. If `load` is given, it is sent first, as the body of POST /load."""
        if load is None:
            self._ask()
            return
        self._call = self._client.call(
            "POST", "/load", load, lambda _: self._ask(), self.fail, self._receive, answer=LoadResponse, each=AnswerLine
        )

    def follow(self) -> None:
        """Receive an answer that another window requested before it was killed."""
        self._request("GET", None)

    def stop(self) -> None:
        """Stop generating and keep the text received so far."""
        self._client.delete(self._path, lambda _: None)
        if self._call is not None:
            self._call.cancel()
        if not self._is_over:
            self._end(Ending("stopped", self.stats()))

    def fail(self, error: AppError) -> None:
        self._end(Ending("failed", self.stats(), error=error))

    def stats(self) -> AnswerStats:
        """Return the statistics measured so far."""
        later_tokens, later_s = self.n_tokens - self._first_tokens, self._last_at - self._first_at
        return AnswerStats(
            tokens=self.n_tokens,
            ttft_s=self._first_at - self._began_at if self._first_at else None,
            decode_tok_s=later_tokens / later_s if later_tokens and later_s > 0 else None,
        )

    def _ask(self) -> None:
        self._request("POST", self._question)

    def _request(self, method: str, body: dict[str, Any] | None) -> None:
        self._call = self._client.call(
            method, self._path, body, self._done, self.fail, self._receive, answer=FinishedAnswer, each=AnswerLine
        )

    def _receive(self, line: AnswerLine) -> None:
        if line.delta is not None:
            self._append(line.delta)
            self.progress = None
            self.trouble, self.is_short = "", False
            self.grew.emit()
        elif line.by is not None and line.by.text_facts is not None:
            self.remark = said(line.by.text_facts)
            self.progressed.emit()
        elif line.progress is not None:
            self.progress = line.progress
            self.progressed.emit()
        elif line.recovery is not None:
            self.trouble = said(line.recovery.text_facts)
            self.is_short = line.recovery.state == "short"
            self.progressed.emit()

    def _append(self, delta: Delta) -> None:
        now, n_tokens = time.monotonic(), len(delta.token_ids)
        if not self._first_at:
            self._first_at, self._first_tokens = now, n_tokens
        self._last_at = now
        self.n_tokens += n_tokens
        if delta.was_thought:  # the text received so far turned out to be a thought
            self.thought, self.text = self.thought + self.text, ""
        self.thought += delta.thought
        self.text += delta.text
        if self.thought and not self.text:
            self.thought_s = now - self._first_at
            self.thought_tokens += n_tokens

    def _done(self, answer: FinishedAnswer) -> None:
        self.thought_s = answer.thought_s or self.thought_s  # also covers the time before this window was opened
        how = "length" if answer.finish_reason == "length" else "stop"
        if answer.cut_by == "context":
            how = FULL
        if answer.calls:
            how = CALLS
        self._end(Ending(how, AnswerStats.of(answer), answer.model or None, calls=answer.calls))

    def _end(self, ending: Ending) -> None:
        self._call, self._is_over = None, True
        self.ended.emit(ending)


def question(chat: Chat, branch: Sequence[Message], default_sampling: Mapping[str, float]) -> dict[str, Any]:
    """Return the body of a request for the message that follows `branch`."""
    sampling = {**default_sampling, **chat.sampling}
    max_tokens = sampling.pop("max_tokens", MAX_TOKENS)
    thinking: dict[str, Any] = {}
    if (think := sampling.pop(THINK, None)) is not None:
        thinking["think"] = bool(think)
    if (limit := sampling.pop(THINK_TOKENS, None)) is not None:
        thinking["think_tokens"] = int(limit)
    return {
        **_prompt(chat, branch),
        "model": chat.model,
        "conversation": chat.id,
        "begun_at": _begun_at(chat, branch),
        "max_tokens": int(max_tokens),
        "sampling": sampling,
        **thinking,
    }


def _prompt(chat: Chat, branch: Sequence[Message]) -> dict[str, Any]:
    """Return the messages of a conversation, or the text that a base model continues."""
    if branch and branch[-1].details.get(COMPLETION):
        return {"prompt": branch[-1].text, "raw": True}
    messages = [{"role": "system", "content": chat.system}] if chat.system.strip() else []
    return {"messages": [*messages, *(body for message in branch for body in _message_bodies(message))]}


def _message_bodies(message: Message) -> list[dict[str, Any]]:
    """Return a message in the API's format. A message with tool calls becomes several.

    The model's template decides which thoughts are included in the prompt.
    """
    thought = str(message.details.get(THOUGHT) or "")
    if rounds := rounds_of(message.details):
        return prompt_bodies(message.text, thought, rounds)
    body: dict[str, Any] = {"role": str(message.role), "content": content(message)}
    if pictures := pictures_of(message):
        body["pictures"] = pictures
    return [body | ({"thought": thought} if thought else {})]


def _begun_at(chat: Chat, branch: Sequence[Message]) -> float | None:
    """Return the time of the branch's first message, even if that message is no longer sent."""
    end = branch[-1].id if branch else chat.leaf
    return next((max(0.0, message.made_at) for message in path_to(chat, end)), None)


def content(message: Message) -> str:
    """Return the text of a message as sent to the model, including that of attached files."""
    parts = [message.text] if message.text else []
    files = [file for file in message.details.get(ATTACHMENTS) or () if not is_picture(file)]
    parts += [f"File {file.get('name')}:\n\n{_fenced(str(file.get('text')))}" for file in files]
    return "\n\n".join(parts)


def _fenced(text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"
