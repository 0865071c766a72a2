"""Real nodes with the software device: the pack, its installation, and what the nodes tell about the card."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.cards import device
from tests.node.pool import TestNode

SLOW_SECONDS = 400.0  # the first test of a device compiles its code
Json = dict[str, Any]


def pack() -> Path | None:
    """Return the pack's folder, if the library is in one."""
    library = device.library()
    folder = next((parent for parent in library.parents if (parent / "pack.json").exists()), None) if library else None
    return folder


@contextmanager
def device_environment(devices: str = "0") -> Iterator[None]:
    """Let the nodes that start meanwhile see only the software device. Skip the test if no pack was built.

    devices: as in device.environment.
    """
    if pack() is None:
        pytest.skip("no pack was built: make engine BACKEND=vulkan")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in device.environment(devices).items():
            if os.environ.get(name) != value:
                patch.setenv(name, value)
        yield


def until(met: Callable[[], bool], what: str) -> None:
    late = time.monotonic() + SLOW_SECONDS
    while not met():
        assert time.monotonic() < late, what
        time.sleep(0.5)


def card_of(node: TestNode) -> Json | None:
    card: Json | None = node.control("GET", "/machine")["card"]
    return card


def install_pack(node: TestNode) -> None:
    """Install the pack and wait until the card computes."""
    installed = node.run("engine", "add", str(pack()), within_s=120)
    assert installed.returncode == 0, installed.stdout + installed.stderr
    until(lambda: card_of(node) is not None, "the card is not used")


def uses_card(worker: psutil.Process) -> bool:
    """Return whether a worker has loaded the back end of the card."""
    return any(device.NAME in mapped.path for mapped in worker.memory_maps())


def load(host: TestNode, **more: Any) -> Json:
    return host.work("/load", {"model": "guide", "measure": False, "exact": True, **more})


def cards_of(host: TestNode) -> list[str]:
    """Return what the host knows of the cards that compute its stages."""
    return [stage["card"] for stage in host.control("GET", "/status")["loaded"]["stages"]]
