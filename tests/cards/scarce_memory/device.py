"""A software device whose memory a test can make scarce, through a Vulkan layer (layer.c)."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

LAYER = "VK_LAYER_POOLHOUSE_scarce_memory"
SOURCE = Path(__file__).with_name("layer.c")
LIBRARY = "libscarce_memory.so"


class ScarceMemory:
    """The memory of the device of one node, for each of its workers alone."""

    def __init__(self, home: Path) -> None:
        """Build the layer where confined workers may read it: with the code that drivers compile."""
        self.folder = home / "graphics"
        self.folder.mkdir(parents=True, exist_ok=True)
        compiler = shutil.which("cc")
        if compiler is None:
            pytest.skip("needs a C compiler")
        library = self.folder / LIBRARY
        command = [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-fvisibility=hidden"]
        subprocess.run([*command, "-o", str(library), str(SOURCE)], check=True)
        about = {
            "name": LAYER,
            "type": "INSTANCE",
            "library_path": str(library),
            "api_version": "1.3.0",
            "implementation_version": "1",
            "description": "a device with little memory",
        }
        described = {"file_format_version": "1.2.0", "layer": about}
        (self.folder / f"{LAYER}.json").write_text(json.dumps(described), encoding="utf-8")
        self._file = self.folder / "scarce-memory"

    @contextmanager
    def environment(self) -> Iterator[None]:
        """Let the node that starts meanwhile use the layer."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("VK_LAYER_PATH", str(self.folder))
            patch.setenv("VK_INSTANCE_LAYERS", LAYER)
            patch.setenv("SCARCE_MEMORY", str(self._file))
            yield

    @contextmanager
    def limited(self, n_bytes: int) -> Iterator[None]:
        """Let the device have so little memory until the end of the block."""
        self.limit(n_bytes)
        try:
            yield
        finally:
            self._file.unlink(missing_ok=True)

    def limit(self, n_bytes: int) -> None:
        """Let the device have so little memory from now on."""
        written = self._file.with_suffix(".part")
        written.write_text(str(n_bytes), encoding="utf-8")
        written.replace(self._file)
