"""Describes a stage file by a manifest. It lists the pieces by hash, so a lender fetches only the pieces that it
lacks."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

import msgspec

from app.core.errors import BadInput, DoesNotFit, Reason
from app.decoding import decode

MAX_JSON_BYTES = 16 << 20
MAX_PIECES = 65_536  # the limit for tensors in a GGUF file
MAX_STAGE_BYTES = 1 << 44
MAX_GAP_BYTES = 64 << 10  # the largest alignment

_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Piece:
    """A tensor of a stage file: its hash, its size and its offset in the file."""

    sha256: str
    n_bytes: int
    offset: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """A description of a stage file: the bytes of its header, and its pieces in file order."""

    model_id: str  # the model that the stage was cut out of
    header: bytes
    pieces: tuple[Piece, ...]
    total_bytes: int

    @property
    def id(self) -> str:
        """The id of the stage: 64 hex digits derived from everything that determines the content of its file."""
        digest = hashlib.sha256(b"poolhouse stage 1\0")
        digest.update(hashlib.sha256(self.header).digest())
        for piece in self.pieces:
            digest.update(bytes.fromhex(piece.sha256))
            digest.update(piece.offset.to_bytes(8, "big") + piece.n_bytes.to_bytes(8, "big"))
        digest.update(self.total_bytes.to_bytes(8, "big"))
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class WantedPiece:
    """A piece that the receiver lacks, from byte `start` on."""

    piece: int  # index in the manifest
    start: int


def to_json(manifest: Manifest) -> bytes:
    return msgspec.json.encode(manifest)


def from_json(data: bytes, allowed_bytes: int = MAX_STAGE_BYTES) -> Manifest:
    """Decode a manifest from another machine. Raises BadInput, or DoesNotFit if it exceeds `allowed_bytes`."""
    if len(data) > MAX_JSON_BYTES:
        raise BadInput("manifest_odd", what=Reason("manifest_length", {"count": len(data)}))
    try:
        manifest = decode(data, Manifest)
    except (ValueError, RecursionError):
        raise BadInput("manifest_odd", what=Reason("form_not_agreed")) from None
    _check(manifest)
    if manifest.total_bytes > allowed_bytes:
        needed = manifest.total_bytes
        raise DoesNotFit("stage_too_large", needed_bytes=needed, allowed_bytes=allowed_bytes)
    return manifest


def wants_to_json(wants: tuple[WantedPiece, ...]) -> bytes:
    return msgspec.json.encode(wants)


def wants_from_json(data: bytes, manifest: Manifest) -> tuple[WantedPiece, ...]:
    """Decode the pieces that a lender requests, and check them against its manifest. Raises BadInput."""
    try:
        wants = decode(data, tuple[WantedPiece, ...])
    except (ValueError, RecursionError):
        raise BadInput("manifest_odd", what=Reason("form_not_agreed")) from None
    return check_wants(wants, manifest)


def check_wants(wants: tuple[WantedPiece, ...], manifest: Manifest) -> tuple[WantedPiece, ...]:
    """Return the wanted pieces. Raises BadInput unless they are in order, without duplicates, and start within the
    piece."""
    before = -1
    for want in wants:
        inside = before < want.piece < len(manifest.pieces)
        if not inside or not 0 <= want.start < manifest.pieces[want.piece].n_bytes:
            raise BadInput("manifest_odd", what=Reason("piece_request", {"piece": want.piece, "start": want.start}))
        before = want.piece
    return wants


def wanted_bytes(wants: tuple[WantedPiece, ...], manifest: Manifest) -> int:
    return sum(manifest.pieces[want.piece].n_bytes - want.start for want in wants)


def _check(manifest: Manifest) -> None:
    _must(_HASH.fullmatch(manifest.model_id) is not None, "manifest_model_id")
    _must(1 <= len(manifest.pieces) <= MAX_PIECES, "manifest_piece_count")
    end = len(manifest.header)
    for piece in manifest.pieces:
        _must(_HASH.fullmatch(piece.sha256) is not None, "piece_hash")
        _must(0 < piece.n_bytes <= MAX_STAGE_BYTES, "manifest_piece_size")
        _must(0 <= piece.offset - end < MAX_GAP_BYTES, "manifest_piece_place")
        end = piece.offset + piece.n_bytes
    _must(0 <= manifest.total_bytes - end < MAX_GAP_BYTES, "manifest_total_size")
    _must(manifest.total_bytes <= MAX_STAGE_BYTES, "manifest_total_size")


def _must(holds: bool, claim: str) -> None:
    if not holds:
        raise BadInput("manifest_odd", what=Reason(claim))
