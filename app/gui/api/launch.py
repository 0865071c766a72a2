"""The interface through which the window finds and starts its node. `app/cli` implements it."""

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
    """An interface for finding, starting and resetting a home folder's node."""

    home: Path  # contains a folder for the window's own files

    def find(self) -> Endpoint | None:
        """Return the endpoint of the running node, or None. This is fast, because it only reads a small file."""

    def start(self) -> None:
        """Start a node in a separate process that survives a crash of the window. Raises AppError."""

    def end(self) -> None:
        """Terminate a node that `start` has started but `find` does not return yet. Nothing uses such a node."""

    def leave(self) -> None:
        """Reset the node: on its next start, it has a new identity and no household. Raises AppError."""

    def erase_at_end(self) -> None:
        """Delete all data in the home folder after this window and its node have exited."""

    def restart_at_end(self) -> None:
        """Arrange that the version installed by an update starts after this window and its node have exited."""

    def note_started(self) -> None:
        """Record that this version's window works, so that the launcher need not watch its next start."""

    def fate(self) -> str | None:
        """Return the last output of the node started by `start` if it has exited, or None if it is running."""

    @property
    def started(self) -> bool:
        """Return whether this window or an earlier one started the running node. If so, Quit stops it."""
