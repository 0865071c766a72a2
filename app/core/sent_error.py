"""An error as a node sends it over its loopback API, and the error it was."""

from __future__ import annotations

import msgspec

from app.core.errors import KINDS, AppError
from app.core.reasons import said


class WireError(msgspec.Struct, frozen=True):
    """An error as the node sends it."""

    kind: str
    code: str = ""
    facts: dict[str, str | int | float] = {}
    message: str = ""


def error_of(payload: object) -> AppError:
    """The error a node sent, as the kind it was, with a sentence `said()` can find."""
    try:
        sent = msgspec.convert(payload, WireError)
    except msgspec.ValidationError:
        return AppError("node_fault", detail="its answer was not understood")
    facts = {name: fact for name, fact in sent.facts.items() if name not in ("self", "code")}
    kind = KINDS.get(sent.kind, AppError)
    error = kind(sent.code, **facts)
    try:
        said(error)
    except (LookupError, ValueError, TypeError, ArithmeticError):  # a code this version has no sentence for
        if sent.message:
            return kind("said_by_node", sentence=sent.message)
        return AppError("node_fault", detail=sent.code or sent.kind)
    return error
