"""Findings of doctor in tests: made from plain sentences, and read as sentences."""

from __future__ import annotations

from typing import Any

from app.core.diagnostics import Check
from app.core.errors import Reason
from app.core.reasons import said


def plain(sentence: str) -> Reason | None:
    """Return a reason that says this sentence in every language; None for an empty one."""
    return Reason("said_by_node", {"sentence": sentence}) if sentence else None


def finding(name: str, ok: bool | None, cause: str = "", cure: str = "", *rest: Any, **more: Any) -> Check:
    return Check(name, ok, plain(cause), plain(cure), *rest, **more)


def cause_of(check: Check) -> str:
    return said(check.cause) if check.cause else ""


def cure_of(check: Check) -> str:
    return said(check.cure) if check.cure else ""


def tells(sentence: str, name: str = "reason") -> dict[str, Any]:
    """Return what an answer of a node has for a reason that says this sentence."""
    reason = plain(sentence)
    return {name: sentence, f"{name}_facts": reason and reason.to_json()}
