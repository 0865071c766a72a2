"""The programs that run now for the owner, by the names that lending's rules know. Blocks for a moment."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

from app.core.lending.policy import MAX_PROGRAM_CHARACTERS, executable

MOST = 60
IN_MEMORY = "memfd:"  # what Linux calls a program that was never a file
SYSTEM = ("/usr/lib/systemd", "/usr/libexec", "/usr/sbin", "/sbin", "/System/", "C:\\Windows\\")


@dataclass(frozen=True, slots=True)
class Process:
    """What is asked of one."""

    pid: int
    path: str  # of its executable; empty: the system's own
    bytes: int


def running() -> list[str]:
    """Names of the owner's own programs, those with the most memory first; Poolhouse is not among them."""
    return names(_processes(), _ours())


def names(processes: Iterable[Process], ours: frozenset[int]) -> list[str]:
    """One name for all processes of a program, without the system's services and without `ours`."""
    held: dict[str, int] = {}
    for one in processes:
        name = executable(one.path)
        fits = 0 < len(name) <= MAX_PROGRAM_CHARACTERS and name.isprintable()
        there = "(deleted)" not in one.path and not name.startswith(IN_MEMORY)  # else nobody's name
        if fits and there and one.pid not in ours and not one.path.startswith(SYSTEM):
            held[name] = held.get(name, 0) + one.bytes
    return sorted(held, key=lambda name: (-held[name], name))[:MOST]


def _processes() -> Iterable[Process]:
    """Those whose executable this user may know: their own."""
    me = psutil.Process().username()
    for process in psutil.process_iter(["pid", "username", "exe", "memory_info"]):
        told = process.info
        if told["username"] == me and told["exe"]:
            memory = told["memory_info"]
            yield Process(told["pid"], told["exe"], memory.rss if memory else 0)


def _ours() -> frozenset[int]:
    """This process, its workers, and the window that started it."""
    here = psutil.Process()
    try:
        children = here.children(recursive=True)
        above = [process for process in here.parents() if _same_program(process)]
    except psutil.Error:
        children, above = [], []
    return frozenset((os.getpid(), *(process.pid for process in (*children, *above))))


def _same_program(process: psutil.Process) -> bool:
    try:
        return Path(process.exe()) == Path(psutil.Process().exe())
    except psutil.Error:
        return False
