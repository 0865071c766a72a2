"""The measured speed of other servers: one prompt, one answer, and several answers at once.

A measurement costs tokens, so it is made only on request. Its results are saved.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

import msgspec

from app.api.chat_api import MOST_MEASURED_TOKENS, StreamsSpeed, UpstreamSpeed
from app.core.errors import BadInput, Busy, Reason, Unreachable
from app.gateway.api_request import AnswerEnd, ApiRequest
from app.gateway.upstreams.upstreams import UpstreamChoice, Upstreams
from app.machine.json_state import read_json_or_default
from app.machine.paths import write_atomically
from app.machine.settings import Upstream

log = logging.getLogger(__name__)

STREAMS = (2, 4, 8)  # at once, after a single one
GAIN = 1.15  # how much faster together more streams must be to count as a gain
PROMPT_WORDS = 256  # of the prompt whose first token is timed
ANSWER_TOKENS = 64
MEASURE_SECONDS = 300.0
FEWEST_PIECES = 4  # with fewer, the server does not stream, and its answers are timed as a whole
WORDS = ("river", "stone", "lamp", "garden", "paper", "window", "bread", "winter")
QUESTION = "Tell a long story, of at least three hundred words, about the following:"

Speeds = dict[str, dict[str, UpstreamSpeed]]  # by server and local model name


@dataclass(slots=True)
class _Stream:
    """One measured answer. The times are those of a monotonic clock."""

    begun: float
    first: float = 0.0
    last: float = 0.0
    n_pieces: int = 0
    tokens: int = 0
    prompt_tokens: int = 0


def together_tok_s(streams: list[_Stream]) -> float:
    """Return how many tokens a second these concurrent answers had together.

    The prompts are left out, except with a server that sends each answer in one piece.
    """
    last = max(stream.last for stream in streams)
    if min(stream.n_pieces for stream in streams) >= FEWEST_PIECES:
        tokens, begun = sum(stream.tokens - 1 for stream in streams), min(stream.first for stream in streams)
    else:
        tokens, begun = sum(stream.tokens for stream in streams), min(stream.begun for stream in streams)
    return tokens / (last - begun) if last > begun else 0.0


class UpstreamSpeeds:
    """The measured speeds of the upstreams, and the measurement itself."""

    def __init__(self, upstreams: Upstreams, file: Path, changed: Callable[[], None] = lambda: None) -> None:
        self._upstreams, self._file, self.changed = upstreams, file, changed
        self._known = read_json_or_default(file, Speeds, "the measured speed of other servers")
        self._measuring = asyncio.Lock()

    def of(self, name: str) -> dict[str, UpstreamSpeed]:
        """Return the measured speeds of a server, by local model name."""
        return self._known.get(name, {})

    async def forget(self, name: str) -> None:
        """Forget the speeds of a server, because it was removed or its address has changed."""
        if self._known.pop(name, None) is not None:
            await self._save()

    async def measure(self, name: str, upstream: Upstream, model: str = "") -> UpstreamSpeed:
        """Measure a server that is on, with the named model or its first one. Raises BadInput, Busy, Unreachable."""
        if not upstream.on:
            raise BadInput("upstream_measure_off", name=name)
        model = model or next(iter(upstream.models))
        if model not in upstream.models:
            raise BadInput("upstream_model_unknown", name=name, model=model[:100], there=", ".join(upstream.models))
        chosen = UpstreamChoice(name, upstream, upstream.models[model])
        if self._measuring.locked():
            raise Busy("upstream_measuring")
        async with self._measuring:
            self._upstreams.require_left(name, upstream, MOST_MEASURED_TOKENS)
            spent = self._upstreams.spent.get(name, 0)
            try:
                async with asyncio.timeout(MEASURE_SECONDS):
                    measured = await self._measured(chosen)
            except TimeoutError:
                raise Unreachable("upstream_test_failed", name=name, why=Reason("silent_too_long")) from None
        cost = max(0, self._upstreams.spent.get(name, 0) - spent)
        speed = msgspec.structs.replace(measured, spent_tokens=cost)
        self._known[name] = {**self.of(name), model: speed}
        await self._save()
        self.changed()
        return speed

    async def _measured(self, chosen: UpstreamChoice) -> UpstreamSpeed:
        single = await self._stream(chosen, PROMPT_WORDS)
        if single.tokens < FEWEST_PIECES:
            raise Unreachable("upstream_test_failed", name=chosen.name, why=Reason("answer_too_short"))
        alone = together_tok_s([single])
        at_once = [StreamsSpeed(1, alone)]
        for n_streams in STREAMS:
            try:
                streams = await self._several(chosen, n_streams)
            except Busy:  # its limit of concurrent requests
                break
            at_once.append(StreamsSpeed(n_streams, together_tok_s(streams)))
            if at_once[-1].tok_s < at_once[-2].tok_s * GAIN:
                break
        return UpstreamSpeed(
            at=time.time(),
            prompt_tokens=single.prompt_tokens,
            ttft_s=single.first - single.begun,
            decode_tok_s=alone,
            at_once=at_once,
        )

    async def _several(self, chosen: UpstreamChoice, n_streams: int) -> list[_Stream]:
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(self._stream(chosen, len(WORDS)), name=f"measured stream {number}")
                    for number in range(n_streams)
                ]
        except* (Busy, BadInput, Unreachable) as errors:
            first = errors.exceptions[0]
            while isinstance(first, BaseExceptionGroup):
                first = first.exceptions[0]
            raise first from None
        return [task.result() for task in tasks]

    async def _stream(self, chosen: UpstreamChoice, n_words: int) -> _Stream:
        """Request one answer. Its prompt begins with a random word, so the server cannot have read it before."""
        words = " ".join(WORDS[at % len(WORDS)] for at in range(n_words))
        text = f"{secrets.token_hex(4)}. {QUESTION} {words}."
        request = ApiRequest("", ({"role": "user", "content": text},), max_tokens=ANSWER_TOKENS)
        stream = _Stream(time.monotonic())
        answer = self._upstreams.answer(chosen, request, 0, f"measure-{secrets.token_hex(4)}", note=False)
        async with aclosing(answer) as pieces:
            async for piece in pieces:
                if isinstance(piece, AnswerEnd):
                    stream.tokens, stream.prompt_tokens = piece.answer_tokens, piece.prompt_tokens
                    continue
                stream.last = time.monotonic()
                stream.first = stream.first or stream.last
                stream.n_pieces += 1
        stream.first, stream.last = stream.first or time.monotonic(), stream.last or time.monotonic()
        return stream

    async def _save(self) -> None:
        try:
            await asyncio.to_thread(write_atomically, self._file, msgspec.json.encode(self._known))
        except OSError as error:
            log.warning("the measured speed of other servers cannot be saved: %s", error)
