"""Functions of other systems, played here with the types of their headers: each argument goes through C twice."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any


def library(**functions: tuple[Callable[..., Any], Any, tuple[Any, ...]]) -> SimpleNamespace:
    """Each of them as (what it does, its result's type, its arguments' types)."""
    return SimpleNamespace(
        **{name: ctypes.CFUNCTYPE(result, *values)(does) for name, (does, result, values) in functions.items()}
    )
