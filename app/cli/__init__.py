"""The command line of Poolhouse."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. What it needs is read only here, so that Ctrl-C is quiet from the first moment."""
    try:
        from app.cli.entry_point import main as run
    except KeyboardInterrupt:
        return 130  # STOPPED of entry_point.py, which may not be loaded yet
    return run(arguments)
