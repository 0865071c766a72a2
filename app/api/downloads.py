"""The transfer of model files: downloads, copies to other machines, and moves of the models folder."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from app.core.errors import Reason


class DownloadSource(msgspec.Struct, frozen=True, kw_only=True):
    """The file that is downloaded, and its source."""

    id: str
    name: str = ""
    repository: str = ""
    file: str = ""
    parts: int = 1
    revision: str | None = None
    source: str | None = None
    machine: str | None = None  # ID of the machine from which it is copied; None for the hub


class Download(DownloadSource, frozen=True, kw_only=True):
    """A model file that is being downloaded, or copied from a machine of the household."""

    state: str = ""  # waiting, starting, running, checking, paused, done or failed
    done_bytes: int = 0
    total_bytes: int | None = None
    bytes_per_s: int | None = None
    seconds_left: int | None = None
    reason: str | None = None
    reason_facts: Reason | None = None
    code: str | None = None  # the code of the reason
    held_up: str | None = None  # why no data arrives although the download is not paused
    held_up_facts: Reason | None = None
    sha256: str | None = None
    hash_from: str | None = None
    model: str | None = None  # its name among the models of this computer
    started: float = 0.0
    place: int = 0  # its place in the list, in the order in which downloads run

    @property
    def is_over(self) -> bool:
        """Return whether the download is complete."""
        return self.state == "done"

    @property
    def arrived_bytes(self) -> int:
        """Return how many bytes are here. During the check, `done_bytes` is the progress of the check instead."""
        return self.total_bytes or self.done_bytes if self.state == "checking" else self.done_bytes


class Downloads(msgspec.Struct, frozen=True):
    """The response to `GET /downloads`."""

    downloads: list[Download] = []


class DownloadTotals(msgspec.Struct, frozen=True):
    """The sums over the downloads that are not complete."""

    n: int = 0
    done_bytes: int = 0
    total_bytes: int = 0
    is_least: bool = False  # the size of some is not known, so the total is larger
    bytes_per_s: int = 0
    seconds_left: int | None = None  # None if nothing arrives, or some size is not known
    n_going: int = 0  # those that are neither paused nor failed


def totals(downloads: Iterable[Download]) -> DownloadTotals:
    """Sum up the downloads that are not complete. Paused downloads do not count toward the time left."""
    left = [download for download in downloads if not download.is_over]
    going = [download for download in left if download.state not in ("paused", "failed")]
    speed = sum(download.bytes_per_s or 0 for download in going if download.state == "running")
    is_known = all(download.total_bytes for download in going)
    rest = sum(max(0, (download.total_bytes or 0) - download.arrived_bytes) for download in going)
    return DownloadTotals(
        n=len(left),
        done_bytes=sum(download.arrived_bytes for download in left),
        total_bytes=sum(download.total_bytes or download.arrived_bytes for download in left),
        is_least=not all(download.total_bytes for download in left),
        bytes_per_s=speed,
        seconds_left=round(rest / speed) if speed and is_known else None,
        n_going=len(going),
    )


class DownloadResponse(msgspec.Struct, frozen=True):
    """The response of the routes that start, pause or resume a download."""

    download: Download


class RemoveDownloadResponse(msgspec.Struct, frozen=True):
    """The response to `DELETE /downloads/{id}`."""

    removed: str
    freed_bytes: int = 0


class OutgoingCopy(msgspec.Struct, frozen=True):
    """A model that is being copied from this computer to another."""

    machine: str = ""
    model: str = ""
    done_bytes: int = 0
    total_bytes: int = 0


class FormerFolder(msgspec.Struct, frozen=True):
    """A previous models folder that still contains models."""

    folder: str = ""
    models: int = 0
    bytes: int = 0
    there: bool = True
    reason: str | None = None
    reason_facts: Reason | None = None


class FolderMove(msgspec.Struct, frozen=True):
    """A move of models to another folder."""

    name: str = ""
    done_bytes: int = 0
    total_bytes: int = 0
    bytes_per_s: int | None = None
    seconds_left: int | None = None
    waits: str | None = None
    waits_facts: Reason | None = None


class ModelsFolder(msgspec.Struct, frozen=True):
    """The folder in which models are stored, and previous folders that still contain models."""

    folder: str = ""
    default: bool = True
    there: bool = True
    reason: str | None = None  # why the folder is not available
    reason_facts: Reason | None = None
    elsewhere: list[FormerFolder] = []
    move: FolderMove | None = None
    stopped: str | None = None  # why the last move ended early
    stopped_facts: Reason | None = None


class ModelsFolderRoom(ModelsFolder, frozen=True):
    """The response of the `/folder` routes: the models folder and the free space on its disk."""

    free_bytes: int | None = None
    room_bytes: int | None = None  # the part of it that is available for models


class FolderChoice(msgspec.Struct, frozen=True):
    """The response to `POST /folder/look`: what would happen if this folder were chosen."""

    folder: str = ""
    same: bool = False
    free_bytes: int = 0
    room_bytes: int | None = None
    models: int = 0
    bytes: int = 0
    copied_bytes: int = 0
    fits: bool = True
