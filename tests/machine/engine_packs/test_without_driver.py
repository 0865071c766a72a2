"""A pack for NVIDIA's cards where the driver is missing: its library is not loaded, and one sentence says why."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from app.core.reasons import said
from app.machine.engine_packs.self_test import self_test
from app.machine.engine_packs.store import PackStore
from tests.machine.engine_packs.fake_pack import ENGINE, folder_pack

LIBRARY = "libggml-cuda.so"
DRIVER = "libpoolhouse-no-such-driver.so.1"  # stands for libcuda.so.1, which a computer that tests this may have

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not shutil.which("cc"), reason="compiles a library for Linux"
)


def compiled(folder: Path) -> bytes:
    """Return a library that needs the driver's, as the back end for CUDA does."""
    driver, library = folder / "libdriver.so", folder / LIBRARY
    for source, words in (
        ("int cuInit(int flags) { return flags; }", ["-o", str(driver), f"-Wl,-soname,{DRIVER}"]),
        ("int cuInit(int); int ggml_backend_init(void) { return cuInit(0); }", ["-o", str(library), str(driver)]),
    ):
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-x", "c", "-", "-x", "none", *words], input=source.encode(), check=True
        )
    return library.read_bytes()


async def test_the_missing_driver_is_named_and_nothing_is_used(tmp_path: Path) -> None:
    source = folder_pack(tmp_path, {LIBRARY: compiled(tmp_path)}, backend="cuda13", libraries=[LIBRARY])
    store = PackStore(tmp_path / "engines", engine_version=ENGINE)
    pack = store.install(source)
    tested = await self_test(pack.backend, store.libraries_of(pack))
    assert tested.devices == []
    assert tested.failure is not None
    words = said(tested.failure)
    assert DRIVER in words
    assert "Install or update the driver of the graphics card, then test the pack again" in words
    assert "\n" not in words
    assert store.note_test(pack.name, tested).problem == tested.failure
    assert store.libraries() == {}
