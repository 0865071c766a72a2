"""A minimal client for the Wayland protocol ext-idle-notify-v1, which yields the time since the last input.

Wayland does not report that time itself. It notifies connected clients when a period has passed without input and when
input resumes, so this client must stay connected. It reads notifications only when the time is requested and does
nothing in between.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

SILENT_SECONDS = 5  # period without input after which the compositor notifies us
ANSWER_SECONDS = 2.0  # for the compositor to list its global objects
MAX_BYTES = 1 << 20  # read per call
HEAD, WORD = struct.Struct("=II"), struct.Struct("=I")  # native byte order, as the protocol requires
DISPLAY, REGISTRY, CALLBACK, SEAT, NOTIFIER, NOTICE = range(1, 7)  # object ids
SYNC, GET_REGISTRY, BIND, PLAIN, INPUT_ONLY = 0, 1, 0, 1, 2  # opcodes of requests
ERROR, GLOBAL, DONE, IDLED, RESUMED = 0, 0, 0, 0, 1  # opcodes of events
# interface -> our id and the highest supported version
NEEDS = {"wl_seat": (SEAT, 1), "ext_idle_notifier_v1": (NOTIFIER, 2)}
WITHOUT_INHIBITORS = 2  # from this version on, a playing video does not count as input


class WaylandIdleWatch:
    """A connection to the compositor, opened on first use and reopened after a loss. Blocks for at most two seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._socket: socket.socket | None = None
        self._partial = b""  # an incomplete message
        self._silent_since: float | None = None

    def idle_seconds(self, environment: Mapping[str, str]) -> float | None:
        """Return the seconds since the last input, or None if the compositor does not report it.

        A result of 0 means less than 5 s.
        """
        try:
            if self._socket is None:
                self._connect(_socket_path(environment))
            for sender, opcode, _ in self._new_messages():
                if sender == NOTICE:
                    now_s = self._clock()
                    self._silent_since = now_s - SILENT_SECONDS if opcode == IDLED else None
        except (OSError, ValueError, struct.error):  # the compositor is missing, incompatible or failing
            self.close()
            return None
        since = self._silent_since
        return 0.0 if since is None else self._clock() - since

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket, self._partial, self._silent_since = None, b"", None

    def _connect(self, place: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(ANSWER_SECONDS)
        self._socket.connect(str(place))
        ask = _message(DISPLAY, GET_REGISTRY, REGISTRY) + _message(DISPLAY, SYNC, CALLBACK)
        self._socket.sendall(ask)
        self._socket.sendall(_notification_requests(dict(self._globals())))
        self._socket.setblocking(False)

    def _globals(self) -> Iterator[tuple[str, tuple[int, int]]]:
        """Yield the interface of each of the compositor's global objects, with its numeric name and version."""
        until = self._clock() + ANSWER_SECONDS
        while self._clock() < until:
            for sender, opcode, body in self._messages(self._read()):
                if (sender, opcode) == (REGISTRY, GLOBAL):
                    kind, version = _text(body[WORD.size :])
                    yield kind, (WORD.unpack_from(body)[0], WORD.unpack_from(version)[0])
                elif (sender, opcode) == (CALLBACK, DONE):
                    return
        raise TimeoutError

    def _new_messages(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield the messages that have arrived since the last call."""
        n_bytes = 0
        while n_bytes < MAX_BYTES:
            try:
                data = self._read()
            except BlockingIOError:
                return
            n_bytes += len(data)
            yield from self._messages(data)

    def _read(self) -> bytes:
        assert self._socket is not None
        data = self._socket.recv(1 << 16)
        if not data:
            raise ConnectionResetError
        return data

    def _messages(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Yield the sender, opcode and body of each complete message. Raises ValueError after a protocol error."""
        self._partial += data
        while len(self._partial) >= HEAD.size:
            sender, head = HEAD.unpack_from(self._partial)
            size, opcode = head >> 16, head & 0xFFFF
            if size < HEAD.size or (sender, opcode) == (DISPLAY, ERROR):
                raise ValueError
            if len(self._partial) < size:
                return
            body, self._partial = self._partial[HEAD.size : size], self._partial[size:]
            yield sender, opcode, body


def _socket_path(environment: Mapping[str, str]) -> Path:
    """Return the path of the compositor's socket. Raises ValueError if the environment does not name it."""
    named, folder = environment.get("WAYLAND_DISPLAY", ""), environment.get("XDG_RUNTIME_DIR", "")
    if not named or not (named.startswith("/") or folder):
        raise ValueError
    return Path(folder) / named


def _notification_requests(available: Mapping[str, tuple[int, int]]) -> bytes:
    """Return the encoded requests for idle notifications. Raises ValueError if the compositor does not support them."""
    requests = b""
    for kind, (object_id, most) in NEEDS.items():
        if kind not in available:
            raise ValueError
        number, version = available[kind][0], min(available[kind][1], most)
        requests += _message(REGISTRY, BIND, number, _packed(kind), version, object_id)
    has_more = available["ext_idle_notifier_v1"][1] >= WITHOUT_INHIBITORS
    opcode = INPUT_ONLY if has_more else PLAIN
    return requests + _message(NOTIFIER, opcode, NOTICE, SILENT_SECONDS * 1000, SEAT)


def _message(receiver: int, opcode: int, *words: int | bytes) -> bytes:
    body = b"".join(word if isinstance(word, bytes) else WORD.pack(word) for word in words)
    return HEAD.pack(receiver, (HEAD.size + len(body)) << 16 | opcode) + body


def _packed(text: str) -> bytes:
    """Encode a string with its length and a terminating zero byte, padded to whole words."""
    data = text.encode() + b"\0"
    return WORD.pack(len(data)) + data + b"\0" * (-len(data) % WORD.size)


def _text(data: bytes) -> tuple[str, bytes]:
    """Decode the string at the beginning of the data. Return it and the remaining data."""
    n_bytes = WORD.unpack_from(data)[0]
    begin = WORD.size
    end = begin + n_bytes + -n_bytes % WORD.size
    return data[begin : begin + max(0, n_bytes - 1)].decode("utf-8", "replace"), data[end:]
