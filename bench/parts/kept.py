"""The first word about a long document, at first and again after all nodes were restarted (docs/speed.md)."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import report
from bench.children import ChildFailed, Children, Place
from bench.figures import Summary, summary
from bench.job import Bench, say
from bench.options import Options
from bench.pool_side import Node, await_member, default_splits, pair
from bench.rounds import Questions

TITLE = "A long document, asked about again after a restart"
DOCUMENT, QUESTION, ANSWER = 8000, 32, 16  # tokens
CONTEXT = DOCUMENT + 2 * QUESTION + 2 * ANSWER
WRITING_SECONDS = 120.0

Json = dict[str, Any]


@dataclass(slots=True)
class Rounds:
    """The results of all rounds."""

    first_s: list[float] = field(default_factory=list)
    again_s: list[float] = field(default_factory=list)
    remembered: list[int] = field(default_factory=list)
    kept_bytes: list[int] = field(default_factory=list)  # on all machines together
    same: list[bool] = field(default_factory=list)  # whether the answer was that of a computed prompt

    @property
    def ratio(self) -> Summary:
        return summary([again / first for again, first in zip(self.again_s, self.first_s, strict=True)])


class Household:
    """A host and a lender that can be restarted, on ports that stay the same."""

    def __init__(self, family: Children, options: Options, homes: Path, n_layers: int) -> None:
        self._family, self._options = family, options
        self._places = [Place(cpus=(core,)) for core in options.cores]
        self._names = ["host", *(f"lender-{number}" for number in range(1, len(self._places)))]
        self._homes = [homes / name for name in self._names]
        self._ports = [_free_port() for _ in self._names]
        self.nodes = self._started()
        for lender in self.nodes[1:]:
            pair(self.nodes[0], lender)
        body = {"path": str(options.model), "name": None}
        self.model: str = self.nodes[0].control.finish("/models", body)["model"]["name"]
        self._split = (options.splits or default_splits(n_layers, len(self.nodes) - 1))[0]

    def restart(self) -> None:
        """Stop all nodes, start them again, and wait until they are connected."""
        for node in self.nodes:
            node.child.end()
        self.nodes = self._started()
        for lender in self.nodes[1:]:
            await_member(self.nodes[0], lender)

    def load(self) -> None:
        body = {
            "model": self.model,
            "split": list(self._split),
            "number": self._options.number,
            "context": CONTEXT,
            "users": 1,
            "measure": False,
        }
        self.nodes[0].control.finish("/load", body)

    def ask(self, ids: list[int], conversation: str | None) -> Json:
        order = {
            "prompt_ids": ids,
            "max_tokens": ANSWER,
            "ignore_end": True,
            "sampling": {"temperature": 0.0},
            "conversation": conversation,
        }
        return self.nodes[0].control.finish("/ask", order)

    def kept(self) -> tuple[int, int]:
        """Return how many files are complete, and their bytes."""
        files = [path for home in self._homes for path in home.glob("kept/*/*") if not path.suffix]
        return len(files), sum(path.stat().st_size for path in files)

    def await_files(self, more_than: int) -> None:
        """Wait until a document is on all disks: two runs of the host, those of the lenders, and the host's list."""
        end = time.monotonic() + WRITING_SECONDS
        n_expected = more_than + 1 + len(self.nodes)
        while self.kept()[0] < n_expected:
            if time.monotonic() > end:
                raise ChildFailed(f"the prompt was not kept within {WRITING_SECONDS:.0f} s")
            time.sleep(0.2)

    def _started(self) -> list[Node]:
        flags = ["--lend", self._options.lend, "--limit", self._options.lend]
        return [
            Node(self._family, name, home, place, [*flags, "--port", str(port)])
            for name, home, place, port in zip(self._names, self._homes, self._places, self._ports, strict=True)
        ]


def kept(bench: Bench) -> None:
    """Ask about a new document, restart all nodes, and ask something else about it in another chat, in each round."""
    options, rounds = bench.options, Rounds()
    questions = Questions(options.seed, bench.model.n_vocab)
    with bench.family() as family:
        household = Household(family, options, bench.homes / "kept", bench.model.n_layers)
        household.load()
        household.ask(list(questions.prompts("warm", 1, 64)[0]), None)
        for n in range(options.runs):
            document = list(questions.prompts(f"document {n}", 1, DOCUMENT)[0])
            question, other = (list(prompt) for prompt in questions.prompts(f"questions {n}", 2, QUESTION))
            n_files, n_bytes = household.kept()
            first = household.ask(document + question, f"chat {n}")
            household.await_files(max(0, n_files - 1))
            rounds.kept_bytes.append(household.kept()[1] - n_bytes)
            household.restart()
            household.load()
            again = household.ask(document + other, f"another chat {n}")
            computed = household.ask(document + other, None)
            rounds.first_s.append(first["ttft_s"])
            rounds.again_s.append(again["ttft_s"])
            rounds.remembered.append(again["reused_tokens"])
            rounds.same.append(again["token_ids"] == computed["token_ids"])
            say(
                f"kept, round {n + 1}: first word after {first['ttft_s']:.2f} s, "
                f"after a restart {again['ttft_s']:.2f} s, "
                f"{again['reused_tokens']} of {again['prompt_tokens']} remembered, same answer: {rounds.same[-1]}"
            )
    bench.add("kept", {"rounds": rounds, "ratio": rounds.ratio}, _text(rounds, len(options.cores)))


def _text(rounds: Rounds, n_machines: int) -> str:
    note = (
        f"{n_machines} machines of a core each, a document of {DOCUMENT:,} tokens, {len(rounds.first_s)} rounds "
        "(median; lowest–highest). After the restart of all nodes, another chat asks something else about it.\n"
    )
    first, again, ratio = summary(rounds.first_s), summary(rounds.again_s), rounds.ratio
    head = ["first word, s", "after a restart, s", "part of the first time", "remembered", "on disk", "same answers"]
    row = [
        f"{first.median:.2f} ({first.low:.2f}–{first.high:.2f})",
        f"{again.median:.2f} ({again.low:.2f}–{again.high:.2f})",
        f"{ratio.median:.3f} ({ratio.low:.3f}–{ratio.high:.3f})",
        f"{min(rounds.remembered):,} of {DOCUMENT + QUESTION:,}",
        f"{max(rounds.kept_bytes) / 1e6:.0f} MB",
        f"{sum(rounds.same)} of {len(rounds.same)}",
    ]
    return f"## {TITLE}\n\n{note}\n{report.table(head, [row])}"


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])
