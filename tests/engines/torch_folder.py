"""The folder with the torch that `make engines` installed, or that POOLHOUSE_TORCH names."""

from __future__ import annotations

import os
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
FOLDER = "POOLHOUSE_TORCH"  # environment variable


def torch_folder() -> Path | None:
    """Return the folder to import torch from, or None if there is none."""
    named = os.environ.get(FOLDER)
    if named:
        return Path(named)
    return next((path.parent for path in PROJECT.glob(".venv-engines/lib/python*/site-packages/torch")), None)
