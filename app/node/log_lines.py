"""The node's log as objects of JSON, for programs to read; app/core/log_line.py has them as sentences."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any


class JsonLines(logging.Formatter):
    """One object a line: time, level, logger and message; request and facts where they are known; the stack of an
    error."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        told: dict[str, Any] = {
            "time": moment.replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if request := getattr(record, "request", ""):
            told["request"] = request
        if facts := getattr(record, "facts", None):
            told["facts"] = facts
        if record.exc_info:
            told["error"] = record.exc_text or self.formatException(record.exc_info)
        return json.dumps(told, ensure_ascii=False, default=str)
