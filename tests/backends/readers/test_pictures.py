"""Pictures through the confined reader: what is decoded, what is refused before decoding, and what damage does."""

from __future__ import annotations

import asyncio
import io
import struct
import sys
import zlib
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from PIL import Image, ImageCms, PngImagePlugin

from app.core.errors import BadInput
from app.inference.worker import picture_reader
from app.inference.worker.picture_reader import decoded_picture, shrunk_picture
from backends.readers.messages import LENGTHS, MAX_PICTURE_BYTES, Picture, Refused
from backends.readers.pictures import MAX_AREA, MAX_SIDE, SHRUNK_SIDE, decode, shrink

SEED = 35


def file(
    form: str,
    size: tuple[int, int] = (40, 30),
    color: object = (200, 10, 30),
    *,
    noise: bool = False,
    **options: object,
) -> bytes:
    image = Image.new("RGB", size, color)  # type: ignore[arg-type]
    if noise:
        image = Image.frombytes("RGB", size, Random(SEED).randbytes(3 * size[0] * size[1]))
    written = io.BytesIO()
    image.save(written, form, **options)
    return written.getvalue()


def png(width: int, height: int, rows: bytes = b"") -> bytes:
    """A PNG file that states this size, whatever its rows are."""

    def part(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b"")


def code(data: bytes) -> str:
    try:
        decode(data)
    except Refused as refused:
        return refused.code
    return ""


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "GIF"])
def test_the_pixels_of_each_format_come_out_in_rgb(form: str) -> None:
    picture = decode(file(form))
    assert (picture.width, picture.height, picture.form) == (40, 30, "rgb")
    assert len(picture.data) == 3 * 40 * 30
    red, green, blue = picture.data[:3]
    assert abs(red - 200) < 8
    assert abs(green - 10) < 8
    assert abs(blue - 30) < 8


def test_only_the_first_frame_of_an_animation_is_read() -> None:
    frames = [Image.new("RGB", (20, 20), color) for color in ("red", "lime", "blue")]
    written = io.BytesIO()
    frames[0].save(written, "GIF", save_all=True, append_images=frames[1:] * 200)
    assert decode(written.getvalue()).data[:3] == b"\xff\x00\x00"


def test_a_transparent_picture_is_on_white_and_a_turned_one_is_upright() -> None:
    written = io.BytesIO()
    Image.new("RGBA", (4, 4), (0, 0, 0, 0)).save(written, "PNG")
    assert decode(written.getvalue()).data == b"\xff" * 48
    turned = Image.Exif()
    turned[0x0112] = 6
    picture = decode(file("JPEG", (40, 30), exif=turned))
    assert (picture.width, picture.height) == (30, 40)


def test_large_pictures_become_small_and_lose_their_metadata() -> None:
    place = Image.Exif()
    place[0x010E] = "at home"
    data = file("JPEG", (4000, 3000), exif=place)
    picture = decode(data)
    assert max(picture.width, picture.height) <= MAX_SIDE
    assert picture.width * picture.height <= MAX_AREA
    small = shrink(data)
    assert small.form == "jpeg"
    assert max(small.width, small.height) == SHRUNK_SIDE
    assert b"at home" in data
    assert b"at home" not in small.data
    assert not Image.open(io.BytesIO(small.data)).getexif()
    assert shrink(file("PNG")).form == "png"
    whole = file("PNG", (1400, 1300), noise=True)  # too large to be sent as it is
    assert code(whole) == "picture_large"
    assert len(shrink(whole).data) < MAX_PICTURE_BYTES < len(whole)


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "GIF"])
def test_no_comment_and_no_profile_is_left_in_a_copy(form: str) -> None:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    secret = b"taken in the garden"
    words = PngImagePlugin.PngInfo()
    words.add_text("Comment", secret.decode())
    comment: dict[str, Any] = {"pnginfo": words} if form == "PNG" else {"comment": secret}
    packet: dict[str, Any] = {} if form == "GIF" else {"icc_profile": profile}
    packet |= {"xmp": secret} if form in ("JPEG", "WEBP") else {}
    data = file(form, (60, 40), **packet, **comment)
    assert secret in data
    for small in (shrink(data), shrink(file(form, (1400, 1300), noise=True, **packet))):
        assert secret not in small.data
        with Image.open(io.BytesIO(small.data)) as again:
            assert not {"icc_profile", "comment", "Comment", "exif", "xmp"} & again.info.keys()


def test_a_profile_of_other_colors_is_applied_before_it_is_left_out() -> None:
    usual = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    swapped = usual.replace(b"rXYZ", b"####", 1).replace(b"bXYZ", b"rXYZ", 1).replace(b"####", b"bXYZ", 1)
    red, _, blue = decode(file("PNG", icc_profile=swapped)).data[:3]  # of a red picture whose red means blue
    assert blue > 150 > red
    assert shrink(file("PNG", icc_profile=b"no profile")).data == shrink(file("PNG")).data


def test_eight_large_screenshots_fit_into_one_request() -> None:
    small = shrink(file("PNG", (2560, 1440), noise=True))
    assert len(small.data) <= 640 << 10


def test_a_bomb_is_refused_by_the_size_that_it_states() -> None:
    with pytest.raises(Refused) as refused:
        decode(png(60_000, 60_000))
    assert refused.value.code == "picture_pixels"
    assert refused.value.facts == {"width": 60_000, "height": 60_000, "most": 50}


def test_other_files_cut_files_and_empty_ones_are_refused() -> None:
    assert code(b"%PDF-1.7") == code(b"") == code(b"<svg/>") == "picture_unknown"
    assert code(file("TIFF")) == "picture_unknown"  # Pillow could read it, and many others
    for form in ("PNG", "JPEG", "WEBP", "GIF", "BMP"):
        whole = file(form, (400, 300), Image.effect_noise((1, 1), 9).getpixel((0, 0)))
        assert code(whole[: len(whole) // 2]) in ("picture_broken", "picture_unknown"), form
    assert code(png(100, 100, b"short")) == "picture_broken"
    assert code(bytes(MAX_PICTURE_BYTES + 1)) == "picture_large"


def test_three_thousand_damaged_files_end_in_a_picture_or_a_refusal() -> None:
    chance, noise = Random(SEED), Image.effect_noise((64, 48), 90).convert("RGB")
    originals = []
    for form in ("PNG", "JPEG", "WEBP", "GIF"):
        written = io.BytesIO()
        noise.save(written, form)
        originals.append(written.getvalue())
    codes = set()
    for _ in range(3_000):
        data = bytearray(chance.choice(originals))
        for _ in range(chance.randint(1, 12)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        if chance.random() < 0.2:
            del data[chance.randrange(len(data)) :]
        codes.add(code(bytes(data)))
    assert {"", "picture_broken", "picture_unknown"} <= codes
    assert codes <= {"", "picture_broken", "picture_unknown", "picture_pixels", "picture_heavy"}


def test_the_process_answers_and_refuses_as_the_reader_does() -> None:
    async def both() -> None:
        assert (await decoded_picture(file("PNG"))).width == 40
        assert (await shrunk_picture(file("WEBP"))).form == "png"
        for data, expected in ((png(60_000, 60_000), "picture_pixels"), (b"no picture", "picture_unknown")):
            with pytest.raises(BadInput) as refused:
                await decoded_picture(data)
            assert refused.value.reason.code == expected

    asyncio.run(both())


TAKEN_OVER = """
import os, socket
class UnidentifiedImageError(OSError): pass
def open(file, formats=None):
    path = file.read().decode()
    for forbidden in (lambda: socket.socket(), lambda: os.fork()):
        try:
            forbidden()
        except OSError:
            continue
        raise UnidentifiedImageError
    if path == "loop":
        while True: pass
    with __builtins__["open"](path): pass
    raise UnidentifiedImageError
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux confines a process")
def test_the_process_is_confined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A decoder that an attacker controls opens nothing of the user's, no socket and no process, and has an end."""
    library, secret = tmp_path / "library" / "PIL", tmp_path / "downloads" / "secret"
    library.mkdir(parents=True)
    secret.parent.mkdir()
    secret.write_text("secret")
    (library / "__init__.py").write_text("class UnidentifiedImageError(OSError): pass\n")
    (library / "Image.py").write_text(TAKEN_OVER.replace("class UnidentifiedImageError(OSError): pass", IMPORTED))
    for module in ("ImageCms", "ImageOps"):
        (library / f"{module}.py").write_text("")
    for name, kind in (("Png", "Png"), ("Jpeg", "Jpeg"), ("WebP", "WebP"), ("Gif", "Gif"), ("Bmp", "Bmp")):
        text = f"class {kind}ImageFile:\n    format = '{kind}'\n"
        (library / f"{name}ImagePlugin.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(library.parent))
    monkeypatch.setattr(picture_reader, "READING_SECONDS", 3.0)

    async def code_of(path: str) -> str:
        with pytest.raises(BadInput) as refused:
            await decoded_picture(path.encode())
        return refused.value.reason.code

    assert asyncio.run(code_of(str(library / "ImageOps.py"))) == "picture_unknown"  # code may be read
    assert asyncio.run(code_of(str(secret))) == "picture_broken"
    assert asyncio.run(code_of("loop")) == "picture_heavy"


IMPORTED = "from PIL import UnidentifiedImageError"


@pytest.mark.parametrize(
    "reply",
    [
        Picture(-40, -30, "rgb", bytes(3 * 40 * 30)),
        Picture(40, 30, "rgb", bytes(3 * 40 * 30 - 1)),
        Picture(0, 30, "rgb", b""),
        Picture(3 * MAX_SIDE, 1, "rgb", bytes(9 * MAX_SIDE)),
        Picture(40, 30, "png", bytes(3 * 40 * 30)),
    ],
)
async def test_a_decoder_that_was_taken_over_is_not_believed(reply: Picture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture_reader, "ARGUMENTS", ("-c", _writing(reply)))
    with pytest.raises(BadInput) as refused:
        await decoded_picture(file("PNG"))
    assert refused.value.reason.code == "picture_heavy"
    sound = Picture(40, 30, "rgb", bytes(3 * 40 * 30))
    monkeypatch.setattr(picture_reader, "ARGUMENTS", ("-c", _writing(sound)))
    assert await decoded_picture(file("PNG")) == sound


def _writing(reply: Picture) -> str:
    """A program that replies with this."""
    data = msgspec.json.encode(reply)
    return f"import sys; sys.stdout.buffer.write({LENGTHS.pack(len(data), 0) + data!r})"


def test_the_node_expects_pictures_as_large_as_the_decoder_makes_them() -> None:
    assert picture_reader.MAX_SIDE == MAX_SIDE
