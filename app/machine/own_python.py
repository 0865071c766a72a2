"""How to start this very package in another process, wherever the command was typed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

OURS = str(Path(__file__).resolve().parents[2])


def command(*arguments: str) -> list[str]:
    """Our Python with these arguments. -P: a folder called `app` here must not be taken for ours."""
    return [sys.executable, "-P", *arguments]


def environment(**more: str) -> dict[str, str]:
    """Ours, with this package to be found first."""
    others = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([OURS, others] if others else [OURS]), **more}
