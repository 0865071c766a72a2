"""The options of a node's start."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """The choices of the command line or the app; None leaves a choice to the saved settings."""

    home: Path | None = None  # None: this user's default home
    name: str | None = None
    port: int | None = None  # of the household's listener; 0: any free one
    lend_bytes: int | None = None
    limit_bytes: int | None = None  # of all models here, others' and one's own
    bind: str = "0.0.0.0"  # noqa: S104  the household reaches it from other machines
    discovery: bool = True
    interfaces: tuple[str, ...] = ()  # to use besides those that join a household anyway
    threads: int | None = None  # of each worker; None: as many as are found to be best
