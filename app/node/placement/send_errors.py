"""What goes wrong while layers are sent: which machine's disk it is, and whether the file here is to blame."""

from __future__ import annotations

import asyncio
import hashlib

from app.catalog.shelf import Entry
from app.catalog.stages.cut import Cut, read_pieces
from app.catalog.stages.manifest import Want
from app.core.errors import AppError, Damaged
from app.core.ids import PipelineId
from app.core.reasons import said
from app.node.placement.stage_sender import SendLink, Tell, send_layers

# What a lender says of its own disk and memory without saying whose they are. Nothing here says it while it reads.
OF_ITS_OWN = frozenset({"stages_full", "disk_full", "disk_failed", "stage_too_large"})


async def send_or_explain(
    link: SendLink, pipeline: PipelineId, machine: str, entry: Entry, cut: Cut, tell: Tell
) -> None:
    """As `send_layers`. Raises AppError that names the machine, or Damaged for a file that is no longer the same."""
    try:
        await send_layers(link, pipeline, machine, cut, tell)
    except AppError as error:
        code = error.reason.code
        if code in OF_ITS_OWN:
            raise type(error)(
                "lender_said", machine=machine, what=said(error), cause=code
            ) from error
        if code == "piece_wrong":
            piece = error.reason.facts.get("piece")
            if await asyncio.to_thread(_changed, cut, piece):
                raise Damaged("model_changed", name=entry.name, path=entry.path) from error
        raise


def _changed(cut: Cut, piece: object) -> bool:
    """Whether these bytes are others than those that were imported, though neither size nor time says so."""
    if not isinstance(piece, int) or not 0 <= piece < len(cut.manifest.pieces):
        return False
    digest = hashlib.sha256()
    for chunk in read_pieces(cut, [Want(piece, 0)]):
        digest.update(chunk)
    return digest.hexdigest() != cut.manifest.pieces[piece].sha256
