"""The client of The Update Framework (TUF). It checks that a repository's files are genuine, current and
consistent.

The `tuf` library checks the keys, signatures, expiry dates and the order of versions. This module converts its errors
to sentences, and adds downloads that can be resumed.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from tuf.api.exceptions import (
    BadVersionNumberError,
    DownloadError,
    DownloadHTTPError,
    DownloadLengthMismatchError,
    ExpiredMetadataError,
    LengthOrHashMismatchError,
    RepositoryError,
    UnsignedMetadataError,
)
from tuf.api.metadata import TargetFile
from tuf.ngclient import Updater, UpdaterConfig

from app.core.errors import AppError, Damaged, Reason, Refused, Unreachable
from app.core.reasons import os_cause
from app.machine.paths import PRIVATE_DIR
from app.machine.versions.layer_archive import Canceled
from app.node.updates.release import MAX_CHANNEL_BYTES, Channel, channel_target, parse_channel
from app.node.updates.sources import METADATA, NOT_FOUND, TARGETS, Source, SourceFetcher

log = logging.getLogger(__name__)

WAITS = (0.5, 1.0, 2.0, 4.0, 8.0)  # between attempts to go on with a download
READ_SECONDS = 60.0  # for all metadata together, however slowly they come
LEAST_BYTES_PER_SECOND, PACE_SECONDS = 1024, 120.0  # of a download, on average over each period, breaks included
SHA256 = "sha256"


class TrustedRepository:
    """A repository of updates, verified with the keys that came with this copy. Its methods block."""

    def __init__(self, source: Source, root: bytes, folder: Path, stop: threading.Event | None = None) -> None:
        """Open the repository at a source.

        root: the keys that came with this copy.
        folder: the folder for verified metadata.
        stop: aborts the reading of metadata when set.
        """
        self.source = source
        self._fetcher = SourceFetcher(source, READ_SECONDS, stop)
        with told(source.name):
            folder.mkdir(mode=PRIVATE_DIR, parents=True, exist_ok=True)
            self._client = Updater(
                str(folder), METADATA, fetcher=self._fetcher,
                config=UpdaterConfig(max_root_rotations=64), bootstrap=root,
            )  # fmt: skip

    def channel(self, system: str) -> Channel:
        """Return the list of releases for a system. Raises AppError."""
        with told(self.source.name):
            self._client.refresh()
            target = self._client.get_targetinfo(channel_target(system))
        if target is None:
            raise Refused("update_none_for", place=self.source.name, system=system)
        if target.length > MAX_CHANNEL_BYTES:
            raise Refused("update_odd", place=self.source.name)
        with told(self.source.name):
            data = self._fetcher.download_bytes(_address(target), target.length)
            target.verify_length_and_hashes(data)
        return parse_channel(data, self.source.name)

    def target(self, path: str) -> TargetFile:
        """Return the size and hashes of a file according to the signed metadata. Raises AppError."""
        with told(self.source.name):
            target = self._client.get_targetinfo(path)
        if target is None or SHA256 not in target.hashes:
            raise Refused("update_odd", place=self.source.name)
        return target

    def download(
        self,
        target: TargetFile,
        folder: Path,
        tell: Callable[[int], None] = lambda _: None,
        stop: threading.Event | None = None,
        waits: tuple[float, ...] = WAITS,
    ) -> Path:
        """Download a file into `folder`, resuming an earlier download, and return its path. Raises AppError, or
        Canceled.

        tell: called with the number of bytes downloaded so far.
        waits: the pauses between attempts, in seconds.
        """
        stop = stop or threading.Event()
        done = folder / target.hashes[SHA256]
        part = folder / f"{target.hashes[SHA256]}.part"
        with told(self.source.name):
            folder.mkdir(mode=PRIVATE_DIR, parents=True, exist_ok=True)
            if _is_genuine(done, target):
                tell(target.length)
                return done
            done.unlink(missing_ok=True)
        breaks, furthest, pace = 0, _size(part), _Pace(self.source.name)
        while True:
            try:
                with told(self.source.name):
                    self._go_on(target, part, tell, stop, pace)
                break
            except Unreachable:
                pace.require()
                # A server that begins anew each time may come further than last time, and never further than before.
                after = _size(part)
                breaks = 0 if after > furthest else breaks + 1
                furthest = max(furthest, after)
                if breaks > len(waits):
                    raise
                log.info("the download of %s goes on after %d bytes", target.path, after)
                if stop.wait(waits[min(breaks, len(waits)) - 1] if waits and breaks else 0.1):
                    raise Canceled from None
        with told(self.source.name):
            if not _is_genuine(part, target):
                part.unlink(missing_ok=True)
                raise Damaged("update_other_bytes", place=self.source.name)
            with part.open("rb") as file:
                os.fsync(file.fileno())
            part.replace(done)
        return done

    def _go_on(
        self, target: TargetFile, part: Path, tell: Callable[[int], None], stop: threading.Event, pace: _Pace
    ) -> None:
        """Download the rest of a file over one connection. Raises Unreachable if the connection breaks."""
        have = _size(part)
        if have > target.length:
            part.unlink()
            have = 0
        tell(have)
        if have == target.length:
            return
        begins, chunks = self.source.read(_address(target), have)
        with closing(chunks), part.open("r+b" if part.exists() else "wb") as file:
            file.seek(begins)
            file.truncate()
            have = begins
            for chunk in chunks:
                if stop.is_set():
                    raise Canceled
                have += len(chunk)
                if have > target.length:
                    raise DownloadLengthMismatchError("longer than signed")
                file.write(chunk)
                tell(have)
                pace.require(len(chunk))
        if have < target.length:
            raise DownloadError("the connection ended early")


class _Pace:
    """The rate of one download. It ensures that a server cannot send bytes very slowly forever."""

    def __init__(self, source: str) -> None:
        self._source, self._begun, self._n_bytes = source, time.monotonic(), 0

    def require(self, n_bytes: int = 0) -> None:
        """Count received bytes. Raises Unreachable if too few bytes have arrived during a period."""
        self._n_bytes += n_bytes
        seconds = time.monotonic() - self._begun
        if seconds < PACE_SECONDS:
            return
        if self._n_bytes < LEAST_BYTES_PER_SECOND * seconds:
            raise Unreachable("update_slow", source=self._source)
        self._begun, self._n_bytes = time.monotonic(), 0


def arrived_bytes(target: TargetFile, folder: Path) -> int:
    """Return how many bytes of a file an earlier download left in a folder."""
    for name in (target.hashes[SHA256], f"{target.hashes[SHA256]}.part"):
        with suppress(OSError):
            return min((folder / name).stat().st_size, target.length)
    return 0


def _address(target: TargetFile) -> str:
    """Return the path of a file in a repository. With consistent snapshots, the file name starts with the hash."""
    folder, slash, name = target.path.rpartition("/")
    return f"{TARGETS}/{folder}{slash}{target.hashes[SHA256]}.{name}"


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _is_genuine(path: Path, target: TargetFile) -> bool:
    try:
        with path.open("rb") as file:
            target.verify_length_and_hashes(file)
    except (OSError, LengthOrHashMismatchError):
        return False
    return True


@contextmanager
def told(place: str) -> Iterator[None]:
    """Convert errors of the TUF client, the network and the disk to AppErrors."""
    try:
        yield
    except ExpiredMetadataError as error:
        raise Refused("update_expired", place=place) from error
    except UnsignedMetadataError as error:
        raise Refused("update_wrong_key", place=place) from error
    except BadVersionNumberError as error:
        raise Refused("update_older", place=place) from error
    except LengthOrHashMismatchError as error:
        raise Damaged("update_mixed", place=place) from error
    except DownloadLengthMismatchError as error:
        raise Damaged("update_other_bytes", place=place) from error
    except DownloadHTTPError as error:
        if error.status_code == NOT_FOUND:
            raise Refused("update_file_missing", place=place) from error
        raise Unreachable("hub_fault", source=place, status=error.status_code) from error
    except DownloadError as error:
        raise _broken(place, error) from error
    except RepositoryError as error:
        log.warning("the repository at %s cannot be used: %s", place, error)
        raise Refused("update_odd", place=place) from error
    except OSError as error:
        raise _disk(place, error) from error


def _broken(place: str, error: DownloadError) -> AppError:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EIO):
            return _disk(place, cause)
        cause = cause.__cause__ or cause.__context__
    return Unreachable("updates_unreached", source=place, why=_why(error))


def _why(error: DownloadError) -> Reason:
    text = str(error.__cause__ or error).casefold()
    if "certificate" in text or "ssl" in text:
        return Reason("certificate_untrusted")
    if "timed out" in text or "timeout" in text:
        return Reason("silent_too_long")
    return Reason("connection_breaks")


def _disk(place: str, error: OSError) -> AppError:
    folder = str(Path(error.filename).parent) if isinstance(error.filename, str) else place
    return Refused("update_disk", folder=folder, why=os_cause(error))
