"""Answers to the owner's own questions that another server writes, wholly or from the middle on."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

import msgspec

from app.api import requests
from app.api.responses import Answer, AnsweredBy, ToolCall
from app.core.errors import BadInput, DoesNotFit, Reason, StageLost, Unreachable
from app.core.nearest_names import MODEL_UNKNOWN
from app.core.reasons import said
from app.gateway.api_request import AnswerEnd, ApiRequest, CallDone, TextPiece, ThoughtPiece, Tool
from app.gateway.upstreams.handover import Handover
from app.gateway.upstreams.upstream_dialect import upstream_obstacle
from app.gateway.upstreams.upstreams import UpstreamChoice, Upstreams
from app.inference.pipeline.completion import Delta
from app.node.control.answer_conversion import AnswerPart, generation_request

log = logging.getLogger(__name__)

Parts = AsyncGenerator[AnswerPart, None]
NotePrompt = Callable[[str, str, tuple[str, ...]], None]
PoolAnswer = Callable[[requests.Ask, NotePrompt], Parts]
LOST = (StageLost, Unreachable, DoesNotFit)  # the pool cannot go on with this answer


class ServerAnswers:
    """Lets another server answer what only it has, and continue what the pool cannot finish.

    pool: answers a request in the pool. has_model: whether the pool has a model and could load it.
    """

    def __init__(self, upstreams: Upstreams, pool: PoolAnswer, has_model: Callable[[str], Any]) -> None:
        self._upstreams, self._pool, self._has_model = upstreams, pool, has_model

    async def answer(self, order: requests.Ask) -> Parts:
        """Yield the parts of an answer: the pool's, or those of another server if only it has the model."""
        handover = Handover(api_request_of(order))
        try:
            async with aclosing(self._pool(order, handover.note_prompt)) as parts:
                async for part in parts:
                    if isinstance(part, Delta):
                        _add(handover, part)
                    yield part
                    if handover.has_to_wait(part) and await self._upstreams.ready_to_continue(handover.model):
                        raise DoesNotFit("recovery_given_over")
            return
        except BadInput as error:
            is_unknown = error.reason.code in (*MODEL_UNKNOWN, "machine_unknown")  # names there may contain "@"
            chosen = self._upstreams.named(order.model or "") if is_unknown else None
            if chosen is None:
                raise
            following = self._whole(order, chosen)
        except LOST as error:
            following = self._continued(handover, error)
        async with aclosing(following) as parts:
            async for part in parts:
                yield part

    async def _whole(self, order: requests.Ask, chosen: UpstreamChoice) -> Parts:
        """Yield the answer of a server that alone has the model, if its owner allowed that."""
        request, name = api_request_of(order), _reference(chosen)
        if not chosen.upstream.chats:
            raise BadInput("server_consent", name=chosen.name, model=chosen.here)
        if why := upstream_obstacle(request):
            raise BadInput(why, name=chosen.name)
        notice = Reason("server_answers", {"name": chosen.name})
        yield AnsweredBy(name, said(notice), notice)
        handover, writer = Handover(request), _Writer()
        try:
            async with aclosing(writer.parts(self._upstreams, chosen, request, handover)) as parts:
                async for part in parts:
                    yield part
            yield writer.answer(name, handover, Reason("answer_by_server", {"name": chosen.name}))
            return
        except Unreachable as error:
            following = await self._back(order, chosen, handover)
            if following is None:
                raise
            log.warning("%s ended in mid-answer, which goes on in the pool (%s)", chosen.name, error.reason)
        note = Reason("answer_server_then_pool", {"name": chosen.name})
        async with aclosing(self._pool(following, lambda *_: None)) as parts:
            async for part in parts:
                yield _joined(part, handover, note) if isinstance(part, Answer) else part

    async def _back(self, order: requests.Ask, chosen: UpstreamChoice, handover: Handover) -> requests.Ask | None:
        """Return the request with which the pool continues a server's answer, or None if it lacks the model."""
        if handover.for_pool() is None or not await self._has_model(chosen.here):
            return None
        changes: dict[str, Any] = {"model": chosen.here}
        if handover.request.max_tokens is not None:
            changes["max_tokens"] = max(1, handover.request.max_tokens - handover.n_tokens)
        if not handover.is_begun:
            return msgspec.structs.replace(order, **changes)
        if order.raw:
            return msgspec.structs.replace(order, prompt=(order.prompt or "") + handover.text, **changes)
        earlier = order.messages or [requests.Message(role="user", content=order.prompt or "")]
        begun = requests.Message(role="assistant", content=handover.text, thought=handover.thought)
        return msgspec.structs.replace(order, prompt=None, messages=[*earlier, begun], **changes)

    async def _continued(self, handover: Handover, error: StageLost | Unreachable | DoesNotFit) -> Parts:
        """Yield the rest of an answer that the pool cannot finish, from a server that may continue it."""
        chosen, request = self._upstreams.continuing(handover.model), handover.for_server()
        if chosen is None or request is None:
            raise error
        log.warning("%s continues an answer that the pool lost (%s)", chosen.name, error.reason)
        writer, before = _Writer(), handover.n_tokens
        try:
            async with aclosing(writer.parts(self._upstreams, chosen, request, handover)) as parts:
                async for part in parts:
                    yield part
        except (BadInput, Unreachable) as failed:
            if writer.n_pieces:
                raise
            log.warning("%s does not continue it (%s)", chosen.name, failed.reason)
            raise error from None
        note = Reason("answer_pool_then_server", {"name": chosen.name})
        yield writer.answer(handover.model, handover, note, before)


class _Writer:
    """Converts a server's pieces to the parts of an answer."""

    def __init__(self) -> None:
        self.n_pieces = 0
        self._end: AnswerEnd | None = None
        self._calls: list[ToolCall] = []
        self._begun = time.monotonic()

    async def parts(
        self, upstreams: Upstreams, chosen: UpstreamChoice, request: ApiRequest, handover: Handover
    ) -> Parts:
        self._begun = time.monotonic()
        answer = upstreams.answer(chosen, request, 0, f"chat-{secrets.token_hex(6)}")
        async with aclosing(answer) as pieces:
            async for piece in pieces:
                if isinstance(piece, AnswerEnd):
                    self._end = piece
                    continue
                self.n_pieces += 1
                handover.add(piece)
                match piece:
                    case TextPiece():
                        yield Delta(piece.text, ())
                    case ThoughtPiece():
                        yield Delta("", (), thought=piece.text, was_thought=piece.text_was_thought)
                    case CallDone():
                        self._calls.append(ToolCall(piece.id, piece.name, piece.arguments))

    def answer(self, name: str, handover: Handover, note: Reason, before: int = 0) -> Answer:
        """Return the last line of the answer. `before`: how many of its tokens the pool wrote."""
        assert self._end is not None
        end = self._end
        return Answer(
            text=handover.text,
            thought=handover.thought,
            thought_tokens=end.thought_tokens,
            tokens_elsewhere=end.answer_tokens + before,
            prompt_tokens=max(0, end.prompt_tokens - before),
            reused_tokens=end.reused_tokens,
            ttft_s=end.ttft_s,
            decode_tok_s=end.decode_tok_s,
            finish_reason=end.reason,
            cut_by="max_tokens" if end.reason == "length" else None,
            calls=self._calls,
            model=name,
            notes=[said(note)],
            notes_facts=[note],
        )


def api_request_of(order: requests.Ask) -> ApiRequest:
    """Return a question of the window or the command line as a server gets it. Raises BadInput."""
    question = generation_request(order)
    values = order.sampling
    # a server chooses its own seed, and values that are not set
    fields: dict[str, Any] = {"temperature": values.temperature, "top_p": values.top_p}
    if values.seed is not None:
        fields["seed"] = values.seed
    return ApiRequest(
        order.model or "",
        messages=None if question.messages is None else tuple(dict(message) for message in question.messages),
        prompt=question.prompt if question.prompt is not None else question.prompt_ids,
        sampling=question.sampling,
        max_tokens=order.max_tokens,
        stop=question.stop,
        tools=tuple(Tool(tool.name, tool.description, tool.parameters) for tool in order.tools),
        must_call=order.must_call,
        pictures=question.pictures,
        extra_fields=fields,
    )


def _reference(chosen: UpstreamChoice) -> str:
    return f"{chosen.here}@{chosen.name}"


def _add(handover: Handover, part: Delta) -> None:
    if part.thought or part.was_thought:
        handover.add(ThoughtPiece(0, part.thought, text_was_thought=part.was_thought), 0)
    handover.add(TextPiece(0, part.text), len(part.token_ids))


def _joined(part: Answer, handover: Handover, note: Reason) -> Answer:
    """Return the end of an answer that a server began and the pool finished."""
    return msgspec.structs.replace(
        part,
        text=handover.text + part.text,
        thought=handover.thought + part.thought,
        tokens_elsewhere=handover.n_tokens,
        notes=[*part.notes, said(note)],
        notes_facts=[*part.notes_facts, note],
    )
