"""The exit codes of a command. This file imports nothing: it is read before anything else."""

from __future__ import annotations

from app.core.errors import AppError

# A command that a person ended, where something is to be said of what stays.


class Stopped(AppError):
    """Ctrl-C was typed. The reason says what is left of the work, and how it goes on."""


FAILED = 1
WRONG_USAGE = 2
STOPPED = 130  # what shells report after Ctrl-C
