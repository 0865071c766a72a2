"""A chat, or a bare prompt, on a pipeline: text in, pieces of text out."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Protocol

from app.core.errors import BadInput
from app.core.recovery import Notice, Recovered
from app.core.whose import OWNER, Whose
from app.inference.detokenizer import Detokenizer, StopFinder
from app.inference.measure import StageFigures
from app.inference.sequences import Finish, Request, Token
from app.inference.text import Message, Text, local_time
from backends.call_format import CallFormat
from backends.contract import GREEDY, LocalTime, Sampling, Scalar

MAX_STOPS = 8
MAX_STOP_CHARS = 256
DEFAULT_MAX_TOKENS = 1024
MOST_BEGINNINGS = 4096  # of conversations, kept for the date that their templates name


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: exactly one of `messages`, `prompt` (as it is) and `prompt_ids`."""

    messages: Sequence[Message] | None = None
    tools: tuple[dict[str, Any], ...] = ()  # what the answer may call, for the chat template
    template_options: Mapping[str, Scalar] = field(default_factory=dict)  # its further variables
    begun_at: LocalTime | None = None  # when this chat began, for templates that name the date
    prompt: str | None = None
    prompt_ids: tuple[int, ...] | None = None
    sampling: Sampling = GREEDY
    max_tokens: int = DEFAULT_MAX_TOKENS
    stop: tuple[str, ...] = ()
    conversation: str | None = None  # a later question of it reuses what it shares with this one
    ignore_end: bool = False  # go on past end tokens, for benchmarks
    request: str = ""  # its id, for logs
    whose: Whose = OWNER
    guesses: bool = True  # as Request.guesses
    signs: Mapping[int, bytes] = field(default_factory=dict)  # control tokens that are text here
    came_at: float = field(default_factory=time.monotonic)
    read: Callable[[int], None] | None = None  # as Request.read


@dataclass(frozen=True, slots=True)
class Delta:
    """More text, and the tokens that came with it. Text may lag behind while a character is incomplete."""

    text: str
    token_ids: tuple[int, ...]
    likely: tuple[tuple[bytes, float], ...] = ()  # as Token.likely, with the bytes of each


@dataclass(frozen=True, slots=True)
class Summary:
    """The whole answer, at its end."""

    text: str
    token_ids: tuple[int, ...]
    prompt_tokens: int
    reused_tokens: int
    before_s: float  # from `came_at` to the pipeline: the chat template, the tokens
    queued_s: float
    ttft_s: float
    decode_tok_s: float
    finish_reason: str  # "stop" or "length"
    stop: str | None  # the stop string that ended it, if one did
    stages: tuple[StageFigures, ...]
    recoveries: tuple[Recovered, ...] = ()
    guessed: int = 0  # tokens that were computed before they were known
    guessed_right: int = 0  # those of them that came
    place: int = 0  # of several pipelines of the model, which one ended it


class Generates(Protocol):
    """A pipeline, or several of one model."""

    def generate(self, request: Request) -> AsyncGenerator[Token | Notice | Finish, None]: ...


class Answerer:
    """Answers questions with one model."""

    def __init__(self, text: Text, pipeline: Generates) -> None:
        self._text = text
        self._pipeline = pipeline
        self._control: dict[str, int | None] = {}  # asked for with each question
        self._beginnings = Beginnings()

    async def answer(self, question: Question) -> AsyncGenerator[Delta | Notice | Summary, None]:
        """Yield Deltas, Notices when a stage was lost, and one Summary. Closing it cancels: use contextlib.aclosing.

        Raises BadInput, Busy or StageLost; Deltas yielded before are right.
        """
        _check(question)
        reader = Reader(self._text.detokenizer(question.signs), question.stop)
        request = await self._request(question, reader)
        before_s = max(0.0, time.monotonic() - question.came_at)
        parts: list[str] = []
        ids: list[int] = []
        async with aclosing(self._pipeline.generate(request)) as stream:
            async for item in stream:
                if isinstance(item, Finish):
                    finish = item
                    break
                if isinstance(item, Notice):
                    yield item
                    continue
                ids.append(item.id)
                parts.append(reader.texts.popleft())
                likely = tuple((self._piece(token), log) for token, log in item.likely)
                yield Delta(parts[-1], (item.id,), likely)
        if rest := reader.flush():
            parts.append(rest)
            yield Delta(rest, ())
        yield _summary("".join(parts), ids, finish, reader.stop, before_s)

    async def count(self, text: str) -> int:
        """How many tokens a text is. Raises BadInput or StageLost."""
        return len(await self._text.tokenize(text, bos=False))

    async def prompt_tokens(self, question: Question) -> int:
        """How many tokens a question is. Raises as `answer`."""
        return len(await self._ids(question))

    @property
    def call_format(self) -> CallFormat | None:
        """How this model's chat template has tools called; None: in no way we know."""
        return self._text.vocabulary.calls

    async def control_token(self, name: str) -> int | None:
        """The one token that is written so in templates and has no text of its own, if it is one."""
        if name not in self._control:
            ids = await self._text.tokenize(name, special=True, bos=False)
            is_one = len(ids) == 1 and not self._piece(ids[0])
            self._control[name] = ids[0] if is_one else None
        return self._control[name]

    def _piece(self, token: int) -> bytes:
        pieces = self._text.pieces
        return pieces[token] if 0 <= token < len(pieces) else b""

    async def _ids(self, question: Question) -> tuple[int, ...]:
        if question.prompt_ids is not None:
            return question.prompt_ids
        if question.prompt is not None:
            return await self._text.tokenize(question.prompt)
        prompt = await self._text.prompt(
            question.messages or (),
            question.tools,
            options=question.template_options,
            begun_at=self._beginnings.of(question),
        )
        return prompt.ids

    async def _request(self, question: Question, reader: Reader) -> Request:
        return Request(
            await self._ids(question),
            question.sampling,
            question.max_tokens,
            () if question.ignore_end else self._text.vocabulary.end_tokens,
            question.conversation,
            reader.push,
            question.request,
            question.guesses,
            goes_first=question.whose == OWNER,
            read=question.read,
        )


class Beginnings:
    """When each conversation began, of those whose program does not say so. Only the latest are known."""

    def __init__(self, most: int = MOST_BEGINNINGS) -> None:
        self._most = most
        self._known: OrderedDict[str, LocalTime] = OrderedDict()

    def of(self, question: Question) -> LocalTime:
        """The same moment for each turn of a conversation: a later date at its beginning would have all of it read
        again. One that is nowhere but at its beginning begins now, though it was asked the same before."""
        if question.begun_at is not None or question.conversation is None:
            return question.begun_at or local_time()
        answered = any(one["role"] == "assistant" for one in question.messages or ())
        found = self._known.pop(question.conversation, None) if answered else None
        self._known[question.conversation] = found = found or local_time()
        while len(self._known) > self._most:
            self._known.popitem(last=False)
        return found


class Reader:
    """Reads an answer's tokens as they are sampled, so that a stop string ends it at once."""

    def __init__(self, detokenizer: Detokenizer, stops: Sequence[str]) -> None:
        self._detokenizer = detokenizer
        self._stops = StopFinder(stops)
        self.texts: deque[str] = deque()  # of each token, until it is told

    def push(self, token: int) -> bool:
        """Take in a token; True when the answer ends with it."""
        self.texts.append(self._stops.push(self._detokenizer.push(token)))
        return self._stops.found

    @property
    def stop(self) -> str | None:
        """The stop string that has come."""
        return self._stops.match

    def flush(self) -> str:
        """What was held back, at the end."""
        return self._stops.push(self._detokenizer.flush()) + self._stops.flush()


def _check(question: Question) -> None:
    given = (question.messages, question.prompt, question.prompt_ids)
    if sum(what is not None for what in given) != 1:
        raise BadInput("prompt_unclear")
    if len(question.stop) > MAX_STOPS or any(len(stop) > MAX_STOP_CHARS for stop in question.stop):
        raise BadInput("stops_too_many", most=MAX_STOPS, characters=MAX_STOP_CHARS)


def _summary(
    text: str, ids: list[int], finish: Finish, stop: str | None, before_s: float
) -> Summary:
    figures = finish.figures
    return Summary(
        text=text,
        token_ids=tuple(ids),
        prompt_tokens=figures.prompt_tokens,
        reused_tokens=figures.reused_tokens,
        before_s=before_s,
        queued_s=figures.queued_s,
        ttft_s=figures.ttft_s,
        decode_tok_s=figures.decode_tok_s,
        finish_reason=finish.reason,
        stop=stop,
        stages=figures.stages,
        recoveries=figures.recoveries,
        guessed=figures.guessed,
        guessed_right=figures.guessed_right,
        place=figures.place,
    )
