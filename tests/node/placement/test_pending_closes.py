"""A lender is told to give layers back, whatever happens to the link in between."""

from __future__ import annotations

import asyncio
from typing import Any

from app.core.errors import Unreachable
from app.core.ids import MachineId, PipelineId
from app.inference.stages.stage_host import KEEP_S
from app.network import messages
from app.node.placement import lenders
from app.node.placement.lenders import PendingCloses

ATTIC = MachineId("a" * 64)
ONE, TWO = PipelineId(b"1" * 16), PipelineId(b"2" * 16)


class Link:
    """Remembers what was sent; `works` says whether that reaches anybody."""

    def __init__(self, works: bool = True, hangs: bool = False) -> None:
        self.sent: list[str] = []
        self.works, self.hangs = works, hangs

    async def send(self, message: messages.Message) -> None:
        if self.hangs:
            await asyncio.sleep(60)
        if not self.works:
            raise Unreachable("link_lost", name="attic")
        assert isinstance(message, messages.CloseStage)
        self.sent.append(message.pipeline)


def a_link(works: bool = True, hangs: bool = False) -> Any:
    return Link(works, hangs)


def nobody(machine: MachineId) -> Any:
    raise Unreachable("peer_offline", name="attic")


async def test_a_lender_without_a_link_hears_it_first_when_it_returns() -> None:
    pending_closes = PendingCloses(nobody)
    await pending_closes.close(ATTIC, ONE)
    back = a_link()
    await pending_closes.linked(ATTIC, back)
    assert back.sent == [ONE.hex()]
    await pending_closes.linked(MachineId("b" * 64), other := a_link())
    assert other.sent == []


async def test_a_dying_link_that_took_it_is_not_believed() -> None:
    dying, back = a_link(), a_link()
    pending_closes = PendingCloses(lambda machine: dying)
    await pending_closes.close(ATTIC, ONE)
    await pending_closes.linked(ATTIC, a_link(works=False))
    await pending_closes.linked(ATTIC, back)
    assert (dying.sent, back.sent) == ([ONE.hex()], [ONE.hex()])


async def test_what_the_lender_has_given_back_by_itself_is_forgotten() -> None:
    now = [0.0]
    pending_closes = PendingCloses(nobody, lambda: now[0])
    await pending_closes.close(ATTIC, ONE)
    now[0] = KEEP_S + 1
    await pending_closes.close(ATTIC, TWO)
    await pending_closes.linked(ATTIC, back := a_link())
    assert back.sent == [TWO.hex()]


async def test_a_link_that_takes_nothing_holds_nobody_up() -> None:
    lenders.TELL_SECONDS, before = 0.05, lenders.TELL_SECONDS
    try:
        async with asyncio.timeout(30):
            await PendingCloses(lambda machine: a_link(hangs=True)).close(ATTIC, ONE)
    finally:
        lenders.TELL_SECONDS = before
