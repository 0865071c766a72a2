"""One attack in a process of its own, so that its work is not the victim's.

`python -m tests.faults.attackers KIND {…}`: what it is to do comes as JSON; what became of it goes to stdout as JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import ssl
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

from app.core.ids import MachineId
from tests.faults import noise
from tests.faults.mole import Mole, let_in
from tests.faults.strangers import outside
from tests.network.nodes import until

Json = dict[str, Any]
AT_ONCE = 16
LISTENED_SECONDS = 0.05  # a stranger with nothing more to say waits so long
SLOW_SECONDS = 45.0  # most that a slow connection is watched
BYTE_SECONDS = 1.0
LOOK_S = 0.1


async def garbage(order: Json) -> Json:
    """`n` connections to `port` that say what nobody understands."""
    counts: Counter[str] = Counter()

    async def one(number: int) -> None:
        chance = random.Random(f"{order['seed']} {number}")
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", order["port"])
        except OSError:
            counts["no connection"] += 1
            return
        said = b""
        try:
            writer.write(noise.connection(chance))
            async with asyncio.timeout(LISTENED_SECONDS):
                said = await reader.read(4096)
        except (TimeoutError, OSError):
            pass
        finally:
            writer.transport.abort()
        served = said.startswith((b"HTTP/1.1 2", b"HTTP/1.1 1"))
        counts["served" if served else "refused"] += 1

    await _many(order["n"], one)
    return {"found": dict(counts)}


async def frames(order: Json) -> Json:
    """Act as a member: send `n` bad frames and first messages to the machine `victim`, each on its own connection."""
    counts: Counter[str] = Counter()
    async with _mole(order) as (mole, victim):
        agreed = await mole.lay(victim)

        async def one(number: int) -> None:
            chance = random.Random(f"{order['seed']} {number}")
            if number % 4:
                counts[await mole.send_bad_frame(victim, agreed, chance)] += 1
            else:
                counts[await mole.send_bad_word(victim, chance)] += 1

        await _many(order["n"], one, 4)
        return {"found": dict(counts), "still_linked": victim in mole.node.network.links}


async def unpaired(order: Json) -> Json:
    """`n` knocks of those who must not get in."""
    victim = MachineId(order["victim"])
    async with outside(Path(order["folder"]), Path(order["host"]), victim) as strangers:
        result = await strangers.knock(order["n"])
        return {"found": dict(result), "closed_s": strangers.closed_s}


async def slow(order: Json) -> Json:
    """`n` connections to `port` that begin with `start` and then say nothing more, or `drip`."""
    results: list[float] = []

    async def one(_: int) -> None:
        results.append(await _held(order["port"], order["start"].encode(), order.get("drip", False)))

    late_s = await _with_lateness(_many(order["n"], one, order["n"]))
    return {"seconds": results, "late_s": late_s}


async def slow_member(order: Json) -> Json:
    """The same after mutual TLS."""
    async with _mole(order) as (mole, victim):
        network = mole.node.network
        context = network.dialing_context(network.members[victim])
        port = network.link(victim).address.port
        results: list[float] = []

        async def one(_: int) -> None:
            start = order["start"].encode()
            results.append(await _held(port, start, order.get("drip", False), context))

        late_s = await _with_lateness(_many(order["n"], one, order["n"]))
        return {"seconds": results, "late_s": late_s, "still_linked": victim in network.links}


async def _with_lateness(work: Coroutine[Any, Any, None]) -> float:
    """Do it; by how many seconds this process itself came late meanwhile, at most."""
    late_s = 0.0
    async with asyncio.TaskGroup() as tasks:
        working = tasks.create_task(work, name="attack")
        while not working.done():
            began = time.monotonic()
            await asyncio.wait({working}, timeout=LOOK_S)
            late_s = max(late_s, time.monotonic() - began - LOOK_S)
    return late_s


async def _held(port: int, start: bytes, drip: bool, context: ssl.SSLContext | None = None) -> float:
    """Seconds until the other side ends the connection."""
    began = time.monotonic()
    with contextlib.suppress(OSError):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        began = time.monotonic()
        try:
            writer.write(start)
            async with asyncio.timeout(SLOW_SECONDS), asyncio.TaskGroup() as tasks:
                dripping = tasks.create_task(_drip(writer) if drip else asyncio.sleep(0))
                while await reader.read(4096):
                    pass
                dripping.cancel()
        except (TimeoutError, ExceptionGroup):
            pass
        finally:
            writer.transport.abort()
    return time.monotonic() - began


async def _drip(writer: asyncio.StreamWriter) -> None:
    while True:
        await asyncio.sleep(BYTE_SECONDS)
        writer.write(b"1")


@contextlib.asynccontextmanager
async def _mole(order: Json) -> AsyncIterator[tuple[Mole, MachineId]]:
    """A member that has a link to the machine `victim`."""
    victim = MachineId(order["victim"])
    async with let_in(Path(order["folder"]), Path(order["host"])) as mole:
        await until(lambda: victim in mole.node.network.links)
        yield mole, victim


async def _many(n: int, attack: Callable[[int], Awaitable[None]], at_once: int = AT_ONCE) -> None:
    numbers = iter(range(n))

    async def some() -> None:
        for number in numbers:
            await attack(number)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(min(at_once, n)):
            tasks.create_task(some(), name="attack")


ATTACKS: dict[str, Callable[[Json], Coroutine[Any, Any, Json]]] = {
    attack.__name__: attack for attack in (garbage, frames, unpaired, slow, slow_member)
}


def main() -> None:
    kind, order = sys.argv[1:]
    os.environ["POOLHOUSE_KEYSTORE"] = "file"
    if hasattr(os, "nice"):
        os.nice(19)  # as if it were another computer's work
    sys.stdout.write(json.dumps(asyncio.run(ATTACKS[kind](json.loads(order)))) + "\n")


if __name__ == "__main__":
    main()
