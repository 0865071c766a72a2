"""Poolhouse as a side of the comparison: paired nodes on separate cores with a split model."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.children import Child, ChildFailed, Children, Place, spending
from bench.figures import Timeline
from bench.node_client import Control, NodeRefused
from bench.options import Options
from bench.sides import Answered, Prompts, Setting

READY_SECONDS = 60.0
MEMBER_SECONDS = 20.0
CLIENT = "client"  # the benchmark itself, which sends and receives
POOLHOUSE = [sys.executable, "-m", "app"]


class Node:
    """A running node, with a client for it."""

    def __init__(
        self,
        family: Children,
        name: str,
        home: Path,
        place: Place,
        flags: Sequence[str] = (),
        talks: bool = True,  # False if its loopback is not ours
        program: Sequence[str] | None = None,
        threads: int = 1,  # of each worker; 0 if the node chooses
    ) -> None:
        self.home, self.name = home, name
        argv = [*(program or POOLHOUSE), "node", "--home", str(home), "--name", name]
        argv += ["--port", "0", "--no-discovery", *flags]
        argv += ["--threads", str(threads)] if threads else []
        self.child: Child = family.start(name, argv, place)
        self.ready = self.child.hear(READY_SECONDS)
        if talks:
            self.control = Control(home)


def pair(host: Node, lender: Node) -> None:
    """Pair two nodes: the host shows a code and the lender enters it. Wait until the host sees the lender online."""
    opened = host.control.request("POST", "/pairing", {"role": "use_and_lend"})
    request = {"address": opened["address"], "code": opened["code"]}
    lender.control.request("POST", "/pairing/join", request)
    await_member(host, lender)


def await_member(host: Node, lender: Node) -> None:
    """Wait until the host has closed its pairing window and sees the lender online. Raises ChildFailed."""
    end = time.monotonic() + MEMBER_SECONDS
    while time.monotonic() < end:
        status = host.control.request("GET", "/status")
        machine = status["machines"].get(lender.ready["id"], {})
        if status["pairing"] is None and machine.get("online"):
            return
        time.sleep(0.1)
    raise ChildFailed(f"{lender.name} did not come online within {MEMBER_SECONDS:.0f} s")


def default_splits(n_layers: int, n_lenders: int) -> list[tuple[int, ...]]:
    """Return up to two even splits. The last run of the host has one layer, or half of the host's share.

    A split lists the layers of the host's first run, of each lender's run, and of the host's last run.
    """
    share = n_layers // (n_lenders + 1)
    host = n_layers - share * n_lenders
    tails = dict.fromkeys(tail for tail in (1, host // 2) if 0 < tail < host)
    return [(host - tail, *[share] * n_lenders, tail) for tail in tails]


class PoolSide:
    """A household with a node at each place. The first node is the host."""

    name = "pool"
    program: Sequence[str] | None = None  # instead of the app

    def __init__(self, family: Children, options: Options, places: Sequence[Place], homes: Path, n_layers: int) -> None:
        self.options, self.n_layers = options, n_layers
        flags = ["--lend", options.lend, "--limit", options.lend]
        names = ["host", *(f"lender-{i}" for i in range(1, len(places)))]
        self.nodes = [
            Node(family, name, homes / name, place, flags, program=self.program)
            for name, place in zip(names, places, strict=True)
        ]
        self.host = self.nodes[0]
        for lender in self.nodes[1:]:
            pair(self.host, lender)
        body = {"path": str(options.model), "name": None}
        self.model: str = self.host.control.finish("/models", body)["model"]["name"]
        self.loaded: dict[str, Any] = {}

    def settings(self) -> list[Setting]:
        splits = self.options.splits or default_splits(self.n_layers, len(self.nodes) - 1)
        return [{"split": list(split)} for split in splits]

    def many_settings(self) -> list[Setting]:
        return self.settings()  # the output matrix weighs more in decoding than in a prompt

    def use(self, setting: Setting) -> None:
        if self.loaded and self.loaded["split"] == setting["split"]:
            return
        longest = max(self.options.prompt + self.options.output, self.options.many_prompt + self.options.many_output)
        body = {
            "model": self.model,
            "split": setting["split"],
            "number": self.options.number,
            "context": longest,
            "users": max(1, self.options.streams),
        }
        self.loaded = self.host.control.finish("/load", body)["loaded"] | setting

    def ask(self, prompts: Prompts, n_out: int) -> Answered:
        with ExitStack() as stack:
            spent = [stack.enter_context(spending(node.child)) for node in self.nodes]
            own = time.process_time()
            streams = self._streams(prompts, n_out)
            own = time.process_time() - own
        cpu = {CLIENT: own} | {name: seconds for each in spent for name, seconds in each.items()}
        line = Timeline(tuple(tuple(stream.times) for stream in streams))
        stages = [[self._named(stage) for stage in s.done.get("stages", [])] for s in streams]
        return Answered(line, [s.ids for s in streams], cpu, stages)

    def _named(self, stage: dict[str, Any]) -> dict[str, Any]:
        """Return the figures of a stage with the machine's ID replaced by its name."""
        names = {node.ready["id"]: node.name for node in self.nodes}
        return stage | {"machine": names.get(stage["machine"], stage["machine"])}

    def _streams(self, prompts: Prompts, n_out: int) -> list[Stream]:
        start = time.perf_counter()
        streams = [Stream(self.host.control, self.model, p, n_out, start) for p in prompts]
        for stream in streams:
            stream.start()
        for stream in streams:
            stream.join()
        for stream in streams:
            if stream.failure:
                raise stream.failure
            if len(stream.ids) != n_out:
                raise NodeRefused(f"asked for {n_out} tokens, got {len(stream.ids)}")
        return streams


class Stream(threading.Thread):
    """A thread that asks a question and records the arrival times of its tokens."""

    def __init__(self, control: Control, model: str, prompt: Sequence[int], n_out: int, start: float) -> None:
        super().__init__(daemon=True)
        self.control, self.begun = control, start
        self.body = {
            "prompt_ids": list(prompt),
            "model": model,
            "max_tokens": n_out,
            "ignore_end": True,
            "guesses": False,  # a random model repeats itself: bench/parts/speculation.py
            "sampling": {"temperature": 0.0},
        }
        self.times: list[float] = []
        self.ids: list[int] = []
        self.done: dict[str, Any] = {}
        self.failure: Exception | None = None

    def run(self) -> None:
        try:
            for message in self.control.lines("/ask", self.body):
                now = time.perf_counter() - self.begun
                new = message.get("delta", {}).get("token_ids", [])
                self.ids += new
                self.times += [now] * len(new)
                self.done = message.get("done", self.done)
        except (OSError, ValueError, NodeRefused) as failure:
            self.failure = failure
