"""The pictures of a request, which are represented by markers in the text of its messages."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

from app.core.errors import BadInput
from app.inference.pipeline.sequence import PlacedRows
from app.inference.worker.tokenizer import Prompt
from app.inference.worker.vision import SeenPicture, VisionWorker
from backends.readers.messages import MAX_PICTURE_BYTES, MOST_PICTURES_OF_CHAT

_KEY = secrets.token_bytes(32)  # so that no text can contain the marker of a picture
MARKER = "poolhouse-picture-"


def marker_of(data: bytes) -> str:
    """Return the marker that represents a picture. Equal pictures have equal markers as long as this process runs."""
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


@dataclass(frozen=True, slots=True)
class Vision:
    """A loaded model's ability to process pictures.

    most_rows: the maximum number of rows of a picture in one step.
    context: the number of positions of a conversation.
    picture_tokens: the maximum number of tokens that a picture uses, or 0 if unknown.
    """

    worker: VisionWorker
    most_rows: int
    context: int
    picture_tokens: int = 0

    async def see(self, data: bytes) -> SeenPicture:
        """Return the tokens and rows that represent a picture in the prompt. Raises BadInput or StageLost."""
        return await self.worker.see(data)


@dataclass(frozen=True, slots=True)
class PicturePlacement:
    """A picture and its place in a prompt."""

    seen: SeenPicture
    vision: Vision

    @property
    def n_rows(self) -> int:
        return sum(len(part.ids) for part in self.seen.parts)

    @property
    def block_rows(self) -> int:
        """Return the largest number of rows that must be computed in one step, or 0."""
        sees_all = not self.vision.worker.is_causal
        return max((len(part.ids) for part in self.seen.parts if part.rows and (sees_all or part.n_columns)), default=0)


def place_pictures(
    prompt: Prompt, pictures: Mapping[str, PicturePlacement]
) -> tuple[tuple[int, ...], tuple[PlacedRows, ...]]:
    """Return the ids of a prompt, including those of its pictures, and the rows of the pictures."""
    ids, placed = list[int](), list[PlacedRows]()
    for marker, text in prompt.stretches:
        ids += text
        if not marker:
            continue
        picture = pictures[marker]
        for part in picture.seen.parts:
            if part.rows:
                sees_all = not picture.vision.worker.is_causal
                placed.append(PlacedRows(len(ids), part.ids[0], len(part.ids), part.rows, sees_all, part.n_columns))
            ids += part.ids
    return tuple(ids), tuple(placed)
