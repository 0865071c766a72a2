"""A patched lender: a real node, whose answers to hosts lie as others tell it to.

`python -m tests.hostile.lender FILE -- PYTHON -m app node …` (POSIX): at SIGUSR1 it reads from FILE which lie it tells
from then on, and removes FILE. An empty lie makes it honest again. FILE.told is there once it has told it.
"""

from __future__ import annotations

import asyncio
import json
import random
import runpy
import signal
import struct
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.core.errors import AppError, Fact, StageLost
from app.inference.stages.stage_host import StageHost
from app.network import messages
from app.network.network import Network
from app.network.peer.frame_channel import MAX_FRAME_BYTES, FrameChannel
from app.node.lending.lending_service import LendingService
from backends.contract import NumberFormat
from backends.frames import HEADER, Frame, FrameKind, decode_frame, encode_frame

INNOCENT = "kitchen"
FLOOD = 2000  # messages or frames, at most
DRIP_SECONDS, HELD_SECONDS = 0.1, 60.0
# Reasons, and which fact of them names a machine.
ERRORS = (
    ("stage_silent", "machine"), ("stage_lost", "machine"), ("worker_died", "worker"), ("peer_floods", "name"),
    ("peer_offline", "name"), ("machine_removed", "name"), ("role_missing", "name"),
)  # fmt: skip
KIND_AT, PIPELINE_AT, EPOCH_AT, SEQ_AT = 3, 4, 20, 24  # bytes of a header


class Liar:
    """The present lie, and the random numbers for it."""

    def __init__(self) -> None:
        self.lie, self.chance, self.n_told = "", random.Random(0), 0
        self.has_spoken = False
        self.before = b""  # the last true answer
        self._told: Path | None = None

    def take(self, file: Path) -> None:
        data = json.loads(file.read_text("utf-8"))
        self.lie, self.chance, self.n_told = data["lie"], random.Random(data["seed"]), 0
        self.has_spoken, self._told = False, told_file(file)
        self._told.unlink(missing_ok=True)
        file.unlink()

    def tells(self) -> None:
        """Record that it has lied from now on."""
        if self._told is not None:
            self._told.touch()
            self._told = None

    def now(self, answer: bytes) -> bool:
        """Return whether to lie in this answer: only after some true ones, so that an answer is in progress."""
        self.n_told += 1
        return bool(self.lie) and is_output(answer) and self.n_told > 2


def told_file(file: Path) -> Path:
    """Return the file that exists once the lie was told."""
    return file.with_suffix(".told")


LIAR = Liar()


def is_output(data: bytes) -> bool:
    return len(data) > HEADER.size and data[KIND_AT] == FrameKind.OUTPUT


def _n_rows(frame: Frame) -> int:
    return max(1, sum(segment.n_tokens for segment in frame.segments))


def _with_values(data: bytes, value: float) -> bytes:
    """One row of it holds such a value."""
    frame = decode_frame(data)
    width = len(frame.payload) // _n_rows(frame)
    number = struct.pack("<f", value) if frame.number is NumberFormat.F32 else struct.pack("<e", value)
    payload = bytearray(frame.payload)
    for at in range(0, min(width, len(payload)) - len(number) + 1, len(number)):
        payload[at : at + len(number)] = number
    return encode_frame(replace(frame, payload=payload))


def _lost(data: bytes, payload: bytes) -> bytes:
    frame = decode_frame(data)
    return encode_frame(Frame(FrameKind.LOST, frame.pipeline, frame.epoch, frame.seq, payload=payload))


def _naming(code: str, **facts: Any) -> bytes:
    return json.dumps({"code": code, "facts": facts}).encode()


def _changed(data: bytes, at: int, to: bytes) -> bytes:
    return data[:at] + to + data[at + len(to) :]


Change = Callable[[bytes, random.Random], list[bytes]]
# What is sent in place of an answer.
FRAMES: dict[str, Change] = {
    "numbers that are none": lambda data, _: [_with_values(data, float("nan"))],
    "numbers without bounds": lambda data, _: [_with_values(data, float("-inf"))],
    "half a frame": lambda data, chance: [data[: chance.randrange(1, len(data))]],
    "a frame and more": lambda data, chance: [data + chance.randbytes(chance.randrange(1, 5000))],
    "another pipeline": lambda data, chance: [_changed(data, PIPELINE_AT, chance.randbytes(16))],
    "another epoch": lambda data, chance: [_changed(data, EPOCH_AT, chance.randbytes(4))],
    "a step of another number": lambda data, chance: [_changed(data, SEQ_AT, chance.randbytes(8))],
    "another kind of frame": lambda data, chance: [
        _changed(data, KIND_AT, bytes([chance.choice([1, 3, 4, 5, 7, 8, 10, 11, 12, 13])]))
    ],
    "random bytes": lambda data, chance: [chance.randbytes(chance.randrange(1, 400))],
    "an empty frame": lambda data, _: [b""],
    "the longest frame": lambda _, chance: [chance.randbytes(64) + bytes(MAX_FRAME_BYTES - 64)],
    "each answer twice": lambda data, _: [data, data],
    "the answer before": lambda data, _: [LIAR.before or data],
    "a flood of frames": lambda data, _: [data] * FLOOD,
    "lost, and an innocent machine is named": lambda data, _: [
        _lost(data, _naming("stage_silent", machine=INNOCENT, seconds=3))
    ],
    "lost, for a reason nobody knows": lambda data, _: [_lost(data, _naming("no_such_reason", machine=INNOCENT))],
    "lost, with facts without end": lambda data, _: [
        _lost(data, b'{"code":"worker_died","facts":' + b'{"x":' * 3000 + b"1" + b"}" * 3001)
    ],
    "lost, in bytes that are no text": lambda data, chance: [_lost(data, chance.randbytes(200))],
    "cells of others are missing": lambda data, _: [_need_from(data)],
    "rows that were not asked for": lambda data, _: [_more_rows(data)],
}


def _need_from(data: bytes) -> bytes:
    frame = decode_frame(data)
    return encode_frame(Frame(FrameKind.NEED_FROM, frame.pipeline, frame.epoch, frame.seq, segments=frame.segments))


def _more_rows(data: bytes) -> bytes:
    frame = decode_frame(data)
    segments, rows = frame.segments, _n_rows(frame)
    width = len(frame.payload) // rows
    first = segments[0]
    longer = (type(first)(first.slot, first.n_tokens + 1, first.pos), *segments[1:])
    payload = bytes(frame.payload) + bytes(width)
    return encode_frame(Frame(frame.kind, frame.pipeline, frame.epoch, frame.seq, frame.number, longer, payload))


MODEL_ERRORS = ("numbers_not_finite", "worker_crashed", "engine_gave_up")  # said of the model


def _naming_error(chance: random.Random) -> AppError:
    code, fact = chance.choice(ERRORS)
    return StageLost(code, seconds=3, **{fact: INNOCENT})


class LyingChannel:
    """A channel to a host."""

    def __init__(self, channel: FrameChannel) -> None:
        self._channel = channel
        self.receive, self.deliver, self.close = channel.receive, channel.deliver, channel.close

    async def send(self, data: bytes) -> None:
        lies = LIAR.now(data)
        if lies:
            LIAR.tells()
        else:
            LIAR.before = data
        match LIAR.lie if lies else "":
            case "silence":
                await asyncio.sleep(HELD_SECONDS)
            case "each answer late":
                await asyncio.sleep(DRIP_SECONDS)
                await self._channel.send(data)
            case "hung up at each answer":
                await self._channel.close()
            case lie if lie in FRAMES:
                for item in FRAMES[lie](data, LIAR.chance):
                    await self._channel.send(item)
            case _:
                await self._channel.send(data)


def _statuses(network: Network) -> Sequence[messages.Message]:
    """Words of a control link."""
    members: list[str] = [machine for machine in network.members if machine != network.id]
    status = messages.Status(
        name=INNOCENT, device="x", total_bytes=1 << 50, lendable_bytes=1 << 50, used_bytes=0, state="ready",
        used_by=members,
    )  # fmt: skip
    words: dict[str, Sequence[messages.Message]] = {
        "a flood of status": [status] * FLOOD,
        "a flood of pings": [messages.Ping(n=n) for n in range(FLOOD)],
        "pongs that nobody asked for": [messages.Pong(n=n, steps_done=0, busy_seconds=1e9) for n in range(FLOOD)],
        "others lost, it says": [
            messages.StageLost(pipeline=f"{n:032x}", code="stage_silent", facts={"machine": INNOCENT})
            for n in range(200)
        ],
        "goodbyes, and it stays": [messages.Leaving(reason="shutting_down")] * 50,
        "others live elsewhere, it says": [
            messages.Whereabouts(machines={other: ["127.0.0.1:9"] * 4 for other in members})
        ]
        * 200,
        "links of others, it says": [
            messages.LinksMeasured(
                links=[
                    messages.MeasuredLink(
                        machine=other,
                        age_s=0,
                        round_trip_s=0,
                        round_trip_p95_s=999,
                        out_bytes_per_s=1e13,
                        in_bytes_per_s=0,
                    )
                    for other in members
                ]
            )
        ]
        * 200,
    }
    return words.get(LIAR.lie, [])


WORDS = (
    "a flood of status", "a flood of pings", "pongs that nobody asked for", "others lost, it says",
    "goodbyes, and it stays", "others live elsewhere, it says", "links of others, it says",
)  # fmt: skip
LOADING = (
    "nonsense about layers", "nesting about layers", "layers that are never loaded",
    "layers refused, and an innocent machine is named", "layers not loaded, and an innocent machine is named",
)  # fmt: skip
BLAMES_MODEL = "layers not loaded, and the model is blamed"
LIES = (*FRAMES, "silence", "each answer late", "hung up at each answer", *WORDS, *LOADING, BLAMES_MODEL)


async def say_all(network: Network) -> None:
    """Bounded by their number; a link that ends ends them."""
    words = _statuses(network)
    for link in list(network.links.values()):
        with suppress(AppError):
            for word in words:
                await link.send(word)


def patch() -> None:
    """Put the lies where a lender speaks to its hosts."""
    serve, offer, opened = StageHost.serve, LendingService.stage_offer, LendingService.open

    async def lying_serve(self: StageHost, pipeline: bytes, channel: FrameChannel) -> None:
        lying: Any = LyingChannel(channel)
        await serve(self, pipeline, lying)

    async def lying_offer(self: LendingService, *rest: Any) -> bytes:
        answer = await offer(self, *rest)
        if LIAR.lie in LOADING:
            LIAR.tells()
        match LIAR.lie:
            case "nonsense about layers":
                return LIAR.chance.randbytes(300)
            case "nesting about layers":
                return b'{"wanted":' + b"[" * 20_000 + b"]" * 20_000 + b"}"
            case "layers refused, and an innocent machine is named":
                raise _naming_error(LIAR.chance)
            case _:
                return answer

    async def lying_open(self: LendingService, *rest: Any) -> None:
        if LIAR.lie == "layers that are never loaded":
            await asyncio.sleep(HELD_SECONDS)
            return
        member, order, send = rest
        if LIAR.lie == BLAMES_MODEL:
            LIAR.tells()
            code = LIAR.chance.choice(MODEL_ERRORS)
            facts: dict[str, Fact] = {"worker": "it", "how": "signal 11", "words": ""}
            await send(messages.StageFailed(pipeline=order.pipeline, code=code, facts=messages.sent_facts(facts)))
            return
        if LIAR.lie == "layers not loaded, and an innocent machine is named":
            await send(self._failed(member, order, _naming_error(LIAR.chance)))
            return
        await opened(self, *rest)

    lender: Any = StageHost
    lending: Any = LendingService
    networks: Any = Network
    lender.serve, lending.stage_offer, lending.open = lying_serve, lying_offer, lying_open
    enter = Network.__aenter__

    async def entered(self: Network) -> Network:
        made = await enter(self)

        async def speak() -> None:
            while True:
                await asyncio.sleep(0.1)
                if LIAR.lie in WORDS and not LIAR.has_spoken:
                    LIAR.has_spoken = True
                    LIAR.tells()
                    await say_all(self)

        self._start(speak(), "lies")
        return made

    networks.__aenter__ = entered


def main() -> None:
    file, _, _, _, module, *words = sys.argv[1:]
    patch()
    signal.signal(signal.SIGUSR1, lambda *_: LIAR.take(Path(file)))
    sys.argv = [module, *words]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
