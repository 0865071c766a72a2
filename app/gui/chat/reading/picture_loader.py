"""Attached pictures, decoded in confined processes because imported chats may contain pictures from strangers."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections import OrderedDict
from functools import partial

from PySide6.QtCore import QEventLoop, QObject, QTimer, Signal
from PySide6.QtGui import QImage

from app.core.chat import PICTURE, Details
from app.gui.chat.reading.reader_process import ReaderLimits, ReaderProcess
from backends.readers.messages import DecodePicture, Picture, Reply

LIMITS = ReaderLimits(seconds=15.0, resident_bytes=640 << 20, idle_ms=0)
SMALL_SIDE, LARGE_SIDE = 256, 1_280  # pixels of the longer side, in messages and enlarged
KEPT_BYTES = 32 << 20
CHANNELS = 3

Key = tuple[str, int]  # the hash of a picture, and the most pixels of its longer side


class PictureLoader(QObject):
    """The decoded pictures of all messages.

    `loaded` is emitted with a picture's key after it was decoded or has failed.

    Each picture is decoded in its own process, so that it cannot change how another one looks.
    """

    loaded = Signal(object)  # Key

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._process: ReaderProcess | None = None
        self._images: OrderedDict[Key, QImage | None] = OrderedDict()  # None: cannot be shown
        self._waiting: OrderedDict[Key, bytes] = OrderedDict()  # the first one is being decoded

    @property
    def is_idle(self) -> bool:
        """Return whether all requested pictures have been decoded."""
        return not self._waiting

    def request(self, file: Details, side: int) -> Key:
        """Decode a picture unless this was already requested. Return its key for `image`."""
        data = str(file.get(PICTURE) or "")
        key = (hashlib.sha256(data.encode("utf-8", "replace")).hexdigest(), side)
        if key not in self._images and key not in self._waiting:
            try:
                self._waiting[key] = base64.b64decode(data, validate=True)
            except (binascii.Error, ValueError):
                self._images[key] = None
            else:
                QTimer.singleShot(0, self, self._next)
        return key

    def image(self, key: Key) -> QImage | None:
        """Return a picture, or None if it is still being decoded or cannot be shown."""
        if (image := self._images.get(key)) is not None:
            self._images.move_to_end(key)
        return image

    def is_pending(self, key: Key) -> bool:
        """Return whether a picture is being decoded or is waiting to be decoded."""
        return key in self._waiting

    def close(self) -> None:
        """End the process and drop all waiting pictures."""
        self._waiting.clear()
        self._end()

    def _next(self) -> None:
        if self._process is None and self._waiting:
            key, content = next(iter(self._waiting.items()))
            self._process = ReaderProcess("pictures", LIMITS, self)
            self._process.ask(DecodePicture(key[1]), partial(self._answered, key), content)

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.close()
            process.deleteLater()

    def _answered(self, key: Key, reply: Reply | None) -> None:
        self._waiting.pop(key, None)
        self._end()
        QTimer.singleShot(0, self, self._next)
        self._images[key] = _image(reply, key[1]) if isinstance(reply, Picture) else None
        kept = sum(image.sizeInBytes() for image in self._images.values() if image is not None)
        while kept > KEPT_BYTES and len(self._images) > 1:
            _, oldest = self._images.popitem(last=False)
            kept -= oldest.sizeInBytes() if oldest is not None else 0
        self.loaded.emit(key)


def picture_now(file: Details, side: int) -> QImage | None:
    """Decode a picture and return it, or None if it cannot be shown. Blocks. Can be called from any thread."""
    loader, waiting = PictureLoader(), QEventLoop()
    loader.loaded.connect(lambda _: waiting.quit())
    key = loader.request(file, side)
    if loader.is_pending(key):
        waiting.exec()
    image = loader.image(key)
    loader.close()
    return image


def _image(picture: Picture, side: int) -> QImage | None:
    """Return an image of the pixels sent by the process, or None if their number is wrong."""
    width, height = picture.width, picture.height
    is_sound = picture.form == "rgb" and 0 < width <= side and 0 < height <= side
    if not is_sound or len(picture.data) != CHANNELS * width * height:
        return None
    return QImage(picture.data, width, height, CHANNELS * width, QImage.Format.Format_RGB888).copy()
