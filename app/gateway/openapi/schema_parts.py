"""What answers of several APIs have. No I/O."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType


class Exact(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """An object with these fields and no others."""


class Poolhouse(Exact):
    """Who answered in place of the pool."""

    upstream: str


class Told(Exact):
    """An answer that says where it came from, if not from the pool."""

    poolhouse: Poolhouse | UnsetType = UNSET
