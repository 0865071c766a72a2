"""The interface that the window uses to find and start its node. `app/cli` implements it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address and access token of a running node's loopback API."""

    pid: int
    port: int
    token: str
    version: str


class Launcher(Protocol):
    """An interface for finding, starting and resetting the node of one home folder."""

    home: Path  # contains a folder for the window's own files

    def find(self) -> Endpoint | None:
        """Return the endpoint of the running node, or None. This only reads a small file."""

    def start(self) -> None:
        """Start a node in a separate process that survives a crash of the window. Raises AppError."""

    def end(self) -> None:
        """Terminate a node that `start` has started but that cannot be found yet, because nothing uses it."""

    def leave(self) -> None:
        """Reset the node: on its next start it has a new identity and belongs to no household. Raises AppError."""

    def erase_at_end(self) -> None:
        """Delete all data in the home folder after this window and its node have exited."""

    def fate(self) -> str | None:
        """Return the last output of the node started by `start` if it has exited, or None while it is running."""

    @property
    def started(self) -> bool:
        """Return whether this window or an earlier one started the running node. If so, Quit stops it."""
