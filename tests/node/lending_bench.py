"""A lender on the bench: its lending alone, without a network, and a host's requests to it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from app.catalog.stages.cut import Cut, read_pieces
from app.catalog.stages.manifest import to_json, wants_from_json
from app.core.errors import Refused
from app.core.household.membership import Member
from app.core.household.operations import Role as HouseholdRole
from app.core.ids import MachineId, PipelineId
from app.inference.stages.stage_host import RunOrder, StageHost
from app.inference.worker.worker import ONE_THREAD
from app.machine.hardware.cores import Threads
from app.network import messages
from app.node.lending.lending_service import LendingService
from app.node.verification.spare_memory import SpareMemory
from backends import worker_orders
from tests.catalog.conftest import Home

MIB = 1 << 20


class StandIn(StageHost):
    """A lender without workers, whose loading and closing wait as long as a test wants."""

    def __init__(self) -> None:
        super().__init__(lambda: 1 << 40, "attic")
        self.held: dict[bytes, RunOrder] = {}
        self.may_open, self.may_close = asyncio.Event(), asyncio.Event()
        self.may_close.set()
        self.fails: Exception | None = None
        self.n_opened = 0

    @property
    def used_bytes(self) -> int:
        return len(self.held)

    async def open(self, expected: RunOrder, *, threads: Threads = ONE_THREAD) -> worker_orders.StageOpened:
        self.n_opened += 1
        await self.may_open.wait()
        if self.fails is not None:
            raise self.fails
        self.held[expected.run.pipeline] = expected
        return worker_orders.StageOpened(request=0, memory_bytes=1, seconds=0.0)

    async def close(self, pipeline: bytes, grace_s: float = 2.0) -> None:
        await self.may_close.wait()
        if self.held.pop(pipeline, None):
            self.on_ended(pipeline)


class Terms:
    """The owner's permissions: everything, unless a test gives a reason against it."""

    def __init__(self) -> None:
        self.why: str | None = None
        self.spare_memory = SpareMemory(lambda: 0)

    def lent_bytes(self) -> int:
        return 0 if self.why else 1 << 40

    def threads(self) -> int:
        return 0

    def require(self) -> None:
        if self.why:
            raise Refused(self.why)


OPEN = Terms()


def member(digit: str = "a") -> Member:
    return Member(MachineId(digit * 64), b"", f"host-{digit}", frozenset({HouseholdRole.HOST}))


@dataclass
class Bench:
    """One lender, and what hosts ask of it."""

    lending: LendingService
    lender: StandIn
    home: Home
    cut: Cut
    terms: Terms = OPEN
    said: list[messages.Message] = field(default_factory=list)
    changes: list[int] = field(default_factory=list)

    def changed(self) -> None:
        self.changes.append(1)

    async def send(self, message: messages.Message) -> None:
        self.said.append(message)

    async def offer(self, pipeline: PipelineId, peer: Member | None = None) -> Any:
        body = to_json(self.cut.manifest)
        answer = await self.lending.stage_offer(peer or member(), pipeline, body)
        return wants_from_json(answer, self.cut.manifest)

    async def bring(self, pipeline: PipelineId, peer: Member | None = None) -> None:
        """Offer, and send what is missing."""
        if wants := await self.offer(pipeline, peer):
            await self.lending.pieces(peer or member(), pipeline, self.chunks(wants))

    async def chunks(self, wants: Any) -> AsyncIterator[bytes]:
        for chunk in read_pieces(self.cut, wants):
            yield chunk

    def order(self, pipeline: PipelineId, **changes: Any) -> messages.OpenStage:
        fields: dict[str, Any] = {
            "request": 0, "pipeline": pipeline.hex(), "epoch": 1, "model": "m",
            "manifest": self.cut.manifest.id, "first": 2, "last": 6, "n_layers": 8, "width": 64,
            "number": "f16", "slots": 2, "kv_cells": 256, "context": 128, "batch_rows": 16,
            "engine": "llamacpp",
        }  # fmt: skip
        return messages.OpenStage(**(fields | changes))

    async def open(self, pipeline: PipelineId, peer: Member | None = None, **changes: Any) -> None:
        await self.lending.open(peer or member(), self.order(pipeline, **changes), self.send)

    async def answered(self, n: int) -> list[messages.Message]:
        async with asyncio.timeout(30):  # a real worker on a busy machine
            while len(self.said) < n:  # noqa: ASYNC110  seen from outside
                await asyncio.sleep(0.01)
        return self.said

    def codes(self) -> list[str]:
        return [message.code if isinstance(message, messages.StageFailed) else "ready" for message in self.said]

    def is_kept(self) -> bool:
        """Return whether anything keeps the stage file from being deleted."""
        return self.cut.manifest.id in self.home.stages._held


def new() -> PipelineId:
    return PipelineId(os.urandom(16))
