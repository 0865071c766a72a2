"""The service that turns an ApiRequest into the pieces of its answer.

It chooses a model or an upstream, waits in the queue, applies grammars, and separates tool calls from text.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from app.api.chat_api import UpstreamSpeed
from app.api.responses import Answer
from app.core.errors import AppError, BadInput, Busy, DoesNotFit, StageLost, Unreachable
from app.core.json_schema.json_grammar import check_size, json_grammar
from app.core.json_schema.schema_types import localize_references
from app.core.log_redaction import log_extra
from app.core.nearest_names import MODEL_UNKNOWN
from app.core.scheduler.requester import KEYLESS, Requester
from app.core.tools.call_cursor import ArgumentPiece, Call, CallEvent, CallStarted
from app.core.tools.call_finder import CallFinder
from app.core.tools.call_grammar import calls_grammar, calls_or_json
from app.core.tools.call_markers import markers_of
from app.core.tools.template_messages import one_system
from app.gateway.access.token_budget import TokenBudget
from app.gateway.api_request import (
    MAX_SEED,
    MOST_CALLS_OF_ALL,
    AnswerEnd,
    ApiRequest,
    CallArguments,
    CallDone,
    CallStart,
    Origin,
    Piece,
    TextPiece,
    ThoughtPiece,
    TokenLogprobs,
)
from app.gateway.fair_queue import FairQueue, Turn
from app.gateway.metrics import Metrics
from app.gateway.upstreams.handover import Handover
from app.gateway.upstreams.upstream_dialect import upstream_obstacle
from app.gateway.upstreams.upstreams import UpstreamChoice, Upstreams
from app.inference.pipeline.completion import Completer, Delta, GenerationRequest
from app.inference.worker.tokenizer import MAX_TEXT_CHARS
from app.node.control.shelf_routes import ShelfModels
from app.node.models.model_manager import ModelManager
from app.node.placement.placement import Placement

Json = dict[str, Any]

log = logging.getLogger(__name__)
MISSING_CODES = MODEL_UNKNOWN | {"model_inexact", "api_model_not_loaded"}
LOST = (StageLost, Unreachable, DoesNotFit)  # the pool cannot go on with this answer
ANY_NAMES = ("", "default")  # names that stand for whichever model is loaded
MOST_BUFFERED = 64  # pieces of several answers that are not consumed yet
LEAST_DEFAULT_TOKENS = 1024  # default limit of an answer, unless a quarter of the context is more


class AnswerReader:
    """A reader of one answer in progress.

    It separates tool calls from text. Log probabilities are released together with the text of their tokens.
    """

    def __init__(self, api_request: ApiRequest, index: int) -> None:
        self._api_request, self._index = api_request, index
        self._finder: CallFinder | None = None
        self._markers: dict[int, bytes] = {}
        self._pending = deque[tuple[int, int, TokenLogprobs]]()  # tokens not released yet, with their byte range
        self._hidden = deque[tuple[int, int]]()  # byte ranges outside the text: thoughts and their markers
        self._n_sampled = self._n_sent = 0  # bytes
        self._n_calls = 0
        self._open = ""  # ID of the call that is being streamed

    async def prepare(self, running: Placement) -> dict[int, bytes]:
        """Prepare for this model's tool calls. Return the text of each control token that marks a call, by token ID."""
        completer = running.completer
        if completer is None or not self._api_request.tools or not (call_format := completer.call_format):
            return {}
        tools = {tool.name: tool.schema for tool in self._api_request.tools}
        self._finder = CallFinder(call_format, tools, in_pieces=self._api_request.calls_in_pieces)
        markers = [(await completer.control_token(marker), marker) for marker in markers_of(call_format).all]
        self._markers = {token: marker.encode() for token, marker in markers if token is not None}
        return self._markers

    def read(self, delta: Delta) -> list[Piece]:
        text, likely = delta.text, self._likely(delta)
        pieces: list[Piece] = []
        if delta.thought or delta.was_thought:
            pieces.append(ThoughtPiece(self._index, delta.thought, text_was_thought=delta.was_thought))
        if self._finder is None:
            return pieces + ([TextPiece(self._index, text, likely)] if text or likely else [])
        return pieces + self._pieces(*self._finder.push(text), likely)

    def end(self, done: Answer, queued_s: float) -> list[Piece]:
        text, calls = "", list[CallEvent]()
        if self._finder is not None:
            text, calls = self._finder.flush(is_cut=done.finish_reason == "length")
        is_whole = done.finish_reason == "stop" or self._is_cut_after_calls(calls)
        end = done.stop is not None
        rest = tuple(
            likely
            for begin, last, likely in self._pending
            if (not end or begin < self._n_sent) and not self._is_hidden(begin, last)
        )
        pieces = self._pieces(text, calls, rest)
        ended = AnswerEnd(
            self._index,
            "calls" if self._n_calls and is_whole else done.finish_reason or "stop",
            done.stop,
            done.prompt_tokens,
            done.reused_tokens,
            len(done.token_ids),
            queued_s + done.queued_s,
            done.ttft_s or 0.0,
            done.decode_tok_s or 0.0,
            done.thought_tokens,
        )
        return [*pieces, ended]

    def _likely(self, delta: Delta) -> tuple[TokenLogprobs, ...]:
        """Return the log probabilities of the tokens whose text has been sent.

        Text is held back if it may become a stop string or ends in an incomplete character. Text removed by a stop
        string is never sent.
        """
        begin = self._n_sent
        if hidden := delta.hidden_bytes:  # thoughts and markers before the text
            if self._hidden and self._hidden[-1][1] == begin:  # a token may span two hidden ranges
                begin = self._hidden.pop()[0]
            self._hidden.append((begin, self._n_sent + hidden))
        self._n_sent += hidden + len(delta.text.encode())
        if likely := delta.likely:
            marker = self._markers.get(delta.token_ids[0], b"") if delta.token_ids else b""
            begin, self._n_sampled = self._n_sampled, self._n_sampled + len(likely[0][0] or marker)
            self._pending.append((begin, self._n_sampled, likely))
        ready = list[TokenLogprobs]()
        while self._pending and self._pending[0][1] <= self._n_sent:
            first, last, token = self._pending.popleft()
            if not self._is_hidden(first, last):
                ready.append(token)
        while self._hidden and self._pending and self._hidden[0][1] <= self._pending[0][0]:
            self._hidden.popleft()
        return tuple(ready)

    def _is_hidden(self, begin: int, end: int) -> bool:
        """Return whether all bytes of this token are excluded from the text."""
        return any(first <= begin and end <= last for first, last in self._hidden)

    def _is_cut_after_calls(self, events: list[CallEvent]) -> bool:
        """Return whether the answer was cut off in a call that will not be reported.

        In this case, all reported calls are complete.
        """
        calls = [item for item in events if isinstance(item, Call)]
        return bool(calls) and bool(calls[-1].half) and len(calls) + self._n_calls > self._most()

    def _most(self) -> int:
        """Return the maximum number of calls to report.

        A limit is needed because, if calls are optional, no grammar ends the answer after the first call.
        """
        return MOST_CALLS_OF_ALL if self._api_request.parallel_calls is not False else 1

    def _pieces(self, text: str, events: list[CallEvent], likely: tuple[TokenLogprobs, ...]) -> list[Piece]:
        """Return the pieces for this text and these call events, up to the maximum number of calls."""
        pieces: list[Piece] = [TextPiece(self._index, text, likely)] if text or likely else []
        for item in events:
            if self._n_calls >= self._most():
                break
            match item:
                case CallStarted(name):
                    self._open = f"call_{secrets.token_hex(12)}"
                    pieces.append(CallStart(self._index, self._n_calls, self._open, name))
                case ArgumentPiece(some):
                    pieces.append(CallArguments(self._index, self._n_calls, some))
                case Call():
                    pieces.append(
                        CallDone(
                            self._index,
                            self._n_calls,
                            self._open or f"call_{secrets.token_hex(12)}",
                            item.name,
                            item.arguments,
                            item.half or None,
                            bool(self._open),
                        )
                    )
                    self._open, self._n_calls = "", self._n_calls + 1
        return pieces


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of the API: the name of its key, the ID of this request, and its time of arrival.

    `program` distinguishes programs that use the same key. `forwarded_by` lists the marks of the nodes that have
    forwarded the request. `only_loaded` restricts the request to loaded models: it is not sent to an upstream, and no
    model is loaded for it.
    """

    key: str
    request_id: str
    program: str = ""
    arrived_at: float = field(default_factory=time.monotonic)
    origin: Origin = field(default_factory=Origin)
    requester: Requester = KEYLESS
    forwarded_by: tuple[str, ...] = ()
    only_loaded: bool = False


class AnswerService:
    """The service that answers requests with the pool's models or an upstream.

    Requests may run concurrently.
    """

    def __init__(
        self,
        hosting: ModelManager,
        models: ShelfModels,
        may_load: Callable[[], bool],
        metrics: Metrics,
        budget: TokenBudget,
        upstreams: Upstreams,
    ) -> None:
        self._hosting, self._models, self._may_load = hosting, models, may_load
        self._metrics, self._budget, self._upstreams = metrics, budget, upstreams
        self.speed_of: Callable[[str, str], UpstreamSpeed | None] = lambda name, model: None  # measured, of an upstream
        self.queue = FairQueue(self._free_slots, by=self._serving_model)

    async def resolve(self, name: str) -> str:
        """Return the name of the model that will answer. Raises BadInput if there is none."""
        try:
            return await self._resolve_here(name)
        except BadInput as error:
            name = name.removesuffix(":latest")
            if error.reason.code in MISSING_CODES:
                if self._upstreams.choose(name):
                    return name
                self._upstreams.explain_missing(name, error)
            raise

    @asynccontextmanager
    async def turn(self, key: str, model: str) -> AsyncGenerator[str, None]:
        """Wait for a turn, then yield the name of the model that answers. Raises BadInput, Busy.

        If a request names no model, its model is chosen when its turn comes, not when it arrives.
        """
        async with self.line(key, model) as turn:
            await turn.admitted
            yield await self.assigned_model(turn, model)

    @asynccontextmanager
    async def line(self, key: str, model: str) -> AsyncGenerator[Turn, None]:
        """Keep a place in the queue for a model and, after admission, a turn. Raises BadInput, Busy."""
        name = await self._resolve_here(model)
        with self.queue.line(key, "" if model.removesuffix(":latest") in ANY_NAMES else name) as turn:
            yield turn

    async def assigned_model(self, turn: Turn, model: str) -> str:
        """Return the name of the model that answers an admitted request. Raises BadInput."""
        name = await self._resolve_here(model)
        self.queue.assign_model(turn, name)
        return name

    def upstream_models(self) -> list[str]:
        """Return the names of the models that upstreams offer."""
        return self._upstreams.models()

    def ready_models(self) -> dict[str, Placement]:
        """Return the models that are ready to answer, by name."""
        return {placement.entry.name: placement for placement in self._hosting.loaded if placement.is_ready}

    async def load(self, model: str, caller: Caller) -> None:
        """Load a model if programs may do so, and generate one token to check that it answers.

        Raises the same errors as `answer`.
        """
        self._budget.check(caller.key)
        if model.removesuffix(":latest") in self.upstream_models():
            return
        if self.needs_load(await self._resolve_here(model)):
            api_request = ApiRequest(model, prompt=".", max_tokens=1)
            async with aclosing(self._answer_here(api_request, caller, 0)) as pieces:
                async for _ in pieces:
                    pass

    async def _resolve_here(self, name: str) -> str:
        """Resolve the name like `resolve`, but ignore upstreams."""
        loaded = self._hosting.loaded
        name = name.removesuffix(":latest")
        there = loaded.first if name in ANY_NAMES else loaded.named(name)
        if there is not None:
            return there.entry.name
        known = loaded.names
        if name in ANY_NAMES:
            self._hosting.require_load_not_failed()
        entry = await self._models.named("guide" if name in ANY_NAMES else name, known or None)
        if not entry.model.writes:
            raise BadInput("model_only_ranks" if entry.model.ranks else "model_only_embeds", name=entry.name)
        if known and entry.name not in known and not self._may_load():
            raise BadInput("api_model_not_loaded", name=entry.name, loaded=", ".join(known))
        return entry.name

    def answer(self, api_request: ApiRequest, caller: Caller) -> AsyncGenerator[Piece, None]:
        """Yield the pieces of `api_request.n` answers. Raises AppError.

        Use this with contextlib.aclosing: closing the generator cancels the answers.
        """
        return (
            self._answer_one(api_request, caller, 0) if api_request.n == 1 else self._answer_many(api_request, caller)
        )

    async def _answer_many(self, api_request: ApiRequest, caller: Caller) -> AsyncGenerator[Piece, None]:
        """Yield the pieces of several answers in the order in which they are generated."""
        error, closed = None, False
        queue: asyncio.Queue[Piece | AppError | None] = asyncio.Queue(MOST_BUFFERED)
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._put_pieces(queue, api_request, caller, index), name=f"answer {index}")
                for index in range(api_request.n)
            ]
            left = api_request.n
            try:
                while left and error is None:
                    match await queue.get():
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

    async def count_prompt_tokens(self, api_request: ApiRequest) -> int:
        """Return the number of tokens in the request's prompt.

        Raises BadInput if the model is not loaded, since the number depends on the model.
        """
        if api_request.model.removesuffix(":latest") in self.upstream_models():
            raise BadInput("api_count_elsewhere", model=api_request.model)
        loaded, name = self._hosting.loaded, await self._resolve_here(api_request.model)
        running = loaded.named(name)
        if running is None and loaded.names:
            raise BadInput("api_model_not_loaded", name=name, loaded=", ".join(loaded.names))
        if running is None or running.completer is None:
            raise BadInput("nothing_loaded")
        _check_sizes(api_request)
        return await running.completer.prompt_tokens(
            await self._generation_request(api_request, Caller("", ""), 0, running)
        )

    async def _put_pieces(
        self, queue: asyncio.Queue[Piece | AppError | None], api_request: ApiRequest, caller: Caller, index: int
    ) -> None:
        try:
            async with aclosing(self._answer_one(api_request, caller, index)) as pieces:
                async for piece in pieces:
                    await queue.put(piece)
            await queue.put(None)
        except AppError as error:
            await queue.put(error)

    async def _answer_one(self, api_request: ApiRequest, caller: Caller, index: int) -> AsyncGenerator[Piece, None]:
        """Yield the pieces of one answer from the pool, or from an upstream if the pool lacks the model or is full."""
        self._budget.check(caller.key)
        chosen, is_missing = await self._choose_upstream(api_request, caller)
        if chosen is not None:
            caller.origin.n_upstreams_tried += 1
            there = Handover(api_request)
            try:
                async with aclosing(self._answer_there(chosen, api_request, caller, index)) as pieces:
                    async for piece in pieces:
                        there.add(piece)
                        yield piece
                return
            except (Busy, Unreachable, BadInput) as error:
                following = there.for_pool()
                if is_missing or following is None or (there.is_begun and not isinstance(error, Unreachable)):
                    raise
                caller.origin.n_upstreams_tried -= 1
                kind = error.reason.code  # the error's message may repeat the request
                log.warning(
                    "%s waits for the pool after all (%s)", caller.request_id, kind, extra=log_extra(caller.request_id)
                )
            if there.is_begun:  # it ended in mid-answer, which goes on here with its text kept
                caller.origin.with_pool = True
                async with aclosing(self._answer_here(following, caller, index)) as pieces:
                    async for piece in pieces:
                        yield there.joined(piece) if isinstance(piece, AnswerEnd) else piece
                return
        handover = Handover(api_request)
        try:
            async with aclosing(self._answer_here(api_request, caller, index, handover)) as pieces:
                async for piece in pieces:
                    if not isinstance(piece, AnswerEnd):
                        handover.add(piece)
                    yield piece
            return
        except LOST as error:
            is_back = caller.only_loaded or self._upstreams.node_mark in caller.forwarded_by
            chosen = None if is_back else self._upstreams.continuing(handover.model)
            following = handover.for_server()
            if chosen is None or following is None:
                raise
            log.warning(
                "%s goes on at %s (%s)",
                caller.request_id,
                chosen.name,
                error.reason,
                extra=log_extra(caller.request_id, upstream=chosen.name),
            )
        caller.origin.with_pool = handover.is_begun
        async with aclosing(self._answer_there(chosen, following, caller, index)) as pieces:
            async for piece in pieces:
                yield handover.joined(piece) if isinstance(piece, AnswerEnd) else piece

    async def _answer_there(
        self, chosen: UpstreamChoice, api_request: ApiRequest, caller: Caller, index: int
    ) -> AsyncGenerator[Piece, None]:
        """Yield the pieces of an upstream's answer, and mark the request with the upstream's name."""
        on_cost = self._budget.spender(caller.key)
        async with aclosing(
            self._upstreams.answer(chosen, api_request, index, caller.request_id, on_cost, caller.forwarded_by)
        ) as pieces:
            async for piece in pieces:
                caller.origin.upstream = chosen.name
                yield piece

    async def _choose_upstream(self, api_request: ApiRequest, caller: Caller) -> tuple[UpstreamChoice | None, bool]:
        """Return the upstream to use instead of the pool, if any, and whether the pool lacks the model.

        A request that this node has already forwarded is not forwarded again.
        """
        if caller.only_loaded:
            return None, False
        is_back = self._upstreams.node_mark in caller.forwarded_by
        try:
            name = await self._resolve_here(api_request.model)
        except BadInput as error:
            if error.reason.code not in MISSING_CODES:
                raise
            model = api_request.model.removesuffix(":latest")
            chosen = self._upstreams.choose(model)
            if chosen is None:
                self._upstreams.explain_missing(model, error)
                raise
            if why := upstream_obstacle(api_request):
                raise BadInput(why, name=chosen.name) from None
            if is_back:
                raise BadInput("upstream_circle", name=chosen.name) from None
            return chosen, True
        is_full = self.queue.is_full(name) and not (is_back or upstream_obstacle(api_request))
        chosen = self._upstreams.choose(name) if is_full else None
        return chosen if chosen is not None and self._is_sooner(chosen, name) else None, False

    def _is_sooner(self, chosen: UpstreamChoice, model: str) -> bool:
        """Return whether an upstream would begin an answer before the pool has a free slot.

        One that was never measured counts as sooner. One that has as many answers in progress as gain something
        there would let a further one wait too.
        """
        speed = self.speed_of(chosen.name, chosen.here)
        if speed is None:
            return True
        has_room = self._upstreams.n_answering(chosen.name) < speed.best.streams
        return has_room and self.queue.expected_wait_s(model) > speed.ttft_s

    async def _answer_here(
        self, api_request: ApiRequest, caller: Caller, index: int, handover: Handover | None = None
    ) -> AsyncGenerator[Piece, None]:
        _check_sizes(api_request)  # reject it before it waits in the queue and occupies memory
        asked_at = time.monotonic()
        async with self.turn(caller.key, api_request.model) as model:
            # checked again, because requests may arrive at the same time; further choices of this request are not
            # checked
            if not index:
                self._budget.check(caller.key)
            queued_s = time.monotonic() - asked_at
            reader = AnswerReader(api_request, index)
            if handover is not None:
                handover.model = model

            async def ask(running: Placement) -> GenerationRequest:
                if running.entry.name != model:  # another model was loaded in the meantime
                    raise BadInput("api_model_not_loaded", name=model, loaded=running.entry.name)
                question = await self._generation_request(api_request, caller, index, running)
                came_at = caller.arrived_at + queued_s  # waiting for a turn does not count
                markers, read = await reader.prepare(running), self._budget.spender(caller.key)
                on_prompt = handover.note_prompt if handover is not None else None
                return replace(question, signs=markers, came_at=came_at, read=read, on_prompt=on_prompt)

            may_load = self.needs_load(model) and not caller.only_loaded
            async with aclosing(self._hosting.answer(model, ask, may_load=may_load)) as parts:
                last = 0.0
                async for part in parts:
                    if handover is not None and handover.has_to_wait(part):
                        if await self._upstreams.ready_to_continue(model):
                            raise DoesNotFit("recovery_given_over")
                    elif isinstance(part, Delta):
                        self._budget.spend(caller.key, len(part.token_ids))
                        now = time.monotonic()
                        self._metrics.first.observe(now - asked_at) if not last else (
                            self._metrics.between.observe(now - last)
                        )
                        last = now
                        for piece in reader.read(part):
                            yield piece
                    elif isinstance(part, Answer):
                        self._metrics.before.observe(part.before_s)
                        _note(caller.request_id, part, queued_s)
                        for piece in reader.end(part, queued_s):
                            yield piece

    async def _generation_request(
        self, api_request: ApiRequest, caller: Caller, index: int, running: Placement
    ) -> GenerationRequest:
        if api_request.tools and not (running.completer and running.completer.call_format):
            raise BadInput("api_tools_unknown", model=running.entry.name)
        most = running.context
        max_tokens = api_request.max_tokens or max(LEAST_DEFAULT_TOKENS, most // 4)
        seed = (api_request.sampling.seed + index) % (MAX_SEED + 1)
        sampling = replace(api_request.sampling, seed=seed, grammar=_grammar(api_request, running.completer))
        return GenerationRequest(
            messages=None if api_request.messages is None else one_system(api_request.messages),
            tools=tuple(tool.as_json() for tool in api_request.tools),
            prompt=api_request.prompt if isinstance(api_request.prompt, str) else None,
            prompt_ids=api_request.prompt if isinstance(api_request.prompt, tuple) else None,
            sampling=sampling,
            max_tokens=min(max_tokens, most),
            stop=api_request.stop,
            thinking=api_request.thinking,
            template_options=api_request.template_options,
            conversation=_conversation(api_request, caller),
            request=caller.request_id,
            requester=caller.requester,
            pictures=api_request.pictures,
        )

    def needs_load(self, model: str) -> bool:
        """Return whether a request for this model would have to load it.

        A loaded model needs no load, even if it is about to be unloaded.
        """
        there = self._hosting.loaded.named(model)
        return there is None or not there.is_ready

    def _serving_model(self, model: str) -> str:
        """Return the name of the loaded model whose slots a request for `model` uses, or "" if none is loaded.

        This is `model` itself or the model that it would replace.
        """
        loaded = self._hosting.loaded
        running = loaded.named(model) or loaded.first
        return running.entry.name if running else ""

    def _free_slots(self, by: str) -> int:
        """Return the number of slots not used by the owner's chats. Programs always get at least one."""
        hosting = self._hosting
        running, n_asks = hosting.loaded.named(by), hosting.n_asks
        if running and len(hosting.loaded) > 1:
            n_asks = running.n_requests
        own = n_asks - self.queue.n_running_by(by)
        return max(1, (running.slots if running else 1) - max(0, own))


def _note(request: str, done: Answer, queued_s: float) -> None:
    """Log the sizes and durations of an answer, but none of its text."""
    tokens = len(done.token_ids)
    log.info(
        "%s: %d tokens after %.3f s in the queue, %d of prompt (%d reused), %.1f tok/s",
        request,
        tokens,
        queued_s,
        done.prompt_tokens,
        done.reused_tokens,
        done.decode_tok_s,
        extra=log_extra(
            request,
            tokens=tokens,
            queued_s=queued_s,
            prompt_tokens=done.prompt_tokens,
            reused_tokens=done.reused_tokens,
            ttft_s=done.ttft_s,
            decode_tok_s=done.decode_tok_s,
        ),
    )


def _check_sizes(api_request: ApiRequest) -> None:
    """Check the size and nesting of tools, calls and the answer's schema. Raises BadInput.

    The total length is checked first and limited like that of any text. Deep nesting would break chat templates.
    """
    calls = [call for message in api_request.messages or () for call in message.get("tool_calls", ())]
    if len(calls) > MOST_CALLS_OF_ALL:
        why = f"the messages have more than {MOST_CALLS_OF_ALL} calls"
        raise BadInput("bad_request", why=why, field="messages")
    values: list[object] = [tool.parameters for tool in api_request.tools]
    values += [call["function"]["arguments"] for call in calls]
    values += [] if api_request.schema is None else [api_request.schema]
    characters = len(msgspec.json.encode(values).decode())
    if characters > MAX_TEXT_CHARS:
        raise BadInput("text_too_long", characters=characters, most=MAX_TEXT_CHARS)
    for value in values:
        check_size(value)


def _grammar(api_request: ApiRequest, completer: Completer | None) -> str:
    """Return the grammar that the answer must follow, or "" if any text is allowed. Raises BadInput."""
    call_format = completer.call_format if completer is not None else None
    if api_request.must_call is not None and completer is not None:
        tools = {tool.name: tool.schema for tool in api_request.tools if api_request.must_call in ("", tool.name)}
        if not api_request.tools:
            raise BadInput("api_no_tools", field="tool_choice")
        if not tools:
            raise BadInput("api_tool_missing", name=api_request.must_call[:100], field="tool_choice")
        assert call_format is not None  # otherwise tools would have been refused
        return calls_grammar(call_format, tools, api_request.parallel_calls is not False)
    if api_request.schema is None:
        return ""
    schema = localize_references(api_request.schema)
    if api_request.tools and call_format is not None:
        tools = {tool.name: tool.schema for tool in api_request.tools}
        return calls_or_json(call_format, tools, api_request.parallel_calls is not False, schema)
    return json_grammar(schema)


def _conversation(api_request: ApiRequest, caller: Caller) -> str:
    """Return the ID of the conversation that the request belongs to.

    Chats with the same beginning share an ID only if the same program sends them for the same user. An answer can
    reuse earlier computation only within its conversation, so its timing reveals nothing to other programs.
    """
    begun: list[object] = [caller.key, caller.program, api_request.user]
    for message in api_request.messages or ():
        begun.append(message)
        if message["role"] == "user":
            break
    if api_request.messages is None:
        begun.append("text")
    return "api " + hashlib.sha256(msgspec.json.encode(begun)).hexdigest()
