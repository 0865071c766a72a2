"""The way back to a lender: tried while it may help, given up at once when it cannot."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from app.core.errors import AppError, Refused, Unreachable
from app.core.ids import MachineId, PipelineId
from app.network.peer.frame_channel import MemoryChannel
from app.node.placement import lenders
from app.node.placement.lenders import LenderReconnector

ATTIC, RUN = MachineId("a" * 64), PipelineId(bytes(16))


class Links:
    """Links to one lender, with what each attempt comes to."""

    def __init__(self, *attempts: AppError | str, down: bool = False) -> None:
        self._attempts, self._down = list(attempts), down
        self.channel = MemoryChannel.pair()[0]
        self.says_busy = False

    def link(self, machine: MachineId) -> Links:
        if self._attempts and self._attempts[0] == "offline":
            self._attempts.pop(0)
            raise Unreachable("peer_offline", name="attic")
        return self

    def is_down(self, machine: MachineId) -> bool:
        return self._down

    async def open_data(self, pipeline: PipelineId) -> MemoryChannel:
        attempt = self._attempts.pop(0) if self._attempts else None
        if isinstance(attempt, AppError):
            raise attempt
        if attempt == "stalls":
            await asyncio.sleep(3600)
        return self.channel

    async def inquire(self) -> None:
        self.says_busy = True

    def computes(self) -> bool:
        return self.says_busy


BROKEN = Unreachable("channel_closed", name="attic")


@pytest.mark.parametrize("attempts", [(), (BROKEN,), ("offline", "offline", BROKEN)])
async def test_it_is_tried_until_it_opens(attempts: tuple[AppError | str, ...]) -> None:
    links = Links(*attempts)
    assert await LenderReconnector(cast("Any", links), ATTIC, RUN).reopen() is links.channel


async def test_an_attempt_that_stalls_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """An attempt during an outage costs little at first, whenever that ends. Later there is time for a slow network.
    Nothing is attempted while there is no link."""
    monkeypatch.setattr(lenders, "TRIES_SECONDS", (0.01, 0.02, 0.03))
    values: list[float] = []

    def timeout(seconds: float) -> asyncio.Timeout:
        values.append(seconds)
        return asyncio.Timeout(asyncio.get_running_loop().time() + seconds)

    monkeypatch.setattr(asyncio, "timeout", timeout)
    links = Links("offline", "stalls", "offline", *["stalls"] * 3)
    assert await LenderReconnector(cast("Any", links), ATTIC, RUN).reopen() is links.channel
    assert values == [0.01, 0.01, 0.02, 0.02, 0.03, 0.03, 0.03]


def test_a_try_is_never_longer_than_a_person_shall_wait_after_a_silence() -> None:
    """F3 of the matrix: two seconds of silence, and it goes on one second later."""
    first, *_, last = lenders.TRIES_SECONDS
    assert (first <= 0.3, last <= 1.0, lenders.ASK_SECONDS <= 0.5) == (True, True, True)


@pytest.mark.parametrize(
    ("links", "kind"), [(Links(BROKEN, down=True), Unreachable), (Links(Refused("lend_not_open")), Refused)]
)
async def test_where_nothing_waits_no_time_is_lost(links: Links, kind: type[AppError]) -> None:
    with pytest.raises(kind):
        await LenderReconnector(cast("Any", links), ATTIC, RUN).reopen()


async def test_what_it_says_of_itself() -> None:
    way = LenderReconnector(cast("Any", links := Links()), ATTIC, RUN)
    assert not way.computes()
    await way.ask()
    assert way.computes()
    links._attempts = ["offline"]
    assert not way.computes()
