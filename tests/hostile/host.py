"""A hostile host: a member that may have layers held at other machines, and uses that right against them.

Each attack ends by itself after a number of tries; whoever calls ends it after some seconds.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

from app.core.errors import AppError
from app.core.household.operations import Rename, encode
from app.core.ids import MachineId, PipelineId
from app.network import messages
from app.network.membership.household_log import sign_operation
from app.network.peer.frame_channel import FrameChannel
from app.network.peer.peer_link import PeerLink
from backends.contract import NumberFormat, Segment
from backends.frames import Frame, FrameKind, PipelineParameters
from backends.frames import encode_frame as frame_of
from tests.faults.mole import CONTEXT, LAYERS, SLOTS, Mole
from tests.network.nodes import until

LINK_SECONDS = 10.0
TRIES = 200
FLOOD = 2000
MANY_BYTES = 1 << 20


class Host:
    """The means of an attack by a host, which reconnects by itself."""

    def __init__(self, mole: Mole, victim: MachineId, chance: random.Random) -> None:
        self.mole, self.victim, self.chance = mole, victim, chance

    async def link(self) -> PeerLink:
        network = self.mole.node.network
        await until(lambda: self.victim in network.links, LINK_SECONDS)
        return network.link(self.victim)

    async def say(self, *words: messages.Message) -> None:
        """All of it, as long as the link holds."""
        link = await self.link()
        with suppress(AppError):
            for word in words:
                await link.send(word)

    def order(self, **changed: int | str) -> messages.OpenStage:
        """A stage with a few things out of the ordinary."""
        usual: dict[str, int | str] = {
            "request": 0, "pipeline": self.chance.randbytes(16).hex(), "epoch": 1, "model": "guide",
            "manifest": self.chance.randbytes(32).hex(), "first": LAYERS.first, "last": LAYERS.last, "n_layers": 8,
            "width": 64, "number": "f32", "slots": SLOTS, "kv_cells": SLOTS * CONTEXT, "context": CONTEXT,
            "batch_rows": 16, "engine": "llamacpp",
        }  # fmt: skip
        return messages.OpenStage(**{**usual, **changed})  # type: ignore[arg-type]

    def pipeline(self) -> PipelineId:
        return PipelineId(self.chance.randbytes(16))

    async def laid(self) -> PipelineParameters:
        """The victim holds layers for us."""
        self.mole.node.heard.clear()
        return await self.mole.lay(self.victim)

    async def channel(self, agreed: PipelineParameters) -> FrameChannel:
        return await (await self.link()).open_data(PipelineId(agreed.pipeline))


Attack = Callable[[Host], Awaitable[None]]
ATTACKS: dict[str, Attack] = {}


def attack(name: str) -> Callable[[Attack], Attack]:
    def put(item: Attack) -> Attack:
        ATTACKS[name] = item
        return item

    return put


def step(agreed: PipelineParameters, value: float = 0.0, seq: int = 1, pos: int = 0) -> bytes:
    row = struct.pack("<f", value) * agreed.width
    return frame_of(Frame(FrameKind.STEP, agreed.pipeline, 1, seq, NumberFormat.F32, (Segment(0, 1, pos),), row))


@attack("frames that break the agreement")
async def bad_frames(host: Host) -> None:
    agreed = await host.laid()
    for _ in range(40):
        await host.mole.send_bad_frame(host.victim, agreed, host.chance)


@attack("first words that are none")
async def bad_words(host: Host) -> None:
    for _ in range(40):
        await host.mole.send_bad_word(host.victim, host.chance)


@attack("orders for stages that nobody could hold")
async def odd_orders(host: Host) -> None:
    def odd() -> dict[str, int | str]:
        fields = ("first", "last", "n_layers", "width", "slots", "kv_cells", "context", "batch_rows", "epoch")
        return {name: host.chance.choice([0, 1, 1 << 20, 1 << 31]) for name in host.chance.sample(fields, 4)}

    await host.say(*(host.order(**odd()) for _ in range(TRIES)))


@attack("orders for more memory than there is")
async def large_orders(host: Host) -> None:
    agreed = await host.laid()
    await host.say(*(host.order(kv_cells=1 << 31, context=1 << 24, width=agreed.width) for _ in range(TRIES)))


@attack("manifests that are none")
async def bad_manifests(host: Host) -> None:
    bodies = (b"{}", b"[]", b"{", b"[" * 50_000, b"\xff" * 1000, b'{"tensors":' + b"[" * 9 + b"]" * 9 + b"}")
    for _ in range(40):
        with suppress(AppError):
            await (await host.link()).offer_stage(host.pipeline(), host.chance.choice(bodies))


@attack("the longest manifest")
async def long_manifests(host: Host) -> None:
    for _ in range(3):
        with suppress(AppError):
            await (await host.link()).offer_stage(host.pipeline(), bytes(16 << 20))


@attack("pieces that nobody asked for")
async def pieces(host: Host) -> None:
    async def some() -> AsyncIterator[bytes]:
        for _ in range(8):
            yield bytes(MANY_BYTES)

    for _ in range(10):
        with suppress(AppError):
            await (await host.link()).upload_pieces(host.pipeline(), some())


@attack("pieces that never end")
async def drip(host: Host) -> None:
    async def drops() -> AsyncIterator[bytes]:
        while True:
            yield b"1"
            await asyncio.sleep(0.05)

    with suppress(AppError):
        await (await host.link()).upload_pieces(host.pipeline(), drops())


@attack("connections for data without end")
async def connections(host: Host) -> None:
    agreed = await host.laid()
    held = []
    try:
        for _ in range(80):
            with suppress(AppError, TimeoutError):
                async with asyncio.timeout(1):
                    held.append(await host.channel(agreed))
        await asyncio.sleep(0.5)
    finally:
        for frame_channel in held:
            await frame_channel.close()


@attack("frames without reading")
async def unread(host: Host) -> None:
    agreed = await host.laid()
    channel = await host.channel(agreed)
    with suppress(AppError):
        for seq in range(FLOOD):
            await channel.send(step(agreed, 0.5, seq + 1, seq % CONTEXT))
    await channel.close()


@attack("numbers that are none, in its own stage")
async def no_numbers(host: Host) -> None:
    agreed = await host.laid()
    for value in (float("nan"), float("inf"), -float("inf"), 3e38):
        channel = await host.channel(agreed)
        with suppress(AppError, TimeoutError):
            async with asyncio.timeout(2):
                await channel.send(step(agreed, value))
                await channel.receive()
        await channel.close()


@attack("stages opened and closed in haste")
async def haste(host: Host) -> None:
    for _ in range(8):
        agreed = await host.laid()
        await host.say(messages.CloseStage(pipeline=bytes(agreed.pipeline).hex()))


@attack("stages that are left open")
async def left_open(host: Host) -> None:
    for _ in range(5):
        with suppress(AssertionError):
            await host.laid()


@attack("epochs that run backwards")
async def epochs(host: Host) -> None:
    agreed = await host.laid()
    name = bytes(agreed.pipeline).hex()
    await host.say(*(host.order(pipeline=name, epoch=host.chance.choice([0, 1, 2, 1 << 31])) for _ in range(TRIES)))


@attack("a flood of forgets")
async def forgets(host: Host) -> None:
    agreed = await host.laid()
    channel = await host.channel(agreed)
    with suppress(AppError):
        for seq in range(FLOOD):
            await channel.send(frame_of(Frame(FrameKind.FORGET, agreed.pipeline, 1, seq, segments=(Segment(0, 0, 0),))))
    await channel.close()


@attack("speeds asked for again and again")
async def speeds(host: Host) -> None:
    words = [json.dumps({"type": "measure_speed", "request": n, "shape": {}, "batch_rows": 512}) for n in range(TRIES)]
    link = await host.link()
    with suppress(AppError, OSError):
        for word in words:
            await link._socket.send_str(word)


@attack("calls back asked for again and again")
async def calls_back(host: Host) -> None:
    await host.say(*(messages.CallMe(request=n) for n in range(FLOOD)))


@attack("answers that it says pass through")
async def answering(host: Host) -> None:
    await host.say(*(messages.Answering(now=bool(n % 3)) for n in range(FLOOD)))


@attack("others live elsewhere, it says")
async def elsewhere(host: Host) -> None:
    machines = [member for member in host.mole.node.network.members if member != host.mole.node.network.id]
    await host.say(
        *(
            messages.Whereabouts(machines={other: [f"127.0.0.1:{host.chance.randrange(1, 20)}"] for other in machines})
            for _ in range(TRIES)
        )
    )


@attack("lines of the household that it may not sign")
async def forged_lines(host: Host) -> None:
    network = host.mole.node.network
    assert network.log is not None
    for start in range(0, 600, 60):
        lines = [
            encode(
                sign_operation(network._identity, Rename(network.log.household, network.id, start + n + 1, f"n{n}"))
            ).decode()
            for n in range(60)
        ]
        await host.say(messages.Log(operations=lines))


@attack("a flood of pings")
async def pings(host: Host) -> None:
    await host.say(*(messages.Ping(n=n) for n in range(2 * FLOOD)))


@attack("half requests on every connection it may have")
async def half_requests(host: Host) -> None:
    network = host.mole.node.network
    link, member = await host.link(), network.members[host.victim]
    held = []
    for _ in range(64):
        with suppress(OSError):
            _, writer = await asyncio.open_connection(
                link.address.host, link.address.port, ssl=network.dialing_context(member)
            )
            writer.write(
                b"PUT /stage/" + os.urandom(16).hex().encode() + b" HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n1"
            )
            held.append(writer)
    await asyncio.sleep(1)
    for writer in held:
        writer.transport.abort()


@attack("words of an odd kind")
async def odd_words(host: Host) -> None:
    lost = '{"type":"stage_lost","pipeline":"' + "0" * 32 + '","code":"x","facts":{"x":NaN}}'
    words = (
        '{"type":"pong","n":0,"steps_done":0,"busy_seconds":1e400}',
        '{"type":"log","operations":[' + '"x",' * 4000 + '"x"]}',
        '{"type":"status"}',
        '{"type":"leaving","reason":"\\u202e"}',
        "[" * 20_000,
        '{"type":"ping","n":1e99}',
        lost,
    )
    for _ in range(20):
        link = await host.link()
        with suppress(AppError, OSError, UnicodeEncodeError):
            await link._socket.send_str(host.chance.choice(words))
        await asyncio.sleep(0.05)
