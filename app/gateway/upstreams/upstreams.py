"""Requests to other OpenAI-compatible servers.

This module chooses an upstream, counts the tokens spent, and reads its answers.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import ssl
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import aiohttp
import msgspec

from app.core.errors import AppError, BadInput, Busy, Reason, Unreachable
from app.core.log_redaction import log_extra
from app.core.nearest_names import MODEL_UNKNOWN
from app.core.reasons import fact_text
from app.decoding import decode
from app.gateway.api_request import NO_LIMIT, ApiRequest, Piece
from app.gateway.error_responses import nested_too_deeply
from app.gateway.upstreams.upstream_dialect import (
    LIMIT,
    OLD_LIMIT,
    UpstreamAnswer,
    endpoint,
    request_body,
    with_new_limit_name,
)
from app.machine.json_state import read_json
from app.machine.paths import write_atomically
from app.machine.secret_stores import SecretMap
from app.machine.settings import Upstream
from app.network.tls import upstream_context
from app.network.traffic_limits import TooLong, TooSlow, whole_body

# Limits on an event stream, since the server is not trusted.

MOST_LINE_BYTES = 4 << 20
MOST_EVENTS = 1 << 20  # including empty ones
_DATA = re.compile(rb"^data:(.*)$", re.MULTILINE)  # skips all other lines without running Python code for them

log = logging.getLogger(__name__)
CONNECT_SECONDS, SILENT_SECONDS = 5.0, 120.0
TEST_SECONDS = 10.0
USUAL_RETRY_S = 5
UNUSABLE = frozenset({400, 413, 422})  # the request is at fault, so retrying would not help
MOST_WORDS = 200
CHARS_OF_A_TOKEN = 3  # a cautious estimate of the cost of a prompt before it is sent
# The spending assumed if the count is damaged: more than any cap, so that the upstream is not used until the owner
# resets the count.
UNCOUNTED = 1 << 52
USUAL_MOST = 16_384  # default limit of an answer, unless a quarter of the remaining tokens is more
ID = "X-Request-Id"
PLAIN = {"Accept-Encoding": "identity"}  # a few compressed bytes could expand to an unlimited size
UNREADABLE = Reason("answer_unreadable")
FORWARDED_BY, MOST_FORWARDS = "X-Poolhouse-Passed", 8  # the marks of the nodes that have forwarded a request
Post = Callable[..., Awaitable[aiohttp.ClientResponse]]


class ProtocolViolation(ValueError):
    """A violation of the protocol by a server. The message does not contain anything that the server sent."""


class Content(Protocol):
    """The part of aiohttp's StreamReader that is used here."""

    def iter_any(self) -> AsyncIterator[bytes]: ...


async def chunks(content: Content) -> AsyncGenerator[dict[str, Any], None]:
    """Yield the chunks of a stream.

    Raises ValueError if a chunk is not an object, and ProtocolViolation if the stream does not end properly.
    """
    n_events = 0
    async with aclosing(_data(content)) as lines:
        async for line in lines:
            if line == b"[DONE]":
                return
            n_events += 1
            chunk = decode(line, dict[str, Any])
            if chunk.get("error"):
                raise ProtocolViolation("an error in place of more")
            if n_events > MOST_EVENTS:
                raise ProtocolViolation("more events than any answer has")
            yield chunk
    raise ProtocolViolation("the stream ended in the middle")


async def _data(content: Content) -> AsyncGenerator[bytes, None]:
    """Yield the value of each `data:` line. Raises ProtocolViolation if a line is too long."""
    held = bytearray()
    async for part in content.iter_any():
        before, end = len(held), part.rfind(b"\n") + 1
        held += part
        if end:
            for line in _DATA.findall(held, 0, before + end):
                yield line.strip()
            del held[: before + end]
        if len(held) > MOST_LINE_BYTES:
            raise ProtocolViolation("a line without an end")
    for line in _DATA.findall(held):
        yield line.strip()


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model]


class _Words(msgspec.Struct):
    message: str = ""


class _Said(msgspec.Struct):
    error: _Words


@dataclass(frozen=True, slots=True)
class UpstreamChoice:
    """An upstream that was chosen to answer a request."""

    name: str
    upstream: Upstream
    model: str  # its name on that server
    here: str = ""  # its local name


class Upstreams:
    """All upstreams. Each is off until the owner turns it on.

    The spent tokens are saved across restarts. Tokens that answers in progress may still spend are reserved, so
    concurrent answers cannot exceed the limit.
    """

    def __init__(
        self, choice: Callable[[], Mapping[str, Upstream]], keys: SecretMap, file: Path, note: Callable[[Reason], None]
    ) -> None:
        self._choice, self.keys, self._file, self._note = choice, keys, file, note
        self.spent = self._loaded()
        self.node_mark = secrets.token_hex(8)  # identifies this node in forwarded requests without revealing it
        self.last_contact: dict[str, float] = {}  # time of the last answer since the start
        self.changed: Callable[[], None] = lambda: None  # called when an answer begins or ends, and after a contact
        self._reserved = Counter[str]()
        self._answering = Counter[str]()
        self._saving = asyncio.Lock()

    def n_answering(self, name: str) -> int:
        """Return the number of answers in progress at an upstream."""
        return self._answering[name]

    def choose(self, model: str) -> UpstreamChoice | None:
        """Return the first upstream that is on, offers this model and has tokens left, or None."""
        for name, upstream in self._choice().items():
            if upstream.on and model in upstream.models and self._left(name, upstream) > 0:
                return UpstreamChoice(name, upstream, upstream.models[model], model)
        return None

    def named(self, reference: str) -> UpstreamChoice | None:
        """Return the upstream of a reference such as `MODEL@NAME`, or the first one with a model of this name.

        Return None if none that is on has it. Raises BadInput or Busy if the named one has no tokens left.
        """
        model, _, name = reference.rpartition("@")
        upstream = self._choice().get(name)
        if upstream is None or not upstream.on or model not in upstream.models:
            return self.choose(reference)
        self.require_left(name, upstream, 1)
        return UpstreamChoice(name, upstream, upstream.models[model], model)

    def continuing(self, model: str) -> UpstreamChoice | None:
        """Return the first upstream that has this model and may continue answers that the pool cannot finish."""
        for name, upstream in self._choice().items():
            may = upstream.on and upstream.continues and model in upstream.models
            if may and self._left(name, upstream) > 0:
                return UpstreamChoice(name, upstream, upstream.models[model], model)
        return None

    async def ready_to_continue(self, model: str) -> UpstreamChoice | None:
        """Return the upstream that may continue an answer and responds now, or None. This costs no tokens."""
        chosen = self.continuing(model)
        if chosen is not None:
            try:
                await self.list_models(chosen.name, chosen.upstream)
            except (Unreachable, Busy):
                return None
        return chosen

    def explain_missing(self, model: str, error: AppError) -> None:
        """Raise a more helpful error than `error` if an upstream offers this model.

        Raises BadInput if the upstream is off or out of tokens, and Busy if its last tokens are only reserved.
        """
        having = {name: upstream for name, upstream in self._choice().items() if model in upstream.models}
        for name, upstream in having.items():
            if upstream.on:
                raise self._no_more(name, upstream)
        if having and error.reason.code in MODEL_UNKNOWN:
            raise BadInput("upstream_off", name=next(iter(having)), model=model)

    def models(self) -> list[str]:
        """Return the names of the models that upstreams offer."""
        return sorted({model for upstream in self._choice().values() if upstream.on for model in upstream.models})

    async def answer(
        self,
        chosen: UpstreamChoice,
        api_request: ApiRequest,
        index: int,
        request: str,
        on_cost: Callable[[int], None] = lambda _: None,
        forwarded_by: Sequence[str] = (),
        *,
        note: bool = True,
    ) -> AsyncGenerator[Piece, None]:
        """Yield the pieces of one answer from an upstream. Raises Unreachable, Busy or BadInput.

        Closing the generator disconnects from the upstream. `on_cost` is called with the cost in tokens, no matter
        how the answer ends. `forwarded_by` lists the marks of the nodes that have forwarded the request.
        `note` sets whether the journal notes the answer.
        """
        guess, answer_so_far = _guessed_tokens(api_request), UpstreamAnswer(index)
        most = self._most(chosen, api_request, guess)
        self._reserved[chosen.name] += guess + most
        self._answering[chosen.name] += 1
        self.changed()
        try:
            asking = self._ask_upstream(
                chosen, api_request, most, answer_so_far, request, ",".join((*forwarded_by, self.node_mark))
            )
            async with aclosing(asking) as pieces:
                async for piece in pieces:
                    yield piece
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unreachable("upstream_failed", name=chosen.name, why=_why(error)) from None
        except RecursionError:
            raise nested_too_deeply() from None
        except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError) as error:
            log.warning(
                "%s: %s answered what nobody can read: %s",
                request,
                chosen.name,
                _kind(error),
                extra=log_extra(request, upstream=chosen.name),
            )
            raise Unreachable("upstream_failed", name=chosen.name, why=UNREADABLE) from None
        finally:
            self._reserved[chosen.name] -= guess + most
            self._reserved += Counter()  # remove upstreams without reserved tokens
            self._answering[chosen.name] -= 1
            self.changed()
            cost = (answer_so_far.prompt_tokens or (guess if answer_so_far.is_taken else 0)) + answer_so_far.tokens
            on_cost(cost)
            await self._spend(chosen, cost, request, note=note)

    async def _post(self, session: aiohttp.ClientSession, name: str, url: str, **sent: Any) -> aiohttp.ClientResponse:
        answer = await session.post(url, **sent)
        self.last_contact[name] = time.time()
        return answer

    async def _ask_upstream(
        self,
        chosen: UpstreamChoice,
        api_request: ApiRequest,
        most: int,
        answer_so_far: UpstreamAnswer,
        request: str,
        forwarded_by: str,
    ) -> AsyncGenerator[Piece, None]:
        begun, first_s = time.monotonic(), 0.0
        url, sent = (
            f"{chosen.upstream.url}/{endpoint(api_request)}",
            request_body(api_request, chosen.model, answer_so_far.index, most),
        )
        headers = {ID: request, FORWARDED_BY: forwarded_by, **await self._authorized(chosen.name)}
        async with (
            self._session(chosen) as session,
            await _begun(chosen.name, partial(self._post, session, chosen.name, url, headers=headers), sent) as answer,
        ):
            answer_so_far.is_taken = True
            async with aclosing(chunks(answer.content)) as stream:
                async for chunk in stream:
                    for piece in answer_so_far.pieces(chunk):
                        first_s = first_s or time.monotonic() - begun
                        yield piece
                    if answer_so_far.n_chunks > most:  # the server ignores the limit
                        answer_so_far.reason = "length"
                        break
        for piece in answer_so_far.end(time.monotonic() - begun, first_s):
            yield piece

    def _most(self, chosen: UpstreamChoice, api_request: ApiRequest, guess: int) -> int:
        """Return the maximum number of tokens for the answer. Raises Busy or BadInput if none are left."""
        left = self._left(chosen.name, chosen.upstream) - guess
        if left <= 0:
            raise self._no_more(chosen.name, chosen.upstream, guess + 1)
        limit = None if api_request.max_tokens == NO_LIMIT else api_request.max_tokens  # the server has its own limits
        return min(left, limit or max(USUAL_MOST, left // 4))

    async def list_models(self, name: str, upstream: Upstream) -> list[str]:
        """Return the models that the upstream offers. This costs no tokens. Raises Unreachable, Busy."""
        chosen = UpstreamChoice(name, upstream, "")
        try:
            async with (
                asyncio.timeout(TEST_SECONDS),
                self._session(chosen) as session,
                session.get(
                    f"{upstream.url}/models", allow_redirects=False, headers=await self._authorized(name)
                ) as answer,
            ):
                self.last_contact[name] = time.time()
                self.changed()
                await _check(name, answer)
                body = await whole_body(answer.content, answer.content_length, MOST_LINE_BYTES)
                return [model.id for model in decode(body, _Models).data]
        except Unreachable as error:  # raised by `_check`
            raise Unreachable("upstream_test_failed", name=name, why=error.reason.facts["why"]) from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unreachable("upstream_test_failed", name=name, why=_why(error)) from None
        except (msgspec.MsgspecError, ValueError, TooLong, TooSlow) as error:
            log.warning("%s lists its models as nobody can read: %s", name, error)
            raise Unreachable("upstream_test_failed", name=name, why=UNREADABLE) from None

    async def reset_spent(self, name: str) -> None:
        """Forget the tokens that an upstream has spent."""
        self.spent.pop(name, None)
        await self._save()

    def is_counted(self, name: str) -> bool:
        """Return whether the number of tokens that the upstream has spent is known."""
        return self.spent.get(name, 0) < UNCOUNTED

    def report_uncounted(self) -> None:
        """Report the upstreams that are not used because the number of tokens they have spent is unknown."""
        if names := [name for name in self._choice() if not self.is_counted(name)]:
            facts: dict[str, Any] = {"path": str(self._file), "names": ", ".join(names)}
            self._note(Reason("log_node_uncounted", facts))

    def _loaded(self) -> dict[str, int]:
        """Return the saved counts. If the file is damaged, mark all upstreams as uncounted, so none of them is used."""
        try:
            spent = read_json(self._file, dict[str, int])
            if any(count < 0 for count in spent.values()):
                raise ValueError("less than nothing was spent")
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            log.warning("what upstreams have cost, in %s, cannot be read: %s", self._file, error)
            return dict.fromkeys(self._choice(), UNCOUNTED)
        return spent

    def require_left(self, name: str, upstream: Upstream, tokens: int) -> None:
        """Raise BadInput or Busy if the upstream cannot spend this many tokens now."""
        if self._left(name, upstream) < tokens:
            raise self._no_more(name, upstream, tokens)

    def _left(self, name: str, upstream: Upstream) -> int:
        return upstream.cap_tokens - self.spent.get(name, 0) - self._reserved[name]

    def _no_more(self, name: str, upstream: Upstream, needs: int = 1) -> AppError:
        """Return the error for an upstream that cannot spend `needs` more tokens.

        The error is Busy if reserved tokens may be released later.
        """
        if not self.is_counted(name):
            return BadInput("upstream_uncounted", name=name)
        left, most = upstream.cap_tokens - self.spent.get(name, 0), upstream.cap_tokens
        if left <= 0:
            return BadInput("upstream_spent", name=name, most=most)
        if left < needs:
            return BadInput("upstream_short", name=name, most=most, tokens=left, asked=needs)
        return Busy("upstream_busy", name=name, seconds=USUAL_RETRY_S)

    async def _spend(self, chosen: UpstreamChoice, tokens: int, request: str, *, note: bool) -> None:
        if not tokens:
            return
        self.spent[chosen.name] = self.spent.get(chosen.name, 0) + tokens
        log.info(
            "%s: %d tokens by %s",
            request,
            tokens,
            chosen.name,
            extra=log_extra(request, tokens=tokens, upstream=chosen.name),
        )
        facts: dict[str, Any] = {"upstream": chosen.name, "model": chosen.model, "tokens": tokens}
        if note:
            self._note(Reason("log_node_upstream", facts))
        await self._save()

    async def _save(self) -> None:
        async with self._saving:
            try:
                await asyncio.to_thread(write_atomically, self._file, msgspec.json.encode(self.spent))
            except OSError as error:
                log.warning("what upstreams have cost cannot be kept: %s", error)

    async def _authorized(self, name: str) -> dict[str, str]:
        key = (await self.keys.all()).get(name)
        return {"Authorization": f"Bearer {key}"} if key else {}

    def _session(self, chosen: UpstreamChoice) -> aiohttp.ClientSession:
        context: ssl.SSLContext = upstream_context(chosen.upstream.certificate)
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=context),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENT_SECONDS),
            trust_env=False,
            auto_decompress=False,
            headers=PLAIN,
        )


async def _begun(name: str, post: Post, sent: dict[str, Any]) -> aiohttp.ClientResponse:
    """Send the request and return the response. Raises Unreachable, Busy or BadInput.

    If a server rejects the old name of the token limit and mentions the new one, the request is repeated with the
    new name.
    """
    answer = await post(json=sent, allow_redirects=False)
    try:
        await _check(name, answer)
    except BaseException as error:
        answer.close()
        why = error.reason.facts.get("why", "") if isinstance(error, BadInput) else ""
        if OLD_LIMIT in sent and LIMIT in fact_text(why):
            return await _begun(name, post, with_new_limit_name(sent))
        raise
    return answer


async def _check(name: str, answer: aiohttp.ClientResponse) -> None:
    if answer.status == 200:
        return
    if answer.status == 429:
        retry_after = answer.headers.get("Retry-After", "")
        seconds = int(retry_after) if retry_after.isdecimal() and len(retry_after) < 6 else USUAL_RETRY_S
        raise Busy("upstream_busy", name=name, seconds=seconds)
    log.warning("upstream %s answered %d", name, answer.status)
    if answer.status in UNUSABLE:
        why = await _words(answer) or Reason("answered_status", {"status": answer.status})
        raise BadInput("upstream_refused", name=name, why=why)
    raise Unreachable("upstream_failed", name=name, why=await _fault(answer))


async def _fault(answer: aiohttp.ClientResponse) -> Reason:
    """Return the cause of a failed request.

    If the key is wrong, the server's message is not included, because it may repeat the key.
    """
    if answer.status in (401, 403):
        return Reason("key_refused", {"status": answer.status})
    words = await _words(answer) if answer.status == 404 else ""
    if words:
        return Reason("answered_words", {"status": answer.status, "words": words})
    return Reason("answered_status", {"status": answer.status})


async def _words(answer: aiohttp.ClientResponse) -> str:
    """Return the server's error message on one line, or "" if the body is not an error in OpenAI's format."""
    said = (await answer.content.read(500)).decode("utf-8", "replace")
    try:
        message = str(decode(said, _Said).error.message)
    except msgspec.MsgspecError:
        return ""
    kept = "".join(character if character.isprintable() else " " for character in message)
    return " ".join(kept.split()).rstrip(".")[:MOST_WORDS]


def _kind(error: Exception) -> str:
    """Return the part of an error that may be logged: the message of a ProtocolViolation, otherwise only the type.

    Other messages may repeat the request or contain a key.
    """
    return str(error) if isinstance(error, ProtocolViolation) else type(error).__name__


def _guessed_tokens(api_request: ApiRequest) -> int:
    """Return an estimate of the number of tokens in the prompt. Raises BadInput.

    The estimate includes the tools, which are often longer than the messages.
    """
    if api_request.messages is None:
        return len(api_request.prompt or "") // CHARS_OF_A_TOKEN
    texts = [*api_request.messages, *(tool.as_json() for tool in api_request.tools)]
    try:
        read = msgspec.json.encode(texts if api_request.schema is None else [*texts, api_request.schema])
    except RecursionError:
        raise nested_too_deeply() from None
    return len(read) // CHARS_OF_A_TOKEN


def _why(error: Exception) -> Reason:
    if isinstance(error, TimeoutError):
        return Reason("silent_too_long")
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return Reason("certificate_unknown")
    return Reason("not_reached" if isinstance(error, OSError) else "hung_up")
