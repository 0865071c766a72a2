"""The choice of a chat's pictures to send with a question, if the model can process pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.api.snapshot import Snapshot
from app.core.chat import ATTACHMENTS, PICTURE, Details, Message
from app.gui.chat.reading.attachment_reader import is_picture
from app.gui.look.sentences import GUIDE
from backends.readers.messages import MOST_PICTURES_OF_CHAT

MOST_CHARACTERS = 7 << 20  # of all pictures in base64; the node accepts 8 MiB with the text
USUAL_TOKENS = 300  # of a picture, if the model does not tell


@dataclass(frozen=True, slots=True)
class SentPictures:
    """Messages with the pictures to send, and the number of pictures that were left out."""

    branch: Sequence[Message]
    left_out: int = 0


def sees(now: Snapshot, model: str) -> bool | None:
    """Return whether a model can process pictures, or None if the node's status does not say."""
    if (shared := now.shared_model(model)) is not None:
        return shared.vision if shared.ready else None
    if (loaded := now.model(model)) is not None:  # while it loads, its projector is not open yet
        return loaded.vision if loaded.can_answer else None
    is_elsewhere = now.served_model(model) is not None  # pictures are never sent to another server
    return False if is_elsewhere or model == GUIDE else None


def picture_tokens(now: Snapshot, model: str) -> int:
    """Return the maximum number of context tokens that a picture uses."""
    answering = now.shared_model(model) or now.model(model) or now.loaded
    return (answering.picture_tokens if answering is not None else 0) or USUAL_TOKENS


def pictures_of(message: Message) -> list[str]:
    """Return the pictures attached to a message, in base64."""
    return [str(file[PICTURE]) for file in message.details.get(ATTACHMENTS) or () if is_picture(file)]


def without_pictures(branch: Sequence[Message]) -> SentPictures:
    """Return messages without any pictures."""
    return _keeping(branch, most=0)


def within_limits(branch: Sequence[Message]) -> SentPictures:
    """Return the messages, without the oldest pictures if not all of them fit in a request."""
    return _keeping(branch, most=MOST_PICTURES_OF_CHAT)


def _keeping(branch: Sequence[Message], most: int) -> SentPictures:
    room, left_out, made = MOST_CHARACTERS, 0, list(branch)
    for place in range(len(made) - 1, -1, -1):
        kept: list[Details] = []
        files = made[place].details.get(ATTACHMENTS) or ()
        for file in reversed(files):
            if is_picture(file):
                if most < 1 or len(str(file[PICTURE])) > room:
                    most, left_out = 0, left_out + 1  # older ones are left out too, so that what is sent is consecutive
                    continue
                most, room = most - 1, room - len(str(file[PICTURE]))
            kept.insert(0, file)
        if len(kept) != len(files):
            made[place] = replace(made[place], details={**made[place].details, ATTACHMENTS: kept})
    return SentPictures(made, left_out) if left_out else SentPictures(branch)
