"""A computer's graphics cards, of which a test says how much room they have."""

from __future__ import annotations

from pathlib import Path

from app.core.errors import Reason
from app.core.planner.card_division import CardDivision, StageParts, divide
from app.machine.hardware.cards import Card, CardClaim, RefusedFamily, UnusedCard
from app.machine.sensors.card_use import CardReading


class Cards:
    """Cards of one library that compute together. Each has this much room."""

    unused: tuple[UnusedCard, ...] = ()
    refused: tuple[RefusedFamily, ...] = ()
    is_starting = False
    is_testing = False
    overflows = True

    def __init__(self, folder: Path, *rooms: int) -> None:
        self.rooms = rooms
        self.computing: tuple[Card, ...] = tuple(
            Card(f"Vulkan{n}", "A card", "Vulkan", folder / "libggml-vulkan.so", folder, f"{n}", False, room, room)
            for n, room in enumerate(rooms)
        )
        self.claims: dict[bytes, CardClaim] = {}
        self.losses: list[Card] = []

    async def tested(self) -> None:
        """They were."""

    @property
    def card(self) -> Card | None:
        return self.computing[0] if self.computing else None

    def card_for(self, family: str) -> Card | None:
        return self.card

    def is_proved(self, family: str) -> bool:
        return True

    def judge(self, card: Card, family: str, why: Reason | None) -> None:
        """Nothing is judged."""

    def claim(self, key: bytes, card: Card, parts: StageParts, *, short: bool = False) -> CardClaim:
        rooms = [room // 2 if short else room for room in self.rooms]
        nothing = CardDivision((0,) * len(rooms), (0,) * len(rooms), len(parts.layer_bytes))
        claim = self.claims[key] = CardClaim(self.computing, divide(parts, rooms) or nothing)
        return claim

    def release(self, key: bytes) -> None:
        self.claims.pop(key, None)

    def lost(self, card: Card) -> None:
        self.losses.append(card)

    def is_switched_off(self, device: str, library: str) -> bool:
        return False

    def reading(self) -> CardReading:
        return CardReading()
