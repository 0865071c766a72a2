"""The graphics cards that compute for this node: how they are found, tested with a known answer, and abandoned.

app/node/card_memory.py tracks how much of their memory stages use.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from app.core.errors import Reason
from app.core.planner.card_division import StageParts
from app.core.reasons import os_cause, said
from app.decoding import decode
from app.inference.worker.worker import CODE_CACHES
from app.machine import paths
from app.machine.engine_packs.self_test import self_test
from app.machine.hardware.cards import Card, CardClaim, RefusedFamily, UnusedCard, ranked
from app.machine.hardware.engines import Device, last_words, run_child
from app.machine.installation import guide_file
from app.machine.paths import Home
from app.machine.sensors.card_sensors import CardSensors
from app.machine.sensors.card_use import CardReading
from app.machine.settings import GraphicsSettings
from app.node.card_memory import SHORT_SECONDS, CardMemory
from app.node.card_verdicts import CardVerdicts, Verdict
from app.node.engines.engine_packs import EnginePackService
from app.node.measured_work import MeasuredWork
from backends.contract import CPU_VARIANT, EXACT, KnownAnswer

log = logging.getLogger(__name__)

TEST_SECONDS = 300.0  # a driver compiles code for its card first
LEAST_BYTES = 256 << 20  # a smaller card would hold hardly a layer
FAILED_TESTS = (
    "answer_not_understood",
    "card_not_finite",
    "card_test_crashed",
    "card_unsteady",
    "card_wrong",
    "no_answer_within",
)
LOSSES, WITHIN_SECONDS = 2, 600.0  # a card that failed this often in this time is no longer used


class GraphicsCards:
    """Chooses the cards that compute, and chooses again when the engine packs or the owner's settings change.

    All working cards that have their own memory and share one library are chosen. If there are none, one card that uses
    main memory is chosen.

    packs: the engine packs, which know the back ends in use.
    settings: returns the owner's current limits for the cards.
    note: adds an event to the journal.
    """

    def __init__(
        self,
        home: Home,
        packs: EnginePackService,
        settings: Callable[[], GraphicsSettings],
        changed: Callable[[], None],
        sensors: CardSensors | None = None,
        note: Callable[[Reason], None] = lambda _: None,
    ) -> None:
        self.code_cache = home.root / "graphics"
        self.packs, self._settings, self._changed, self._note = packs, settings, changed, note
        self._news = asyncio.Event()
        # times at which stages on a card were lost, each with the family that crashed while it was opened, or ""
        self._losses: dict[str, list[tuple[float, str]]] = {}
        self._sensors = sensors or CardSensors()
        self.work = MeasuredWork(home.root / "card-memory.json", changed=self._work_measured)
        self.card_memory = CardMemory(lambda: self.computing, settings, self.work)
        self._n_doubts = 0  # sleeps and losses: either may have changed the driver, so the card is tested again
        self._verdicts = CardVerdicts(home.root / "cards.json")
        self._is_unsaved = False  # whether there are verdicts or measurements that are not saved yet
        self._of_cards: dict[str, dict[str, Verdict]] = {}  # the verdicts on each card that computes, by family
        self._has_chosen = False
        self._tested = asyncio.Event()  # set unless cards are being tested and none computes meanwhile
        self._keys_off: frozenset[str] = frozenset(settings().off)  # when last told
        self.computing: tuple[Card, ...] = ()
        self.cards: tuple[Card, ...] = ()  # all that the back ends see
        self.probed: tuple[Path, ...] = ()  # the libraries that were asked for them
        self.unused: tuple[UnusedCard, ...] = ()

    def changed(self) -> None:
        """Note that the packs or the owner's choice may have changed. Calls are cheap.

        A card that was switched off is not used for new work from now on.
        """
        keys_off = frozenset(self._settings().off)
        for key in self._keys_off - keys_off:  # who switches a card off and on wants another try
            self._losses.pop(key, None)
        self._keys_off = keys_off
        off = [card for card in self.computing if card.key in keys_off]
        if off:
            why = Reason("card_switched_off")
            self.unused = (*self.unused, *(UnusedCard(card.label, why, card.key) for card in off))
            self._leave_out({card.key for card in off})
        self._news.set()

    def _leave_out(self, keys: Container[str]) -> None:
        self.computing = tuple(card for card in self.computing if card.key not in keys)
        self._read_verdicts()
        self._changed()

    def _read_verdicts(self) -> None:
        self._of_cards = {card.key: self._verdicts.of(card) for card in self.computing}

    @property
    def card(self) -> Card | None:
        """The best of the cards that compute, or None."""
        return self.computing[0] if self.computing else None

    @property
    def is_starting(self) -> bool:
        """Return whether cards are being tested for the first time since the start."""
        return not self._has_chosen and bool(self.packs.libraries)

    @property
    def is_testing(self) -> bool:
        """Return whether cards are still being tested, so that it is not known yet whether any can compute."""
        return not self._tested.is_set() and bool(self.packs.libraries)

    async def tested(self) -> None:
        """Wait until it is known whether any card can compute."""
        await self._tested.wait()

    @property
    def overflows(self) -> bool:
        """Return whether layers that do not fit on the cards may stay in main memory."""
        return self.card_memory.overflows

    async def run(self) -> None:
        """Choose the cards whenever something has changed, until canceled."""
        try:
            await self._keep_choosing()
        finally:
            self._save()

    async def _keep_choosing(self) -> None:
        await self.packs.run()
        seen: object = None
        packs_before: object = None
        while True:
            packs_now = (dict(self.packs.libraries), self.packs.n_tests)
            if packs_now != packs_before:  # who changes or tests a pack wants another try
                packs_before = packs_now
                self._losses.clear()
            now = (packs_now, self._settings().off, self._given_up(), self._n_doubts)
            if now != seen:
                seen = now
                if not self.computing:
                    self._tested.clear()
                await self._choose()
                self._has_chosen = True
                self._tested.set()
                self._changed()
            if self._is_unsaved:
                await asyncio.to_thread(self._save)
            await self._news.wait()
            self._news.clear()

    def _save(self) -> None:
        if self._is_unsaved:
            self._is_unsaved = False
            self._verdicts.save()
            self.work.save()

    def _work_measured(self) -> None:
        self._is_unsaved = True
        self._news.set()

    def woke(self) -> None:
        """Test the cards again after this computer has been asleep. The verdicts on families are kept."""
        self._n_doubts += 1
        self.changed()

    @property
    def refused(self) -> tuple[RefusedFamily, ...]:
        """The families that a chosen card does not compute. Another card may compute them."""
        return tuple(
            RefusedFamily(card.label, family, verdict.why, bool(self.cards_for(family)))
            for card in self.computing
            for family, verdict in self._of_cards.get(card.key, {}).items()
            if verdict.code
        )

    @property
    def missing_bytes(self) -> tuple[tuple[str, int], ...]:
        """The lendable memory, in bytes, that each family cannot use because it is on cards that do not compute
        it.

        Only families that another card computes are included.
        """
        families = sorted({each.family for each in self.refused if each.by_another_card})
        return tuple((family, self.card_memory.room_on(self._without(family))) for family in families)

    def _without(self, family: str) -> list[Card]:
        able = {card.key for card in self.cards_for(family)}
        return [card for card in self.computing if card.key not in able]

    def cards_for(self, family: str) -> tuple[Card, ...]:
        """Return the cards that compute a family, the best one first. The result is empty if only the processor
        computes it.
        """
        return tuple(
            card for card in self.computing if (known := self._verdict(card, family)) is None or not known.code
        )

    def card_for(self, family: str) -> Card | None:
        """Return the best card that computes a family, or None if only the processor computes it."""
        return next(iter(self.cards_for(family)), None)

    def _verdict(self, card: Card, family: str) -> Verdict | None:
        return self._of_cards.get(card.key, {}).get(family)

    def is_proved(self, family: str, devices: Sequence[str], *, with_head: bool) -> bool:
        """Return whether each of these devices is known to compute this family with the same results as the
        processor.

        with_head: whether the last device must also have been tested with the output matrix, which it computes.
        """
        sound = {
            card.name: known for card in self.computing if (known := self._verdict(card, family)) and not known.code
        }
        if not devices or any(device not in sound for device in devices):
            return False
        return not with_head or sound[devices[-1]].with_head

    def judge(self, card: Card, family: str, why: Reason | None, *, with_head: bool = False) -> None:
        """Record a verdict: `why` is the reason why a card does not compute a family, or None if it does.

        with_head: whether the output matrix was compared as well.
        """
        if all(card.key != other.key for other in self.computing):
            return
        before = self._verdict(card, family)
        with_head = with_head or (before is not None and before.with_head)
        if before is not None and (before.code, before.with_head) == (why.code if why else "", with_head):
            return
        self._verdicts.keep(card, family, why, with_head=with_head)
        self._read_verdicts()
        self._is_unsaved = True
        self._news.set()
        if why is None:
            log.info("the graphics card %s computes %s as the processor does", card.label, family)
            return
        refused = RefusedFamily(card.label, family, why, bool(self.cards_for(family)))
        log.warning("%s", said(refused.reason))
        code = "log_node_card_family_other" if refused.by_another_card else "log_node_card_family"
        self._note(Reason(code, refused.reason.facts))
        self._changed()

    def lost(self, card: Card) -> None:
        """Record that a stage on a card was lost. A card that is lost repeatedly is no longer used."""
        self._lose(card, "")

    def crashed(self, card: Card, family: str) -> None:
        """Record that a process crashed while it loaded a family that this card has not been proved to compute.

        The card had passed its own test, and is tested again. If it passes, only this family is refused. A card that
        crashes with one family after another is no longer used.
        """
        self.judge(card, family, Reason("device_crashed"))
        self._lose(card, family)

    def _lose(self, card: Card, family: str) -> None:
        now = time.monotonic()
        recent = [(at, of) for at, of in self._losses.get(card.key, []) if now - at < WITHIN_SECONDS]
        again = bool(family) and any(of == family for _, of in recent)
        self._losses[card.key] = recent if again else [*recent, (now, family)]
        self._n_doubts += 1
        if card.key in self._given_up() and card.key in {other.key for other in self.computing}:
            self._leave_out({card.key})
        self.changed()

    def claim(self, key: bytes, cards: Sequence[Card], parts: StageParts) -> CardClaim:
        """Divide a stage among those of the given cards that compute, and reserve memory for it until it is
        released.
        """
        return self.card_memory.claim(key, cards, parts)

    def note_work(self, key: bytes, device_work: Mapping[str, int]) -> None:
        """Remember how much working memory an open stage uses on each of its devices."""
        self.card_memory.note_work(key, device_work)

    def ran_short(self, keys: Collection[bytes]) -> None:
        """Record that the cards of these stages had less memory than expected, so that stages claim less of it for
        a while.
        """
        for card in self.card_memory.ran_short(keys):
            log.warning("the graphics card %s ran out of memory, so less of it is used for a while", card.label)
            minutes = round(SHORT_SECONDS / 60)
            self._note(Reason("log_node_card_short", {"device": card.label, "minutes": minutes}))
        self._changed()

    def release(self, key: bytes) -> None:
        """Release the memory of a stage. Releasing it again is harmless."""
        self.card_memory.release(key)

    def why_idle(self, backend: str, library: Path) -> Reason | None:
        """Return why no card computes through the library of a pack in use. Return None if a card does, or if the
        library has not been probed yet.
        """
        if library not in self.probed or any(card.library == library for card in self.computing):
            return None
        keys = {card.key for card in self.cards if card.library == library}
        for other in self.unused:
            if other.key and other.key in keys:
                return Reason("check_card_unused", {"device": other.label, "why": other.why})
            if not other.key and other.label == backend:
                return other.why
        return None if keys else Reason("pack_cards_elsewhere")

    def is_switched_off(self, device: str, library: str) -> bool:
        """Return whether the owner has switched off the card that an engine's library calls `device`."""
        off = self._settings().off
        return any((c.name, str(c.library)) == (device, library) and c.key in off for c in self.cards)

    def reading(self) -> CardReading:
        """Return the sensor readings of the cards that compute. May block for seconds, so call this in a thread.

        If there are no such readings, return the load of the busiest card that has its own memory. It may come from a
        game, which needs the whole computer.
        """
        computing = self.computing
        readings = self._sensors.read(
            {card.pci.lower() for card in computing if card.pci and self.card_memory.is_claimed(card)}
        )
        own = []
        for card in computing:
            reading = next((each for each in readings if card.pci and each.pci == card.pci.lower()), None)
            self.card_memory.note_others(card, reading.others_bytes if reading else None)
            own += [reading] if reading else []
        if own:
            return _combined(own)
        percents = [r.others_percent for r in readings if r.is_discrete and r.others_percent is not None]
        return CardReading(others_percent=max(percents, default=None))

    def _given_up(self) -> frozenset[str]:
        return frozenset(key for key, times in self._losses.items() if len(times) >= LOSSES)

    async def _choose(self) -> None:
        libraries = list(self.packs.libraries.values())
        cards, unused = await self._find()
        self.cards, self.probed = tuple(cards), tuple(libraries)
        chosen: list[Card] = []
        for card in cards:
            why = self._unfit(card) or _not_beside(card, chosen) or await self._known_answer(card)
            if why is None:
                chosen.append(card)
            else:
                if why.code in FAILED_TESTS and self._verdicts.forget(card, "device_crashed"):
                    self._is_unsaved = True  # it was the card's fault
                unused.append(UnusedCard(card.label, why, card.key))
        # the owner may have switched a card off, or it may have failed, while others were tested
        late = [UnusedCard(card.label, why, card.key) for card in chosen if (why := self._unfit(card)) is not None]
        chosen = [card for card in chosen if self._unfit(card) is None]
        self.computing, self.unused = tuple(chosen), (*unused, *late)
        self._read_verdicts()
        for other in unused:
            log.info("the graphics card %s is not used: %s", other.label, other.why)
        for card in chosen:
            log.info("the graphics card %s computes through %s", card.label, card.api)

    async def _find(self) -> tuple[list[Card], list[UnusedCard]]:
        """Probe each library in a process of its own, because a broken driver may crash or hang."""
        devices: list[tuple[Path, Device]] = []
        unused: list[UnusedCard] = []
        for backend, library in self.packs.libraries.items():
            tested = await self_test(backend, {backend: library})
            if tested.failure is not None:
                unused.append(UnusedCard(backend, tested.failure))
            devices += [(library, device) for device in tested.devices]
        return [self.card_memory.with_most_free(card) for card in ranked(devices, self.code_cache)], unused

    def _unfit(self, card: Card) -> Reason | None:
        """Return why a card must not compute, judging only by what is known without a test, or None."""
        if card.key in self._settings().off:
            return Reason("card_switched_off")
        if card.key in self._given_up():
            return Reason("card_lost", {"count": LOSSES})
        if card.total_bytes < LEAST_BYTES:
            return Reason("card_small", {"total_bytes": card.total_bytes, "least_bytes": LEAST_BYTES})
        return None

    async def _known_answer(self, card: Card) -> Reason | None:
        """Run a model on a card and compare the result with a known answer. Return why the card must not compute,
        or None. This takes seconds.
        """
        guide = str(guide_file())
        command = paths.python_command("-m", "backends", "check", guide, card.name, str(card.library))
        more = {CPU_VARIANT: EXACT, **dict.fromkeys(CODE_CACHES, str(self.code_cache))}
        try:
            await asyncio.to_thread(self.code_cache.mkdir, parents=True, exist_ok=True)
            code, out, err = await run_child(command, TEST_SECONDS, more)
        except TimeoutError:
            return Reason("no_answer_within", {"seconds": round(TEST_SECONDS)})
        except OSError as error:
            return Reason("card_untested", {"why": os_cause(error)})
        if code:
            return Reason("card_test_crashed", {"why": last_words(err)})
        try:
            result = decode(out, KnownAnswer)
        except (msgspec.DecodeError, UnicodeError):
            return Reason("answer_not_understood")
        match result.failure:
            case "":
                return None
            case "not_finite":
                return Reason("card_not_finite")
            case "unsteady":
                return Reason("card_unsteady")
            case _:
                return Reason("card_wrong", {"percent": round(100 * result.apart, 1)})


def _not_beside(card: Card, chosen: Sequence[Card]) -> Reason | None:
    """Return why a card cannot compute together with the cards chosen before it, or None if it can."""
    if not chosen:
        return None
    if card.is_integrated:
        return Reason("card_other_used")
    if card.library != chosen[0].library:
        return Reason("card_other_library", {"api": chosen[0].api})
    return None


def _combined(readings: Sequence[CardReading]) -> CardReading:
    """Return one reading for several cards that compute together: the highest temperature and load of any of them."""
    first = readings[0]
    if len(readings) == 1:
        return first

    def most(values: Sequence[float | None]) -> float | None:
        return max((value for value in values if value is not None), default=None)

    return replace(
        first,
        celsius=most([each.celsius for each in readings]),
        busy_percent=most([each.busy_percent for each in readings]),
        others_percent=most([each.others_percent for each in readings]),
    )
