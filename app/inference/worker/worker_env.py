"""What a worker's process finds around it: threads, its code, and the files that it may read."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import backends
from backends.worker.confine import READS
from backends.worker.process import ALLOCATOR, FORMS

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")

# How long a thread waits awake for the others, at the end of each of a layer's operations, before it sleeps. By
# itself OpenMP spins for milliseconds: where anything else computes, threads that have nothing to do then keep those
# from running that they wait for. Three nodes on two cores answered five times as slowly (README). So many turns are
# some ten microseconds: as quick as endless ones on a quiet machine (bench/threads.py).
SPINNING = {
    "GOMP_SPINCOUNT": "10000",
    "KMP_BLOCKTIME": "1",
}  # of GCC's OpenMP, in turns; of LLVM's, in ms

Reads = Sequence[str | Path]


def environment(threads: int, reads: Reads | None = None, *, forms: bool = False) -> dict[str, str]:
    """Ours, with threads set on purpose, and the place where `backends` is found first. reads, forms: see
    Worker.start."""
    root = str(Path(backends.__file__ or ".").resolve().parent.parent)
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    told = {} if reads is None else {READS: json.dumps([os.fspath(path) for path in reads])}
    told |= {FORMS: "1"} if forms else {}
    return {
        **ALLOCATOR,  # known from the start, so that the worker does not start anew for it
        **SPINNING,
        **os.environ,
        **dict.fromkeys(THREADS, str(threads)),
        **told,
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONUNBUFFERED": "1",
        "PYTHONIOENCODING": "utf-8",
        "GGML_NO_BACKTRACE": "1",  # else a debugger starts when the engine gives up, and talks over its last words
    }
