"""`python -m bench.flood MODEL`: the speed of answers while a member or a stranger floods their host.

The host and the lender have one core each. The flooder shares the lender's core, because there is no third
computer. Each flood is therefore paired with a control that computes as much but sends nothing. The difference
between the two is the loss on the host.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from bench.children import Child, Children, Place, spending
from bench.figures import Summary, summary
from bench.machine import model_facts
from bench.node_client import NodeRefused
from bench.options import own_cores
from bench.pool_side import Node, Stream, default_splits, pair
from bench.report import table
from bench.rounds import Questions
from bench.sides import Prompts

ROUNDS, N_TOKENS, N_PROMPT = 5, 96, 32
BAR = 0.8  # minimum share of the speed beside a flooder that only computes
BEGUN_SECONDS = 0.3  # time until a flood has started
JOIN_SECONDS = 120.0
FLOODERS = 2  # in turns, since one that was cut off is admitted again only after a minute
QUIET, CONTROL = "nothing", "computes for nobody"
PAIRING = "greetings without a proof"
FLOODS = (
    "forged log lines",
    "log lines about nobody",
    "pings",
    "status",
    "all that is allowed",
    PAIRING,
    "silence from sixty-four addresses",
    "handshakes that go no further, from sixty-four addresses",
)


@dataclass
class Found:
    """The figures of one kind of flood, with a value for each round."""

    flooded: list[float] = field(default_factory=list)  # tokens per second
    control: list[float] = field(default_factory=list)
    quiet: list[float] = field(default_factory=list)
    longest_s: list[float] = field(default_factory=list)  # between two tokens
    flooder_share: list[float] = field(default_factory=list)  # of a core
    host_share: list[float] = field(default_factory=list)  # of a core, for the node alone
    reports: list[dict[str, Any]] = field(default_factory=list)

    def ratios(self) -> tuple[Summary, Summary]:
        """Return the ratios of the flooded speed to the control and to a quiet household."""
        pairs = self.control, self.quiet
        made = [summary([rate / other for rate, other in zip(self.flooded, rates, strict=True)]) for rates in pairs]
        return made[0], made[1]


class Household:
    """A host and a lender, and the process that floods the host."""

    def __init__(self, family: Children, model: Path, folder: Path) -> None:
        cores = own_cores()
        here, there = (Place(cpus=(core,)) for core in (cores[0], cores[-1]))
        lends = ("--lend", "2GiB", "--limit", "2GiB")
        self.host = Node(family, "host", folder / "host", here, lends)
        lender = Node(family, "lender", folder / "lender", there, lends)
        pair(self.host, lender)
        argv = ["-m", "tests.hostile.flooder", str(folder / "flooders"), str(self.host.home)]
        self.flooder: Child = family.start("flooder", [sys.executable, *argv, str(FLOODERS * len(FLOODS))], there)
        self.flooder.hear(JOIN_SECONDS)
        facts = model_facts(model)
        control = self.host.control
        self.model = control.finish("/models", {"path": str(model), "name": "model"})["model"]["name"]
        order = {
            "model": self.model,
            "split": list(default_splits(facts.n_layers, 1)[0]),
            "number": "f32",
            "context": 1024,
            "users": 1,
        }
        control.finish("/load", order)
        self.prompts: Prompts = Questions(1, facts.n_vocab).prompts("flood", 1, N_PROMPT)
        self.ids: list[list[int]] = []

    def answered(self, order: dict[str, Any], n_tokens: int) -> tuple[float, float, dict[str, Any]]:
        """Return the tokens per second, the longest wait between tokens, and the flooder's report for a flood."""
        with self._window(order["name"]) as port:
            self.flooder.say(order | {"port": port or self.host.ready["peer_port"]})
            time.sleep(BEGUN_SECONDS)
            with spending(self.host.child) as spent:
                began = time.perf_counter()
                stream = Stream(self.host.control, self.model, self.prompts[0], n_tokens, began)
                stream.run()
                took = time.perf_counter() - began
            self.flooder.say({})
            report = self.flooder.hear() | {"host_share": spent["host"] / took}
        if stream.failure:
            raise stream.failure
        if report["wrong"]:
            raise NodeRefused(f"the flooder broke off: {report['wrong']}")
        self.ids.append(stream.ids)
        times = stream.times
        waits = [late - early for early, late in pairwise(times)]
        return (len(times) - 1) / (times[-1] - times[0]), max(waits), report

    @contextmanager
    def _window(self, name: str) -> Iterator[int]:
        """Open a pairing window on the host if the flood needs one, and yield its port or 0."""
        if name != PAIRING:
            yield 0
            return
        opened = self.host.control.request("POST", "/pairing", {"role": "guest"})
        yield int(opened["address"].rpartition(":")[2])
        self.host.control.request("DELETE", "/pairing")


def measured(home: Household, rounds: int, n_tokens: int, floods: list[str]) -> dict[str, Found]:
    """Measure all floods. The first round is a warm-up, which also determines how much the control must compute."""
    measurements: dict[str, Found] = defaultdict(Found)
    shares: dict[str, list[float]] = defaultdict(list)
    for turn in range(rounds + 1):
        quiet, _, _ = home.answered({"name": QUIET}, n_tokens)
        for number, name in enumerate(floods):
            order: dict[str, Any] = {"name": name, "member": FLOODERS * number + turn % FLOODERS}
            flood = measurements[name]
            both = [order, {"name": CONTROL}]
            for each in both if turn % 2 == 0 else both[::-1]:
                if each is order:
                    rate, longest_s, report = home.answered(each, n_tokens)
                    shares[name].append(min(1.0, report["cpu_s"] / report["wall_s"]))
                else:
                    each["share"] = median(shares[name])
                    control, _, _ = home.answered(each, n_tokens)
            print(
                f"round {turn}: {name}: {rate:.1f} tok/s, control {control:.1f}, quiet {quiet:.1f}; {report}",
                file=sys.stderr, flush=True,
            )  # fmt: skip
            if turn:
                flood.flooded.append(rate)
                flood.control.append(control)
                flood.quiet.append(quiet)
                flood.longest_s.append(longest_s)
                flood.flooder_share.append(report["cpu_s"] / report["wall_s"])
                flood.host_share.append(report["host_share"])
                flood.reports.append(report)
    return measurements


def written(floods: dict[str, Found], home: Household, n_tokens: int) -> str:
    rows = []
    for name, flood in floods.items():
        control, quiet = flood.ratios()
        sent = median((each["n_words"] or each["n_calls"]) / each["wall_s"] for each in flood.reports)
        rows.append(
            [
                name,
                _of(control),
                _of(quiet),
                f"{median(flood.flooded):.1f}",
                f"{1000 * median(flood.longest_s):.0f} ms",
                f"{100 * median(flood.flooder_share):.0f} %",
                f"{100 * median(flood.host_share):.0f} %",
                f"{sent:.0f}",
                "yes" if control.median >= BAR else "NO",
            ]
        )
    head = [
        "flood", "to as much computing", "to quiet", "tok/s", "longest wait for a token", "the flooder, of a core",
        "the host's node, of a core", "words or calls a second", f"at least {BAR}",
    ]  # fmt: skip
    quiet_rates = [rate for flood in floods.values() for rate in flood.quiet]
    rounds, same = (len(next(iter(floods.values())).flooded), all(ids == home.ids[0] for ids in home.ids))
    about = (
        f"Quiet: {median(quiet_rates):.1f} tok/s. {n_tokens} tokens each, {rounds} rounds; median (lowest–highest). "
        f"Every answer the same: {'yes' if same else 'NO'}."
    )
    return f"{table(head, rows)}\n{about}"


def _of(summary_of: Summary) -> str:
    return f"{summary_of.median:.2f} ({summary_of.low:.2f}–{summary_of.high:.2f})"


def main() -> None:
    words = argparse.ArgumentParser(prog="python -m bench.flood", description=__doc__)
    words.add_argument("model", type=Path)
    words.add_argument("--rounds", type=int, default=ROUNDS)
    words.add_argument("--tokens", type=int, default=N_TOKENS)
    words.add_argument("--only", action="append", choices=FLOODS, help="can be repeated")
    options = words.parse_args()
    with tempfile.TemporaryDirectory(prefix="poolhouse-flood") as folder, Children(Path(folder) / "logs") as family:
        home = Household(family, options.model.absolute(), Path(folder))
        floods = [name for name in FLOODS if not options.only or name in options.only]
        measurements = measured(home, options.rounds, options.tokens, floods)
        print(written(measurements, home, options.tokens))
        raise SystemExit(any(flood.ratios()[0].median < BAR for flood in measurements.values()))


if __name__ == "__main__":
    main()
