"""A wish to pieces of an answer: the model, the queue, the grammar, the calls in what it writes."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from app.core.errors import AppError, BadInput, Busy, Unreachable
from app.core.json_schema.json_grammar import check_size, json_grammar
from app.core.json_schema.json_references import localised
from app.core.log_line import about
from app.core.scheduler.requester import KEYLESS, Whose
from app.core.tools.system_messages import one_system
from app.core.tools.tool_grammar import calls_grammar, calls_or_json
from app.core.tools.tool_messages import as_told
from app.gateway.access.token_budget import Budget
from app.gateway.answer_parts import Talk
from app.gateway.api_request import MAX_SEED, MOST_CALLS_OF_ALL, Origin, Piece, Wish
from app.gateway.fair_queue import FairQueue
from app.gateway.metrics import Figures
from app.gateway.upstreams.upstream_dialect import stays
from app.gateway.upstreams.upstreams import Chosen, Upstreams
from app.inference.pipeline.completion import Answerer, Question
from app.inference.worker.tokenizer import MAX_TEXT_CHARS
from app.node.control.shelf_routes import Models
from app.node.models.model_manager import Hosting
from app.node.placement.placement import Running

log = logging.getLogger(__name__)

Json = dict[str, Any]
LACKING = frozenset({"model_unknown", "model_inexact", "api_model_not_loaded"})
ANY_NAMES = ("", "default")  # whatever is loaded
AHEAD = 64  # pieces of several answers that nobody has taken yet
LEAST_ROOM = 1024  # tokens of an answer when nobody says how many, or a quarter of the context


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks: the name of its key, and of this request; and when it came. program: one of several behind the key.
    passed: the marks of who has sent the request on."""

    key: str
    request: str
    program: str = ""
    at: float = field(default_factory=time.monotonic)
    origin: Origin = field(default_factory=Origin)
    whose: Whose = KEYLESS
    passed: tuple[str, ...] = ()


class Answering:
    """Answers wishes with the pool's model. Safe to ask many things at once."""

    def __init__(
        self,
        hosting: Callable[[], Hosting],
        models: Callable[[], Models],
        may_load: Callable[[], bool],
        figures: Figures,
        budget: Budget,
        upstreams: Upstreams,
    ) -> None:
        self._hosting, self._models, self._may_load = hosting, models, may_load
        self._figures, self._budget, self._upstreams = figures, budget, upstreams
        self.queue = FairQueue(self._room, by=self._by)

    async def model(self, name: str) -> str:
        """The name of the model that will answer. Raises BadInput for one that will not."""
        try:
            return await self._here(name)
        except BadInput as error:
            name = name.removesuffix(":latest")
            if error.reason.code in LACKING:
                if self._upstreams.serving(name):
                    return name
                self._upstreams.check_lacked(name, error)
            raise

    @asynccontextmanager
    async def turn(self, key: str, model: str) -> AsyncGenerator[str, None]:
        """Wait for a turn, and have the name of the model that answers then. Raises BadInput, Busy.

        Who names none waits for whatever is first when there is room, not for what was so when he asked.
        """
        name = await self._here(model)
        waits_for = "" if model.removesuffix(":latest") in ANY_NAMES else name
        async with self.queue.turn(key, waits_for) as turn:
            name = await self._here(model)
            self.queue.answered_by(turn, name)
            yield name

    def elsewhere(self) -> list[str]:
        """Models that upstreams answer for."""
        return self._upstreams.models()

    def ready(self) -> dict[str, Running]:
        """The models that answer now, by their names."""
        return {one.entry.name: one for one in self._hosting().loaded if one.is_ready}

    async def bring(self, model: str, asker: Asker) -> None:
        """Have a model loaded, where programs may. A token of it shows that it answers. Raises as `answer`."""
        self._budget.check(asker.key)
        if model.removesuffix(":latest") in self.elsewhere():
            return
        if self.brings(await self._here(model)):
            wish = Wish(model, prompt=".", max_tokens=1)
            async with aclosing(self._by_the_pool(wish, asker, 0)) as pieces:
                async for _ in pieces:
                    pass

    async def _here(self, name: str) -> str:
        """As `model`, without upstreams."""
        loaded = self._hosting().loaded
        name = name.removesuffix(":latest")
        there = loaded.first if name in ANY_NAMES else loaded.named(name)
        if there is not None:
            return there.entry.name
        known = loaded.names
        if name in ANY_NAMES:
            self._hosting().check_not_failed()
        entry = await self._models().named("guide" if name in ANY_NAMES else name, known or None)
        if not entry.model.writes:
            raise BadInput(
                "model_only_ranks" if entry.model.ranks else "model_only_embeds", name=entry.name
            )
        if known and entry.name not in known and not self._may_load():
            raise BadInput("api_model_not_loaded", name=entry.name, loaded=", ".join(known))
        return entry.name

    async def answer(self, wish: Wish, asker: Asker) -> AsyncGenerator[Piece, None]:
        """The pieces of `wish.n` answers. Closing it cancels: use contextlib.aclosing. Raises AppError."""
        if wish.n == 1:
            async with aclosing(self._one(wish, asker, 0)) as pieces:
                async for piece in pieces:
                    yield piece
            return
        error, closed = None, False
        news: asyncio.Queue[Piece | AppError | None] = asyncio.Queue(AHEAD)
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._into(news, wish, asker, index), name=f"answer {index}")
                for index in range(wish.n)
            ]
            left = wish.n
            try:
                while left and error is None:
                    match await news.get():
                        case None:
                            left -= 1
                        case AppError() as failed:
                            error = failed
                        case piece:
                            yield piece
            except GeneratorExit:  # a TaskGroup would wrap it
                closed = True
            finally:
                for task in tasks:
                    task.cancel()
        if error is not None and not closed:
            raise error

    async def count(self, wish: Wish) -> int:
        """How many tokens a wish's prompt is to its model. Raises BadInput where that is not loaded: to another it may
        be more or less."""
        if wish.model.removesuffix(":latest") in self.elsewhere():
            raise BadInput("api_count_elsewhere", model=wish.model)
        loaded, name = self._hosting().loaded, await self._here(wish.model)
        running = loaded.named(name)
        if running is None and loaded.names:
            raise BadInput("api_model_not_loaded", name=name, loaded=", ".join(loaded.names))
        if running is None or running.answerer is None:
            raise BadInput("nothing_loaded")
        _check_sizes(wish)
        return await running.answerer.prompt_tokens(
            await self._question(wish, Asker("", ""), 0, running)
        )

    async def _into(
        self, news: asyncio.Queue[Piece | AppError | None], wish: Wish, asker: Asker, index: int
    ) -> None:
        try:
            async with aclosing(self._one(wish, asker, index)) as pieces:
                async for piece in pieces:
                    await news.put(piece)
            await news.put(None)
        except AppError as error:
            await news.put(error)

    async def _one(self, wish: Wish, asker: Asker, index: int) -> AsyncGenerator[Piece, None]:
        """From the pool, or from elsewhere when the pool lacks the model or is full."""
        self._budget.check(asker.key)
        chosen, is_lacking = await self._elsewhere(wish, asker.passed)
        if chosen is not None:
            asker.origin.n_asked += 1
            try:
                paid = self._budget.of(asker.key)
                async with aclosing(
                    self._upstreams.answer(chosen, wish, index, asker.request, paid, asker.passed)
                ) as pieces:
                    async for piece in pieces:
                        asker.origin.upstream = chosen.name
                        yield piece
                return
            except (Busy, Unreachable, BadInput) as error:
                if is_lacking or asker.origin.upstream:
                    raise
                asker.origin.n_asked -= 1
                kind = error.reason.code  # its sentence may repeat what was asked
                log.warning("%s waits for the pool after all (%s)", asker.request, kind,
                            extra=about(asker.request))  # fmt: skip
        async with aclosing(self._by_the_pool(wish, asker, index)) as pieces:
            async for piece in pieces:
                yield piece

    async def _elsewhere(self, wish: Wish, passed: Sequence[str]) -> tuple[Chosen | None, bool]:
        """The upstream to ask in place of the pool, if one is; and whether the pool lacks the model. What was sent on
        from here already is not again."""
        is_back = self._upstreams.mark in passed
        try:
            name = await self._here(wish.model)
        except BadInput as error:
            if error.reason.code not in LACKING:
                raise
            wanted = wish.model.removesuffix(":latest")
            chosen = self._upstreams.serving(wanted)
            if chosen is None:
                self._upstreams.check_lacked(wanted, error)
                raise
            if why := stays(wish):
                raise BadInput(why, name=chosen.name) from None
            if is_back:
                raise BadInput("upstream_circle", name=chosen.name) from None
            return chosen, True
        is_full = self.queue.is_full(name) and not (is_back or stays(wish))
        return self._upstreams.serving(name) if is_full else None, False

    async def _by_the_pool(
        self, wish: Wish, asker: Asker, index: int
    ) -> AsyncGenerator[Piece, None]:
        _check_sizes(wish)  # before it waits, and keeps all of it meanwhile
        asked_at = time.monotonic()
        async with self.turn(asker.key, wish.model) as wanted:
            if not index:  # many that came at once; several answers to one question are not parted
                self._budget.check(asker.key)
            queued_s = time.monotonic() - asked_at
            talk = Talk(wish, index)

            async def ask(running: Running) -> Question:
                if running.entry.name != wanted:  # somebody loaded another one in this moment
                    raise BadInput("api_model_not_loaded", name=wanted, loaded=running.entry.name)
                question = await self._question(wish, asker, index, running)
                came_at = asker.at + queued_s  # who waits for a turn is not on his way
                signs, read = await talk.hear(running), self._budget.of(asker.key)
                return replace(question, signs=signs, came_at=came_at, read=read)

            async with aclosing(self._pool(wanted, ask)) as lines:
                last = 0.0
                async for line in lines:
                    if delta := line.get("delta"):
                        self._budget.spend(asker.key, len(delta["token_ids"]))
                        now = time.monotonic()
                        self._figures.first.observe(now - asked_at) if not last else (
                            self._figures.between.observe(now - last)
                        )
                        last = now
                        for piece in talk.heard(delta):
                            yield piece
                    elif done := line.get("done"):
                        self._figures.before.observe(done["before_s"])
                        _note(asker.request, done, queued_s)
                        for piece in talk.ended(done, queued_s):
                            yield piece

    async def _question(self, wish: Wish, asker: Asker, index: int, running: Running) -> Question:
        if wish.tools and not (running.answerer and running.answerer.call_format):
            raise BadInput("api_tools_unknown", model=running.entry.name)
        most = running.context
        max_tokens = wish.max_tokens or max(LEAST_ROOM, most // 4)
        seed = (wish.sampling.seed + index) % (MAX_SEED + 1)
        sampling = replace(wish.sampling, seed=seed, grammar=_grammar(wish, running.answerer))
        return Question(
            messages=_messages(wish, running.answerer),
            tools=tuple(tool.told() for tool in wish.tools),
            prompt=wish.prompt if isinstance(wish.prompt, str) else None,
            prompt_ids=wish.prompt if isinstance(wish.prompt, tuple) else None,
            sampling=sampling,
            max_tokens=min(max_tokens, most),
            stop=wish.stop,
            thinking=wish.thinking,
            template_options=wish.template_options,
            conversation=_conversation(wish, asker),
            request=asker.request,
            whose=asker.whose,
        )

    def _pool(
        self, wanted: str, ask: Callable[[Running], Awaitable[Question]]
    ) -> AsyncGenerator[Json, None]:
        return self._hosting().answered(wanted, ask, brings=self.brings(wanted))

    def brings(self, wanted: str) -> bool:
        """Whether a question has its model loaded. One whose model is there does not, should it go in that moment."""
        there = self._hosting().loaded.named(wanted)
        return there is None or not there.is_ready

    def _by(self, model: str) -> str:
        """Which loaded model answers for this one: itself, or the one whose place it would take."""
        loaded = self._hosting().loaded
        running = loaded.named(model) or loaded.first
        return running.entry.name if running else ""

    def _room(self, by: str) -> int:
        """Slots that the owner's own chats leave; one is always for programs."""
        hosting = self._hosting()
        running, n_asks = hosting.loaded.named(by), hosting.n_asks
        if running and len(hosting.loaded) > 1:
            n_asks = running.n_askers
        own = n_asks - self.queue.n_running_by(by)
        return max(1, (running.slots if running else 1) - max(0, own))


def _note(request: str, done: Json, queued_s: float) -> None:
    """No text: how much was read and written, and how long that took."""
    facts = {
        name: done[name] for name in ("prompt_tokens", "reused_tokens", "ttft_s", "decode_tok_s")
    }
    tokens = len(done["token_ids"])
    log.info("%s: %d tokens after %.3f s in the queue, %d of prompt (%d reused), %.1f tok/s",
             request, tokens, queued_s, done["prompt_tokens"], done["reused_tokens"], done["decode_tok_s"],
             extra=about(request, tokens=tokens, queued_s=queued_s, **facts))  # fmt: skip


def _check_sizes(wish: Wish) -> None:
    """Of tools, calls and the answer's form: chat templates, and those who read them, would stumble over what is very
    deep. Together they are no longer than a text may be, and none is looked into before. Raises BadInput."""
    calls = [call for message in wish.messages or () for call in message.get("tool_calls", ())]
    if len(calls) > MOST_CALLS_OF_ALL:
        why = f"the messages have more than {MOST_CALLS_OF_ALL} calls"
        raise BadInput("bad_request", why=why, field="messages")
    given: list[object] = [tool.parameters for tool in wish.tools]
    given += [call["function"]["arguments"] for call in calls]
    given += [] if wish.schema is None else [wish.schema]
    characters = len(msgspec.json.encode(given).decode())
    if characters > MAX_TEXT_CHARS:
        raise BadInput("text_too_long", characters=characters, most=MAX_TEXT_CHARS)
    for one in given:
        check_size(one)


def _messages(wish: Wish, answerer: Answerer | None) -> Sequence[Json] | None:
    """As the model's chat template takes them."""
    if wish.messages is None or answerer is None:
        return wish.messages
    return as_told(answerer.call_format, one_system(wish.messages))


def _grammar(wish: Wish, answerer: Answerer | None) -> str:
    """What the answer must be. Raises BadInput."""
    one = answerer.call_format if answerer is not None else None
    if wish.must_call is not None and answerer is not None:
        tools = {tool.name: tool.schema for tool in wish.tools if wish.must_call in ("", tool.name)}
        if not wish.tools:
            raise BadInput("api_no_tools", field="tool_choice")
        if not tools:
            raise BadInput("api_tool_missing", name=wish.must_call[:100], field="tool_choice")
        assert one is not None  # else there were no tools
        return calls_grammar(one, tools, wish.many_calls is not False)
    if wish.schema is None:
        return ""
    schema = localised(wish.schema)
    if wish.tools and one is not None:
        tools = {tool.name: tool.schema for tool in wish.tools}
        return calls_or_json(one, tools, wish.many_calls is not False, schema)
    return json_grammar(schema)


def _conversation(wish: Wish, asker: Asker) -> str:
    """Chats that begin alike are one, if the same program (and its same user) asks: only there may an
    answer be quicker because of an earlier one."""
    begun: list[object] = [asker.key, asker.program, wish.user]
    for message in wish.messages or ():
        begun.append(message)
        if message["role"] == "user":
            break
    if wish.messages is None:
        begun.append("text")
    return "api " + hashlib.sha256(msgspec.json.encode(begun)).hexdigest()
