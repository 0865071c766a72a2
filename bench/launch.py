"""`python -m bench.launch --cpus 0 -- PROGRAM ...`: run a program on given cores, in a control group or namespace.

The process is replaced by exec, so the process ID stays the same. The program ends with the process that started
it.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
from pathlib import Path

PR_SET_PDEATHSIG = 1  # linux/prctl.h
CLONE_NEWNET = 0x40000000  # linux/sched.h


def die_with_parent(parent: int) -> None:
    """Ask Linux to send SIGTERM when the parent ends for any reason. The request survives exec."""
    libc = ctypes.CDLL(None, use_errno=True)
    if hasattr(libc, "prctl"):
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        raise SystemExit("the benchmark ended before its child began")


def enter_namespace(name: str) -> None:
    """Join a network namespace created by `ip netns add`. This needs root."""
    libc = ctypes.CDLL(None, use_errno=True)
    with Path("/run/netns", name).open("rb") as handle:
        if libc.setns(handle.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"cannot enter the namespace {name}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--parent", type=int, help="end when this process does")
    parser.add_argument("--cpus", default="")
    parser.add_argument("--cgroup", type=Path)
    parser.add_argument("--netns")
    parser.add_argument("program", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    if args.parent:
        die_with_parent(args.parent)
    if args.cgroup:
        (args.cgroup / "cgroup.procs").write_text(str(os.getpid()))
    if args.cpus and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {int(cpu) for cpu in args.cpus.split(",")})
    if args.netns:
        enter_namespace(args.netns)
    program = args.program[1:] if args.program[:1] == ["--"] else args.program
    os.execvp(program[0], program)  # noqa: S606 - becoming the program is this file's duty


if __name__ == "__main__":
    main()
