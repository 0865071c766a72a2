"""What the fault matrix found, as a table with N, passes and how long it took."""

from __future__ import annotations

import math
import os
import platform
import subprocess
from collections.abc import Sequence

import psutil

from tests.faults.cases import Result

HEAD = """# Faults

Made by `make faults` ({n} runs, {failed} of them failed); not edited. Real nodes on one computer, the Guide in the
split 2, 2, 2, 2 over a host and two lenders, one more machine spare, f32 between them. Each answer of {tokens} tokens
is asked for, a process is killed or stopped in the middle of it, and every token that its reader gets is compared
with the undisturbed greedy answer: none may be lost, doubled or changed.

*Told*: from the fault until the reader's stream says what happened. *Goes on*: from the fault to the first token
after the longest gap. A row without a recovery went on with what its stages had kept.

Commit {commit}, {machine}. 0 failures in n runs bound the rate at 3/n (95 %).

| Row | Fault | Phase | N | Passed | Recovered anew | Told p50 / max | Goes on p50 / p95 / max |
|---|---|---|---|---|---|---|---|
"""


def written(results: Sequence[Result], n_tokens: int) -> str:
    failed = [one for one in results if not one.passed]
    text = HEAD.format(
        n=len(results), failed=len(failed), tokens=n_tokens, commit=_commit(), machine=_machine()
    )
    groups: dict[tuple[str, str, str], list[Result]] = {}
    for one in results:
        groups.setdefault((one.case.row, one.case.name, one.case.phase), []).append(one)
    for (row, name, phase), ones in sorted(groups.items()):
        told = [one.said_s for one in ones]
        goes_on = [one.next_token_s for one in ones]
        text += (
            f"| {row} | {name} | {phase} | {len(ones)} | {sum(one.passed for one in ones)} "
            f"| {sum(one.recoveries > 0 for one in ones)} | {_at(told, 0.5)} / {_at(told, 1)} "
            f"| {_at(goes_on, 0.5)} / {_at(goes_on, 0.95)} / {_at(goes_on, 1)} |\n"
        )
    if failed:
        text += "\n## What failed\n\n"
        for one in failed:
            text += f"- {one.case.row}, {one.case.name}, {one.case.phase}: {one.why}\n"
    return text


def _at(seconds: Sequence[float], share: float) -> str:
    known = sorted(one for one in seconds if not math.isnan(one))
    if not known:
        return "–"
    return f"{known[min(len(known) - 1, round(share * (len(known) - 1)))]:.2f} s"


def _commit() -> str:
    found = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return found.stdout.strip() or "unknown"


def _machine() -> str:
    cores = psutil.cpu_count() or 1
    busy = f", load average {os.getloadavg()[2]:.0f}" if hasattr(os, "getloadavg") else ""
    return f"{platform.system()} {platform.machine()}, {cores} cores, Python {platform.python_version()}{busy}"
