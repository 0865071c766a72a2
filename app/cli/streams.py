"""Standard input, output and error of a command, also where whoever started it closed one."""

from __future__ import annotations

import os
import sys


def complete() -> None:
    """A closed one leads nowhere: Python leaves it out, and the next file or socket would get its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            way = os.O_RDONLY if mode == "r" else os.O_WRONLY
            nowhere = os.open(os.devnull, way)
            setattr(sys, name, os.fdopen(nowhere, mode, encoding="utf-8"))
