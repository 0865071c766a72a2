"""Interface through which the window finds its node and starts one; `app/cli` implements it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A running node's loopback API."""

    pid: int
    port: int
    token: str
    version: str


class Launcher(Protocol):
    """The node of one home."""

    home: Path  # the window keeps its own things in a folder of it

    def find(self) -> Endpoint | None:
        """The node that runs now. Quick: a small file is read."""

    def start(self) -> None:
        """Begin to start one, which outlives a window that crashes. Raises AppError."""

    def end(self) -> None:
        """End the one that `start` started, if it cannot be found yet; then it serves nobody."""

    def leave(self) -> None:
        """Reset the node: from its next start it belongs to no household and has a new identity. Raises AppError."""

    def erase_at_end(self) -> None:
        """Once this window and its node have ended, all data of the home is deleted."""

    def fate(self) -> str | None:
        """The last words of the node that `start` started, once it has ended; None while it runs."""

    @property
    def started(self) -> bool:
        """Return whether this window or a former one started the running node, so that Quit ends it."""
