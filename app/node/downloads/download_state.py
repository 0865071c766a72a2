"""What a download does at this moment, and how a face is told of it."""

from __future__ import annotations

import time
from typing import Any, Literal

from app.catalog.transfers.download_records import Record
from app.core.errors import Reason
from app.core.reasons import with_reason
from app.node.downloads.transfer_rate import Pace

Json = dict[str, Any]
Doing = Literal["waiting", "starting", "running", "checking", "nothing"]

TELL_SECONDS = 0.25


class Live:
    """The moving part of one download. Nothing of it is kept: the file on the disk tells the truth."""

    def __init__(self, done_bytes: int) -> None:
        self.done_bytes = done_bytes
        self.doing: Doing = "nothing"
        self.held_up: Reason | None = None  # why nothing comes, though it goes on
        self._pace = Pace()
        self._told = 0.0

    def waiting(self) -> None:
        self._set("waiting")

    def starting(self) -> None:
        self._set("starting")

    def checking(self, done_bytes: int) -> None:
        self._set("checking")
        self.done_bytes = done_bytes

    def checked(self, done: int, total: int) -> None:
        """How far the last check is; it never shows more than the file."""
        self.done_bytes = min(done, total)
        self._pace.mark(self.done_bytes)

    def finished(self, file_bytes: int) -> None:
        self._set("nothing")
        self.done_bytes = file_bytes

    def stopped(self, done_bytes: int) -> None:
        self._set("nothing")
        self.done_bytes = done_bytes

    def is_held_up(self, why: Reason | None) -> bool:
        """Why nothing comes; None: it does. Whether that is news."""
        news, self.held_up = why != self.held_up, why
        return news

    def moved(self, done_bytes: int, is_flowing: bool) -> bool:
        """More bytes are on the disk; whether it is time to tell."""
        now = time.monotonic()
        if is_flowing and self.doing != "running":
            self._set("running")
        self.done_bytes = done_bytes
        if is_flowing:
            self._pace.mark(done_bytes)
        else:
            self._pace.clear()
        due = now - self._told >= TELL_SECONDS
        self._told = now if due else self._told
        return due

    def bytes_per_s(self) -> int | None:
        """The speed of the last seconds; None while that is not known."""
        return self._pace.bytes_per_s() if self.doing in ("running", "checking") else None

    def _set(self, doing: Doing) -> None:
        self.doing = doing
        self.held_up = None
        self._pace.clear()
        self._told = 0.0


def download_json(record: Record, live: Live) -> Json:
    """A download as the loopback API shows it."""
    going = record.standing == "going"
    speed = live.bytes_per_s()
    left = None
    if speed and record.total_bytes:
        left = round(max(0, record.total_bytes - live.done_bytes) / speed)
    return {
        "id": record.id,
        "name": record.name,
        "repository": record.repository,
        "file": record.file,
        "parts": len(record.parts) or 1,
        "revision": record.revision,
        "source": record.source,
        "machine": record.machine,
        "state": (live.doing if live.doing != "nothing" else "waiting") if going else record.standing,
        "done_bytes": live.done_bytes if record.standing != "done" else record.total_bytes,
        "total_bytes": record.total_bytes,
        "bytes_per_s": speed,
        "seconds_left": left,
        **with_reason("reason", Reason(record.code, record.facts) if record.code else None),
        "code": record.code,
        **with_reason("held_up", live.held_up if going else None),
        "sha256": record.sha256,
        "hash_from": record.hash_from,
        "model": record.model,
        "started": record.started,
    }  # fmt: skip
