"""Why an engine pack in use computes nothing at the moment."""

from __future__ import annotations

from pathlib import Path

from app.core.errors import Reason
from app.machine.hardware.cards import UnusedCard
from app.node.graphics_cards import GraphicsCards


def why_idle(graphics: GraphicsCards, backend: str, library: Path) -> Reason | None:
    """Return why no card computes through the library of a pack in use, or None if one does or this is unknown."""
    if library not in graphics.probed or any(card.library == library for card in graphics.computing):
        return None
    keys = {card.key for card in graphics.cards if card.library == library}
    unused = [other for other in graphics.unused if (other.key in keys if other.key else other.label == backend)]
    if unused:
        return _unused(unused[0])
    return Reason("pack_cards_elsewhere") if not keys else None


def _unused(card: UnusedCard) -> Reason:
    return Reason("check_card_unused", {"device": card.label, "why": card.why}) if card.key else card.why
