"""A computer's graphics cards, of which a test says how much room they have."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from app.core.errors import Reason
from app.core.planner.card_division import CardDivision, StageParts, divide
from app.machine.hardware.cards import Card, CardClaim, RefusedFamily, UnusedCard
from app.machine.sensors.card_use import CardReading

LACKS = Reason("device_tensor", {"tensor": "blk.0.ssm_a"})


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
        self.shortages: list[frozenset[bytes]] = []  # the stages that lacked memory, each time

    async def tested(self) -> None:
        """Return at once: the cards are tested."""

    @property
    def card(self) -> Card | None:
        return self.computing[0] if self.computing else None

    def cards_for(self, family: str) -> tuple[Card, ...]:
        return self.computing

    def card_for(self, family: str) -> Card | None:
        return next(iter(self.cards_for(family)), None)

    def is_proved(self, family: str, devices: Sequence[str], *, with_head: bool) -> bool:
        return True

    def judge(self, card: Card, family: str, why: Reason | None, *, with_head: bool = False) -> None:
        """Nothing is judged."""

    def crashed(self, card: Card, family: str) -> None:
        """Nothing is judged."""

    def claim(self, key: bytes, cards: Sequence[Card], parts: StageParts) -> CardClaim:
        rooms = [room for card, room in zip(self.computing, self.rooms, strict=True) if card in cards]
        nothing = CardDivision((0,) * len(rooms), (0,) * len(rooms), len(parts.layer_bytes))
        claim = self.claims[key] = CardClaim(tuple(cards), divide(parts, rooms) or nothing)
        return claim

    def note_work(self, key: bytes, device_work: Mapping[str, int]) -> None:
        """Nothing is remembered."""

    def ran_short(self, keys: Collection[bytes]) -> None:
        """Half of the room is left."""
        self.shortages.append(frozenset(keys))
        self.rooms = tuple(room // 2 for room in self.rooms)

    def release(self, key: bytes) -> None:
        self.claims.pop(key, None)

    def lost(self, card: Card) -> None:
        self.losses.append(card)

    def is_switched_off(self, device: str, library: str) -> bool:
        return False

    def reading(self) -> CardReading:
        return CardReading()


class JudgedCards(Cards):
    """Cards of which each has its verdicts. Their library is not there."""

    overflows = False

    def __init__(self, folder: Path, *rooms: int) -> None:
        super().__init__(folder, *(rooms or (1 << 40,)))
        self.verdicts: dict[tuple[str, str], Reason | None] = {}  # by card and family
        self.crashes: list[Card] = []

    def cards_for(self, family: str) -> tuple[Card, ...]:
        return tuple(card for card in self.computing if not self.verdicts.get((card.name, family)))

    @property
    def refused(self) -> tuple[RefusedFamily, ...]:  # type: ignore[override]
        return tuple(RefusedFamily("A card", family, why) for (_, family), why in self.verdicts.items() if why)

    def is_proved(self, family: str, devices: Sequence[str], *, with_head: bool) -> bool:
        return all(self.verdicts.get((device, family), LACKS) is None for device in devices)

    def judge(self, card: Card, family: str, why: Reason | None, *, with_head: bool = False) -> None:
        self.verdicts[card.name, family] = why

    def crashed(self, card: Card, family: str) -> None:
        self.crashes.append(card)
        self.judge(card, family, Reason("device_crashed"))
