"""Errors of the operating system as errors with a sentence for users."""

from __future__ import annotations

import errno

from app.core.errors import AppError

_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_NOT_ALLOWED = frozenset({errno.EACCES, errno.EPERM})


def system_error(error: OSError) -> AppError:
    """Return the error for what the operating system refused, with its own message as the detail."""
    detail = _message(error)
    if error.errno in _DISK_FULL:
        return AppError("no_room_left", detail=detail)
    if error.errno == errno.EROFS:
        return AppError("disk_read_only", detail=detail)
    if error.errno in _NOT_ALLOWED:
        return AppError("not_allowed", detail=detail)
    return AppError("system_error", detail=detail)


def _message(error: OSError) -> str:
    message = error.strerror or str(error)
    return f"{error.filename}: {message}" if error.filename else message
