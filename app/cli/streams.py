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


def give_up_the_unwritten() -> None:
    """What cannot be written stays unsaid: at its end Python would try once more, and complain in its own way."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
