"""A command that a person ended, where something is to be said of what stays."""

from __future__ import annotations

from app.core.errors import AppError


class Stopped(AppError):
    """Ctrl-C was typed. The reason says what is left of the work, and how it goes on."""
