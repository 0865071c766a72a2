"""The speed of answers with and without speculation: one machine, two machines, and two machines far from each other.

Needs a model that writes, such as SmolLM2 (`--model`): random weights would repeat either nothing or one token forever.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from bench import report
from bench.children import Place
from bench.figures import Summary, summary
from bench.job import Bench, say
from bench.node_client import Control, NodeRefused
from bench.parts.transfer import join
from bench.pool_side import Node, default_splits, pair
from testbed.fault_link import FaultLink, Faults, cable, ip

TITLE = "Speculation, off and on"
N_OUT = 160  # the most tokens of an answer
ROUND_TRIPS_MS = (5, 20)
NET = "10.97.0"
REPEATED = (
    "The cooperative bought four heat pumps in March. The first pump warms the library, the second the school, the "
    "third the bakery, and the fourth the town hall. Each pump has its own meter, and each meter is read on Mondays."
)
TEXTS = {
    "code": "Write a Python class BankAccount with deposit, withdraw, transfer and balance, each with a docstring.",
    "list": "Write the numbers from one to forty as words, one per line, like: 1. one",
    "free text": "Tell me a story about a lighthouse keeper who finds a letter.",
    "copy": f"Repeat this text twice, word for word: {REPEATED}",
}
SIDES = ("one machine", "pool", "pool with guesses")

Json = dict[str, Any]


@dataclass(slots=True)
class Text:
    """The speed on one kind of text in each round, by side, in tokens per second."""

    words: str
    rates: dict[str, list[float]] = field(default_factory=lambda: {side: [] for side in SIDES})
    tokens: int = 0
    guessed: int = 0
    right: int = 0
    n_same: int = 0  # rounds in which guesses changed no token
    n_rounds: int = 0

    def ratio(self, other: str) -> Summary | None:
        """Return the speed with guesses, relative to another side."""
        pairs = zip(self.rates[SIDES[2]], self.rates[other], strict=False)
        ratios = [with_guesses / rate for with_guesses, rate in pairs]
        return summary(ratios) if ratios else None

    def row(self) -> list[str]:
        return [
            self.words,
            *(f"{summary(rates).median:.1f}" if rates else "–" for rates in self.rates.values()),
            *(_shown(self.ratio(side)) for side in SIDES[:2]),
            f"{self.guessed} of {self.tokens}",
            f"{self.right / self.guessed:.0%}" if self.guessed else "–",
            f"{self.n_same} of {self.n_rounds}",
        ]


def speculation(bench: Bench) -> None:
    """Compare the speeds on texts of several kinds, then of several answers at once, then over long links."""
    tables, data = [], dict[str, list[Text]]()
    options = bench.options
    with bench.family() as family:
        homes, flags = bench.homes / "speculation", ["--lend", options.lend, "--limit", options.lend]
        places = [Place(cpus=(core,)) for core in options.cores]
        alone = Node(family, "alone", homes / "alone", places[0], flags)
        host = Node(family, "host", homes / "host", places[0], flags)
        lender = Node(family, "lender", homes / "lender", places[-1], flags)
        pair(host, lender)
        _load(bench, alone, {"shape": "one"})
        _load(bench, host, {"split": list(_split(bench))})
        texts = [Text(words) for words in TEXTS]
        _rounds(bench, texts, {SIDES[0]: alone.control, SIDES[1]: host.control, SIDES[2]: host.control})
        data["loopback"] = texts
        if options.streams:
            many = Text(f"{options.streams} answers at once")
            _streams(bench, many, host.control)
            data["loopback"] = [*texts, many]
        tables.append(_table("Both machines on one computer", data["loopback"]))
    for milliseconds in ROUND_TRIPS_MS:
        label = f"a round trip of {milliseconds} ms"
        try:
            data[label] = _far(bench, milliseconds)
        except (OSError, NodeRefused) as reason:
            say(f"speculation: {label} is not measurable: {reason}")
            continue
        tables.append(_table(label[0].upper() + label[1:], data[label]))
    note = (
        f"One answer at a time on {len(options.cores)} machines, {options.runs} rounds of all sides in turns (median; "
        f"lowest–highest, rounds), greedy, up to {N_OUT} tokens of `{options.model.name}`.\n"
    )
    bench.add("speculation", data, f"## {TITLE}\n\n{note}\n" + "\n\n".join(tables))


def _far(bench: Bench, milliseconds: float) -> list[Text]:
    """Return the speeds with a lender behind a link that delays everything."""
    options = bench.options
    with _far_namespace() as (near, far), bench.family() as family:
        homes = bench.homes / f"far-{milliseconds}"
        flags = ["--lend", options.lend, "--limit", options.lend]
        with cable(near, far, Faults(), NET) as link:
            host = Node(family, "host", homes / "host", Place(cpus=options.cores[:1]), flags)
            there = Place(cpus=options.cores[-1:], netns=far)
            lender = Node(family, "lender", homes / "lender", there, flags, talks=False)
            join(host, lender, far, f"{NET}.1")
            _load(bench, host, {"split": list(_split(bench))})
            _delay(link, milliseconds)
            texts = [Text(words) for words in TEXTS]
            _rounds(bench, texts, {SIDES[1]: host.control, SIDES[2]: host.control})
            return texts


def _delay(link: FaultLink, milliseconds: float) -> None:
    link.use(Faults(delay_s=milliseconds / 2000))


@contextlib.contextmanager
def _far_namespace() -> Iterator[tuple[str, str]]:
    """Yield names for this process's network namespace and for a new one. Raises OSError (Linux, root)."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        raise OSError("network namespaces need root on Linux")
    near, far = f"phs{os.getpid()}a", f"phs{os.getpid()}b"
    try:
        ip("netns", "attach", near, str(os.getpid()))
        ip("netns", "add", far)
        ip("-n", far, "link", "set", "lo", "up")
        yield near, far
    finally:
        for name in (near, far):
            with contextlib.suppress(Exception):
                ip("netns", "del", name)


def _split(bench: Bench) -> tuple[int, ...]:
    splits = [split for split in bench.options.splits if len(split) == 3]
    return splits[0] if splits else default_splits(bench.model.n_layers, 1)[0]


def _load(bench: Bench, node: Node, how: Json) -> None:
    model = node.control.finish("/models", {"path": str(bench.options.model), "name": None})["model"]["name"]
    order: Json = {"model": model, "context": 1024, "users": max(1, bench.options.streams), "draft": "none"}
    if bench.options.draft is not None and "split" in how:
        path = str(bench.options.draft)
        order["draft"] = node.control.finish("/models", {"path": path, "name": None})["model"]["name"]
    node.control.finish("/load", order | how)


def _rounds(bench: Bench, texts: list[Text], sides: dict[str, Control]) -> None:
    """Ask every question of all sides, in an order that turns from round to round."""
    for text in texts:
        _ask(next(iter(sides.values())), text.words, guesses=True)  # warm
    names = list(sides)
    for n in range(bench.options.runs):
        for text in texts:
            ids: dict[str, list[int]] = {}
            for side in [*names[n % len(names) :], *names[: n % len(names)]]:
                done = _ask(sides[side], text.words, guesses=side == SIDES[2])
                text.rates[side].append(done["decode_tok_s"])
                ids[side] = done["token_ids"]
                if side == SIDES[2]:
                    _count(text, done)
            text.n_rounds += 1
            text.n_same += ids[SIDES[1]] == ids[SIDES[2]]
            say(f"speculation, round {n + 1}: {', '.join(text.row())}")


def _streams(bench: Bench, text: Text, control: Control) -> None:
    """Ask for several answers at once, without and with guesses. The rate is that of all of them together."""
    words, streams = list(TEXTS), bench.options.streams
    for n in range(bench.options.runs):
        for side in SIDES[1:] if n % 2 else SIDES[:0:-1]:
            with ThreadPoolExecutor(streams) as pool:
                futures = [
                    pool.submit(_ask, control, words[k % len(words)], guesses=side == SIDES[2], seed=k)
                    for k in range(streams)
                ]
                answers = [future.result() for future in futures]
            text.rates[side].append(sum(done["decode_tok_s"] for done in answers))
            if side == SIDES[2]:
                for done in answers:
                    _count(text, done)
        say(f"speculation, round {n + 1}: {', '.join(text.row())}")


def _count(text: Text, done: Json) -> None:
    text.tokens += len(done["token_ids"])
    text.guessed += done["guessed"]
    text.right += done["guessed_right"]


def _ask(control: Control, words: str, *, guesses: bool, seed: int = 0) -> Json:
    order = {"prompt": TEXTS[words], "max_tokens": N_OUT, "guesses": guesses, "ignore_end": True}
    sampling = {"temperature": 0.7 if seed else 0.0, "seed": seed}
    return control.finish("/ask", order | {"sampling": sampling})


def _shown(ratio: Summary | None) -> str:
    return f"{ratio.median:.2f} ({ratio.low:.2f}–{ratio.high:.2f}, {ratio.n_runs})" if ratio else "–"


def _table(title: str, texts: list[Text]) -> str:
    to = [f"guesses to {side}" for side in SIDES[:2]]
    head = ["text", *(f"{side}, tok/s" for side in SIDES), *to, "guessed", "right", "same answers"]
    return f"### {title}\n\n{report.table(head, [text.row() for text in texts])}"
