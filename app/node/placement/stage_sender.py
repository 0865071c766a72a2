"""The layers of a run on their way to a lender: only what it lacks, as fast as it takes them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Protocol

from app.catalog.stages.cut import Cut, read_pieces
from app.catalog.stages.manifest import Want, to_json, wanted_bytes, wants_from_json
from app.core.errors import StageLost
from app.core.ids import PipelineId
from app.network.peer.peer_client import ANSWER_BYTES_PER_SECOND, ANSWER_SECONDS

TAKEN_SECONDS = 60.0  # a lender that takes no megabyte for so long holds the load up: 16 KiB/s

Tell = Callable[[int, int, int], None]  # bytes of a chunk, sent so far, to be sent


class SendLink(Protocol):
    """What is asked of the link to a lender; app/network/peer/peer_link.py has it."""

    async def offer_stage(self, pipeline: PipelineId, body: bytes, total_bytes: int) -> bytes: ...
    async def upload_pieces(
        self, pipeline: PipelineId, chunks: AsyncGenerator[bytes, None], total_bytes: int
    ) -> bytes: ...


async def send_layers(link: SendLink, pipeline: PipelineId, machine: str, cut: Cut, tell: Tell) -> None:
    """Only the pieces that the lender does not have; it continues where it broke off.

    Raises StageLost when it answers heartbeats, but takes no bytes.
    """
    whole = cut.manifest.total_bytes
    try:
        async with asyncio.timeout(_answer_seconds(whole)) as limit:
            answer = await link.offer_stage(pipeline, to_json(cut.manifest), whole)
            if wants := wants_from_json(answer, cut.manifest):
                chunks = _chunks(cut, wants, limit, tell)
                await link.upload_pieces(pipeline, chunks, whole)
    except TimeoutError:
        seconds = TAKEN_SECONDS
        raise StageLost("stage_not_taken", machine=machine, seconds=seconds) from None


async def _chunks(cut: Cut, wants: tuple[Want, ...], limit: asyncio.Timeout, tell: Tell) -> AsyncGenerator[bytes, None]:
    """The bytes of the pieces, as the lender takes them; each chunk that is taken moves `limit`."""
    clock = asyncio.get_running_loop().time
    sent, total, source = 0, wanted_bytes(wants, cut.manifest), read_pieces(cut, wants)
    while chunk := await asyncio.to_thread(next, source, b""):
        limit.reschedule(clock() + TAKEN_SECONDS)
        yield chunk
        sent += len(chunk)
        tell(len(chunk), sent, total)
    limit.reschedule(clock() + _answer_seconds(cut.manifest.total_bytes))


def _answer_seconds(total_bytes: int) -> float:
    """Seconds for a lender to take the last bytes and answer; app/network/peer/peer_client.py gives up before that."""
    return TAKEN_SECONDS + ANSWER_SECONDS + total_bytes / ANSWER_BYTES_PER_SECOND
