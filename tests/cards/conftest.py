"""Tests on the software device: `make cards` runs these. Without the library or the driver, each is skipped."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cards.device import PROJECT, VULKAN0, environment, library

HERE = Path(__file__).parent
SECONDS = 400


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ours = [item for item in items if HERE in item.path.parents]
    why = _missing() if ours else ""
    for item in ours:
        item.add_marker(pytest.mark.cards)
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(SECONDS))
        if why:
            item.add_marker(pytest.mark.skip(reason=why))


def _missing() -> str:
    """Return what is missing for the software device, or ""."""
    vulkan = library()
    if vulkan is None:
        return "needs the Vulkan library: `make engine BACKEND=vulkan` builds it"
    command = [sys.executable, "-m", "tests.cards.device"]
    done = subprocess.run(command, cwd=PROJECT, env=environment(), capture_output=True, text=True, check=False)
    return "" if VULKAN0 in done.stdout else "needs a Vulkan driver: Debian's package is mesa-vulkan-drivers"


@pytest.fixture(autouse=True)
def software_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers see only the software device."""
    for name in ("GGML_VK_VISIBLE_DEVICES", "MESA_SHADER_CACHE_DIR"):
        monkeypatch.setenv(name, environment()[name])
