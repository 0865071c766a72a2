"""Why a chat template could not be applied."""

from __future__ import annotations


class TemplateFailed(Exception):
    """The template could not be applied; the text says why."""


class Refused(TemplateFailed):
    """It could not be applied to this chat; another one may do."""


class Objected(Refused):
    """The template itself says that it does not take this chat, in its author's words."""
