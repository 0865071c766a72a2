"""The graphics cards that this computer can use for models, through the libraries of its engine packs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from app.core.errors import AppError, Fact, Reason, StageLost
from app.core.planner.card_division import CardDivision, StageParts
from app.core.recovery import fault_table
from app.machine.hardware.engines import Device
from app.machine.sensors.card_use import CardReading
from backends.contract import StageConfig

# For a card that several back ends offer, the first of these. Vulkan decodes faster than ROCm on AMD's cards.
APIS = ("CUDA", "Metal", "MTL", "Vulkan", "ROCm")
DISCRETE, INTEGRATED = CARD_KINDS = ("gpu", "igpu")


@dataclass(frozen=True, slots=True)
class UnusedCard:
    """A card that is not used for models, or a back end that found no card."""

    label: str
    why: Reason
    key: str = ""  # empty for a back end


@dataclass(frozen=True, slots=True)
class RefusedFamily:
    """A model family that a card cannot compute: it lacks an operation, returns wrong results, or crashes."""

    device: str  # the card's label
    family: str  # app/core/model.py, Model.family
    why: Reason  # a phrase
    by_another_card: bool = False  # whether another card computes it instead of the processor

    @property
    def reason(self) -> Reason:
        """Return the reason to show to the user."""
        facts: dict[str, Fact] = {"device": self.device, "family": self.family, "why": self.why}
        return Reason("card_family_other" if self.by_another_card else "card_family", facts)


@dataclass(frozen=True, slots=True)
class Card:
    """A graphics card, and the back end through which it is used."""

    name: str  # in the engine, such as `Vulkan0`
    label: str  # the product's name
    api: str
    library: Path
    code_cache: Path  # the folder in which its driver keeps compiled code
    pci: str  # its place on the PCI bus; empty if the back end does not report it
    is_integrated: bool  # uses main memory
    total_bytes: int
    free_bytes: int  # before any model was loaded
    number: int = 1  # among cards of the same product whose places are unknown

    @property
    def key(self) -> str:
        """Return a key for this card that stays the same across restarts."""
        return self.pci or (self.label if self.number == 1 else f"{self.label} {self.number}")


@dataclass(frozen=True, slots=True)
class CardClaim:
    """The graphics card memory that a stage has claimed, and the division of its layers among the cards."""

    cards: tuple[Card, ...]
    division: CardDivision
    work_bytes: int = 0  # the most working memory that it is thought to need on one of its cards

    @property
    def n_bytes(self) -> int:
        return sum(self.division.card_bytes)

    def placed(self, config: StageConfig) -> StageConfig:
        """Return a stage's configuration with its layers on these cards, or on the processor if they get none."""
        used = [(card.name, n) for card, n in zip(self.cards, self.division.counts, strict=True) if n]
        if not used:
            return replace(config, device="", library="", compared=False)
        (first, *more), counts = zip(*used, strict=True)
        is_whole = not more and not self.division.processor_layers
        return replace(
            config,
            device=first,
            library=str(self.cards[0].library),
            more_devices=tuple(more),
            device_layers=() if is_whole else counts,
            processor_experts=self.division.processor_experts,
        )


class ComputingCard(Protocol):
    """The cards that are currently used for models. app/node/graphics_cards.py implements this."""

    unused: tuple[UnusedCard, ...]
    computing: tuple[Card, ...]  # the best one first; all have the same library

    @property
    def card(self) -> Card | None:
        """The best card that computes."""
        ...

    @property
    def is_starting(self) -> bool:
        """Return whether cards are being tested for the first time since the node started."""
        ...

    @property
    def is_testing(self) -> bool:
        """Return whether it is not yet known if any card can compute."""
        ...

    async def tested(self) -> None:
        """Wait until it is known whether any card can compute."""
        ...

    @property
    def overflows(self) -> bool:
        """Return whether layers that do not fit on the cards may stay in main memory."""
        ...

    def claim(self, key: bytes, cards: Sequence[Card], parts: StageParts) -> CardClaim:
        """Divide a stage among the usable ones of these cards, and reserve their memory until it is released."""
        ...

    def note_work(self, key: bytes, device_work: Mapping[str, int]) -> None:
        """Record how much working memory an open stage uses on each of its devices."""
        ...

    def ran_short(self, keys: Collection[bytes]) -> None:
        """Record that the cards of these stages had less memory than expected. Later claims are then smaller."""
        ...

    def release(self, key: bytes) -> None:
        """Release the memory of a stage. Releasing it again is harmless."""
        ...

    @property
    def refused(self) -> tuple[RefusedFamily, ...]:
        """The families that at least one card cannot compute. Another card may still compute them."""
        ...

    def cards_for(self, family: str) -> tuple[Card, ...]:
        """Return the cards that can compute a family, the best one first. Empty if only the processor can."""
        ...

    def card_for(self, family: str) -> Card | None:
        """Return the best card that can compute a family, or None if only the processor can."""
        ...

    def is_proved(self, family: str, devices: Sequence[str], *, with_head: bool) -> bool:
        """Return whether each of these devices has computed this family with the same results as the processor.

        with_head: whether the last device must also have computed the output matrix correctly.
        """
        ...

    def judge(self, card: Card, family: str, why: Reason | None, *, with_head: bool = False) -> None:
        """Record why a card cannot compute a family, or with None, that it computes the family correctly."""
        ...

    def crashed(self, card: Card, family: str) -> None:
        """Record that a process crashed while opening a family that was not yet proved on this card."""
        ...

    def lost(self, card: Card) -> None:
        """Record that a stage on a card was lost."""
        ...

    def is_switched_off(self, device: str, library: str) -> bool:
        """Return whether the owner has switched off the card that an engine's library calls `device`."""
        ...

    def reading(self) -> CardReading:
        """Return the sensor readings of the cards in use. May block for seconds, so call this in a thread."""
        ...


class ProcessorOnly:
    """A computer without a graphics card."""

    unused: tuple[UnusedCard, ...] = ()
    is_starting = False
    is_testing = False
    computing: tuple[Card, ...] = ()
    refused: tuple[RefusedFamily, ...] = ()
    overflows = False

    async def tested(self) -> None:
        """Return immediately."""

    def claim(self, key: bytes, cards: Sequence[Card], parts: StageParts) -> CardClaim:
        return CardClaim((), CardDivision((), ()))

    def note_work(self, key: bytes, device_work: Mapping[str, int]) -> None:
        """Do nothing."""

    def ran_short(self, keys: Collection[bytes]) -> None:
        """Do nothing."""

    def release(self, key: bytes) -> None:
        """Do nothing."""

    @property
    def card(self) -> Card | None:
        return None

    def cards_for(self, family: str) -> tuple[Card, ...]:
        return ()

    def card_for(self, family: str) -> Card | None:
        return None

    def is_proved(self, family: str, devices: Sequence[str], *, with_head: bool) -> bool:
        return False

    def judge(self, card: Card, family: str, why: Reason | None, *, with_head: bool = False) -> None:
        """Do nothing."""

    def crashed(self, card: Card, family: str) -> None:
        """Do nothing."""

    def lost(self, card: Card) -> None:
        """Do nothing."""

    def is_switched_off(self, device: str, library: str) -> bool:
        return False

    def reading(self) -> CardReading:
        return CardReading()


PROCESSOR_ONLY = ProcessorOnly()


def is_card_failure(error: AppError) -> bool:
    """Return whether a stage failed because of its card or the card's driver, but not for lack of memory."""
    if error.reason.code in ("worker_card_short", "worker_memory_short"):
        return False
    return isinstance(error, StageLost) or error.reason.code == "device_unusable"


_OF_MAIN_MEMORY = ("bad_alloc", "allocate CPU")  # in llama.cpp's messages


def is_card_short(error: AppError) -> bool:
    """Return whether a stage failed because its card was out of memory, while main memory was not."""
    if error.reason.code == "memory_short":
        cause, words = error.reason.facts.get("cause"), str(error.reason.facts.get("text", ""))
        if isinstance(cause, Reason) and cause.code == "layers_no_memory":  # Python's own allocations
            return False
        return not any(sign in words for sign in _OF_MAIN_MEMORY)
    return error.reason.code == "worker_card_short"


def label_of(cards: Sequence[Card], config: StageConfig) -> str:
    """Return the names of the cards that compute a stage, plus `CPU` if the processor helps. "" if no card computes."""
    labels = [next((card.label for card in cards if card.name == device), device) for device in config.devices]
    return " + ".join([*labels, *(["CPU"] if labels and config.uses_processor else [])])


CRASHES = ("engine_gave_up", "worker_crashed", "worker_died", "worker_hung")


def is_crash(error: AppError) -> bool:
    """Return whether a process crashed or hung. If it was opening a stage, the model's family may be the cause."""
    return fault_table.cause_code(error.reason) in CRASHES


def lose_card(graphics: ComputingCard, devices: Sequence[str], family: str = "") -> None:
    """Record that a stage on these devices was lost.

    family: the model's family, if the stage crashed while it was being opened. If the card has not yet been proved
    with this family, only the family is refused, because the card itself has passed its test.

    The engine does not report which of the cards failed. The last card is blamed, so that the best card is tried alone
    before it is blamed too. All cards are tested again after a loss, which reliably detects a dead one.
    """
    blamed = [card for card in graphics.computing if card.name in devices]
    doubted = [card for card in blamed if family and not graphics.is_proved(family, (card.name,), with_head=False)]
    if doubted:
        graphics.crashed(doubted[-1], family)
    elif blamed:
        graphics.lost(blamed[-1])


def why_no_card(graphics: ComputingCard, machine: str) -> Reason | None:
    """Return the reason why models run on this computer's processor although it has a graphics card.

    Return None if a card is used, or if the owner cannot expect any card to be used.
    """
    if graphics.card is not None:
        return None
    if graphics.is_testing:
        return Reason("plan_card_testing", {"machine": machine})
    for card in graphics.unused:
        if card.key and card.why.code not in _BY_CHOICE:
            return Reason("plan_card_unused", {"machine": machine, "device": card.label, "why": card.why})
    return None


_BY_CHOICE = ("card_switched_off", "card_small")


def refusal_of(error: AppError) -> Reason | None:
    """Return why a card cannot compute the family of a stage, or None if the error has another cause."""
    if error.reason.code != "device_unfit":
        return None
    cause = error.reason.facts.get("cause")
    return cause if isinstance(cause, Reason) else Reason("reason_unknown")


def compared_if_needed(graphics: ComputingCard, config: StageConfig, family: str) -> StageConfig:
    """Return a stage's configuration. It asks for a comparison with the processor only if none was made yet."""
    needed = config.compared and not graphics.is_proved(family, config.devices, with_head=config.role.has_head)
    return replace(config, compared=needed)


def prove(graphics: ComputingCard, config: StageConfig, family: str) -> None:
    """Record that the cards of a stage had the same results as the processor.

    The last card has the output matrix.
    """
    for card in graphics.computing:
        if card.name in config.devices:
            graphics.judge(card, family, None, with_head=config.role.has_head and card.name == config.devices[-1])


def families_without_card(graphics: ComputingCard) -> tuple[str, ...]:
    """Return the families that no card can compute, so they run on the processor."""
    return tuple(sorted({refused.family for refused in graphics.refused if not refused.by_another_card}))


def refusing(cards: Sequence[Card], why: Reason) -> tuple[Card, ...]:
    """Return the card that, according to the engine, cannot compute the stage's family."""
    named = why.facts.get("device")
    return tuple(card for card in cards if card.name == named) or tuple(cards[:1])


def ranked(devices: Iterable[tuple[Path, Device]], code_cache: Path) -> list[Card]:
    """Return each card once. Cards with their own memory come first, and larger ones before smaller ones.

    devices: all devices, each with the library that offers it.
    """
    cards = [
        Card(
            device.name,
            device.description or device.name,
            device.api,
            library,
            code_cache,
            device.pci,
            device.kind == INTEGRATED,
            device.total_bytes,
            device.free_bytes,
        )
        for library, device in devices
        if device.kind in CARD_KINDS
    ]
    best: list[Card] = []
    for card in sorted(cards, key=_by_api):
        if not any(_is_same(card, other) for other in best):
            best.append(card)
    return _numbered(sorted(best, key=lambda card: (card.is_integrated, -card.total_bytes, card.name)))


def _numbered(cards: Sequence[Card]) -> list[Card]:
    """Return the cards, numbered so that their keys are unique."""
    seen, numbered = Counter[str](), []
    for card in cards:
        seen[card.key] += 1
        numbered.append(replace(card, number=seen[card.key]))
    return numbered


def _by_api(card: Card) -> int:
    return APIS.index(card.api) if card.api in APIS else len(APIS)


def _is_same(card: Card, other: Card) -> bool:
    """Return whether two back ends offer the same card. Devices of one back end are always different cards."""
    if card.library == other.library:
        return False
    return is_same_card((card.pci, card.label), (other.pci, other.label))


def is_same_card(left: tuple[str, str], right: tuple[str, str]) -> bool:
    """Return whether two back ends refer to the same card.

    left, right: the card's place on the PCI bus, or "", and its label in each back end.
    """
    if left[0] and right[0]:
        return left[0] == right[0]
    return _words(left[1]) <= _words(right[1]) or _words(right[1]) <= _words(left[1])


def _words(label: str) -> set[str]:
    """Return the words of a product name that can be compared: without the maker and the driver in parentheses."""
    return {word for word in label.partition("(")[0].lower().split() if word not in ("nvidia", "amd", "intel", "apple")}
