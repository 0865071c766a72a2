"""The icon of the app in Apple's format: pictures of all sizes in one file."""

from __future__ import annotations

import os
import struct
import subprocess
import tempfile
from pathlib import Path

from app.gui.look.theme import LIGHT
from installers.linux.desktop import DRAW, MARK
from installers.payload.places import PROJECT
from installers.payload.trees import build_python
from scripts.setup_errors import Trouble

# The name of each size in the format, for screens with one and with two dots a point
KINDS = (
    (b"ic11", 32), (b"ic12", 64), (b"ic07", 128), (b"ic13", 256), (b"ic08", 256), (b"ic14", 512), (b"ic09", 512),
    (b"ic10", 1024),
)  # fmt: skip
MAGIC = b"icns"
_HEAD = struct.Struct(">4sI")


def icns(pictures: dict[int, bytes]) -> bytes:
    """Return the file with these PNG pictures, by size in dots."""
    parts = b"".join(_HEAD.pack(kind, _HEAD.size + len(pictures[size])) + pictures[size] for kind, size in KINDS)
    return _HEAD.pack(MAGIC, _HEAD.size + len(parts)) + parts


def drawn() -> dict[int, bytes]:
    """Return the picture of each size as PNG. Raises Trouble."""
    sizes = sorted({size for _, size in KINDS})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        mark = folder / "mark.svg"
        mark.write_text(MARK.read_text("utf-8").replace("currentColor", LIGHT.accent), "utf-8")
        command = [build_python(), "-c", DRAW, str(folder), ",".join(map(str, sizes)), str(mark)]
        environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "PYTHONPATH": str(PROJECT), "QT_SCALE_FACTOR": "1"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if done.returncode != 0:
            raise Trouble(f"The icon could not be drawn: {done.stderr.strip()[-300:]}")
        return {size: (folder / f"{size}.png").read_bytes() for size in sizes}
