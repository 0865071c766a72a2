"""Receives a stage file: writes each piece at its offset, checks its hash, and resumes after an interruption."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from app.catalog.files import Disk, chunks, disk_error
from app.catalog.stages.manifest import Manifest, WantedPiece, wanted_bytes
from app.core.errors import BadInput, Damaged, DoesNotFit

NOTE_EVERY_BYTES = 8 << 20  # limit of what a killed process has to receive again
RESERVE_BYTES = 64 << 20  # stays free on the disk even when the machine's owner cuts a model


@dataclass(frozen=True, slots=True)
class StagePaths:
    """The paths of a stage's files."""

    whole: Path  # the stage file; exists only once complete and checked
    index: Path  # the manifest, with the time of the last check
    part: Path  # the stage file while it is being received
    journal: Path  # the number of bytes received of each piece


@dataclass(frozen=True, slots=True)
class Donor:
    """The location of a piece's bytes in another local file."""

    path: Path
    offset: int


class StageReceiver:
    """A receiver of the missing bytes of a stage, in order. Its methods block, and only one thread may use it at a
    time.

    Bytes from an earlier attempt are not trusted but hashed again. Correct pieces are kept, and an incomplete piece
    is resumed.
    """

    def __init__(
        self,
        manifest: Manifest,
        paths: StagePaths,
        donors: Mapping[str, Donor],
        disk: Disk,
        finished: Callable[[Manifest], Path],
        closed: Callable[[], None],
        reserve_bytes: int = RESERVE_BYTES,
    ) -> None:
        self._manifest, self._paths, self._disk = manifest, paths, disk
        self._finished, self._closed = finished, closed
        self._arrived = _arrived(paths, manifest)
        self._check_space(reserve_bytes)
        self._digests: dict[int, hashlib._Hash] = {}
        self._open, self._turn = False, 0  # `_turn` is an index into `wants`
        self._files = contextlib.ExitStack()
        try:
            paths.part.touch()
            self._file = self._files.enter_context(paths.part.open("r+b", buffering=0))
            self._journal = self._files.enter_context(paths.journal.open("ab", buffering=0))
            self._disk.write(self._file, memoryview(manifest.header))
            self.wants = tuple(self._resume(donors))
        except OSError as error:
            raise self._failed(error) from error
        self._open = True
        self._done = self._noted = self._start()

    @property
    def wanted_bytes(self) -> int:
        """The number of bytes that must still be sent. Bytes that exist locally, such as from an earlier attempt, are
        not counted."""
        return wanted_bytes(self.wants, self._manifest)

    def write(self, chunk: bytes | memoryview) -> None:
        """Process the next bytes of the wanted pieces.

        Raises Damaged if a piece has the wrong hash. Only this piece is discarded, and a new receiver requests it
        again. Raises DoesNotFit if the disk is full, after freeing the space used, and BadInput if there are more
        bytes than wanted.
        """
        data = memoryview(chunk)
        while data:
            if self._turn == len(self.wants) or not self._open:
                raise BadInput("stage_flood")
            try:
                data = data[self._accept(data) :]
            except OSError as error:
                raise self._failed(error) from error

    def finish(self) -> Path:
        """Install the complete stage file and return its path. Raises Damaged if bytes are missing."""
        if self._turn < len(self.wants):
            left = wanted_bytes(self.wants[self._turn :], self._manifest)
            self.close()
            raise Damaged("stage_unfinished", missing_bytes=left)
        try:
            self._file.truncate(self._manifest.total_bytes)  # the file may end in a gap
            self._disk.sync(self._file)
        except OSError as error:
            raise self._failed(error) from error
        self._shut()
        try:
            return self._finished(self._manifest)
        except OSError as error:
            raise self._failed(error) from error
        finally:
            self._closed()

    def close(self) -> None:
        """Stop receiving. The next receiver of this stage resumes from the data received so far."""
        if not self._open:
            return
        if self._turn < len(self.wants):
            self._note(self.wants[self._turn].piece, self._done)
        self._shut()
        self._closed()

    def discard(self) -> None:
        """Stop receiving and free the disk space."""
        was_open = self._open
        self._shut()
        for path in (self._paths.part, self._paths.journal):
            with contextlib.suppress(OSError):  # the disk itself may have failed
                path.unlink(missing_ok=True)
        if was_open:
            self._closed()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _accept(self, data: memoryview) -> int:
        """Write the bytes that belong to the current piece, and return their number."""
        index = self.wants[self._turn].piece
        piece = self._manifest.pieces[index]
        taken = data[: piece.n_bytes - self._done]
        self._disk.write(self._file, taken)
        self._digests[index].update(taken)
        self._done += len(taken)
        if self._done == piece.n_bytes:
            self._complete(index)
        elif self._done - self._noted >= NOTE_EVERY_BYTES:
            self._note(index, self._done)
            self._noted = self._done
        return len(taken)

    def _complete(self, index: int) -> None:
        piece = self._manifest.pieces[index]
        if self._digests.pop(index).hexdigest() != piece.sha256:
            self._note(index, 0)
            self._turn = len(self.wants)  # nothing more to note in the journal
            self.close()
            raise Damaged("piece_wrong", piece=index)
        self._note(index, piece.n_bytes)
        self._turn += 1
        self._done = self._noted = self._start()

    def _start(self) -> int:
        """Seek to the offset at which the current piece continues. Return how many of its bytes have arrived."""
        if self._turn == len(self.wants):
            return 0
        want = self.wants[self._turn]
        self._file.seek(self._manifest.pieces[want.piece].offset + want.start)
        return want.start

    def _resume(self, donors: Mapping[str, Donor]) -> Iterator[WantedPiece]:
        """Hash the existing data, copy pieces from donors, and yield the pieces that are still missing."""
        for index, piece in enumerate(self._manifest.pieces):
            start = self._arrived.get(index, 0)
            digest = hashlib.sha256()
            for chunk in chunks(self._file, piece.offset, start):
                digest.update(chunk)
            if start == piece.n_bytes and digest.hexdigest() == piece.sha256:
                continue
            donor = donors.get(piece.sha256)
            if donor and self._copy(index, donor):
                continue
            if start == piece.n_bytes or donor:  # the existing data is wrong, or a failed copy has overwritten it
                start, digest = 0, hashlib.sha256()
            self._digests[index] = digest
            yield WantedPiece(index, start)

    def _copy(self, index: int, donor: Donor) -> bool:
        """Copy a piece from another local file. Return whether the copy has the right hash."""
        piece = self._manifest.pieces[index]
        digest = hashlib.sha256()
        try:
            source = donor.path.open("rb", buffering=0)
        except OSError:
            return False  # deleted in the meantime, so the piece is fetched instead
        with source:
            at = piece.offset
            for chunk in chunks(source, donor.offset, piece.n_bytes):
                digest.update(chunk)
                self._file.seek(at)
                self._disk.write(self._file, memoryview(chunk))
                at += len(chunk)
        right = digest.hexdigest() == piece.sha256
        self._note(index, piece.n_bytes if right else 0)
        return right

    def _note(self, index: int, n_bytes: int) -> None:
        self._disk.write(self._journal, memoryview(b"%d %d\n" % (index, n_bytes)))

    def _check_space(self, reserve_bytes: int) -> None:
        there = sum(self._arrived.values())
        needed = self._manifest.total_bytes - there + reserve_bytes
        folder = self._paths.part.parent
        free = self._disk.free_bytes(folder)
        if needed > free:
            facts = {"needed_bytes": needed, "free_bytes": free}
            raise DoesNotFit("disk_full", folder=str(folder), **facts)

    def _failed(self, error: OSError) -> Exception:
        """Discard the data, because it cannot be resumed after a disk error. Return the error to raise."""
        self.discard()
        return disk_error(self._paths.part.parent, error, self._manifest.total_bytes)

    def _shut(self) -> None:
        self._open = False
        with contextlib.suppress(OSError):  # already reported if it matters
            self._files.close()


def _arrived(paths: StagePaths, manifest: Manifest) -> dict[int, int]:
    """Return how many bytes of each piece have arrived, according to the journal. Its last line may be incomplete."""
    arrived: dict[int, int] = {}
    try:
        paths.part.stat()
        lines = paths.journal.read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return arrived
    for line in lines:
        words = line.split()
        if len(words) != 2 or not all(word.isdigit() and len(word) < 20 for word in words):
            continue
        index, n_bytes = int(words[0]), int(words[1])
        if index < len(manifest.pieces):
            arrived[index] = min(n_bytes, manifest.pieces[index].n_bytes)
    return arrived
