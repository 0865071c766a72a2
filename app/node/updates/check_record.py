"""The saved result of the last check for updates. The node and the command line share it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from app import launcher
from app.machine.json_state import read_json_or_default
from app.machine.paths import write_atomically
from app.node.updates.release import Release
from app.node.updates.updater import Offer

FILE = "updates.json"


class CheckRecord(msgspec.Struct, frozen=True):
    """The result of the last check for updates."""

    last_contact: float = 0.0  # Unix time
    release: Release | None = None  # None if none is published
    download_bytes: int = 0
    staged: bool = False
    noted: Annotated[str, Meta(max_length=100)] = ""  # the version already reported in the journal
    failed: Annotated[str, Meta(max_length=100)] = ""  # the version whose failed start was reported

    def with_offer(self, offer: Offer | None) -> CheckRecord:
        """Return the record, updated with the release that a repository offers, or without a release if None."""
        if offer is None:
            return msgspec.structs.replace(self, release=None, download_bytes=0, staged=False)
        return msgspec.structs.replace(
            self, release=offer.release, download_bytes=offer.download_bytes, staged=offer.is_staged
        )

    def is_news(self, own: str) -> bool:
        """Return whether the record contains a newer version that has not been reported in the journal yet."""
        release = self.release
        return (
            release is not None
            and not self.staged
            and launcher.is_newer(release.version, own)
            and self.noted != release.version
        )


def read_record(file: Path) -> CheckRecord:
    """Return the saved record, or an empty one if there is none."""
    return read_json_or_default(file, CheckRecord, "the last check for updates")


def write_record(file: Path, record: CheckRecord) -> None:
    """Save a record. Raises OSError."""
    write_atomically(file, msgspec.json.encode(record))
