"""The download of an update, by what changed: the sizes of the real archives of all layers."""

from __future__ import annotations

import sys

import pytest

from app import __version__
from app.machine.versions.version_store import ABOUT
from installers.payload import payload
from installers.payload.components import AUDIT_PYTHON
from installers.payload.places import PACKAGE_LAYERS
from installers.release.__main__ import packed

pytestmark = [
    pytest.mark.installers,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(sys.platform != "linux", reason="the installers for Linux"),
    pytest.mark.skipif(not AUDIT_PYTHON.exists(), reason="needs `make audit`"),
]
MOST_BYTES = 60_000_000  # without a new engine
ALWAYS = (ABOUT, "app")
CHANGES = {
    "the app": (),
    "the largest package besides Qt": ("numpy",),
    "any other packages": ("libraries",),
    "all packages besides Qt": ("numpy", "libraries"),
    "Qt": ("qt",),
    "Python": ("python",),
}


def test_an_update_without_a_new_engine_brings_at_most_60_mb() -> None:
    release, archives = packed(payload.build(__version__), 100)
    sizes = {layer.name: archives[layer.target].stat().st_size for layer in release.layers}
    brought = {what: sum(sizes[name] for name in (*ALWAYS, *layers)) for what, layers in CHANGES.items()}
    print("; ".join(f"{what}: {n_bytes / 1e6:.1f} MB" for what, n_bytes in brought.items()))
    assert {name for layers in CHANGES.values() for name in layers} == {*PACKAGE_LAYERS, "python"}
    assert {what: n_bytes for what, n_bytes in brought.items() if n_bytes > MOST_BYTES} == {}
