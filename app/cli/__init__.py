"""The command line of Poolhouse."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    The command line is imported inside this function, so that Ctrl-C shows no traceback even during the imports.
    """
    try:
        from app.cli.entry_point import main as run
    except KeyboardInterrupt:
        return 130  # STOPPED of entry_point.py, which may not be imported yet
    return run(arguments)
