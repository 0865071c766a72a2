"""The conversion between text and tokens, in a separate worker that loads only the vocabulary of a model."""

from __future__ import annotations

import asyncio
import codecs
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import msgspec

from app.catalog.gguf.gguf_file import part_paths
from app.core.errors import AppError, BadInput, Reason, StageLost
from app.inference.worker.worker import HERE, Worker
from backends import worker_orders
from backends.contract import JsonScalar, LocalTime

VOCABULARY_S = 60.0
TOKENIZE_S = 10.0
# The worker itself limits a template to 1 s of CPU time (SAFETY.md 7), and to another second for finding out which
# features it supports. This limit is for anything that the worker cannot stop, and allows for a busy computer.
RENDER_S = 10.0
RENDER_BYTES = 64 << 20  # allowed growth of a worker's memory while it renders
RENDER_LOOK_S = 0.05
MAX_TEXT_CHARS = 1 << 20
MOST_OPTIONS, MOST_OPTION_CHARS = 64, 4096
Message = Mapping[str, Any]  # role, content, and other fields for the chat template
Answers = asyncio.Queue[worker_orders.WorkerAnswer | StageLost]


class Detokenizer:
    """A converter from tokens to text. It holds back the bytes of incomplete characters."""

    def __init__(self, pieces: Sequence[bytes], signs: Mapping[int, bytes] | None = None) -> None:
        """Create a converter for a vocabulary.

        signs: the texts to use for control tokens, which have no text otherwise.
        """
        self._pieces, self._signs = pieces, signs or {}
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token: int) -> str:
        """Return the text that this token completes, or "" for a token outside the vocabulary."""
        piece = self._pieces[token] if 0 <= token < len(self._pieces) else b""
        return self._decoder.decode(piece or self._signs.get(token, b""))

    def flush(self) -> str:
        """Return replacement characters for the bytes of an incomplete character, if any."""
        return self._decoder.decode(b"", final=True)


class StopFinder:
    """A search for stop strings in text that arrives in parts."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._held = ""  # text that may be the beginning of a stop string
        self.match: str | None = None  # the stop string that was found

    @property
    def found(self) -> bool:
        """Return whether a stop string has occurred."""
        return self.match is not None

    def push(self, text: str) -> str:
        """Return the text that may be shown now, which excludes a stop string and everything after it."""
        if self.found or not self._stops:
            return "" if self.found else text
        text = self._held + text
        places = [(place, stop) for stop in self._stops if (place := text.find(stop)) >= 0]
        if places:
            (place, self.match), self._held = min(places), ""
            return text[:place]
        keep = max(_tail(text, stop) for stop in self._stops)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def flush(self) -> str:
        """Return the text that is still held back when no more text will arrive."""
        held, self._held = self._held, ""
        return held


def _tail(text: str, stop: str) -> int:
    """Return the length of the longest suffix of `text` that is a prefix of `stop`."""
    for length in range(min(len(text), len(stop) - 1), 0, -1):
        if text.endswith(stop[:length]):
            return length
    return 0


class Prompt(NamedTuple):
    """A rendered chat, up to the position at which the answer begins or continues."""

    ids: tuple[int, ...]
    text: str  # the output of the template
    folded: tuple[str, ...] = ()  # features that the template does not support: "system", "tools", "turns"
    # the marker that ends each stretch of text, and the tokens of the stretch; the last stretch ends without one
    stretches: tuple[tuple[str, tuple[int, ...]], ...] = ()


class TextWorker:
    """The text worker of one model. It executes one order at a time, and is restarted if it dies."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._worker: Worker | None = None
        self._one_order = asyncio.Lock()
        self._pieces: list[bytes] = []
        self._most_bytes = 0
        self._vocabulary: worker_orders.VocabularyOpened | None = None
        self._left: tuple[Worker, Answers] | None = None  # a rendering in progress whose caller was canceled

    @classmethod
    async def open(cls, path: str) -> TextWorker:
        """Load the vocabulary of a GGUF file. Raises BadInput or StageLost."""
        text = cls(path)
        try:
            async with text._one_order:
                await text._ready()
        except BaseException:
            await text.close()
            raise
        return text

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def vocabulary(self) -> worker_orders.VocabularyOpened:
        assert self._vocabulary is not None
        return self._vocabulary

    @property
    def pieces(self) -> Sequence[bytes]:
        """Return the bytes of each token. Control tokens have none."""
        return self._pieces

    @property
    def worker(self) -> Worker | None:
        return self._worker

    def detokenizer(self, signs: Mapping[int, bytes] | None = None) -> Detokenizer:
        return Detokenizer(self._pieces, signs)

    async def tokenize(self, text: str, *, special: bool = False, bos: bool = True) -> tuple[int, ...]:
        """Return the token ids of a text. Raises BadInput or StageLost.

        special: whether to parse the names of control tokens. bos: whether to prepend the BOS token if the model
        expects it.
        """
        _check_length(len(text))
        order = worker_orders.Tokenize(request=0, text=text, special=special, bos=bos)
        async with self._one_order:
            worker = await self._ready()
            try:
                return (await worker.ask(order, worker_orders.Tokenized, TOKENIZE_S)).ids
            except StageLost as error:
                if _took_too_long(error):  # the text is to blame, not a machine
                    raise BadInput("text_too_slow", seconds=TOKENIZE_S) from None
                raise

    async def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[dict[str, Any]] = (),
        *,
        options: Mapping[str, JsonScalar] | None = None,
        begun_at: LocalTime | None = None,
    ) -> str:
        """Apply the model's chat template, up to the beginning of the answer. Raises BadInput."""
        async with self._one_order:
            order = _order(messages, tools, options=options, begun_at=begun_at)
            return (await self._render(order)).text

    async def prompt(
        self,
        messages: Sequence[Message],
        tools: Sequence[dict[str, Any]] = (),
        *,
        options: Mapping[str, JsonScalar] | None = None,
        begun_at: LocalTime | None = None,
        apart: Sequence[str] = (),
    ) -> Prompt:
        """Return the token ids and the text of a chat, up to the beginning of the answer.

        apart: markers in the text that represent pictures. If there are any, the text between them is tokenized piece
        by piece, and the result has `stretches` instead of ids.

        If the last message is the assistant's, the answer continues it. options: additional template variables.
        begun_at: the time at which the chat began, for templates that state the date. Raises BadInput or StageLost.
        """
        continues = _is_begun(messages)
        order = _order(messages, tools, options=options, begun_at=begun_at, ids=not apart, continues=continues)
        async with self._one_order:  # a single order renders and tokenizes, since each order has to wake the worker
            prompt = await self._render(order)
        if apart:
            return prompt._replace(stretches=await self._stretches(prompt.text, apart))
        ids, vocabulary = prompt.ids, self.vocabulary
        twice = len(ids) > 1 and vocabulary.adds_bos and ids[0] == ids[1] == vocabulary.bos
        return prompt._replace(ids=ids[1:]) if twice else prompt  # many templates write the BOS token themselves

    async def _stretches(self, text: str, markers: Sequence[str]) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Tokenize the text between markers. Each stretch is tokenized separately, as llama.cpp does around
        pictures.
        """
        pieces = re.split(f"({'|'.join(map(re.escape, markers))})", text)
        stretches, vocabulary = list[tuple[str, tuple[int, ...]]](), self.vocabulary
        for words, marker in zip(pieces[::2], [*pieces[1::2], ""], strict=True):
            ids = await self.tokenize(words, special=True, bos=False) if words else ()
            if not stretches and vocabulary.adds_bos and ids[:1] != (vocabulary.bos,):
                ids = (vocabulary.bos, *ids)
            stretches.append((marker, ids))
        return tuple(stretches)

    async def close(self) -> None:
        if self._worker is not None:
            await self._worker.close()

    async def _ready(self) -> Worker:
        """Return the worker. If there is none or it has died, start a new one with the vocabulary."""
        if self._worker is not None and self._worker.died is None:
            return self._worker
        self._worker = await Worker.start(HERE, reads=part_paths(Path(self._path)))
        order = worker_orders.OpenVocabulary(request=0, path=self._path)
        vocabulary, *parts = await self._worker.ask_parts(
            order, (worker_orders.VocabularyOpened, worker_orders.Pieces), VOCABULARY_S
        )
        assert isinstance(vocabulary, worker_orders.VocabularyOpened)
        self._vocabulary = vocabulary
        pieces = [piece for part in parts if isinstance(part, worker_orders.Pieces) for piece in part.pieces]
        if len(pieces) != vocabulary.n_vocab:
            self._worker.kill(Reason("worker_garbled", {"worker": HERE, "cause": Reason("pieces")}))
            raise StageLost("worker_garbled", worker=HERE, cause=Reason("pieces"))
        self._pieces = pieces
        self._look()
        return self._worker

    def _look(self) -> None:
        assert self._worker is not None
        self._most_bytes = self._worker.resident_bytes() + RENDER_BYTES

    async def _render(self, order: worker_orders.Render) -> Prompt:
        """Return the rendered text and, if requested, its token ids. Raises BadInput or StageLost."""
        await self._finish_abandoned_render()
        worker = await self._ready()
        answers: Answers = asyncio.Queue()
        worker.send_order(order, answers.put_nowait)
        rendered = await self._rendered(worker, answers)
        _check_length(len(rendered.text))
        if rendered.last:
            return Prompt(rendered.ids, rendered.text, rendered.folded)
        try:
            async with asyncio.timeout(TOKENIZE_S):
                ids = worker.expected(await answers.get(), worker_orders.Tokenized).ids
                return Prompt(ids, rendered.text, rendered.folded)
        except TimeoutError:
            error = BadInput("text_too_slow", seconds=TOKENIZE_S)
            worker.kill(error.reason)
            await worker.wait_dead()
            raise error from None

    async def _finish_abandoned_render(self) -> None:
        """Wait for abandoned work to finish, so that its time does not count against the next caller."""
        left, self._left = self._left, None
        if left is not None and left[0].died is None:
            with suppress(AppError):
                await self._rendered(*left)

    async def _rendered(self, worker: Worker, answers: Answers) -> worker_orders.Rendered:
        """Return the rendered chat.

        A template is untrusted code, so its time and memory are limited. A worker that exceeds a limit is killed.
        """
        try:
            return await self._watched(worker, answers)
        except asyncio.CancelledError:
            self._left = worker, answers
            raise

    async def _watched(self, worker: Worker, answers: Answers) -> worker_orders.Rendered:
        looks, ends_at = False, time.monotonic() + RENDER_S
        while True:
            try:
                async with asyncio.timeout(RENDER_LOOK_S):
                    rendered = worker.expected(await answers.get(), worker_orders.Rendered)
                if looks:  # it took long and may have retained memory, which must not count against the next text
                    self._look()
                return rendered
            except TimeoutError:
                looks = True
                if worker.resident_bytes() > self._most_bytes:
                    error = BadInput("template_large", allowed_bytes=RENDER_BYTES)
                elif time.monotonic() > ends_at:
                    error = BadInput("template_slow", seconds=RENDER_S)
                else:
                    continue
            worker.kill(error.reason)
            await worker.wait_dead()
            raise error


def _took_too_long(error: StageLost) -> bool:
    """Return whether the worker was busy all the time, not counting time during which the system had stopped it."""
    return error.reason.code == "worker_hung" and error.reason.number("seconds") >= TOKENIZE_S


def local_time(epoch_seconds: float | None = None) -> LocalTime:
    """Return a moment in local time, by default the current time."""
    now = time.time() if epoch_seconds is None else epoch_seconds
    offset = datetime.fromtimestamp(now).astimezone().utcoffset()
    return LocalTime(now, int(offset.total_seconds()) if offset is not None else 0)


def check_options(options: Mapping[str, Any]) -> None:
    """Raise BadInput if there are too many template options, or if any of them is too long or nested."""
    for at, (name, value) in enumerate(options.items()):
        is_plain = isinstance(value, str | int | float | bool | None)
        is_short = len(name) + len(str(value) if is_plain else "") <= MOST_OPTION_CHARS
        if at >= MOST_OPTIONS or not is_plain or not is_short:
            raise BadInput("template_option_bad", name=name[:100], most=MOST_OPTIONS, characters=MOST_OPTION_CHARS)


def checked_length(messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> int:
    """Return the number of characters in a chat and its tools. Raises BadInput if there are too many."""
    # The definitions of tools and the arguments of their calls are part of the prompt too.
    called = [message["tool_calls"] for message in messages if "tool_calls" in message]
    beside = len(msgspec.json.encode([called, tools]).decode()) if called or tools else 0
    texts = (value for message in messages for value in message.values() if isinstance(value, str))
    characters = sum(map(len, texts)) + beside
    _check_length(characters)
    return characters


def _check_length(characters: int) -> None:
    if characters > MAX_TEXT_CHARS:
        raise BadInput("text_too_long", characters=characters, most=MAX_TEXT_CHARS)


def _order(
    messages: Sequence[Message],
    tools: Sequence[dict[str, Any]],
    *,
    options: Mapping[str, JsonScalar] | None,
    begun_at: LocalTime | None,
    ids: bool = False,
    continues: bool = False,
) -> worker_orders.Render:
    check_options(options or {})
    checked_length(messages, tools)
    copies = tuple(dict(message) for message in messages)
    return worker_orders.Render(
        request=0,
        messages=copies,
        tools=tuple(tools),
        now=begun_at or local_time(),
        options=dict(options or {}),
        ids=ids,
        continues=continues,
    )


def _is_begun(messages: Sequence[Message]) -> bool:
    """Return whether the last message is an unfinished answer to be continued."""
    last = messages[-1]
    return len(messages) > 1 and last["role"] == "assistant" and "tool_calls" not in last
