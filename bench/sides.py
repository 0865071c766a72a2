"""The interface of all sides of the comparison, and the two baselines: one machine, and llama.cpp RPC."""

from __future__ import annotations

import itertools
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from bench.children import Child, ChildFailed, Children, Place, spending
from bench.figures import Timeline
from bench.options import Options

Setting = dict[str, Any]  # chosen by tuning; plain JSON
Prompts = Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a measured request: its tokens, their arrival times, and the CPU time used."""

    line: Timeline
    ids: list[list[int]]
    cpu_seconds: dict[str, float] = field(default_factory=dict)
    stages: list[list[dict[str, Any]]] = field(default_factory=list)  # for each stream


class Side(Protocol):
    """A way to run the model. `use` prepares a setting and is not measured; `ask` is."""

    name: str

    def settings(self) -> list[Setting]:
        """Return the settings to try for a single stream. There is at least one."""
        ...

    def many_settings(self) -> list[Setting]:
        """Return the settings to try for several streams, in addition to those for a single one.

        There is at least one.
        """
        ...

    def use(self, setting: Setting) -> None: ...

    def ask(self, prompts: Prompts, n_out: int) -> Answered: ...


class EngineSide:
    """The whole model, run by llama.cpp alone in a child process."""

    def __init__(self, name: str, family: Children, options: Options, place: Place) -> None:
        self.name, self.family, self.options, self.place = name, family, options, place
        self.child: Child | None = None
        self.loaded: list[str] = []
        self.setting: Setting = {}

    def settings(self) -> list[Setting]:
        return [{"n_ubatch": n} for n in self.options.ubatches]

    def many_settings(self) -> list[Setting]:
        return [{"unified": False}, {"unified": True}]

    def use(self, setting: Setting) -> None:
        self.setting = setting
        self._load([], self.place)

    def _load(self, flags: list[str], place: Place) -> None:
        """Start the process with these settings, unless it already runs with them."""
        arguments = [*flags, *place.flags()]
        if self.child and self.loaded == arguments:
            return
        if self.child:
            self.child.end()
        argv = [sys.executable, "-m", "bench.baseline_engine", str(self.options.model), *flags]
        self.child = self.family.start(self.name, argv, place)
        self.child.hear()
        self.loaded = arguments

    def ask(self, prompts: Prompts, n_out: int) -> Answered:
        assert self.child
        question = {
            "prompts": [list(prompt) for prompt in prompts],
            "n_out": n_out,
            "n_ubatch": self.setting["n_ubatch"],
            "unified": self.setting.get("unified", False),
        }
        with spending(self.child) as spent:
            self.child.say(question)
            heard = self.child.hear()
        return Answered(_line(heard["times"]), heard["ids"], spent)


class RpcSide(EngineSide):
    """All layers on RPC servers, one per core. The settings to try include the cores of the client."""

    def __init__(self, family: Children, options: Options, places: Sequence[Place]) -> None:
        super().__init__("rpc", family, options, places[0])
        self.servers: list[tuple[Child, str]] = []
        for i, place in enumerate(places):
            endpoint = f"127.0.0.1:{free_port()}"
            argv = [sys.executable, "-m", "bench.rpc", "--endpoint", endpoint]
            self.servers.append((family.start(f"rpc-server-{i}", argv, place), endpoint))
        for server, endpoint in self.servers:
            await_port(server, endpoint)

    def settings(self) -> list[Setting]:
        cores = self.options.cores
        places = [*([core] for core in cores), list(cores)]
        tried = itertools.product(places, self.options.shares, self.options.ubatches)
        return [{"client": c, "shares": s, "n_ubatch": n} for c, s, n in tried]

    def use(self, setting: Setting) -> None:
        self.setting = setting
        endpoints = ",".join(endpoint for _, endpoint in self.servers)
        flags = ["--servers", endpoints, "--shares", setting["shares"]]
        self._load(flags, Place(cpus=tuple(setting["client"])))

    def ask(self, prompts: Prompts, n_out: int) -> Answered:
        (first, _), (second, _) = self.servers
        with spending(first) as first_spent, spending(second) as two:
            answered = super().ask(prompts, n_out)
        answered.cpu_seconds.update(first_spent | two)
        return answered


def _line(times: list[list[float]]) -> Timeline:
    return Timeline(tuple(tuple(stream) for stream in times))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def await_port(server: Child, endpoint: str, seconds: float = 30.0) -> None:
    """Wait until the server listens on its endpoint. Raises ChildFailed."""
    host, _, port = endpoint.rpartition(":")
    end = time.monotonic() + seconds
    while time.monotonic() < end and server.process.poll() is None:
        try:
            socket.create_connection((host, int(port)), timeout=1.0).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise ChildFailed(f"{server.name} does not listen: {server.last_words()}")
