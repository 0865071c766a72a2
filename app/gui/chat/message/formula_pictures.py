"""Pictures of formulas.

Each formula is drawn once by a confined process, then painted in the color and size of the text.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache, partial

from PySide6.QtCore import QObject, QPointF, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QFont, QFontMetrics, QFontMetricsF, QImage, QPainter, QPainterPath, QPen

from app.gui.chat.message.math_rules import Formula
from app.gui.chat.reading.reader_process import ReaderLimits, ReaderProcess
from backends.readers.messages import MAX_PATH_CHARS, DrawFormula, Drawing, Reply

EM = 1_000  # units of a drawing per font size
MAX_EMS = 120  # a wider or taller formula is shown as text
MAX_PIXELS = 4 << 20  # of a picture; a formula that needs more is shown as text
MAX_BLOCK_PIXELS = 16 << 20  # of all pictures in a text, because Qt keeps them as long as the text
MAX_SHAPES = 20_000
MAX_NUMBER_CHARS = 7  # of a coordinate
LIMITS = ReaderLimits(seconds=10.0, resident_bytes=384 << 20, idle_ms=180_000)
KEPT_DRAWINGS = 2_000
KEPT_BYTES = 24 << 20  # of painted pictures
GATHER_MS = 30  # formulas drawn within this time appear together
X_HEIGHT = 473  # of the formulas' own font, STIX Two
MAX_ENLARGED = 1.2  # how much larger than the text a formula is set at most, so that their letters look equally large
FLAT_DEPTH = 20  # up to this depth, a formula stands on the baseline like a letter
_POINTS = {"M": 1, "L": 1, "Q": 2, "C": 3, "Z": 0}  # by command of an outline

Key = tuple[str, bool]  # LaTeX and whether it takes whole lines


@dataclass(frozen=True, slots=True)
class Look:
    """The appearance of a formula: the font of the surrounding text, the color, and the screen's scale."""

    font: QFont
    color: QColor
    ratio: float

    @property
    def key(self) -> tuple[object, ...]:
        return self.font.key(), self.color.rgba(), self.ratio


@dataclass(frozen=True, slots=True)
class Place:
    """The space for a formula in a line of text, in text coordinates.

    is_middle: whether Qt centers the picture on the line instead of placing it on the baseline. ascent: the height
    above the baseline.
    """

    width: int
    height: int
    ascent: float
    is_middle: bool


class FormulaPictures(QObject):
    """The pictures of the formulas in all messages.

    `drawn` is emitted with the keys of formulas that are ready to be shown.

    A formula that cannot be drawn is shown as text. A formula that makes the process fail is not tried again.
    """

    drawn = Signal(set)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._reader = ReaderProcess("formulas", LIMITS, self)
        self._drawings: OrderedDict[Key, Drawing | None] = OrderedDict()  # None: cannot be drawn
        self._requested: set[Key] = set()
        self._images: OrderedDict[tuple[object, ...], QImage] = OrderedDict()
        self._image_bytes = 0
        self._new: set[Key] = set()
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(GATHER_MS)
        self._soon.timeout.connect(self._tell)

    @property
    def is_idle(self) -> bool:
        """Return whether all requested formulas have been drawn."""
        return not self._requested and not self._soon.isActive()

    def close(self) -> None:
        """End the process."""
        self._requested.clear()
        self._reader.close()

    def request(self, formulas: Iterable[Formula]) -> set[Key]:
        """Draw these formulas. Return the keys of the formulas that are still being drawn."""
        if self._reader.is_resting:
            return set()
        missing = {key_of(formula) for formula in formulas if not formula.is_open} - self._drawings.keys()
        for key in missing - self._requested:
            self._requested.add(key)
            self._reader.ask(DrawFormula(*key), partial(self._drawn, key))
        return missing

    def drawing(self, formula: Formula) -> Drawing | None:
        """Return the drawing of a formula, or None if it is not ready or cannot be drawn."""
        key = key_of(formula)
        if formula.is_open or key not in self._drawings:
            return None
        self._drawings.move_to_end(key)
        return self._drawings[key]

    def image(self, drawing: Drawing, look: Look) -> QImage:
        """Return a drawing as an image of the size of its place in the text."""
        key = (drawing, *look.key)
        if (known := self._images.get(key)) is not None:
            self._images.move_to_end(key)
            return known
        made = painted(drawing, look)
        self._images[key] = made
        self._image_bytes += made.sizeInBytes()
        while self._image_bytes > KEPT_BYTES and len(self._images) > 1:
            _, oldest = self._images.popitem(last=False)
            self._image_bytes -= oldest.sizeInBytes()
        return made

    def _drawn(self, key: Key, reply: Reply | None) -> None:
        self._requested.discard(key)
        if reply is None and self._reader.is_resting:
            return  # others made the process fail, so this one may be tried later
        self._drawings[key] = reply if isinstance(reply, Drawing) and _is_sound(reply) else None
        while len(self._drawings) > KEPT_DRAWINGS:
            self._drawings.popitem(last=False)
        self._new.add(key)
        if not self._soon.isActive():
            self._soon.start()

    def _tell(self) -> None:
        new, self._new = self._new, set()
        self.drawn.emit(new)


def key_of(formula: Formula) -> Key:
    return formula.tex, formula.is_display


def _size(font: QFont) -> float:
    """Return the pixels per unit of a drawing that make its letter x as high as in the surrounding text."""
    pixels = font.pixelSize()
    ratio = QFontMetricsF(font).xHeight() / pixels * EM / X_HEIGHT
    return pixels * min(MAX_ENLARGED, max(1.0, ratio)) / EM


def place_of(drawing: Drawing, font: QFont) -> Place:
    """Return the space for a drawing in a line of text.

    Qt can place a picture on the baseline, or center it a quarter of the x-height above the baseline. When Qt centers
    it, the picture is extended at the top or bottom, so that its own baseline matches the text's.
    """
    size = _size(font)
    width, ascent, depth = math.ceil(drawing.width * size), drawing.ascent * size, drawing.depth * size
    if drawing.depth <= FLAT_DEPTH:
        height = math.ceil(ascent)
        return Place(max(1, width), max(1, height), height, is_middle=False)
    half_x = QFontMetrics(font).xHeight() / 2
    height = math.ceil(max(2 * ascent - half_x, 2 * depth + half_x))
    return Place(max(1, width), height, (height + half_x) / 2, is_middle=True)


def pixels_of(drawing: Drawing, look: Look) -> int:
    """Return the number of pixels in the image of a drawing."""
    place = place_of(drawing, look.font)
    return math.ceil(place.width * look.ratio) * math.ceil(place.height * look.ratio)


def painted(drawing: Drawing, look: Look) -> QImage:
    """Paint a drawing in one color on a transparent background."""
    place, size = place_of(drawing, look.font), _size(look.font)
    image = QImage(
        math.ceil(place.width * look.ratio),
        math.ceil(place.height * look.ratio),
        QImage.Format.Format_ARGB32_Premultiplied,
    )
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.scale(look.ratio, look.ratio)
    painter.translate(0, place.ascent)
    painter.scale(size, size)
    painter.translate(-drawing.left, 0)
    for outline, stroke in _outlines(drawing):
        if stroke:
            painter.strokePath(outline, QPen(look.color, stroke))
        else:
            painter.fillPath(outline, look.color)
    painter.end()
    return image


@lru_cache(maxsize=256)
def _outlines(drawing: Drawing) -> list[tuple[QPainterPath, int]]:
    return [(_outline(shape.path), shape.stroke) for shape in drawing.shapes]


def _outline(text: str) -> QPainterPath:
    """Parse an outline into a path. Raises ValueError if it is malformed."""
    path = QPainterPath()
    path.setFillRule(Qt.FillRule.WindingFill)
    parts = text.split()
    at = 0
    while at < len(parts):
        command = parts[at]
        end = at + 1 + 2 * _POINTS.get(command, -1)
        if end <= at or end > len(parts):
            raise ValueError(command)
        if any(len(part) > MAX_NUMBER_CHARS for part in parts[at + 1 : end]):
            raise ValueError("number")  # QPointF has no room for hundreds of digits
        numbers = [int(part) for part in parts[at + 1 : end]]  # floats could be infinite
        points = [QPointF(x, y) for x, y in zip(numbers[::2], numbers[1::2], strict=True)]
        if command == "M":
            path.moveTo(*points)
        elif command == "L":
            path.lineTo(*points)
        elif command == "Q":
            path.quadTo(*points)
        elif command == "C":
            path.cubicTo(*points)
        else:
            path.closeSubpath()
        at = end
    return path


def _is_sound(drawing: Drawing) -> bool:
    """Return whether a drawing has a plausible size and valid outlines, because its process is not trusted."""
    most = MAX_EMS * EM
    sizes = (drawing.width, drawing.ascent, drawing.depth)
    if not all(-most <= size <= most for size in (*sizes, drawing.left)) or drawing.width <= 0:
        return False
    if drawing.depth < 0 or not 0 < drawing.ascent + drawing.depth <= most:
        return False
    if len(drawing.shapes) > MAX_SHAPES or sum(len(shape.path) for shape in drawing.shapes) > MAX_PATH_CHARS:
        return False
    if not all(0 <= shape.stroke <= EM for shape in drawing.shapes):
        return False
    try:
        outlines = _outlines(drawing)
    except (ValueError, OverflowError):
        return False
    room = QRectF(-most, -most, 3 * most, 3 * most)
    return all(room.contains(outline.boundingRect()) for outline, _ in outlines)
