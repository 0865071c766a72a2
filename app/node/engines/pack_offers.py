"""The messages with which machines of a household offer engine packs to each other."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from app.machine.engine_packs.manifest import MAX_PACK_BYTES, Hash, Word
from app.machine.engine_packs.store import InstalledPack

PACKS_PATH = "/engines"  # of the routes between machines
MOST_OFFERED = 64


class Offered(msgspec.Struct, frozen=True):
    """A pack on offer. `sha256` is the hash of its manifest, which in turn contains the hash of every file.

    The user sees the other fields and agrees to them, so they must match the manifest.
    """

    sha256: Hash
    backend: Word
    engine_version: Word
    system: Word
    built: Annotated[str, Meta(max_length=10, pattern=r"^\d{4}-\d\d-\d\d$")]
    size_bytes: Annotated[int, Meta(ge=1, le=MAX_PACK_BYTES)]
    origin: Annotated[str, Meta(max_length=64)] = ""  # the machine that it was copied from

    @classmethod
    def of(cls, pack: InstalledPack) -> Offered:
        """Return the offer of an installed pack. The pack must have a manifest."""
        own = pack.manifest
        assert own is not None
        origin = pack.origin.name if pack.origin else ""
        return cls(pack.sha256, own.backend, own.engine_version, own.system, own.built, own.size_bytes, origin)

    @property
    def name(self) -> str:
        """Return the name of the pack, such as `vulkan-0.3.36-linux-x86_64`."""
        return f"{self.backend}-{self.engine_version}-{self.system}"


class OfferedPacks(msgspec.Struct, frozen=True):
    """The response to a request for offers."""

    packs: Annotated[list[Offered], Meta(max_length=MOST_OFFERED)]
