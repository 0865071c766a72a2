"""The command line of Poolhouse."""

from app.cli.main import main

__all__ = ["main"]
