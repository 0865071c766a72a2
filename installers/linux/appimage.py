"""The AppImage: one file that runs on any Linux with glibc 2.36, without installing it and without FUSE."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from app.machine.versions.tree_hash import tree_bytes
from installers.linux import desktop
from installers.payload.payload import Payload
from installers.payload.places import PROJECT, RESULTS, WORK
from installers.payload.trees import normalize, tool
from scripts.setup_errors import check_disk

RUNTIME = Path(__file__).with_name("appimage_runtime.c")
FOLDER = "usr/lib/poolhouse"
ELF_NOTE, TYPE_2 = slice(8, 11), b"AI\x02"  # where desktops look for the mark of an AppImage
START = f"""#!/bin/sh
# Starts Poolhouse from the folder into which the AppImage was unpacked.
folder=$(dirname "$(readlink -f "$0")")
exec "$folder/{FOLDER}/bin/poolhouse" "$@"
"""


def pack(payload: Payload) -> Path:
    """Write the AppImage into dist/ and return its path. Raises Trouble."""
    check_disk(PROJECT)
    root = WORK / "appimage"
    shutil.rmtree(root, ignore_errors=True)
    place = root / FOLDER
    place.parent.mkdir(parents=True)
    payload.write(place, "appimage", "")
    desktop.write_launcher(place / "bin" / "poolhouse", updates=True)
    (root / "AppRun").write_text(START, "utf-8")
    (root / "AppRun").chmod(0o755)
    (root / "poolhouse.desktop").write_text(desktop.DESKTOP_ENTRY, "utf-8")
    metainfo = root / f"usr/share/metainfo/{desktop.ID}.appdata.xml"
    metainfo.parent.mkdir(parents=True)
    metainfo.write_text(desktop.metainfo(payload.version, payload.time), "utf-8")
    icons = root / "usr/share/icons/hicolor"
    desktop.write_icons(icons)
    shutil.copyfile(icons / "scalable/apps/poolhouse.svg", root / "poolhouse.svg")
    shutil.copyfile(icons / "256x256/apps/poolhouse.png", root / ".DirIcon")
    normalize(root, payload.time)
    image, result = WORK / "appimage.squashfs", RESULTS / f"poolhouse-{payload.version}-x86_64.AppImage"
    image.unlink(missing_ok=True)
    tool(
        "mksquashfs", str(root), str(image), "-noappend", "-root-owned", "-no-xattrs", "-no-exports", "-no-progress",
        "-comp", "zstd", "-Xcompression-level", "15", "-b", "256K", "-processors", "2",
        "-mkfs-time", str(payload.time), label="Packing",
    )  # fmt: skip
    contents = hashlib.sha256("".join(layer.hash for layer in payload.layers).encode()).hexdigest()
    runtime = _runtime(f"{payload.version}-{contents[:12]}", tree_bytes(root))
    RESULTS.mkdir(exist_ok=True)
    part = result.with_suffix(".part")
    with part.open("wb") as out, image.open("rb") as content:
        out.write(runtime)
        shutil.copyfileobj(content, out, 1 << 20)
    part.chmod(0o755)
    part.replace(result)
    image.unlink()
    shutil.rmtree(root)
    return result


def _runtime(build_id: str, n_bytes: int) -> bytes:
    """Return the program in front of the file system, which ends where its section table ends. Raises Trouble."""
    made = WORK / "appimage.runtime"
    tool(
        "gcc", "-Os", "-static", "-s", "-Wall", "-Wl,--build-id=none", f'-DBUILD_ID="{build_id}"',
        f"-DUNPACKED_BYTES={n_bytes}ULL", "-o", str(made), RUNTIME.name, "-lsquashfuse", "-lzstd",
        label="Compiling the AppImage's first part", cwd=RUNTIME.parent,
    )  # fmt: skip
    data = bytearray(made.read_bytes())
    made.unlink()
    data[ELF_NOTE] = TYPE_2
    offset, size, count = (
        int.from_bytes(data[0x28:0x30], "little"),
        int.from_bytes(data[0x3A:0x3C], "little"),
        int.from_bytes(data[0x3C:0x3E], "little"),
    )
    end = offset + size * count
    return bytes(data[:end].ljust(end, b"\0"))
