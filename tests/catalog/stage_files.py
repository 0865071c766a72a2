"""Parts of stages for tests: their bytes in frames, the whole file, and the contents of the folder."""

from __future__ import annotations

from collections.abc import Iterator

from app.catalog.stages.cut import Cut, read_pieces
from app.catalog.stages.manifest import WantedPiece
from tests.catalog.conftest import Home


def files(home: Home) -> list[str]:
    return sorted(path.suffix for path in (home.folder / "stages").iterdir())


def sent(cut: Cut, wants: tuple[WantedPiece, ...], size: int = 1000) -> Iterator[bytes]:
    """The wanted bytes in small frames."""
    data = b"".join(read_pieces(cut, wants))
    return (data[at : at + size] for at in range(0, len(data), size))


def expected(cut: Cut) -> bytes:
    """The stage file, put together the simple way."""
    whole = bytearray(cut.manifest.total_bytes)
    whole[: len(cut.manifest.header)] = cut.manifest.header
    for index, piece in enumerate(cut.manifest.pieces):
        data = b"".join(read_pieces(cut, [WantedPiece(index, 0)]))
        whole[piece.offset : piece.offset + piece.n_bytes] = data
    return bytes(whole)
