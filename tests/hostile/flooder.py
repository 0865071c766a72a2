"""Lend-only members that flood a host without a pause, for `python -m bench.flood`.

`python -m tests.hostile.flooder FOLDER HOST N_MEMBERS`: so many join the household of the node that lives at HOST. Each
line that comes in is an order, as JSON: what is done from now on; an empty one ends it, and is answered with what it
has cost and brought. Whoever is cut off for its flood dials again at once, and again.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from typing import Any

import aiohttp

from app.core.errors import AppError, Unreachable
from app.core.household.operations import Rename, Role
from app.core.household.operations import encode as encode_line
from app.core.ids import MachineId
from app.network import messages
from app.network.membership.household_log import sign_operation
from app.network.messages import Message, encode
from app.network.peer.peer_client import PeerClient
from app.network.peer.peer_links import say_hello
from app.network.sockets import Address
from app.network.traffic_limits import EventKind
from tests.faults.mole import joined
from tests.hostile import strangers
from tests.hostile.attacker import LendsNothing
from tests.network.nodes import an_identity, opened

LINES, LINES_AT_ONCE = (100, 4)  # of one message: as many as it holds, and as few as are allowed for ever
WORDS_AT_ONCE = 50  # between looks at whether it is over
SHARE = 0.95  # of what is allowed: no flood yet
SLICE_SECONDS = 0.02  # of computing and resting in turn

Talk = Callable[[aiohttp.ClientWebSocketResponse], Coroutine[Any, Any, None]]
LOST = AppError, OSError, aiohttp.ClientError  # how a link ends


@dataclass
class Member:
    """Paired, and not linked but by what it does as a flooder."""

    node: LendsNothing
    victim: MachineId
    address: Address
    n_links: int = 0  # that came up
    n_calls: int = 0
    n_words: int = 0

    async def linked(self, talk: Talk) -> None:
        """Talk on a control link, and on the next one where that is ended; until cancelled."""
        network = self.node.network
        there = network.members[self.victim]
        while True:
            self.n_calls += 1
            client = PeerClient(there, self.address, network.dialing_context(there))
            try:
                with suppress(*LOST):
                    socket = await client.open_control()
                    await say_hello(socket, network.hello(), there)
                    self.n_links += 1
                    await _until_ended(socket, talk)
            finally:
                await asyncio.shield(client.close())
            await asyncio.sleep(0)


async def _until_ended(socket: aiohttp.ClientWebSocketResponse, talk: Talk) -> None:
    """Answers are taken and thrown away: a flooder that reads nothing would only be cut off sooner."""

    async def hear() -> None:
        async for _ in socket:
            pass
        raise Unreachable("link_lost", name="the host")

    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(talk(socket), name="talk")
            tasks.create_task(hear(), name="hear")
    except* LOST:
        pass


def lines(member: Member, first: int, n: int, *, about_nobody: bool) -> list[str]:
    """Lines of the household without end, that its admin is said to have signed."""
    network = member.node.network
    assert network.log is not None
    result = []
    for turn in range(first, first + n):
        machine = MachineId(f"{turn:064x}") if about_nobody else network.id
        body = Rename(network.log.household, machine, turn, f"n{turn}")
        line = replace(sign_operation(network._identity, body), signer=member.victim)
        result.append(encode_line(line).decode("ascii"))
    return result


def logs(member: Member, *, about_nobody: bool) -> list[Message]:
    return [messages.Log(operations=lines(member, n * LINES, LINES, about_nobody=about_nobody)) for n in range(4)]


def status(n: int) -> Message:
    return messages.Status(
        name="attic", device="CPU", total_bytes=1 << 34, lendable_bytes=n, used_bytes=0, state="ready"
    )


def ways(member: Member) -> Message:
    """Return its links, which are shown to people."""
    machines = [machine for machine in member.node.network.members if machine != member.node.network.id]
    links = [
        messages.MeasuredLink(
            machine=other, age_s=random.random(), round_trip_s=0, round_trip_p95_s=0, out_bytes_per_s=1e9,
            in_bytes_per_s=1e9,
        )
        for other in machines
    ]  # fmt: skip
    return messages.LinksMeasured(links=links)


def floods(member: Member) -> dict[str, Sequence[Message]]:
    """Return the messages that are sent as fast as the link allows."""
    return {
        "forged log lines": logs(member, about_nobody=False),
        "log lines about nobody": logs(member, about_nobody=True),
        "pings": [messages.Ping(n=n) for n in range(1000)],
        "status": [status(n) for n in range(1000)],
    }


async def pour(member: Member, words: Sequence[Message]) -> None:
    texts = cycle([encode(word).decode("utf-8") for word in words])

    async def talk(socket: aiohttp.ClientWebSocketResponse) -> None:
        for text in texts:
            await socket.send_str(text)
            member.n_words += 1
            if member.n_words % WORDS_AT_ONCE == 0:
                await asyncio.sleep(0)

    await member.linked(talk)


async def all_that_is_allowed(member: Member) -> None:
    """Each kind of word just as often as it ends no link."""
    known = member.node.network._log.lines()[:LINES_AT_ONCE]
    kinds: list[tuple[float, Callable[[int], Message]]] = [
        (EventKind.PING.per_second, lambda n: messages.Ping(n=n)),
        (EventKind.STATUS.per_second, status),
        (EventKind.MESSAGE.per_second / 2, lambda _: ways(member)),
        (EventKind.MESSAGE.per_second / 2, lambda _: messages.Log(operations=known)),
    ]

    async def talk(socket: aiohttp.ClientWebSocketResponse) -> None:
        async def often(per_second: float, word: Callable[[int], Message]) -> None:
            began, n = time.monotonic(), 0
            while True:
                n += 1
                await socket.send_str(encode(word(n)).decode("utf-8"))
                member.n_words += 1
                due = began + n / (SHARE * per_second)
                await asyncio.sleep(max(0.0, due - time.monotonic()))

        async with asyncio.TaskGroup() as tasks:
            for kind in kinds:
                tasks.create_task(often(*kind), name="as often as allowed")

    await member.linked(talk)


async def compute(share: float) -> None:
    """A share of a core, for nobody."""
    while True:
        began = time.process_time()
        while time.process_time() - began < share * SLICE_SECONDS:
            pass
        await asyncio.sleep((1 - share) * SLICE_SECONDS)


async def carried_out(order: dict[str, Any], members: Sequence[Member], folder: Path) -> str:
    """Flood until canceled. Otherwise return an error, which no flood should have."""
    member = members[order.get("member", 0)]
    try:
        match order["name"]:
            case "nothing":
                await asyncio.Event().wait()
            case "computes for nobody":
                await compute(order["share"])
            case "all that is allowed":
                await all_that_is_allowed(member)
            case strangers.PAIRING:
                await strangers.greet(order["port"], (await an_identity(folder / "nobody"))[1])
            case name if name in strangers.SIEGES:
                await strangers.besiege(name, order["port"], random.Random(name))
            case name:
                await pour(member, floods(member)[name])
    except Exception as error:  # noqa: BLE001  told to whoever ordered it
        return repr(error)[:500]
    return "ended by itself"


async def main() -> None:
    folder, home, n_members = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    async with AsyncExitStack() as stack:
        nodes = await stack.enter_async_context(opened(folder))
        members = []
        for number in range(n_members):
            node = await nodes.prepare(f"flooder-{number}")
            node.__class__ = LendsNothing
            async with node.network:
                await joined(node, home, "lend")
                (victim,) = (machine for machine, member in node.network.members.items() if Role.ADMIN in member.roles)
                members.append(Member(node, victim, node.network.link(victim).address))  # type: ignore[arg-type]
        said({"ready": True})
        while line := await asyncio.to_thread(sys.stdin.readline):
            for member in members:
                member.n_calls = member.n_links = member.n_words = 0
            began, spent = time.monotonic(), time.process_time()
            async with asyncio.TaskGroup() as tasks:
                work = tasks.create_task(carried_out(json.loads(line), members, folder), name="flood")
                await asyncio.to_thread(sys.stdin.readline)
                cost = {"wall_s": time.monotonic() - began, "cpu_s": time.process_time() - spent}
                wrong = work.result() if work.done() else ""
                work.cancel()
            n = {name: sum(getattr(member, name) for member in members) for name in ("n_calls", "n_links", "n_words")}
            said({**cost, **n, "wrong": wrong})


def said(words: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    os.environ["POOLHOUSE_KEYSTORE"] = "file"
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
