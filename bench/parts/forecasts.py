"""Forecasts compared with measurements: six placements, on an idle computer and beside other work.

Each machine has its own core, as real machines do. Machines on the same core would wait for each other, which no
forecast can know. The other work is a program that keeps the host's core busy.
"""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bench import report
from bench.children import Children, Place
from bench.job import Bench, say
from bench.node_client import NodeRefused
from bench.parts.threads import busy_process
from bench.pool_side import Node, pair
from bench.rounds import Questions

TITLE = "Forecasts of real models"
FIRST_BAR, DECODE_BAR, LEARNED_BAR = 0.20, 0.15, 0.10
LEARNING = 3  # answers after which the forecast has learned a placement
SITUATIONS = ALONE, BESIDE = ("alone", "one core busy")
PROMPT, ASKED = 256, 64

Json = dict[str, Any]
Off = tuple[float, float]  # errors of the first token's time and of the decoding speed, as shares


@dataclass(frozen=True, slots=True)
class Found:
    """The measurements of one placement in one situation, with their forecasts."""

    situation: str
    layers: str
    speeds: tuple[float, ...]  # tokens per second of each answer
    said: tuple[float, ...]  # forecast before each answer
    first_s: tuple[float, ...]
    said_first_s: tuple[float, ...]

    @property
    def before(self) -> Off:
        """The relative errors of the first forecast, compared with the median of all measurements."""
        first, decode = statistics.median(self.first_s), statistics.median(self.speeds)
        return self.said_first_s[0] / first - 1, self.said[0] / decode - 1

    @property
    def after(self) -> Off:
        """The relative errors of the forecast after LEARNING answers, compared with the later measurements."""
        first = statistics.median(self.first_s[LEARNING:])
        decode = statistics.median(self.speeds[LEARNING:])
        return self.said_first_s[LEARNING] / first - 1, self.said[LEARNING] / decode - 1


def forecasts(bench: Bench) -> None:
    """Measure six placements in both situations, each with a household that has not learned from earlier answers."""
    comparisons: list[Found] = []
    for situation in SITUATIONS:
        with bench.family() as family, contextlib.ExitStack() as stack:
            host = _household(bench, family, situation.replace(" ", "-"))
            if situation == BESIDE:
                stack.enter_context(busy_process(family, bench.options.cores[:1]))
            body = {"path": str(bench.options.model), "name": None}
            model = host.control.finish("/models", body)["model"]["name"]
            for split in splits(bench.model.n_layers):
                try:
                    comparisons.append(_ask(bench, host, model, situation, split))
                except NodeRefused as refused:
                    say(f"forecasts: {split} cannot be asked: {refused}")
                    continue
                say(f"forecasts: {' | '.join(_row(comparisons[-1]))}")
    data = [asdict(comparison) | {"before": comparison.before, "after": comparison.after} for comparison in comparisons]
    bench.add("forecasts", {"placements": data}, markdown(bench, comparisons))


def splits(n_layers: int) -> list[tuple[int, ...]]:
    """Return the numbers of layers for the whole model and for five splits with a lender.

    A split consists of the host's first layers, the lender's, and the host's last.
    """
    half, third, quarter = n_layers // 2, n_layers // 3, n_layers // 4
    lent = [
        (1, 1), (quarter, quarter), (half, 1), (1, half), (third, third),
    ]  # fmt: skip
    return [(n_layers,), *((first, n_layers - first - last, last) for first, last in lent)]


def _household(bench: Bench, family: Children, name: str) -> Node:
    """Start and pair a host and a lender on separate cores."""
    homes, flags = bench.homes / name, ["--lend", bench.options.lend, "--limit", bench.options.lend]
    here, there = bench.options.cores[0], bench.options.cores[-1]
    host, lender = [
        Node(family, f"{name}-{part}", homes / part, Place((core,)), flags, threads=0)
        for part, core in (("host", here), ("lender", there))
    ]
    pair(host, lender)
    return host


def _ask(
    bench: Bench, host: Node, model: str, situation: str, split: Sequence[int]
) -> Found:  # fmt: skip
    order: Json = {"model": model, "context": 512, "measure": True, "number": bench.options.number}
    order |= {"split": list(split)} if len(split) > 1 else {"shape": "one"}
    host.control.finish("/load", order)
    questions = Questions(bench.options.seed, bench.model.n_vocab)
    answers = []
    for n in range(LEARNING + bench.options.runs):
        [prompt] = questions.prompts(f"forecasts {split} {n}", 1, PROMPT)
        answers.append(
            host.control.finish("/ask", {
                "model": model, "prompt_ids": list(prompt), "max_tokens": ASKED, "ignore_end": True,
                "guesses": False, "sampling": {"temperature": 0},
            })
        )  # fmt: skip
    said = [answer["predicted"] for answer in answers]
    return Found(
        situation, "+".join(map(str, split)),
        tuple(answer["decode_tok_s"] for answer in answers), tuple(answer["decode_tok_s"] for answer in said),
        tuple(answer["ttft_s"] for answer in answers), tuple(answer["ttft_s"] for answer in said),
    )  # fmt: skip


def _row(comparison: Found) -> list[str]:
    (first, decode), (later_first, later_decode) = comparison.before, comparison.after
    return [
        comparison.situation,
        comparison.layers,
        f"{comparison.said_first_s[0]:.2f} s",
        f"{statistics.median(comparison.first_s):.2f} s",
        f"{first:+.0%}",
        f"{comparison.said[0]:.1f}",
        f"{statistics.median(comparison.speeds):.1f} ({min(comparison.speeds):.1f}–{max(comparison.speeds):.1f})",
        f"{decode:+.0%}",
        f"{later_first:+.0%}",
        f"{later_decode:+.0%}",
    ]


def markdown(bench: Bench, comparisons: Sequence[Found]) -> str:
    """Return the table, and the median errors with their limits."""
    head = [
        "situation", "layers", "first token, forecast", "measured", "off", "tok/s, forecast", "measured", "off",
        "first token off, after three", "tok/s off, after three",
    ]  # fmt: skip
    text = f"## {TITLE}\n\n{bench.options.model.name}: prompts of {PROMPT} tokens, {ASKED} out, {LEARNING} answers "
    text += f"before the forecasts that are called learned, and {bench.options.runs} after.\n\n"
    text += report.table(head, [_row(comparison) for comparison in comparisons])
    for situation in dict.fromkeys(comparison.situation for comparison in comparisons):
        some = [comparison for comparison in comparisons if comparison.situation == situation]
        first, decode = (statistics.median(abs(comparison.before[i]) for comparison in some) for i in (0, 1))
        learned = [statistics.median(abs(comparison.after[i]) for comparison in some) for i in (0, 1)]
        text += (
            f"\n{situation}, median of {len(some)}: first token {first:.0%} off (bar {FIRST_BAR:.0%}), decoding "
            f"{decode:.0%} (bar {DECODE_BAR:.0%}); after {LEARNING} answers {learned[0]:.0%} and {learned[1]:.0%} "
            f"(bar {LEARNED_BAR:.0%}).\n"
        )
    return text
