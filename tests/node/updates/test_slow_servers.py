"""Servers that send for ever and never anything useful are given up in one sentence."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tuf.api.exceptions import DownloadError

from app.core.errors import Unreachable
from app.node.updates import sources, trust
from app.node.updates.sources import FolderSource, WebSource
from tests.node.updates.publisher import Copy, Publisher

HEAD = b"HTTP/1.1 200 OK\r\n"


@contextmanager
def dripping(first: bytes, forever: bytes) -> Iterator[str]:
    """The address of a server that answers with `first`, and then with a byte of `forever` every now and then."""
    done = threading.Event()
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while not done.is_set():
            try:
                client, _ = server.accept()
            except OSError:
                return
            with client:
                try:
                    client.recv(4096)
                    client.sendall(first)
                    while not done.wait(0.05):
                        client.sendall(forever[:1])
                except OSError:
                    continue

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
    finally:
        done.set()
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join()


@pytest.mark.parametrize(
    "first",
    [HEAD + b"X-Endless: ", HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;endless="],
    ids=["headers", "the length of a chunk"],
)
def test_an_answer_whose_beginning_never_ends(monkeypatch: pytest.MonkeyPatch, first: bytes) -> None:
    monkeypatch.setattr(sources, "ANSWER_SECONDS", 0.5)
    begun = time.monotonic()
    with dripping(first, b"x") as address, pytest.raises(DownloadError, match=r"timed out|broken"):
        b"".join(WebSource(address).read("file")[1])
    assert time.monotonic() - begun < 5


Read = Callable[[str, int], tuple[int, Generator[bytes, None, None]]]


@pytest.mark.parametrize("breaks", [False, True])
def test_a_download_that_drips_is_given_up_and_goes_on_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, breaks: bool
) -> None:
    publisher, copy = Publisher(tmp_path / "publisher"), Copy(tmp_path / "user")
    publisher.publish("2.0")
    stick = FolderSource(publisher.place)
    read: Read = stick.read

    def drip(path: str, start: int = 0) -> tuple[int, Generator[bytes, None, None]]:
        begins, chunks = read(path, start)
        if "layers/app" not in path and ".app-" not in path:
            return begins, chunks
        data = b"".join(chunks)

        def slowly() -> Generator[bytes, None, None]:
            for byte in data:
                time.sleep(0.02)
                yield bytes([byte])
                if breaks:
                    raise DownloadError("the connection broke")

        return begins, slowly()

    monkeypatch.setattr(stick, "read", drip)
    monkeypatch.setattr(trust, "PACE_SECONDS", 1.0)
    begun = time.monotonic()
    with pytest.raises(Unreachable) as error:
        copy.update(publisher, stick)
    assert time.monotonic() - begun < 20
    assert error.value.reason.code == "update_slow"
    assert copy.store.next_version() == "1.0"
    assert copy.update(publisher, FolderSource(publisher.place)) == "2.0"


def test_a_slow_line_is_no_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publisher, copy = Publisher(tmp_path / "publisher"), Copy(tmp_path / "user")
    publisher.publish("2.0")
    stick = FolderSource(publisher.place)
    read: Read = stick.read

    def slow(path: str, start: int = 0) -> tuple[int, Generator[bytes, None, None]]:
        begins, chunks = read(path, start)
        data = b"".join(chunks)

        def in_parts() -> Generator[bytes, None, None]:
            for place in range(0, len(data), 256):
                time.sleep(0.01 if ".app-" in path else 0)
                yield data[place : place + 256]

        return begins, in_parts()

    monkeypatch.setattr(stick, "read", slow)
    monkeypatch.setattr(trust, "PACE_SECONDS", 0.2)
    assert copy.update(publisher, stick) == "2.0"
