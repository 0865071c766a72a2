"""The computed prompts that this computer keeps on its disk."""

from __future__ import annotations

import msgspec


class KeptPrompts(msgspec.Struct, frozen=True):
    """The response of the `/prompts` routes."""

    on: bool = True
    chosen_bytes: int | None = None  # the owner's limit; None: a part of the free disk
    limit_bytes: int = 0  # the limit that applies now
    used_bytes: int = 0
    is_locked: bool = False  # nothing is kept, because the key cannot be read
