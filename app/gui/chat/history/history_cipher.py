"""Codecs that store texts in the history file, either as plain text or encrypted with AES-256-GCM."""

from __future__ import annotations

import os
import sqlite3
from typing import Protocol

KEY_BYTES = 32
NONCE_BYTES = 12  # random for each text; NIST SP 800-38D allows 2**32 random nonces per key
TAG_BYTES = 16
FORMAT_BYTE = b"\x01"  # first byte of an encrypted text; identifies the format
NEVER_SEALED = ("", "{}")  # stored unencrypted: they reveal nothing, and the query for empty chats compares with them
StoredText = str | bytes


class Codec(Protocol):
    """A codec that converts between a text and its value in a database column.

    `place` identifies the row and column. An encrypted text can be decrypted only with the same place.
    """

    @property
    def seals(self) -> bool: ...
    def seal(self, text: str, *place: str) -> StoredText: ...
    def open(self, kept: StoredText, *place: str) -> str:
        """Return the text. If it was altered or moved, raises sqlite3.DatabaseError, as for a damaged file."""


class PlainCodec:
    """A codec that stores texts unencrypted."""

    seals = False

    def seal(self, text: str, *place: str) -> StoredText:
        return text

    def open(self, kept: StoredText, *place: str) -> str:
        if not isinstance(kept, str):
            raise damage_error()
        return kept


class Cipher:
    """A codec that encrypts texts with a key. It returns unencrypted texts unchanged."""

    seals = True

    def __init__(self, key: bytes) -> None:
        """Create a cipher. Raises ValueError if the key is not 32 bytes long."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        if len(key) != KEY_BYTES:
            raise ValueError("a key has 32 bytes")
        self._gcm = AESGCM(key)

    def seal(self, text: str, *place: str) -> StoredText:
        if text in NEVER_SEALED:
            return text
        nonce = os.urandom(NONCE_BYTES)
        sealed = self._gcm.encrypt(nonce, text.encode("utf-8", "replace"), _about(place))
        return FORMAT_BYTE + nonce + sealed

    def open(self, kept: StoredText, *place: str) -> str:
        from cryptography.exceptions import InvalidTag

        stored: object = kept  # in a damaged file, the value may have any type
        if isinstance(stored, str):
            return stored
        begin = len(FORMAT_BYTE) + NONCE_BYTES
        if not isinstance(stored, bytes) or len(stored) < begin + TAG_BYTES:
            raise damage_error()
        if stored[: len(FORMAT_BYTE)] != FORMAT_BYTE:
            raise damage_error()
        try:
            text = self._gcm.decrypt(stored[len(FORMAT_BYTE) : begin], stored[begin:], _about(place))
        except InvalidTag:
            raise damage_error() from None
        try:
            return text.decode("utf-8")
        except UnicodeDecodeError:
            raise damage_error() from None


def storable(text: str) -> str:
    """Replace lone surrogates. A model may generate them, but UTF-8 cannot encode them."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def damage_error() -> sqlite3.DatabaseError:
    """Return the error that SQLite raises for a damaged page, to be raised when a text cannot be decoded."""
    error = sqlite3.DatabaseError("a sealed text does not open")
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


def _about(place: tuple[str, ...]) -> bytes:
    return "\0".join(place).encode("utf-8", "replace")
