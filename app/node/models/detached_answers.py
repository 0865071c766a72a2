"""Detached answers, which continue without their client. A restarted window can follow them again."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field

from app.api.responses import Answer
from app.core.errors import AppError, BadInput, bug
from app.inference.pipeline.completion import Delta
from app.node.control.answer_conversion import AnswerPart

log = logging.getLogger(__name__)

Parts = AsyncGenerator[AnswerPart, None]
KEPT_S = 3600.0  # after its end, for a window that returns
MOST_OVER = 16  # ended answers that were not fetched


@dataclass(eq=False)
class _DetachedAnswer:
    """The text of one answer that has been generated so far, kept in memory only."""

    pieces: list[str] = field(default_factory=list)  # pieces of the text
    thoughts: list[str] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)
    latest: AnswerPart | None = None  # the last part, if it was not a delta
    done: Answer | None = None
    error: AppError | None = None
    over_s: float | None = None
    followers: set[asyncio.Queue[AnswerPart | None]] = field(default_factory=set)
    task: asyncio.Task[None] | None = None

    def take(self, part: AnswerPart) -> None:
        if isinstance(part, Answer):
            self.done = part
            return
        self.latest = None if isinstance(part, Delta) else part
        if isinstance(part, Delta):
            if part.was_thought:
                self.thoughts += self.pieces
                self.pieces.clear()
            self.pieces.append(part.text)
            self.thoughts.append(part.thought)
            self.token_ids += part.token_ids
        for follower in self.followers:
            follower.put_nowait(part)

    def so_far(self) -> list[AnswerPart]:
        delta = Delta("".join(self.pieces), tuple(self.token_ids), thought="".join(self.thoughts))
        has_any = bool(self.token_ids or delta.text or delta.thought)  # another server's text has no ids
        return [*([delta] if has_any else ()), *([self.latest] if self.latest else ())]

    def end(self, over_s: float) -> None:
        self.over_s = over_s
        for follower in self.followers:
            follower.put_nowait(None)


class DetachedAnswers:
    """The detached answers by key. They continue even if no client follows them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._kept: dict[str, _DetachedAnswer] = {}
        self._clock = clock
        self._group: asyncio.TaskGroup | None = None

    def open(self, group: asyncio.TaskGroup) -> None:
        """Run the answers as tasks of this group."""
        self._group = group

    @property
    def keys(self) -> list[str]:
        """The keys of answers in progress, and of finished answers that were not fetched completely."""
        self._forget_old()
        return list(self._kept)

    async def begin(self, key: str, work: Parts) -> None:
        """Start collecting an answer from `work`. An earlier answer with the same key is stopped first."""
        await self.stop(key)
        self._forget_old()
        assert self._group is not None
        kept = self._kept[key] = _DetachedAnswer()
        kept.task = self._group.create_task(self._written(kept, work), name="detached answer")

    async def follow(self, key: str) -> Parts:
        """Yield the text generated so far as one part, then each new part. Once fetched completely, the answer is
        forgotten.

        Raises BadInput if there is no such answer, or the error that ended it.
        """
        kept = self._kept.get(key)
        if kept is None:
            raise BadInput("answer_gone")
        parts: asyncio.Queue[AnswerPart | None] = asyncio.Queue()
        kept.followers.add(parts)
        if kept.over_s is not None:
            parts.put_nowait(None)
        try:
            for known in kept.so_far():
                yield known
            while (part := await parts.get()) is not None:
                yield part
            if kept.error is not None:
                self._forget(key, kept)
                raise kept.error
            if kept.done is not None:
                yield kept.done
        finally:
            kept.followers.discard(parts)
        self._forget(key, kept)

    async def stop(self, key: str) -> None:
        """Stop and forget the answer."""
        kept = self._kept.pop(key, None)
        if kept is not None and kept.task is not None:
            kept.task.cancel()
            await asyncio.wait([kept.task])

    async def close(self) -> None:
        for key in list(self._kept):
            await self.stop(key)

    async def _written(self, kept: _DetachedAnswer, work: Parts) -> None:
        try:
            async with aclosing(work) as parts:
                async for part in parts:
                    kept.take(part)
        except AppError as error:
            kept.error = error
        except Exception as error:  # an unexpected error must not end the node
            log.exception("a detached answer failed")
            kept.error = bug(error)
        finally:
            kept.end(self._clock())

    def _forget(self, key: str, kept: _DetachedAnswer) -> None:
        if self._kept.get(key) is kept:
            del self._kept[key]

    def _forget_old(self) -> None:
        over = [(key, kept.over_s) for key, kept in self._kept.items() if kept.over_s is not None]
        for place, (key, over_s) in enumerate(reversed(over)):
            if place >= MOST_OVER or self._clock() - over_s > KEPT_S:
                del self._kept[key]
