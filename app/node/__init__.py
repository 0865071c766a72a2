"""The engine process of a machine: owns all state, serves the loopback API."""

from __future__ import annotations

from app.node.options import NodeOptions
from app.node.start import run

__all__ = ["NodeOptions", "run"]
