"""The node's log as objects of JSON, for programs to read; app/core/log_line.py has them as sentences."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from app.core.errors import AppError, Reason
from app.core.reasons import SENTENCES, said


class JsonLines(logging.Formatter):
    """One object a line: time, level, logger and message; request and facts where they are known; the stack of an
    error."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        told: dict[str, Any] = {
            "time": moment.replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": _message(record),
        }
        if request := getattr(record, "request", ""):
            told["request"] = request
        if facts := getattr(record, "facts", None):
            told["facts"] = facts
        if record.exc_info:
            told["error"] = record.exc_text or self.formatException(record.exc_info)
        return json.dumps(told, ensure_ascii=False, default=str)


class _Sentence(str):
    """The same for `%s` and for `%r`."""

    __slots__ = ()
    __repr__ = str.__str__


def _message(record: logging.LogRecord) -> str:
    """With the sentence of each reason and error of ours, in place of its code and facts."""
    given = record.args
    if not given:
        return record.getMessage()
    if isinstance(given, Mapping):
        return str(record.msg) % {name: _told(value) for name, value in given.items()}
    return str(record.msg) % tuple(_told(value) for value in given)


def _told(value: object) -> object:
    """A reason without a sentence here, as of a newer machine, stays as it is: its line must not be lost."""
    reason = value.reason if isinstance(value, AppError) else value
    if not isinstance(reason, Reason) or reason.code not in SENTENCES:
        return value
    try:
        return _Sentence(said(reason))
    except (KeyError, ValueError):
        return value
