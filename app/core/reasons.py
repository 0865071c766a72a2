"""Reason code -> the sentence a person reads: what happened, why, one action."""

from __future__ import annotations

from app.core.errors import AppError, Fact, Reason

GIB, MIB, KIB = 1 << 30, 1 << 20, 1 << 10

SENTENCES: dict[str, str] = {
    # model files
    "file_missing": "There is no file {path}. Check the path and try again.",
    # machines and pairing
    "code_wrong": "That code does not match. {tries_left} tries left.",
}


def said(what: Reason | AppError) -> str:
    """The sentence for a reason. Facts named `…_bytes` are written in GiB, MiB or KiB.

    Raises KeyError for a code without a sentence: a bug that a test looks for.
    """
    reason = what.reason if isinstance(what, AppError) else what
    facts = {name: _shown(name, fact) for name, fact in reason.facts.items()}
    return SENTENCES[reason.code].format(**facts)


def _shown(name: str, fact: Fact) -> Fact:
    return size(int(fact)) if name.endswith("_bytes") and not isinstance(fact, str) else fact


def size(n_bytes: int) -> str:
    """A number of bytes as people read it: `1.5 GiB`, `12.0 MiB`, `3.2 KiB`, `7 bytes`."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if n_bytes >= unit:
            return f"{n_bytes / unit:.1f} {name}"
    return f"{n_bytes} bytes"
