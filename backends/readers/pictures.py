"""Pictures from strangers: checked, decoded and made small in a confined process (backends/readers/__main__.py).

The size that a file states is checked before anything is decoded. The result has no metadata.
"""

from __future__ import annotations

import io
from contextlib import suppress

from PIL import (
    BmpImagePlugin,
    GifImagePlugin,
    Image,
    ImageCms,
    ImageOps,
    JpegImagePlugin,
    PngImagePlugin,
    UnidentifiedImageError,
    WebPImagePlugin,
)

from backends.readers.messages import MAX_DOCUMENT_BYTES, MAX_PICTURE_BYTES, Picture, Refused

FORMATS = tuple(
    plugin.format
    for plugin in (
        PngImagePlugin.PngImageFile,
        JpegImagePlugin.JpegImageFile,
        WebPImagePlugin.WebPImageFile,
        GifImagePlugin.GifImageFile,
        BmpImagePlugin.BmpImageFile,  # what some programs leave on the clipboard
    )
)
MAX_PIXELS = 50_000_000  # more than any camera in a household has; at 4 bytes each, they fit into the memory limit
MAX_SIDE, MAX_AREA = 2_048, 3 << 20  # pixels for a model; none looks at larger pictures
SHRUNK_SIDE = 1_536
JPEG_QUALITIES = (88, 75, 60, 40)  # tried until the copy is small enough
MOST_SHRUNK_BYTES = 640 << 10  # eight such copies, in base64, fit into one request
Image.MAX_IMAGE_PIXELS = None  # our own limit is lower, and refuses instead of warning
PngImagePlugin.MAX_TEXT_CHUNK = PngImagePlugin.MAX_TEXT_MEMORY = 1 << 20


def decode(data: bytes, side: int = 0) -> Picture:
    """Return the pixels of a picture in RGB, at most `side` or else MAX_SIDE wide and high. Raises Refused."""
    image = _small(_opened(data, MAX_PICTURE_BYTES), min(side, MAX_SIDE) if side > 0 else MAX_SIDE, MAX_AREA)
    return Picture(*image.size, "rgb", image.tobytes())


def shrink(data: bytes) -> Picture:
    """Return a small copy of a picture as a new file. Photographs may exceed what is sent. Raises Refused."""
    opened = _opened(data, MAX_DOCUMENT_BYTES)
    is_photograph = opened.format == JpegImagePlugin.JpegImageFile.format
    image = _small(opened, SHRUNK_SIDE, SHRUNK_SIDE * SHRUNK_SIDE)
    if not is_photograph:
        file = io.BytesIO()
        image.save(file, "PNG")
        if file.tell() <= MOST_SHRUNK_BYTES:  # a drawing stays sharp as PNG
            return Picture(*image.size, "png", file.getvalue())
    for quality in JPEG_QUALITIES:
        file = io.BytesIO()
        image.save(file, "JPEG", quality=quality)
        if file.tell() <= MOST_SHRUNK_BYTES:
            break
    return Picture(*image.size, "jpeg", file.getvalue())


def _opened(data: bytes, most_bytes: int) -> Image.Image:
    """Read the header of a picture, and check its size. Raises Refused."""
    if len(data) > most_bytes:
        raise Refused("picture_large", found_bytes=len(data), most_bytes=most_bytes)
    try:
        image = Image.open(io.BytesIO(data), formats=FORMATS)
    except UnidentifiedImageError:
        raise Refused("picture_unknown") from None
    except Exception:  # noqa: BLE001  a parser stumbles over hostile content in ways that nobody has listed
        raise Refused("picture_broken") from None
    width, height = image.size
    if width * height > MAX_PIXELS:
        raise Refused("picture_pixels", width=width, height=height, most=MAX_PIXELS // 1_000_000)
    if not width or not height:
        raise Refused("picture_broken")
    return image


def _small(image: Image.Image, side: int, area: int) -> Image.Image:
    """Return the first frame in RGB: upright, on white where it is transparent, and reduced to these sizes. Raises
    Refused."""
    try:
        if image.format == JpegImagePlugin.JpegImageFile.format:
            image.draft("RGB", (side, side))  # a large JPEG file is decoded at a fraction of its size
        image.load()
        small = _scaled(_plain(_in_srgb(_upright(image))), side, area)
        small.info.clear()  # comments and profiles, which would be written into the copy
        return small
    except MemoryError:
        raise Refused("picture_heavy") from None
    except Exception:  # noqa: BLE001  as above
        raise Refused("picture_broken") from None


def _upright(image: Image.Image) -> Image.Image:
    with suppress(Exception):  # malformed metadata only means that the picture is not turned
        return ImageOps.exif_transpose(image)
    return image


def _in_srgb(image: Image.Image) -> Image.Image:
    """Return a picture in the usual colors, because its profile is left out of the copy."""
    profile = image.info.get("icc_profile")
    if isinstance(profile, bytes) and image.mode in ("RGB", "RGBA", "L", "CMYK"):
        with suppress(Exception):  # a malformed profile only means that the colors are taken as they are
            own, usual = ImageCms.ImageCmsProfile(io.BytesIO(profile)), ImageCms.createProfile("sRGB")
            mode = "RGBA" if image.mode == "RGBA" else "RGB"
            if (made := ImageCms.profileToProfile(image, own, usual, outputMode=mode)) is not None:
                return made
    return image


def _plain(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):  # 16 bits of gray
        image = image.convert("I").point(lambda value: value * (1 / 256)).convert("L")
    if image.has_transparency_data:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image)
    return image.convert("RGB")


def _scaled(image: Image.Image, side: int, area: int) -> Image.Image:
    width, height = image.size
    factor = min(1.0, side / width, side / height, (area / (width * height)) ** 0.5)
    if factor == 1.0:
        return image
    size = (max(1, int(width * factor)), max(1, int(height * factor)))
    return image.resize(size, Image.Resampling.LANCZOS)
