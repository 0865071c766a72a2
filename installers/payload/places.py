"""The folders of a build, and the layers of what is installed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from scripts.setup_errors import Trouble

PROJECT = Path(__file__).resolve().parents[2]
WORK = PROJECT / "build" / "installers"
FILES = WORK / "files"  # downloaded files, each checked against its hash
LAYERS = WORK / "layers"
RESULTS = PROJECT / "dist"

# Of these layers, each has some of the Python packages; installers/payload/libraries_layer.py says which.
PACKAGE_LAYERS = ("qt", "numpy", "libraries")
# In this order, from what changes least to what changes most. An update brings only the layers that differ.
LAYER_NAMES = ("models", "python", *PACKAGE_LAYERS, "engine", "app")

MANIFEST = "installed.json"  # beside the layers; app/machine/installation.py reads it


def commit_time() -> int:
    """Return the time of the current commit, which all installed files get. SOURCE_DATE_EPOCH overrides it."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    shown = git("log", "-1", "--format=%ct")
    return int(shown.strip())


def git(*words: str) -> str:
    """Return the output of a git command in the project. Raises Trouble."""
    finished = subprocess.run(["git", *words], cwd=PROJECT, capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        raise Trouble(f"The installers are built from a git checkout, and git says: {finished.stderr.strip()}")
    return finished.stdout
