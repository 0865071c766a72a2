"""JSON merge patches (RFC 7396): what the event stream sends, and how a face follows it."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def merge_patch(old: Json, new: Json) -> Json:
    """The smallest merge patch that turns `old` into `new`; {} when they are equal.

    A key that is gone becomes None, so snapshots use None for "nothing" and never a missing key.
    """
    patch: Json = dict.fromkeys(old.keys() - new.keys())
    for key, value in new.items():
        before = old.get(key)
        if key not in old or before != value:
            both = isinstance(before, dict) and isinstance(value, dict)
            patch[key] = merge_patch(before, value) if both else value  # type: ignore[arg-type]
    return patch


def patched(old: Json, patch: Json) -> Json:
    """`old` with a merge patch applied; `old` stays as it is."""
    new = dict(old)
    for key, value in patch.items():
        if value is None:
            new.pop(key, None)
        elif isinstance(value, dict):
            before = new.get(key)
            new[key] = patched(before if isinstance(before, dict) else {}, value)
        else:
            new[key] = value
    return new
