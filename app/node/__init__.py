"""The engine process of a machine: owns all state, serves the loopback API."""

from __future__ import annotations

from app.node.options import NodeOptions
from app.node.start import run, say_ready

__all__ = ["NodeOptions", "run", "say_ready"]
