"""The messages to and from a reader: JSON with an optional payload, each after its length."""

from __future__ import annotations

import struct
from typing import Literal

import msgspec

LENGTHS = struct.Struct(">II")  # of the JSON and of the payload that follows it
MAX_JSON_BYTES = 8 << 20
MAX_FORMULA_CHARS = 4_000
MAX_PATH_CHARS = 400_000  # of all outlines of a formula
MAX_DOCUMENT_BYTES = 64 << 20  # of a file; the window refuses larger ones without opening them
MAX_PICTURE_BYTES = 5 << 20  # of a picture's file, so that a request with it, in base64, stays below 8 MiB
MOST_PICTURES = 8  # with one message
MOST_PICTURES_OF_CHAT = 16
MAX_TEXT_CHARS = 400_000  # of a document; the pages after that are left out


PDF_HEAD = b"%PDF-"
UTF8_MARK = b"\xef\xbb\xbf"


def is_pdf(head: bytes) -> bool:
    """Return whether a file that begins like this is a PDF file. A text that only mentions the mark is not one."""
    return head.removeprefix(UTF8_MARK).lstrip().startswith(PDF_HEAD)


class DrawFormula(msgspec.Struct, frozen=True, tag="formula"):
    """A request to draw a formula. `tex` is LaTeX without its delimiters."""

    tex: str
    is_display: bool


class ReadDocument(msgspec.Struct, frozen=True, tag="document"):
    """A request to read the document in the payload. The suffix of its name is a hint and is not trusted."""

    suffix: str


class ShrinkPicture(msgspec.Struct, frozen=True, tag="shrink"):
    """A request to make a small copy of the picture in the payload, to keep, show and send. Reply: Picture."""


class DecodePicture(msgspec.Struct, frozen=True, tag="decode"):
    """A request for the pixels of the picture in the payload. Reply: Picture.

    side: the most pixels of its longer side, or 0 for as many as a model may look at.
    """

    side: int = 0


class Shape(msgspec.Struct, frozen=True):
    """An outline in thousandths of the font size: M, L, Q, C and Z with absolute coordinates, y pointing down."""

    path: str
    stroke: int = 0  # width of the line; 0 for a filled outline


class Drawing(msgspec.Struct, frozen=True, tag="drawing"):
    """A drawn formula, in thousandths of the font size. The origin is at the left end of the baseline."""

    left: int
    width: int
    ascent: int
    depth: int
    shapes: tuple[Shape, ...]


class DocumentText(msgspec.Struct, frozen=True, tag="text"):
    """The text of a document, by page. `n_pages` also counts the pages that were left out at the end.

    unit: what a page is: "page", "slide", "sheet", or "" for a text without pages.
    """

    unit: str
    pages: tuple[str, ...]
    n_pages: int
    names: tuple[str, ...] = ()  # names of the pages, if they have any


class Picture(msgspec.Struct, frozen=True, tag="picture"):
    """A picture, upright and without metadata. `form` says what its bytes are: a JPEG or PNG file, or RGB values."""

    width: int
    height: int
    form: Literal["jpeg", "png", "rgb"]
    data: bytes


class Refusal(msgspec.Struct, frozen=True, tag="refusal"):
    """A reply that says why nothing could be read."""

    code: str
    facts: dict[str, int] = {}


Request = DrawFormula | ReadDocument | ShrinkPicture | DecodePicture
Reply = Drawing | DocumentText | Picture | Refusal


_REQUESTS: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)


class Refused(Exception):
    """Raised by a reader. The code says why, and the facts are numbers for its sentence."""

    def __init__(self, code: str, **facts: int) -> None:
        super().__init__(code)
        self.code, self.facts = code, facts


def decode_request(data: bytes) -> Request:
    """Return the request in a frame's JSON. Raises msgspec.DecodeError."""
    return _REQUESTS.decode(data)


def beginning(message: Request | Reply, payload_bytes: int = 0) -> bytes:
    """Return a message as it is sent, without its payload, which is to follow."""
    body = msgspec.json.encode(message)
    return LENGTHS.pack(len(body), payload_bytes) + body
