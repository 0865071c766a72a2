"""`python -m scripts.engine_pack.offer` says which engine pack could be built for the graphics cards of this computer.

The set-up runs it at its end. Poolhouse also works without any pack.
"""

from __future__ import annotations

from collections.abc import Sequence

from app.machine.hardware.graphics import list_cards
from scripts.engine_pack.__main__ import WORK
from scripts.engine_pack.recipes import RECIPES, system_name

NVIDIA = "nvidia"


def offer(cards: Sequence[str], system: str, built: Sequence[str]) -> str:
    """Return the offer, or "" without a card, or if a pack was built already.

    built: the names of the packs that were built here.
    """
    backends = [backend for backend in ("vulkan", "cuda13", "metal") if system in RECIPES[backend].systems]
    if not any(NVIDIA in card.lower() for card in cards):
        backends = [backend for backend in backends if backend != "cuda13"]
    if not cards or not backends or any(name.startswith(tuple(backends)) for name in built):
        return ""
    commands = [f"`make engine BACKEND={backend}` (about {RECIPES[backend].minutes} minutes)" for backend in backends]
    return (
        f"This computer has a graphics card ({', '.join(cards)}). {' or '.join(commands)} builds an engine pack for "
        "it; without one, models run on the processor."
    )


if __name__ == "__main__":
    if text := offer(list_cards(), system_name(), [path.name for path in WORK.glob("*.tar.gz")]):
        print(text)
