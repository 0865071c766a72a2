"""A web server for a folder, with ranges, that breaks off as a test asks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@dataclass
class FilesServer:
    """The answers of the server, and the requests that came."""

    folder: Path
    port: int = 0
    break_after: int = 0  # bytes of a file of layers, once
    status: int = 0  # what it answers to everything
    without_ranges: bool = False
    requests: list[tuple[str, str]] = field(default_factory=list)  # path, Range
    headers: list[dict[str, str]] = field(default_factory=list)
    sent_bytes: int = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def serving(folder: Path) -> Iterator[FilesServer]:
    """Serve a folder until the end of the block."""
    state = FilesServer(folder)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path, range_header = self.path.lstrip("/"), self.headers.get("Range", "")
            state.requests.append((path, range_header))
            state.headers.append(dict(self.headers))
            file = folder / path
            if state.status or not file.is_file():
                self.send_response(state.status or 404)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            data = file.read_bytes()
            start = (
                int(range_header.removeprefix("bytes=").rstrip("-")) if range_header and not state.without_ranges else 0
            )
            part = data[start:]
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
            self.send_header("Content-Length", str(len(part)))
            self.end_headers()
            if state.break_after and path.startswith("targets/layers/"):
                part, state.break_after = part[: state.break_after], 0
                self.close_connection = True
            self.wfile.write(part)
            if path.startswith("targets/layers/"):
                state.sent_bytes += len(part)

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients may leave at any time
    state.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
