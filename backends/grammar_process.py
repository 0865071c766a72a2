"""Processes that evaluate grammars, so that a grammar in a request cannot hang, exhaust or crash the worker.

A grammar of a hundred bytes can use unlimited time and memory at any token. Each grammar is therefore evaluated in a
separate process that limits both, per token and in total. A process loads the vocabulary once and then evaluates one
grammar after another.
"""

from __future__ import annotations

import ctypes
import signal
import socket
import struct
import time
from enum import IntEnum
from typing import Any

import numpy as np

from backends.contract import StageError
from backends.llamacpp import binding
from backends.worker import process_resources

# Limits on CPU and elapsed time for one message. All other answers wait during it, and a worker is considered hung if a
# step takes 4.75 s (app/inference/pipeline/speed_measurement.py). WALL_SECONDS + LATE_SECONDS of grammar.py must stay
# below that.
STEP_SECONDS, WALL_SECONDS = 1.0, 3.0
OPEN_SECONDS, OPEN_WALL_SECONDS = 20.0, 60.0  # the same for loading a vocabulary
IN_ALL_SECONDS, EACH_SECONDS = (30.0, 0.2)  # CPU time for a whole grammar, and additional time for each token
GROW_BYTES = 256 << 20  # maximum growth beyond the process's size with its vocabulary
KEPT_BYTES = 32 << 20  # a process that has grown by more is not reused

MAX_MESSAGE_BYTES = 1 << 20  # a grammar, or a bit for each token of a vocabulary

HEAD = struct.Struct("<BI")
TOKEN = struct.Struct("<i")
CANDIDATE = np.dtype([("id", "<i4"), ("logit", "<f4"), ("p", "<f4")])


class Ask(IntEnum):
    """The kind of a request to a grammar process."""

    OPEN = 1  # load a vocabulary: its expected number of tokens and the path of its file
    COMPILE = 2  # compile a grammar, replacing the previous one
    ALLOWS = 3  # return whether a token may come next
    TAKE = 4  # advance by a token if it may come next, and return whether it may
    ALLOWED = 5  # return the tokens that may come next, as one bit for each token
    FORGET = 6  # drop the grammar; this request has no reply


def array_of(llama: Any, candidates: np.ndarray[Any, np.dtype[np.void]]) -> Any:
    """Return a llama.cpp array that points to the memory of `candidates`, which must outlive it."""
    data = ctypes.cast(candidates.ctypes.data, llama.llama_token_data_p)
    return llama.llama_token_data_array(data, len(candidates), -1, False)


class GrammarEvaluator:
    """An evaluator for one vocabulary, with at most one grammar loaded."""

    def __init__(self) -> None:
        self._llama: Any = None
        self._model: Any = None
        self._vocab: Any = None
        self._grammar: Any = None
        self._candidates = np.zeros(0, dtype=CANDIDATE)
        self._began_s, self._n_tokens = 0.0, 0

    def close(self) -> None:
        """Release the memory."""
        self._forget()
        if self._model:
            self._llama.llama_model_free(self._model)
        self._model = None

    def answer(self, question: Ask, payload: bytes) -> bytes | None:
        """Return the reply to a request, or None if the request has no reply. Raises StageError."""
        match question:
            case Ask.OPEN:
                (n_vocab,) = TOKEN.unpack_from(payload)
                return self._open(n_vocab, payload[TOKEN.size :].decode())
            case Ask.COMPILE:
                return self._compile(payload)
            case Ask.ALLOWS:
                return bytes([self._allows(*TOKEN.unpack(payload))])
            case Ask.TAKE:
                return bytes([self._take(*TOKEN.unpack(payload))])
            case Ask.ALLOWED:
                return self._allowed()
            case Ask.FORGET:
                self._forget()
                return None

    def bounds(self, question: Ask) -> tuple[float, float]:
        """Return the limits on CPU time and elapsed time for a request, in seconds."""
        if question is Ask.OPEN:
            return OPEN_SECONDS, OPEN_WALL_SECONDS
        most = IN_ALL_SECONDS + EACH_SECONDS * self._n_tokens
        left = most - (time.process_time() - self._began_s)
        return (STEP_SECONDS if question is Ask.COMPILE else max(1e-3, min(STEP_SECONDS, left))), WALL_SECONDS

    def _open(self, n_vocab: int, path: str) -> bytes:
        self._llama = binding.load()
        self._model = binding.load_model(path, vocabulary_only=True)
        self._vocab = self._llama.llama_model_get_vocab(self._model)
        n_there = self._llama.llama_vocab_n_tokens(self._vocab)
        if n_there != n_vocab:
            raise StageError(f"the vocabulary has {n_there} tokens, and the model {n_vocab}")
        self._candidates = np.zeros(n_vocab, dtype=CANDIDATE)
        return TOKEN.pack(self._llama.llama_vocab_eos(self._vocab))

    def _compile(self, text: bytes) -> bytes:
        self._forget()
        self._began_s, self._n_tokens = time.process_time(), 0
        binding.take_log()
        self._grammar = self._llama.llama_sampler_init_grammar(self._vocab, text, b"root")
        if not self._grammar:
            raise StageError(binding.take_log() or "the grammar has a mistake")
        self._allows(0)  # detects a grammar that compiles but allows nothing
        return b""

    def _forget(self) -> None:
        if self._grammar:
            self._llama.llama_sampler_free(self._grammar)
        self._grammar = None

    def _allows(self, token: int) -> bool:
        candidate = np.array([(token, 1.0, 0.0)], dtype=CANDIDATE)
        self._apply(candidate)
        return bool(np.isfinite(candidate["logit"][0]))

    def _take(self, token: int) -> bool:
        if not self._allows(token):
            return False
        self._llama.llama_sampler_accept(self._grammar, token)
        self._n_tokens += 1
        return True

    def _allowed(self) -> bytes:
        candidates = self._candidates
        candidates["id"], candidates["logit"] = np.arange(len(candidates)), 0
        self._apply(candidates)
        return np.packbits(np.isfinite(candidates["logit"])).tobytes()

    def _apply(self, candidates: np.ndarray[Any, np.dtype[np.void]]) -> None:
        if not self._grammar:
            raise StageError("there is no grammar")
        array = array_of(self._llama, candidates)
        self._llama.llama_sampler_apply(self._grammar, ctypes.byref(array))


def send(to: socket.socket, kind: int, payload: bytes = b"") -> None:
    """Send one message. Raises OSError."""
    to.sendall(HEAD.pack(kind, len(payload)) + payload)


def receive(come_from: socket.socket) -> tuple[int, bytes]:
    """Return the next message. Raises OSError if the message is too long, or EOFError if the connection was closed."""
    kind, size = HEAD.unpack(_read(come_from, HEAD.size))
    if size > MAX_MESSAGE_BYTES:
        raise OSError(f"a message of {size} bytes, and {MAX_MESSAGE_BYTES} are the most")
    return kind, _read(come_from, size)


def _read(come_from: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        part = come_from.recv(size - len(received))
        if not part:
            raise EOFError("the other side is gone")
        received += part
    return bytes(received)


def serve(asks: socket.socket, address_bytes: int) -> None:
    """Answer requests until the worker closes the connection.

    address_bytes: the size of this process's address space at its start.
    """
    follower, began_bytes = GrammarEvaluator(), process_resources.peak_bytes()
    opened_bytes = began_bytes
    while True:
        try:
            kind, payload = receive(asks)
        except (OSError, EOFError):
            return
        of_processor, of_clock = follower.bounds(Ask(kind))
        signal.setitimer(signal.ITIMER_PROF, of_processor)  # either signal ends the process, even in native code
        signal.setitimer(signal.ITIMER_REAL, of_clock)
        try:
            if kind == Ask.COMPILE:
                own = process_resources.peak_bytes() - began_bytes
                process_resources.address_at_most(address_bytes + own + GROW_BYTES)
            done, answer = True, follower.answer(Ask(kind), payload)
            if kind == Ask.OPEN:
                opened_bytes = process_resources.peak_bytes()
            if kind == Ask.FORGET and process_resources.peak_bytes() - opened_bytes > KEPT_BYTES:
                return
        except StageError as error:
            done, answer = False, str(error).encode()
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        if answer is not None:
            send(asks, int(done), answer)
