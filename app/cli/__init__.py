"""The command line of Poolhouse."""

from __future__ import annotations

from collections.abc import Sequence

from app.cli.exit_codes import STOPPED

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. What it needs is read only here, so that Ctrl-C is quiet from the first moment."""
    try:
        from app.cli.one_command import main as run
    except KeyboardInterrupt:
        return STOPPED
    return run(arguments)
