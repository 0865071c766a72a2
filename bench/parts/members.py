"""The time to the first token of an answer that a member gets through another host, compared with the host's own."""

from __future__ import annotations

import time
from statistics import median
from typing import Any

from bench import report
from bench.children import ChildFailed, Place
from bench.figures import percentile
from bench.job import Bench, say
from bench.pool_side import Node, pair

TITLE = "A model of another host"
RUNS = 100
BAR_S = 0.003
SHARED_SECONDS = 20.0
MODEL = "guide"


def members(bench: Bench) -> None:
    """Ask the Guide on a host by turns there and from another member, each time with a prompt of its own."""
    with bench.family() as family:
        homes, cores = bench.homes, bench.options.cores
        host = Node(family, "host", homes / "host", Place(cpus=(cores[0],)))
        member = Node(family, "member", homes / "member", Place(cpus=(cores[-1],)))
        pair(host, member)
        host.control.finish("/load", {"model": MODEL, "shape": "one", "measure": False})
        name = _shared(member)
        say(f"members: {RUNS} questions by turns")
        for side, model in ((host, MODEL), (member, name)):
            _first_token_s(side, model, "warm up")
        own_s, through_s = list[float](), list[float]()
        for number in range(RUNS):
            own_s.append(_first_token_s(host, MODEL, f"{number} here"))
            through_s.append(_first_token_s(member, name, f"{number} there"))
    more_s = sorted(late - early for early, late in zip(own_s, through_s, strict=True))
    adds = median(more_s)
    low, high = percentile(more_s, 0.1), percentile(more_s, 0.9)
    rows = [
        ["first token at the host, median", f"{1000 * median(own_s):.1f} ms", "", ""],
        ["first token through the host, median", f"{1000 * median(through_s):.1f} ms", "", ""],
        ["the way through the host adds, median (10th to 90th percentile)",
         f"{1000 * adds:.2f} ms ({1000 * low:.2f} to {1000 * high:.2f})", f"{1000 * BAR_S:.0f} ms",
         "yes" if adds <= BAR_S else "NO"],
    ]  # fmt: skip
    data = {"own_s": own_s, "through_s": through_s}
    text = f"## {TITLE}: {RUNS} pairs of questions\n\n{report.table(['', 'measured', 'bar', 'holds'], rows)}"
    bench.add("members", data, text)


def _shared(member: Node) -> str:
    """Wait until the member lists the host's model, and return the name to ask it by. Raises ChildFailed."""
    end = time.monotonic() + SHARED_SECONDS
    while time.monotonic() < end:
        shared: list[dict[str, Any]] = member.control.request("GET", "/status")["shared"]
        if ready := [str(model["reference"]) for model in shared if model["ready"]]:
            return ready[0]
        time.sleep(0.1)
    raise ChildFailed(f"{member.name} did not list the model of the host within {SHARED_SECONDS:.0f} s")


def _first_token_s(node: Node, model: str, before: str) -> float:
    """Ask a question, and return the seconds until its first token. The answer is read to its end."""
    body = {"prompt": f"{before}: How do I add a computer?", "model": model, "max_tokens": 2}
    began, first = time.monotonic(), 0.0
    for line in node.control.lines("/ask", body):
        if "delta" in line:
            first = first or time.monotonic()
    return first - began
