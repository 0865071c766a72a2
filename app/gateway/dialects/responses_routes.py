"""OpenAI's routes for responses, whole or as events, and the count of their tokens."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from aiohttp import web

from app.core.errors import AppError
from app.gateway.access.auth import ASKER, HOME
from app.gateway.answering import Answering, Asker
from app.gateway.api_request import (
    ApiRequest,
    CallBegun,
    Called,
    CallText,
    Ended,
    Json,
    Origin,
    Piece,
    Said,
    Thought,
    Whole,
)
from app.gateway.dialects.responses_requests import Own, ResponsesRequest, each
from app.gateway.refusals import Api, explained
from app.gateway.streaming import EVENTS, event, read, send

# Pieces of an answer -> what OpenAI's Responses API says, whole or as events. No I/O.

Events = list[tuple[str, Json]]


@dataclass(slots=True)
class Response:
    """One response while it comes."""

    id: str
    model: str
    created: int
    asked: Json  # what of the request is told again
    origin: Origin = field(default_factory=Origin)
    whole: Whole = field(default_factory=Whole)
    output: list[Json] = field(default_factory=list)  # items that are whole
    meant: Mapping[str, Own] = field(default_factory=dict)  # by what the model calls each tool
    number: int = 0  # of the next event
    open: bool = False  # a message has begun and not ended
    item: Json = field(default_factory=dict)  # the call that comes
    thinks: bool = False  # a reasoning item has

    def object(self) -> Json:
        """Return the whole response, once all pieces are there."""
        end = self.whole.ended
        short = end.reason == "length"
        return self._frame("incomplete" if short else "completed") | {
            "incomplete_details": {"reason": "max_output_tokens"} if short else None,
            "usage": _usage(end),
        }

    def begin(self) -> Events:
        started = self._frame("in_progress")
        return [
            self._event("response.created", response=started),
            self._event("response.in_progress", response=started),
        ]

    def events(self, piece: Piece) -> Events:
        """Return the events of a piece; the items are gathered on the way."""
        self.whole.add(piece)
        match piece:
            case Said(text=text):
                opened = self._opened()
                at = self._message_at()
                return [*opened, self._event("response.output_text.delta", **at, delta=text, logprobs=[])]
            case CallBegun():
                return [*self._closed(), self._call_begun(self._item(piece.id, piece.name))]
            case CallText(text=text):
                return [self._arguments(text)]
            case Called(was_begun=True):
                return self._call_done(piece)
            case Thought(text=text):
                return self._think(text) if text else []
            case Called():
                item = self._item(piece.id, piece.name)
                events = [*self._closed(), self._call_begun(item), self._arguments(piece.arguments)]
                return [*events, *self._call_done(piece)]
            case Ended():
                events = self._closed(is_cut=piece.reason == "length")
                last = "response.incomplete" if piece.reason == "length" else "response.completed"
                return [*events, self._event(last, response=self.object())]

    def _think(self, text: str) -> Events:
        """Return the events that add to a reasoning item, which ends where anything else begins."""
        events = [] if self.thinks else self._closed()
        at = {"item_id": self._thought_id(), "output_index": len(self.output), "content_index": 0}
        if not self.thinks:
            self.thinks = True
            item = self._thought("in_progress", [])
            events.append(self._event("response.output_item.added", output_index=len(self.output), item=item))
        return [*events, self._event("response.reasoning_text.delta", **at, delta=text)]

    def _thought_id(self) -> str:
        return f"rs_{self.id.removeprefix('resp_')}_{len(self.output)}"

    def _thought(self, status: str, content: list[Json]) -> Json:
        return {"id": self._thought_id(), "type": "reasoning", "status": status, "summary": [], "content": content}

    def _thought_over(self, *, is_cut: bool) -> Events:
        if not self.thinks:
            return []
        self.thinks = False
        at = {"item_id": self._thought_id(), "output_index": len(self.output), "content_index": 0}
        text = self.whole.thought
        item = self._thought(_status(is_cut), [{"type": "reasoning_text", "text": text}])
        events = [
            self._event("response.reasoning_text.done", **at, text=text),
            self._event("response.output_item.done", output_index=len(self.output), item=item),
        ]
        self.output.append(item)
        self.whole.thoughts.clear()
        return events

    def failed(self, why: Json) -> tuple[str, Json]:
        """Return the last event of a stream that breaks off; `why` is the error as in OpenAI's other APIs."""
        code = why["code"] or why["type"]
        return self._event("error", code=code, message=why["message"], param=why["param"])

    def _frame(self, status: str) -> Json:
        return {
            "id": self.id, "object": "response", "created_at": self.created, "status": status, "error": None,
            "incomplete_details": None, "model": self.model, "output": list(self.output), "usage": None,
            "previous_response_id": None, "store": False, **self.asked, **self.origin.fields(),
        }  # fmt: skip

    def _event(self, name: str, /, **data: Any) -> tuple[str, Json]:
        self.number += 1
        return name, {"type": name, "sequence_number": self.number - 1, **data}

    def _message_at(self) -> Json:
        return {"item_id": self._item_id(), "output_index": len(self.output), "content_index": 0}

    def _item_id(self) -> str:
        return f"msg_{self.id.removeprefix('resp_')}_{len(self.output)}"

    def _message(self, status: str, content: list[Json]) -> Json:
        return {"id": self._item_id(), "type": "message", "status": status, "role": "assistant", "content": content}

    def _opened(self) -> Events:
        if self.open:
            return []
        over = self._thought_over(is_cut=False)
        self.open = True
        item = self._message("in_progress", [])
        return [
            *over,
            self._event("response.output_item.added", output_index=len(self.output), item=item),
            self._event("response.content_part.added", **self._message_at(), part=_text("")),
        ]

    def _closed(self, *, is_cut: bool = False) -> Events:
        if not self.open:
            return self._thought_over(is_cut=is_cut)
        self.open = False
        at, text = self._message_at(), self.whole.text
        item = self._message(_status(is_cut), [_text(text)])
        events = [
            self._event("response.output_text.done", **at, text=text, logprobs=[]),
            self._event("response.content_part.done", **at, part=_text(text)),
            self._event("response.output_item.done", output_index=len(self.output), item=item),
        ]
        self.output.append(item)
        self.whole.said.clear()
        return events

    def _item(self, call_id: str, name: str) -> Json:
        namespace, own = self.meant.get(name, ("", name))
        return {
            "id": f"fc_{call_id}",
            "type": "function_call",
            "status": "in_progress",
            "call_id": call_id,
            "name": own,
            "arguments": "",
            **({"namespace": namespace} if namespace else {}),
        }

    def _call_begun(self, item: Json) -> tuple[str, Json]:
        self.item = item
        return self._event("response.output_item.added", output_index=len(self.output), item=item)

    def _arguments(self, text: str) -> tuple[str, Json]:
        named = {"item_id": self.item["id"], "output_index": len(self.output)}
        return self._event("response.function_call_arguments.delta", **named, delta=text)

    def _call_done(self, call: Called) -> Events:
        at = len(self.output)
        status, item = _status(call.half is not None), self.item
        item = item | {"status": status, "arguments": call.arguments}
        self.output.append(item)
        named = {"item_id": item["id"], "output_index": at}
        done = {"name": item["name"], "arguments": call.arguments}
        return [
            self._event("response.function_call_arguments.done", **named, **done),
            self._event("response.output_item.done", output_index=at, item=item),
        ]


def _status(is_cut: bool) -> str:
    return "incomplete" if is_cut else "completed"


def _text(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _usage(end: Ended) -> Json:
    return {
        "input_tokens": end.prompt_tokens,
        "input_tokens_details": {"cached_tokens": end.reused_tokens, "cache_write_tokens": 0},
        "output_tokens": end.answer_tokens,
        "output_tokens_details": {"reasoning_tokens": end.thought_tokens},
        "total_tokens": end.prompt_tokens + end.answer_tokens,
    }


class ResponsesRoutes:
    """The routes, each a few lines over Answering."""

    def __init__(self, answering: Answering) -> None:
        self._answering = answering

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/v1/responses", self.responses), web.post("/v1/responses/input_tokens", self.count)]

    async def responses(self, request: web.Request) -> web.StreamResponse:
        body = read(request, ResponsesRequest)
        wish = body.wish(chance=secrets.randbelow(1 << 31))
        model = await self._answering.model(wish.model)
        answer = Response(
            f"resp_{secrets.token_hex(12)}",
            model,
            int(time.time()),
            _again(body),
            request[ASKER].origin,
            meant=each(body.own_tools)[1] if wish.tools else {},
        )
        if body.stream:
            events = self._events(wish, request[ASKER], answer)
            return await send(request, EVENTS, events, in_words=partial(_failed, request, answer))
        async with aclosing(self._answering.answer(wish, request[ASKER])) as pieces:
            async for piece in pieces:
                answer.events(piece)
        return web.json_response(answer.object())

    async def count(self, request: web.Request) -> web.Response:
        wish = read(request, ResponsesRequest).wish(chance=0)
        await self._answering.model(wish.model)
        n_tokens = await self._answering.count(wish)
        return web.json_response({"object": "response.input_tokens", "input_tokens": n_tokens})

    async def _events(self, wish: ApiRequest, asker: Asker, answer: Response) -> AsyncGenerator[bytes, None]:
        begun = False
        async with aclosing(self._answering.answer(wish, asker)) as pieces:
            async for piece in pieces:
                events = [] if begun else answer.begin()
                begun = True
                for name, data in (*events, *answer.events(piece)):
                    yield event(data, name)


def _failed(request: web.Request, answer: Response, error: AppError) -> bytes:
    why = explained(Api.OPENAI, error, request[ASKER].request, request[HOME])["error"]
    name, data = answer.failed(why)
    return event(data, name)


def _again(body: ResponsesRequest) -> Json:
    """Return the fields of its request that a response repeats."""
    return {
        "instructions": body.instructions,
        "max_output_tokens": body.max_output_tokens,
        "temperature": body.temperature,
        "top_p": body.top_p,
        "parallel_tool_calls": body.parallel_tool_calls is not False,
        "tool_choice": body.tool_choice or "auto",
        "tools": [tool.as_json() for tool in body.own_tools],
        "metadata": body.metadata or {},
    }
