"""A client for the node's loopback API that runs in Qt's event loop and supports streamed progress and events."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote

from PySide6.QtCore import QByteArray, QObject, QUrl, Signal
from PySide6.QtNetwork import QHttp1Configuration, QNetworkAccessManager, QNetworkProxy, QNetworkReply, QNetworkRequest

from app.core.errors import AppError, Reason, Unreachable
from app.core.wire_json import error_of, replace_lone_surrogates
from app.decoding import convert, decode
from app.gui.api.launch import Endpoint

Json = dict[str, Any]
T = TypeVar("T")  # type of an answer, from app/api
L = TypeVar("L")  # type of a line streamed before the answer
Done = Callable[[Any], None]
Failed = Callable[[AppError], None]
RAW: Any = dict  # for callers that ignore the content of an answer

CONNECTIONS = 32  # Qt's default is six, which long requests would use up, so that others would have to wait
MAX_LINE_BYTES = 64 << 20  # a complete answer with its token IDs is a single line


def segment(name: str) -> str:
    """Percent-encode a name for use as a single path segment."""
    return quote(name, safe="")


class Call(QObject):
    """A request in progress. `cancel()` closes the connection, which makes the node abandon the request.

    Either `done` or `failed` is emitted once, unless the request is canceled.
    """

    line = Signal(object)  # each line before the last, decoded as `each`
    done = Signal(object)  # the answer, decoded as `answer`
    failed = Signal(object)  # AppError

    def __init__(self, reply: QNetworkReply, parent: QObject, answer: type = RAW, each: type = RAW) -> None:
        super().__init__(parent)
        self._answer, self._each = answer, each
        self._reply: QNetworkReply | None = reply
        self._held = bytearray()
        reply.readyRead.connect(self._read)
        reply.finished.connect(self._finished)

    @property
    def running(self) -> bool:
        return self._reply is not None

    def cancel(self) -> None:
        """Cancel the request. No signals are emitted afterwards."""
        reply, self._reply = self._reply, None
        if reply is not None:
            reply.abort()
            reply.deleteLater()
            self.deleteLater()

    def _read(self) -> None:
        if self._reply is None or self._status() >= 400:
            return  # an error body is read once it is complete
        self._held += bytes(self._reply.readAll().data())
        if b"ndjson" not in _header(self._reply, "Content-Type"):
            return
        *lines, rest = self._held.split(b"\n")
        self._held = bytearray(rest)
        if len(self._held) > MAX_LINE_BYTES:
            self._end(AppError("node_fault", detail=Reason("line_without_end")))
        for line in lines:
            if line.strip() and self._reply is not None:
                self._take(bytes(line))

    def _take(self, line: bytes) -> None:
        content = _object(line)
        if content is None:
            self._end(_not_understood())
        elif "error" in content:
            self._end(error_of(content["error"]))
        elif "done" in content:
            self._end(None, content["done"])
        else:
            try:
                value: object = convert(content, self._each)
            except ValueError:
                self._end(_not_understood())
            else:
                self.line.emit(value)

    def _finished(self) -> None:
        if self._reply is not None:
            self._read()
        reply = self._reply
        if reply is None:
            return
        status = self._status()
        if status >= 400:
            sent = _object(bytes(reply.readAll().data())) or {}
            self._end(error_of(sent.get("error")))
        elif status == 0:
            self._end(Unreachable("node_went_away"))
        elif b"ndjson" in _header(reply, "Content-Type"):
            self._end(Unreachable("node_went_away"))  # the last line is missing
        elif (answer := _object(bytes(self._held))) is None:
            self._end(_not_understood())
        else:
            self._end(None, answer)

    def _end(self, error: AppError | None, answer: Json | None = None) -> None:
        value: object = None
        if error is None:
            try:
                value = convert(answer or {}, self._answer)
            except ValueError:
                error = _not_understood()
        reply, self._reply = self._reply, None
        if reply is not None:
            reply.abort()
            reply.deleteLater()
        if error is not None:
            self.failed.emit(error)
        else:
            self.done.emit(value)
        self.deleteLater()

    def _status(self) -> int:
        assert self._reply is not None
        code = self._reply.attribute(QNetworkRequest.Attribute.HttpStatusCodeAttribute)
        return int(code) if code is not None else 0


class Calls:
    """The requests in progress, keyed by name. There is at most one per name."""

    def __init__(self) -> None:
        self._running: dict[str, Call] = {}

    def keep(self, name: str, call: Call | None) -> None:
        """Register a request, canceling any earlier one with the same name."""
        self.end(name)
        if call is not None:
            self._running[name] = call

    def done(self, name: str) -> None:
        """Remove a request that has ended."""
        self._running.pop(name, None)

    def running(self, name: str) -> bool:
        return name in self._running

    def end(self, name: str) -> None:
        """Cancel the request with this name, if any."""
        call = self._running.pop(name, None)
        if call is not None and call.running:
            call.cancel()

    def end_all(self) -> None:
        for name in list(self._running):
            self.end(name)


class NodeClient(QObject):
    """A client of the node at `endpoint`. If `endpoint` is None, requests fail immediately."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.endpoint: Endpoint | None = None
        self._manager = QNetworkAccessManager(self)
        self._manager.setProxy(QNetworkProxy(QNetworkProxy.ProxyType.NoProxy))
        self._manager.setTransferTimeout(0)
        self._many = QHttp1Configuration()
        self._many.setNumberOfConnectionsPerHost(CONNECTIONS)

    def get(
        self, path: str, done: Callable[[T], None], failed: Failed | None = None, *, answer: type[T] = RAW
    ) -> Call | None:
        return self.call("GET", path, None, done, failed, answer=answer)

    def post(
        self,
        path: str,
        body: Json | None,
        done: Callable[[T], None],
        failed: Failed | None = None,
        *,
        answer: type[T] = RAW,
    ) -> Call | None:
        return self.call("POST", path, body or {}, done, failed, answer=answer)

    def delete(
        self, path: str, done: Callable[[T], None], failed: Failed | None = None, *, answer: type[T] = RAW
    ) -> Call | None:
        return self.call("DELETE", path, None, done, failed, answer=answer)

    def call(
        self,
        method: str,
        path: str,
        body: Json | None,
        done: Callable[[T], None],
        failed: Failed | None = None,
        line: Callable[[L], None] | None = None,
        *,
        answer: type[T] = RAW,
        each: type[L] = RAW,
    ) -> Call | None:
        """Send a request. `done` receives the answer, decoded as `answer`.

        Long requests first stream lines; `line` receives each of them, decoded as `each`.

        If there is no node, this calls `failed` and returns None. The request is canceled when the QObject that
        owns one of the callbacks is destroyed. That owner is known only if the callback is a bound method, possibly
        in a `partial`. For a lambda, the caller must store the request and cancel it in time.
        """
        if self.endpoint is None:
            if failed is not None:
                failed(Unreachable("node_away"))
            return None
        request = self._request(path)
        data = QByteArray(json.dumps(body).encode()) if body is not None else QByteArray()
        reply = self._manager.sendCustomRequest(request, method.encode(), data)
        call = Call(reply, self, answer, each)
        call.done.connect(done)
        if failed is not None:
            call.failed.connect(failed)
        if line is not None:
            call.line.connect(line)
        owner = next((candidate for candidate in map(owner_of, (done, failed, line)) if candidate is not None), None)
        if owner is not None:
            owner.destroyed.connect(call.cancel)
        return call

    def events(self, after: str = "") -> QNetworkReply:
        """Open the event stream on a new connection. `after` is the ID of the last event received."""
        request = self._request("/events")
        if after:
            request.setRawHeader(b"Last-Event-ID", after.encode("latin-1", "replace"))
        return self._manager.get(request)

    def _request(self, path: str) -> QNetworkRequest:
        assert self.endpoint is not None
        request = QNetworkRequest(QUrl(f"http://127.0.0.1:{self.endpoint.port}{path}"))
        request.setRawHeader(b"Authorization", f"Bearer {self.endpoint.token}".encode())
        request.setHeader(QNetworkRequest.KnownHeaders.ContentTypeHeader, "application/json")
        request.setHttp1Configuration(self._many)
        policy = QNetworkRequest.RedirectPolicy.ManualRedirectPolicy
        request.setAttribute(QNetworkRequest.Attribute.RedirectPolicyAttribute, policy)
        return request


def owner_of(heard: Callable[..., object] | None) -> QObject | None:
    """Return the QObject that a bound method belongs to, or None for any other callback."""
    while isinstance(heard, partial):
        heard = heard.func
    owner = getattr(heard, "__self__", None)
    return owner if isinstance(owner, QObject) else None


def _not_understood() -> AppError:
    return AppError("node_fault", detail=Reason("answer_not_understood"))


def _header(reply: QNetworkReply, name: str) -> bytes:
    return bytes(reply.rawHeader(name).data())


def _object(data: bytes) -> Json | None:
    try:
        return decode(replace_lone_surrogates(data), Json)
    except ValueError:
        return None
