"""The upload of a run's layers to a lender: only the missing pieces, as fast as the lender takes them."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Callable

from app.catalog.shelf import Entry
from app.catalog.stages.cut import Cut, read_pieces
from app.catalog.stages.manifest import Want, to_json, wanted_bytes, wants_from_json
from app.core.errors import AppError, Damaged, StageLost
from app.core.ids import PipelineId
from app.network.peer.peer_client import ANSWER_BYTES_PER_SECOND, ANSWER_SECONDS
from app.node.placement.lenders import LenderLink

TAKEN_SECONDS = 60.0  # a lender that takes no megabyte for so long holds the load up: 16 KiB/s

# Reasons about a lender's own disk and memory that do not name the lender. Reading the cut here never gives them.
OF_ITS_OWN = frozenset({"stages_full", "disk_full", "disk_failed", "stage_too_large"})

Tell = Callable[[int, int, int], None]  # bytes of a chunk, sent so far, to be sent


async def send_layers(link: LenderLink, pipeline: PipelineId, machine: str, cut: Cut, tell: Tell) -> None:
    """Send only the pieces that the lender lacks; an interrupted upload resumes.

    Raises StageLost when the lender answers heartbeats but takes no bytes.
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
    """Yield the bytes of the pieces as the lender takes them; each chunk taken extends `limit`."""
    clock = asyncio.get_running_loop().time
    sent, total, source = 0, wanted_bytes(wants, cut.manifest), read_pieces(cut, wants)
    while chunk := await asyncio.to_thread(next, source, b""):
        limit.reschedule(clock() + TAKEN_SECONDS)
        yield chunk
        sent += len(chunk)
        tell(len(chunk), sent, total)
    limit.reschedule(clock() + _answer_seconds(cut.manifest.total_bytes))


def _answer_seconds(total_bytes: int) -> float:
    """Return the seconds for a lender to take the last bytes and answer; app/network/peer/peer_client.py gives up
    earlier."""
    return TAKEN_SECONDS + ANSWER_SECONDS + total_bytes / ANSWER_BYTES_PER_SECOND


async def send_or_explain(
    link: LenderLink, pipeline: PipelineId, machine: str, entry: Entry, cut: Cut, tell: Tell
) -> None:
    """Run `send_layers`. Raises AppError that names the machine, or Damaged for a file that has changed."""
    try:
        await send_layers(link, pipeline, machine, cut, tell)
    except AppError as error:
        code = error.reason.code
        if code in OF_ITS_OWN:
            raise type(error)("lender_said", machine=machine, what=error.reason) from error
        if code == "piece_wrong":
            piece = error.reason.facts.get("piece")
            if await asyncio.to_thread(_changed, cut, piece):
                raise Damaged("model_changed", name=entry.name, path=entry.path) from error
        raise


def _changed(cut: Cut, piece: object) -> bool:
    """Return whether these bytes differ from the imported ones although size and time do not."""
    if not isinstance(piece, int) or not 0 <= piece < len(cut.manifest.pieces):
        return False
    digest = hashlib.sha256()
    for chunk in read_pieces(cut, [Want(piece, 0)]):
        digest.update(chunk)
    return digest.hexdigest() != cut.manifest.pieces[piece].sha256
