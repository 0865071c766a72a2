"""The pictures of a request, which stand in the text of its messages as markers."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field

from app.core.errors import BadInput
from backends.readers.messages import MAX_PICTURE_BYTES, MOST_PICTURES_OF_CHAT

_KEY = secrets.token_bytes(32)  # so that no text can contain the marker of a picture
MARKER = "poolhouse-picture-"


def marker_of(data: bytes) -> str:
    """Return the text that stands for a picture. Equal pictures have equal markers as long as this process runs."""
    return MARKER + hmac.new(_KEY, data, hashlib.sha256).hexdigest()


@dataclass(slots=True)
class Pictures:
    """The pictures of a chat, collected while its messages are read."""

    files: dict[str, bytes] = field(default_factory=dict)  # by marker
    _n_added: int = 0

    def add(self, data: bytes) -> str:
        """Add a picture and return the marker to write into the text. Raises BadInput."""
        self._n_added += 1
        if self._n_added > MOST_PICTURES_OF_CHAT:
            raise BadInput("pictures_many", found=self._n_added, most=MOST_PICTURES_OF_CHAT)
        if len(data) > MAX_PICTURE_BYTES:
            raise BadInput("picture_large", found_bytes=len(data), most_bytes=MAX_PICTURE_BYTES)
        marker = marker_of(data)
        self.files[marker] = data
        return marker
