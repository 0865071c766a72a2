"""Grammars that answers must match. Each grammar is evaluated in a separate process (grammar_process.py)."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from backends.contract import StageError
from backends.grammar_process import OPEN_WALL_SECONDS, TOKEN, WALL_SECONDS, Ask, GrammarEvaluator, receive, send
from backends.worker import fork_server

MAX_BYTES = 64 << 10  # SAFETY.md 7
IDLE = 2  # idle processes kept for each vocabulary
LATE_SECONDS = 1.0  # grace period after the process's own deadline
TOO_HEAVY = "the grammar takes too long to follow, or too much memory"


class GrammarRefused(StageError):
    """A grammar that is invalid or takes too long to compile."""


class GrammarTooHeavy(StageError):
    """A grammar that took too much time or memory, so its evaluator was ended."""


class EvaluatorConnection(Protocol):
    """A connection to an evaluator, which has a fixed vocabulary and evaluates one grammar at a time."""

    end: int  # the token that ends an answer

    def ask(self, question: Ask, payload: bytes = b"") -> bytes:
        """Send a request and return the reply.

        Raises GrammarRefused or GrammarTooHeavy. After GrammarTooHeavy the connection is unusable.
        """
        ...

    def forget(self) -> bool:
        """Drop the grammar. Return whether the evaluator can accept another one."""
        ...

    def close(self) -> None: ...


class ForkedEvaluator:
    """An evaluator in a separate process."""

    def __init__(self, vocabulary: str, n_vocab: int) -> None:
        """Start the process. Raises GrammarRefused."""
        try:
            self._socket = fork_server.of_grammars().new()
        except OSError as error:
            raise GrammarRefused(f"no process can be started for it: {error}") from None
        self.end = _opened(self, vocabulary, n_vocab)

    def ask(self, question: Ask, payload: bytes = b"") -> bytes:
        own_s = OPEN_WALL_SECONDS if question is Ask.OPEN else WALL_SECONDS
        try:
            self._socket.settimeout(own_s + LATE_SECONDS)
            send(self._socket, question, payload)
            done, answer = receive(self._socket)
        except (OSError, EOFError):
            self.close()
            raise GrammarTooHeavy(TOO_HEAVY) from None
        if not done:
            raise GrammarRefused(answer.decode("utf-8", "replace"))
        return answer

    def forget(self) -> bool:
        with suppress(OSError):
            send(self._socket, Ask.FORGET)
            return True
        return False

    def close(self) -> None:
        self._socket.close()


class InProcessEvaluator:
    """An evaluator in this process, for systems that cannot fork.

    If the evaluator hangs, the node ends the worker after a timeout.
    """

    def __init__(self, vocabulary: str, n_vocab: int) -> None:
        self._follower = GrammarEvaluator()
        self.end = _opened(self, vocabulary, n_vocab)

    def ask(self, question: Ask, payload: bytes = b"") -> bytes:
        try:
            return self._follower.answer(question, payload) or b""
        except StageError as error:
            raise GrammarRefused(str(error)) from None

    def forget(self) -> bool:
        self._follower.answer(Ask.FORGET, b"")
        return True

    def close(self) -> None:
        self._follower.close()


def _opened(way: EvaluatorConnection, vocabulary: str, n_vocab: int) -> int:
    opened = way.ask(Ask.OPEN, TOKEN.pack(n_vocab) + vocabulary.encode())
    return int(TOKEN.unpack(opened)[0])


class Grammar:
    """A grammar, and the position that one sequence has reached in it."""

    def __init__(self, vocabulary: str, n_vocab: int, text: str) -> None:
        """Compile the grammar. vocabulary: the path of the model file. Raises GrammarRefused."""
        self._way: EvaluatorConnection | None = None
        data = text.encode()
        if not vocabulary:
            raise GrammarRefused("a grammar needs the model's vocabulary, which is not known here")
        if len(data) > MAX_BYTES or b"\0" in data:
            raise GrammarRefused(f"a grammar of more than {MAX_BYTES} bytes, or with a NUL")
        self._place = vocabulary, n_vocab
        while waiting := _idle.get(self._place):
            with suppress(GrammarTooHeavy):  # the previous grammar may have ended this process
                self._begin(waiting.pop(), data)
                return
        try:
            self._begin((ForkedEvaluator if hasattr(os, "fork") else InProcessEvaluator)(vocabulary, n_vocab), data)
        except GrammarTooHeavy:
            raise GrammarRefused("the grammar is too deep or too large to compile") from None

    def _begin(self, way: EvaluatorConnection, data: bytes) -> None:
        try:
            way.ask(Ask.COMPILE, data)
        except GrammarRefused:
            self._way = way
            self.close()
            raise
        self._way, self.end = way, way.end

    def allows(self, token: int) -> bool:
        """Return whether the token may come next. Raises GrammarTooHeavy, as do `takes` and `allowed`."""
        return self._request(Ask.ALLOWS, TOKEN.pack(token)) != b"\0"

    def takes(self, token: int) -> bool:
        """Advance past the token if it may come next. Return whether it was allowed."""
        return self._request(Ask.TAKE, TOKEN.pack(token)) != b"\0"

    def allowed(self) -> NDArray[np.bool_]:
        """Return a mask, indexed by token id, of the tokens that may come next."""
        bits = np.frombuffer(self._request(Ask.ALLOWED), np.uint8)
        return np.unpackbits(bits, count=self._place[1]).astype(bool)

    def close(self) -> None:
        """Release the evaluator, so another grammar can use it if possible."""
        way, self._way = self._way, None
        if way is None:
            return
        idle = _idle.setdefault(self._place, [])
        if way.forget() and len(idle) < IDLE:
            idle.append(way)
        else:
            way.close()

    def _request(self, question: Ask, payload: bytes = b"") -> bytes:
        if self._way is None:
            raise GrammarTooHeavy(TOO_HEAVY)
        try:
            return self._way.ask(question, payload)
        except GrammarTooHeavy:
            self._way = None
            raise


_idle: dict[tuple[str, int], list[EvaluatorConnection]] = {}  # by vocabulary path and number of tokens


def forget_all() -> None:
    """Close the idle evaluators, for use when their vocabulary is being closed."""
    for waiting in _idle.values():
        for way in waiting:
            way.close()
    _idle.clear()
