"""The interface through which the window finds and starts its node. `app/cli` implements it."""

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
    """The launcher of a home's node."""

    home: Path  # the window keeps its own files in one of its folders

    def find(self) -> Endpoint | None:
        """Return the running node, if there is one. This only reads a small file."""

    def start(self) -> None:
        """Start a node that survives a crash of the window. Raises AppError."""

    def end(self) -> None:
        """End the node that `start` started if it cannot be found yet, since nothing uses it then."""

    def leave(self) -> None:
        """Reset the node. From its next start it belongs to no household and has a new identity. Raises AppError."""

    def erase_at_end(self) -> None:
        """Delete all data of the home once this window and its node have ended."""

    def fate(self) -> str | None:
        """Return the last output of the node that `start` started once it has ended, or None while it runs."""

    @property
    def started(self) -> bool:
        """Return whether this window or an earlier one started the running node, so that Quit ends it."""
