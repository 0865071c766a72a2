"""Cuts what a worker writes into whole frames, left as bytes: most are passed on unread."""

from __future__ import annotations

from backends.frames import HEADER, read_head


class FrameCutter:
    """As frames.Decoder, but a frame stays one `bytes`: reading its parts is left to those who need them."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._needed = HEADER.size  # bytes until something can be done

    def feed(self, data: bytes) -> list[bytes]:
        """All frames that are complete now. Raises BadFrame on the first wrong header."""
        whole: list[bytes] = []
        rest = self._rest
        if not rest and _whole(data):
            return [data]  # the usual case: one read, one frame, no copy
        rest += data
        while len(rest) >= self._needed:
            end = HEADER.size + read_head(rest).n_rest
            if len(rest) < end:
                self._needed = end
                return whole
            with memoryview(rest) as view:
                whole.append(bytes(view[:end]))
            del rest[:end]
            self._needed = HEADER.size
        return whole


def _whole(data: bytes) -> bool:
    return len(data) >= HEADER.size and HEADER.size + read_head(data).n_rest == len(data)
