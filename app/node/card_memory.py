"""The memory of the graphics cards that compute: how much is free, and how much this node's own and lent stages
claim.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from app.core.planner.card_division import CardDivision, StageParts, divide
from app.core.planner.stage_memory import WORK_FLOOR_BYTES
from app.core.planner.work_shape import WorkShape, work_of
from app.machine.hardware.cards import Card, CardClaim
from app.machine.hardware.devices import Memory, memory
from app.machine.settings import GraphicsSettings
from app.node.card_verdicts import fingerprint_of
from app.node.measured_work import MeasuredWork

RESERVE_SHARE, RESERVE_BYTES = 0.1, 256 << 20  # of a card's memory, left to the desktop and the driver
SHORT_SHARE = 0.7  # of the memory that stages had, or were to have, on a card when it had too little
MOST_SHORTAGES = 3  # after so many, nothing more is put on the card for now
SHORT_SECONDS = 600.0  # then it is thought to have its memory again: what other programs use changes


@dataclass(frozen=True, slots=True)
class _Shortage:
    """The limit that follows a memory shortage: how much all stages together may claim on a card, and until when."""

    most_bytes: int
    until: float  # on the monotonic clock
    count: int


class CardMemory:
    """Divides stages among the cards and reserves their memory.

    The memory that this node's own stages use is known from their claims, because few drivers report free memory
    reliably.

    cards: returns the cards that compute, the best one first.
    settings: returns the owner's current limits for them.
    work: the working memory that earlier stages needed on the cards. New measurements are added to it.
    """

    def __init__(
        self,
        cards: Callable[[], tuple[Card, ...]],
        settings: Callable[[], GraphicsSettings],
        work: MeasuredWork,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cards, self._settings, self._work, self._clock = cards, settings, work, clock
        self._shapes: dict[bytes, tuple[WorkShape, tuple[Card, ...], int]] = {}  # of each claim
        self._shortages: dict[str, _Shortage] = {}  # by card
        self._most_free: dict[str, int] = {}  # bytes, by card
        self._others_bytes: dict[str, int | None] = {}  # memory that other programs use, by card
        self._claims: dict[bytes, dict[str, int]] = {}  # bytes on each card, by stage

    @property
    def overflows(self) -> bool:
        """Return whether layers that do not fit on the cards may stay in main memory."""
        cards = self._cards()
        return bool(cards) and not cards[0].is_integrated and not self._settings().card_only

    def now(self) -> Memory | None:
        """Return the memory of all cards together, or None if there is no card. An integrated card shares main
        memory, which then limits both figures.
        """
        cards = self._cards()
        if not cards:
            return None
        total_bytes = sum(card.total_bytes for card in cards)
        percent = self._settings().memory_percent
        most_bytes = None if percent == 100 else total_bytes * percent // 100
        own = Memory(total_bytes, sum(map(self._free_bytes, cards)), most_bytes)
        if not cards[0].is_integrated:
            return own
        main = memory()
        return Memory(min(own.total_bytes, main.total_bytes), min(own.free_bytes, main.free_bytes), most_bytes)

    @property
    def room_bytes(self) -> int:
        """Return how much more memory stages may use on all cards together."""
        return sum(map(self._room_bytes, self._cards()))

    def room_on(self, cards: Collection[Card]) -> int:
        """Return how much more memory stages may use on these cards together."""
        return sum(map(self._room_bytes, cards))

    @property
    def claimed_bytes(self) -> int:
        """Return the memory that this node's stages have claimed on all cards together."""
        return sum(sum(claim.values()) for claim in tuple(self._claims.values()))

    def is_claimed(self, card: Card) -> bool:
        """Return whether this node's stages have claimed memory on a card."""
        return self._claimed(card.key) > 0

    def with_most_free(self, card: Card) -> Card:
        """Return a probed card with its free memory raised to the most that was ever measured on it.

        The latest measurement may be too low, because this node's own stages may occupy part of the card.
        """
        free_bytes = max(card.free_bytes, self._most_free.get(card.key, 0))
        self._most_free[card.key] = free_bytes
        return replace(card, free_bytes=free_bytes)

    def note_others(self, card: Card, used_bytes: int | None) -> None:
        """Note how much memory of a card other programs use; None if the sensors do not report it."""
        self._others_bytes[card.key] = used_bytes

    def claim(self, key: bytes, cards: Sequence[Card], parts: StageParts) -> CardClaim:
        """Divide a stage among those of the given cards that compute, and reserve memory for it until it is
        released.

        If none of them computes anymore, the whole stage is placed on the first card. If main memory may not be used,
        the driver decides where to put the layers that do not fit on the cards.
        """
        self.release(key)
        computing = {card.key for card in self._cards()}
        cards = tuple(card for card in cards if card.key in computing) or tuple(cards[:1])
        rooms = list(map(self._room_bytes, cards))
        works = [self._work_bytes(card, parts) for card in cards]
        division = divide(parts, rooms, works, overflow=self.overflows)
        if division is None:
            count = 0 if self.overflows else len(parts.layer_bytes)
            n_bytes = sum(parts.layer_bytes) + parts.head_bytes + works[0] if count else 0
            rest = (0,) * (len(cards) - 1)
            division = CardDivision((count, *rest), (n_bytes, *rest), len(parts.layer_bytes) - count)
        self._claims[key] = {
            other.key: n_bytes for other, n_bytes in zip(cards, division.card_bytes, strict=True) if n_bytes
        }
        used = [(card, work) for card, work, n in zip(cards, works, division.counts, strict=True) if n]
        work_bytes = max((work for _, work in used), default=parts.work_bytes)
        if parts.shape is not None:
            self._shapes[key] = parts.shape, tuple(card for card, _ in used), work_bytes
        return CardClaim(cards, division, work_bytes)

    def note_work(self, key: bytes, device_work: Mapping[str, int]) -> None:
        """Remember how much working memory an open stage uses on each of its devices."""
        if key not in self._shapes:
            return
        shape, cards, _ = self._shapes[key]
        for card in cards:
            if n_bytes := device_work.get(card.name, 0):
                self._work.keep(fingerprint_of(card), shape, n_bytes)

    def _work_bytes(self, card: Card, parts: StageParts) -> int:
        """Return the working memory that a stage needs on a card: the measured value if there is one, otherwise an
        estimate.
        """
        if parts.shape is None:
            return parts.work_bytes
        # just after a shortage, the limit on all claims is enough: both together would leave nothing on a small card
        steps = self._shortage(card.key) is None
        return work_of(parts.shape, self._work.at(fingerprint_of(card), steps=steps)) or parts.work_bytes

    def ran_short(self, keys: Collection[bytes]) -> list[Card]:
        """Record that the cards of these stages had less memory than expected, and let stages claim less of it for
        a while. Return the cards for which this is new.

        The engine does not report which of several cards ran out of memory.
        """
        claimed = {key for claim in (self._claims.get(each, {}) for each in keys) for key in claim}
        known = {key: self._shortage(key) for key in claimed}
        for shape, cards, work_bytes in (self._shapes[each] for each in keys if each in self._shapes):
            for card in cards:
                self._work.ran_short(fingerprint_of(card), shape, max(0, work_bytes - WORK_FLOOR_BYTES))
        # A card that no longer computes counts too: a stage that is still being opened may try it again.
        for key, before in known.items():
            count = 1 + (before.count if before else 0)
            most_bytes = 0 if count >= MOST_SHORTAGES else int(SHORT_SHARE * self._claimed(key))
            self._shortages[key] = _Shortage(most_bytes, self._clock() + SHORT_SECONDS, count)
        return [card for card in self._cards() if card.key in claimed and known[card.key] is None]

    def _shortage(self, key: str) -> _Shortage | None:
        """Return the latest memory shortage on a card, or None if there was none recently."""
        shortage = self._shortages.get(key)
        return shortage if shortage is not None and self._clock() < shortage.until else None

    def release(self, key: bytes) -> None:
        """Release the memory of a stage. Releasing it again is harmless."""
        self._claims.pop(key, None)
        self._shapes.pop(key, None)

    def _free_bytes(self, card: Card) -> int:
        reserve = max(RESERVE_BYTES, int(RESERVE_SHARE * card.total_bytes))
        free_bytes = min(card.free_bytes, card.total_bytes - (self._others_bytes.get(card.key) or 0))
        free_bytes -= reserve
        if (shortage := self._shortage(card.key)) is not None:
            free_bytes = min(free_bytes, shortage.most_bytes)
        return max(0, free_bytes - self._claimed(card.key))

    def _room_bytes(self, card: Card) -> int:
        most_bytes = card.total_bytes * self._settings().memory_percent // 100
        return max(0, min(self._free_bytes(card), most_bytes - self._claimed(card.key)))

    def _claimed(self, key: str) -> int:
        """Return the memory that stages have claimed on a card. The sensor thread also calls this, so the claims
        may change during the call.
        """
        return sum(claim.get(key, 0) for claim in tuple(self._claims.values()))
