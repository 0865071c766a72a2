"""Cuts what comes over a connection into lines, looking at each byte once however small the pieces are."""

from __future__ import annotations


class TooLongLine(ValueError):
    """A line without an end."""


class LineCutter:
    """No line may be longer than `most_bytes`."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._held = bytearray()

    def feed(self, piece: bytes) -> list[bytes]:
        """The lines that are whole by now, without their ends. Raises TooLongLine."""
        head, end, tail = piece.rpartition(b"\n")
        if end:
            self._held += head
            lines = bytes(self._held).split(b"\n")
            self._held = bytearray(tail)
        else:
            self._held += tail
            lines = []
        if len(self._held) > self._most_bytes or any(len(line) > self._most_bytes for line in lines):
            raise TooLongLine
        return lines
