"""The benchmark runs right after `make setup`: it needs what the app needs, and nothing of the tests."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
EVERY_MODULE = """
import importlib, pkgutil, sys

class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in REFUSED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

REFUSED = set(sys.argv[1:])
sys.meta_path.insert(0, Refused())
for room in ("bench", "testbed"):
    for found in pkgutil.walk_packages(importlib.import_module(room).__path__, room + "."):
        if not found.name.endswith(".__main__"):
            importlib.import_module(found.name)
import bench.__main__
"""


def only_for_development() -> set[str]:
    """Import names of the packages that `make setup` does not install, and of the tests."""
    said = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))
    named = {line.partition("==")[0] for line in said["dependency-groups"]["dev"]}
    names = {name.lower().replace("-", "_") for name in named if not name.startswith("types-")}
    return names | {"pytestqt", "xdist", "importlinter", "_pytest", "tests"}


def test_the_benchmark_needs_only_what_the_app_needs() -> None:
    """Each of its modules is imported where nothing of the tests can be."""
    done = subprocess.run(
        [sys.executable, "-c", EVERY_MODULE, *sorted(only_for_development())],
        cwd=PROJECT, capture_output=True, text=True, check=False, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
