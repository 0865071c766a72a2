"""The format of releases and release lists, and the rules for choosing a release. This module performs no I/O."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from app import launcher
from app.core.errors import Reason, Refused
from app.decoding import decode

FORMAT = 1
MAX_CHANNEL_BYTES = 1 << 20
HUNDRED = 100

Word = Annotated[str, Meta(min_length=1, max_length=60, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]*$")]
Number = Annotated[str, Meta(max_length=20, pattern=r"^\d{1,5}(\.\d{1,5}){0,3}$")]
Hash = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]
Protocol = Annotated[int, Meta(ge=0, le=1 << 16)]


class ReleasedLayer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A layer of a release. The archive's size and hash are in its signed metadata."""

    name: Word
    hash: Hash  # of its folder
    n_bytes: Annotated[int, Meta(ge=0, le=8 << 30)]  # unpacked

    @property
    def target(self) -> str:
        """Return the path of the layer's archive in the repository."""
        return f"layers/{self.name}-{self.hash[:16]}.tar.zst"


class Release(msgspec.Struct, frozen=True, kw_only=True):
    """A version for one system. Unknown fields, which later versions may add, are ignored."""

    version: Number
    commit: Annotated[str, Meta(max_length=64)] = ""
    date: Annotated[str, Meta(max_length=10)] = ""
    protocol: Protocol
    oldest_protocol: Protocol
    data_format: Annotated[int, Meta(ge=1)] = 1  # as of app/machine/data_format.py
    rollout_percent: Annotated[int, Meta(ge=0, le=HUNDRED)] = HUNDRED
    changes: Annotated[str, Meta(max_length=50_000)] = ""  # Markdown
    layers: Annotated[list[ReleasedLayer], Meta(min_length=1, max_length=20)]

    def understands(self, protocol: int) -> bool:
        """Return whether this release can communicate with a version that uses `protocol`."""
        return protocol >= self.oldest_protocol and abs(self.protocol - protocol) <= 1


class Channel(msgspec.Struct, frozen=True):
    """The releases for one system, as listed in the file at `channel_target`."""

    format: Annotated[int, Meta(ge=1)] = FORMAT
    releases: Annotated[list[Release], Meta(max_length=20)] = []


class _FormatOnly(msgspec.Struct):
    format: int = FORMAT


def channel_target(system: str) -> str:
    """Return the repository path of the list of releases for a system, such as "linux-x86_64"."""
    return f"{system}.json"


def parse_channel(data: bytes, place: str) -> Channel:
    """Parse a list of releases. Raises Refused."""
    try:
        if decode(data, _FormatOnly).format > FORMAT:
            raise Refused("update_newer_format", place=place)
        return decode(data, Channel)
    except (msgspec.DecodeError, UnicodeError):
        raise Refused("update_odd", place=place) from None


def share_of(machine: str, version: str) -> int:
    """Return a number from 0 to 99 that is always the same for a machine and a version. The number is never sent."""
    return int.from_bytes(hashlib.sha256(f"{machine}\0{version}".encode()).digest()[:8]) % HUNDRED


def is_in_turn(release: Release, machine: str) -> bool:
    """Return whether a staged release has been rolled out to a machine yet.

    machine: its ID, or "" if the user asked for the update, which is then offered at once.
    """
    return not machine or share_of(machine, release.version) < release.rollout_percent


def newest(channel: Channel, machine: str = "") -> Release | None:
    """Return the newest release that has been rolled out to this machine, or None."""
    meant = [release for release in channel.releases if is_in_turn(release, machine)]
    return max(meant, key=lambda release: launcher.parts_of(release.version), default=None)


def require_newer(release: Release, own: str) -> None:
    """Raise Refused if a release is not newer than the version in use."""
    if launcher.is_newer(own, release.version):
        raise Refused("update_downgrade", version=release.version, own=own)
    if not launcher.is_newer(release.version, own):
        raise Refused("update_same", version=release.version)


def not_understanding(release: Release, members: Mapping[str, int]) -> list[str]:
    """Return the names of the machines that could not communicate with this release.

    members: the protocol of each machine, by name.
    """
    return sorted(name for name, protocol in members.items() if not release.understands(protocol))


def warning(names: Iterable[str], version: str) -> Reason | None:
    """Return a warning that these machines must be updated too, or None if there are none."""
    listed = ", ".join(names)
    return Reason("update_others_first", {"machines": listed, "version": version}) if listed else None
