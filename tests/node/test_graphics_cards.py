"""Tests of which card computes for a node, and of why another does not. The drivers are programs that answer."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.core.errors import Reason
from app.core.planner.card_division import StageParts
from app.core.reasons import said
from app.machine.engine_packs.store import PackStore, Tested
from app.machine.hardware.cards import CardClaim, families_without_card, lose_card
from app.machine.hardware.devices import Memory
from app.machine.hardware.engines import Device
from app.machine.paths import Home
from app.machine.sensors.card_sensors import CardSensors
from app.machine.sensors.card_use import CardReading, DriverReport
from app.machine.settings import GraphicsSettings
from app.node import card_memory, graphics_cards
from app.node.engines.engine_packs import EnginePackService
from app.node.graphics_cards import GraphicsCards

GIB = 1 << 30
BIG = Device("Vulkan0", "Big card", "gpu", "Vulkan", 12 * GIB, 16 * GIB, "0000:01:00.0")
SMALL = Device("Vulkan1", "Small card", "gpu", "Vulkan", 4 * GIB, 4 * GIB, "0000:02:00.0")
TINY = Device("Vulkan2", "Tiny card", "gpu", "Vulkan", 1 << 20, 1 << 20, "0000:03:00.0")
PASSED = json.dumps({"failure": "", "apart": 0.01})
CRASHED = Reason("card_test_crashed", {"why": Reason("engine_words", {"words": "a driver broke"})})
WRONG = json.dumps({"failure": "apart", "apart": 0.4321})


@dataclass
class Bench:
    """The cards of a computer, and what their drivers do."""

    cards: GraphicsCards
    libraries: dict[str, Path]
    off: list[str]
    percents: list[int]  # of the memory, as the owner allows
    only: list[bool]  # whether the owner wants only cards
    reports: list[DriverReport]  # what the drivers tell
    tested: Tested
    answers: dict[str, tuple[int, str, str] | Exception | type[Exception]]
    by_backend: dict[str, Tested] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    noted: list[Reason] = field(default_factory=list)
    changes: int = 0

    def restarted(self, home: Path) -> Bench:
        """Return the same computer after a restart of its node."""
        cards = GraphicsCards(Home.at(home), self.cards.packs, GraphicsSettings, lambda: None, None, self.noted.append)
        return replace(self, cards=cards)

    def reasons(self) -> dict[str, Reason]:
        return {card.label: card.why for card in self.cards.unused}


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    async def self_test(backend: str, libraries: dict[str, Path]) -> Tested:
        return made.by_backend.get(backend, made.tested)

    async def run_child(command: list[str], within_s: float, environment: dict[str, str]) -> tuple[int, str, str]:
        name = command[-2]
        made.asked.append(name)
        answer = made.answers.get(name, (0, PASSED, ""))
        if isinstance(answer, tuple):
            return answer
        raise answer

    monkeypatch.setattr(graphics_cards, "self_test", self_test)
    monkeypatch.setattr(graphics_cards, "run_child", run_child)
    libraries = {"vulkan": tmp_path / "libggml-vulkan.so"}
    off: list[str] = []
    percents = [100]

    def changed() -> None:
        made.changes += 1

    async def nothing() -> None:
        """Do nothing: there is no store to read."""

    packs = EnginePackService(PackStore(tmp_path / "engines"))
    packs.libraries = libraries
    monkeypatch.setattr(packs, "run", nothing)
    reports: list[DriverReport] = []
    clock = itertools.count(0, 1000)  # each reading is a new one
    sensors = CardSensors([lambda: reports], lambda: next(clock))
    only: list[bool] = []
    settings = lambda: GraphicsSettings(tuple(off), percents[0], bool(only))  # noqa: E731
    noted: list[Reason] = []
    cards = GraphicsCards(Home.at(tmp_path), packs, settings, changed, sensors, noted.append)
    made = Bench(cards, libraries, off, percents, only, reports, Tested([SMALL, BIG, TINY]), {}, noted=noted)
    return made


@asynccontextmanager
async def running(bench: Bench, until: Callable[[], Any]) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(bench.cards.run(), name="choose the card")
        await reached(until)
        yield
        task.cancel()


async def reached(until: Callable[[], Any]) -> None:
    async with asyncio.timeout(10):
        while not until():  # noqa: ASYNC110  anything may change it
            await asyncio.sleep(0.005)


KEY = b"a stage"


PARTS = StageParts((GIB, GIB), (0, 0), 0, 0)


def use(bench: Bench, *layers: int) -> CardClaim:
    """Load a stage with layers of these sizes."""
    assert bench.cards.card is not None
    return bench.cards.claim(KEY, bench.cards.computing, StageParts(layers, (0,) * len(layers), 0, 0))


def chosen(bench: Bench) -> str:
    return bench.cards.card.name if bench.cards.card else ""


async def test_nothing_is_lent_before_the_cards_were_tested_once(bench: Bench) -> None:
    states = [bench.cards.is_starting]
    async with running(bench, lambda: bench.cards.card):
        states.append(bench.cards.is_starting)
        bench.cards.woke()  # they are tested again, while layers may be lent
        states.append(bench.cards.is_starting)
    assert states == [True, False, False]
    del bench.libraries["vulkan"]
    assert not bench.restarted(Path()).cards.is_starting


async def test_who_waits_for_the_test_goes_on_once_it_is_known_whether_a_card_computes(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end, begun = asyncio.Event(), asyncio.Event()

    async def slow(command: list[str], within_s: float, environment: dict[str, str]) -> tuple[int, str, str]:
        begun.set()
        await may_end.wait()
        return 0, PASSED, ""

    monkeypatch.setattr(graphics_cards, "run_child", slow)
    async with running(bench, begun.is_set):
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(bench.cards.tested(), name="wait")
            await asyncio.sleep(0.02)
            assert (bench.cards.is_testing, waiting.done()) == (True, False)
            may_end.set()
        assert (bench.cards.is_testing, chosen(bench)) == (False, "Vulkan0")
        begun.clear()
        may_end.clear()
        bench.cards.woke()  # the card is tested again, and computes meanwhile
        await begun.wait()
        await bench.cards.tested()
        assert not bench.cards.is_testing
        may_end.set()


async def test_all_sound_cards_compute_together_the_largest_first(bench: Bench) -> None:
    async with running(bench, lambda: bench.cards.card):
        assert [card.name for card in bench.cards.computing] == ["Vulkan0", "Vulkan1"]
        assert {label: why.code for label, why in bench.reasons().items()} == {"Tiny card": "card_small"}
        assert bench.asked == ["Vulkan0", "Vulkan1"]


async def test_a_card_in_main_memory_computes_only_alone(bench: Bench) -> None:
    shared = msgspec.structs.replace(BIG, kind="igpu", name="Vulkan3", description="Shared card", pci="")
    bench.tested = Tested([SMALL, shared])
    async with running(bench, lambda: bench.cards.card):
        assert [card.name for card in bench.cards.computing] == ["Vulkan1"]
        assert bench.reasons() == {"Shared card": Reason("card_other_used")}


async def test_a_card_of_another_library_does_not_compute_beside_the_first(bench: Bench, tmp_path: Path) -> None:
    both = {"vulkan": Tested([SMALL]), "cuda": Tested([msgspec.structs.replace(BIG, name="CUDA0", api="CUDA")])}
    bench.libraries["cuda"] = tmp_path / "libggml-cuda.so"
    bench.by_backend.update(both)
    async with running(bench, lambda: bench.cards.card):
        assert [card.name for card in bench.cards.computing] == ["CUDA0"]
        assert bench.reasons() == {"Small card": Reason("card_other_library", {"api": "CUDA"})}


CUDA = msgspec.structs.replace(BIG, name="CUDA0", api="CUDA", description="NVIDIA Big card")


def why_pack_is_idle(bench: Bench, backend: str) -> str:
    why = bench.cards.why_idle(backend, bench.libraries[backend])
    return said(why) if why is not None else ""


@pytest.mark.parametrize("place", [BIG.pci, ""])  # some back ends do not tell where a card is
async def test_a_card_that_two_packs_offer_counts_once(bench: Bench, tmp_path: Path, place: str) -> None:
    bench.libraries["cuda13"] = tmp_path / "libggml-cuda.so"
    both = (msgspec.structs.replace(card, pci=place) for card in (BIG, CUDA))
    bench.by_backend.update(vulkan=Tested([next(both)]), cuda13=Tested([next(both)]))
    async with running(bench, lambda: bench.cards.card):
        (card,) = bench.cards.computing
        assert (card.name, bench.cards.cards, bench.cards.unused) == ("CUDA0", (card,), ())
        assert bench.asked == ["CUDA0"]  # and is tested once
        memory = bench.cards.card_memory.now()
        assert memory is not None
        assert memory.total_bytes == BIG.total_bytes
        assert why_pack_is_idle(bench, "cuda13") == ""
        assert why_pack_is_idle(bench, "vulkan") == "Its graphics cards are used through another pack."
        del bench.libraries["cuda13"]
        bench.cards.changed()
        await reached(lambda: chosen(bench) == "Vulkan0")
        assert len(bench.cards.computing) == 1


async def test_a_pack_in_use_tells_why_it_computes_nothing(bench: Bench, tmp_path: Path) -> None:
    bench.tested = Tested([BIG])
    assert why_pack_is_idle(bench, "vulkan") == "", "nothing is known yet"
    async with running(bench, lambda: bench.cards.card):
        assert why_pack_is_idle(bench, "vulkan") == ""
        bench.off.append(BIG.pci)
        bench.cards.changed()
        assert why_pack_is_idle(bench, "vulkan") == "Big card is not used. It is switched off."
        bench.off.clear()
        bench.tested = Tested(failure=Reason("pack_no_device", {"backend": "Vulkan"}))
        bench.cards.woke()
        await reached(lambda: "vulkan" in bench.reasons())
        assert why_pack_is_idle(bench, "vulkan").startswith("No graphics card was found through Vulkan.")
        bench.libraries["hip"] = tmp_path / "libggml-hip.so"
        assert why_pack_is_idle(bench, "hip") == "", "it was not asked yet"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ((0, WRONG, ""), Reason("card_wrong", {"percent": 43.2})),
        ((0, '{"failure": "not_finite"}', ""), Reason("card_not_finite")),
        ((0, '{"failure": "unsteady"}', ""), Reason("card_unsteady")),
        ((0, "{", ""), Reason("answer_not_understood")),
        (OSError("no more processes"), Reason("card_untested", {"why": "no more processes"})),
        ((-11, "", "a driver broke.\n"), CRASHED),
        (TimeoutError, Reason("no_answer_within", {"seconds": 300})),
    ],
)  # fmt: skip
async def test_a_card_that_fails_its_test_does_not_compute_and_the_next_one_does(
    bench: Bench, answer: Any, why: Reason
) -> None:
    bench.answers["Vulkan0"] = answer
    async with running(bench, lambda: bench.cards.card):
        assert bench.cards.card is not None
        assert bench.cards.card.name == "Vulkan1"
        assert bench.reasons()["Big card"] == why


async def test_a_card_that_the_owner_switches_off_makes_room_for_the_next(bench: Bench) -> None:
    async with running(bench, lambda: bench.cards.card):
        bench.off.append("0000:01:00.0")
        bench.cards.changed()
        assert chosen(bench) == "Vulkan1", "it computes nothing more at once, before the others are tested again"
        assert bench.reasons()["Big card"] == Reason("card_switched_off")


async def test_a_card_too_small_for_a_layer_is_named(bench: Bench) -> None:
    bench.tested = Tested([TINY])
    async with running(bench, lambda: bench.cards.unused):
        assert bench.cards.card is None
        assert bench.reasons()["Tiny card"].code == "card_small"
        assert bench.asked == []


async def test_a_back_end_without_a_card_is_named(bench: Bench) -> None:
    bench.tested = Tested(failure=Reason("pack_no_device", {"backend": "Vulkan"}))
    async with running(bench, lambda: bench.cards.unused):
        assert bench.reasons() == {"vulkan": Reason("pack_no_device", {"backend": "Vulkan"})}


async def test_a_card_is_tried_again_once_and_then_given_up(bench: Bench) -> None:
    async with running(bench, lambda: bench.cards.card):
        card = bench.cards.card
        assert card is not None
        bench.cards.lost(card)
        assert bench.cards.card == card
        bench.cards.lost(card)
        assert [other.name for other in bench.cards.computing] == ["Vulkan1"]
        await reached(lambda: "Big card" in bench.reasons())
        assert bench.reasons()["Big card"] == Reason("card_lost", {"count": 2})
        assert [other.name for other in bench.cards.computing] == ["Vulkan1"]
        bench.cards.packs.n_tests += 1  # the owner tests the packs
        bench.cards.changed()
        await reached(lambda: bench.cards.card == card)
        for _ in range(2):
            bench.cards.lost(card)
        await reached(lambda: "Big card" in bench.reasons())
        for off in ([BIG.pci], []):  # and switches it off and on
            bench.off[:] = off
            bench.cards.changed()
        await reached(lambda: bench.cards.card == card)


async def test_a_card_that_is_switched_off_while_others_are_tested_stays_off(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slow(command: list[str], within_s: float, environment: dict[str, str]) -> tuple[int, str, str]:
        if command[-2] == "Vulkan1":
            bench.off.append(BIG.pci)
            bench.cards.changed()
        return 0, PASSED, ""

    seen: list[list[str]] = []
    monkeypatch.setattr(graphics_cards, "run_child", slow)
    monkeypatch.setattr(bench.cards, "_changed", lambda: seen.append([card.name for card in bench.cards.computing]))
    async with running(bench, lambda: bench.cards.card):
        assert [card.name for card in bench.cards.computing] == ["Vulkan1"]
        assert all("Vulkan0" not in names for names in seen)  # not even for a moment
        assert bench.reasons()["Big card"] == Reason("card_switched_off")


FALCON, LLAMA = "falcon-h1 F16", "llama Q4_K_M"
LACKS = Reason("device_tensor", {"tensor": "blk.0.ssm_a"})


def is_proved(bench: Bench, family: str, *devices: str, with_head: bool = False) -> bool:
    return bench.cards.is_proved(family, devices or ("Vulkan0",), with_head=with_head)


async def test_a_refused_family_is_computed_by_the_processor_and_others_by_the_card(bench: Bench) -> None:
    bench.tested = Tested([BIG])
    async with running(bench, lambda: bench.cards.card):
        card = bench.cards.card
        assert card is not None
        changes = bench.changes
        for _ in range(5):  # each attempt of each host
            bench.cards.judge(card, FALCON, LACKS)
        bench.cards.judge(card, LLAMA, None)
        assert bench.changes == changes + 1
        assert bench.cards.card_for(FALCON) is None
        assert bench.cards.card_for(LLAMA) == card
        assert bench.cards.card == card
        assert [is_proved(bench, family) for family in (FALCON, LLAMA, "gemma3 Q8_0")] == [False, True, False]
        (refused,) = bench.cards.refused
        assert said(refused.reason) == (
            "Big card cannot run falcon-h1 F16 models: it lacks an operation that blk.0.ssm_a needs. The processor "
            "runs them here."
        )
        assert [reason.code for reason in bench.noted] == ["log_node_card_family"]


async def test_each_card_has_a_verdict_of_its_own(bench: Bench) -> None:
    """The second card computes what only the first one refuses, and is compared by itself."""
    async with running(bench, lambda: bench.cards.card):
        big, small = bench.cards.computing
        bench.cards.judge(big, LLAMA, None)
        assert is_proved(bench, LLAMA, "Vulkan0")
        assert not is_proved(bench, LLAMA, "Vulkan0", "Vulkan1")
        bench.cards.judge(big, FALCON, LACKS)
        assert bench.cards.cards_for(FALCON) == (small,)
        assert bench.cards.card_for(FALCON) == small
        assert families_without_card(bench.cards) == ()
        (refused,) = bench.cards.refused
        assert said(refused.reason).endswith("needs. Another graphics card runs them here.")
        assert bench.cards.claim(KEY, bench.cards.cards_for(FALCON), PARTS).cards == (small,)
        assert bench.cards.missing_bytes == ((FALCON, bench.cards.card_memory.room_on((big,))),)
        assert 0 < bench.cards.card_memory.room_on((big,)) < bench.cards.card_memory.room_bytes
        bench.cards.judge(small, FALCON, LACKS)
        assert bench.cards.card_for(FALCON) is None
        assert dict(bench.cards.missing_bytes) == {}
        assert families_without_card(bench.cards) == (FALCON,)
        assert [reason.code for reason in bench.noted] == ["log_node_card_family_other", "log_node_card_family"]


async def test_a_card_that_computed_no_logits_is_compared_again_where_it_must(bench: Bench) -> None:
    """The output matrix is on the last device of a stage."""
    async with running(bench, lambda: bench.cards.card):
        big, small = bench.cards.computing
        bench.cards.judge(big, LLAMA, None)
        bench.cards.judge(small, LLAMA, None, with_head=True)
        assert is_proved(bench, LLAMA, "Vulkan0", "Vulkan1", with_head=True)
        assert not is_proved(bench, LLAMA, "Vulkan0", with_head=True)
        bench.cards.judge(big, LLAMA, None, with_head=True)
        assert is_proved(bench, LLAMA, "Vulkan0", with_head=True)
        bench.cards.judge(big, LLAMA, None)  # layers without it, later
        assert is_proved(bench, LLAMA, "Vulkan0", with_head=True)


async def test_a_crash_with_a_new_family_is_a_verdict_on_it_and_not_on_the_card(bench: Bench) -> None:
    bench.tested = Tested([BIG])
    async with running(bench, lambda: bench.cards.card):
        card = bench.cards.card
        assert card is not None
        for _ in range(3):  # by each of several hosts
            lose_card(bench.cards, ("Vulkan0",), FALCON)
        await reached(lambda: len(bench.asked) == 2)  # the card is tested again, and passes
        assert bench.cards.card == card
        assert bench.cards.card_for(FALCON) is None
        assert said(bench.cards.refused[0].reason) == (
            "Big card cannot run falcon-h1 F16 models: it crashed or hung when it opened such a model. The processor "
            "runs them here."
        )
        lose_card(bench.cards, ("Vulkan0",), LLAMA)  # one family after another
        assert chosen(bench) == ""
        await reached(lambda: "Big card" in bench.reasons())
        assert bench.reasons()["Big card"].code == "card_lost"


async def test_a_crash_with_a_family_that_was_proved_is_a_loss_of_the_card(bench: Bench) -> None:
    async with running(bench, lambda: bench.cards.card):
        card = bench.cards.card
        assert card is not None
        bench.cards.judge(card, LLAMA, None)
        for _ in range(2):
            assert bench.cards.card_for(LLAMA) == card
            lose_card(bench.cards, ("Vulkan0",), LLAMA)
        assert [other.name for other in bench.cards.computing] == ["Vulkan1"]


async def test_a_crash_of_a_card_that_fails_its_own_test_says_nothing_about_the_family(bench: Bench) -> None:
    bench.tested = Tested([BIG])
    async with running(bench, lambda: bench.cards.card):
        assert bench.cards.card is not None
        bench.answers["Vulkan0"] = (-11, "", "a driver broke.\n")
        bench.cards.judge(bench.cards.card, LLAMA, LACKS)
        lose_card(bench.cards, ("Vulkan0",), FALCON)
        await reached(lambda: bench.reasons().get("Big card") == CRASHED)
        bench.answers.clear()
        bench.cards.woke()
        await reached(lambda: bench.cards.card)
        assert [refused.family for refused in bench.cards.refused] == [LLAMA]


async def test_verdicts_are_remembered_until_the_pack_changes(bench: Bench, tmp_path: Path) -> None:
    library = bench.libraries["vulkan"]
    library.write_bytes(b"one version")
    async with running(bench, lambda: bench.cards.card):
        assert bench.cards.card is not None
        bench.cards.judge(bench.cards.card, FALCON, LACKS)
        bench.cards.judge(bench.cards.card, LLAMA, None)
    again = bench.restarted(tmp_path)
    async with running(again, lambda: again.cards.card):
        assert [refused.family for refused in again.cards.refused] == [FALCON]
        assert is_proved(again, LLAMA)
    library.write_bytes(b"another version")
    updated = bench.restarted(tmp_path)
    async with running(updated, lambda: updated.cards.card):
        assert updated.cards.refused == ()
        assert not is_proved(updated, LLAMA)


async def test_a_wake_and_a_loss_repeat_the_test_and_keep_the_verdicts(bench: Bench) -> None:
    bench.tested = Tested([BIG])
    async with running(bench, lambda: bench.cards.card):
        card = bench.cards.card
        assert card is not None
        bench.cards.judge(card, FALCON, LACKS)
        bench.cards.woke()
        await reached(lambda: len(bench.asked) == 2)
        bench.cards.lost(card)
        await reached(lambda: len(bench.asked) == 3)
        await asyncio.sleep(0.05)
        assert len(bench.asked) == 3
        assert bench.cards.card_for(FALCON) is None
        assert bench.cards.card == card


async def test_a_driver_that_computes_wrongly_after_a_sleep_is_noticed(bench: Bench) -> None:
    async with running(bench, lambda: bench.cards.card):
        bench.answers["Vulkan0"] = (0, WRONG, "")
        bench.cards.woke()
        await reached(lambda: chosen(bench) == "Vulkan1")
        assert bench.cards.refused == ()


async def test_the_memory_leaves_a_reserve_and_what_the_desktop_uses(bench: Bench) -> None:
    bench.tested = Tested([BIG])
    assert bench.cards.card_memory.now() is None
    async with running(bench, lambda: bench.cards.card):
        use(bench, 2 * GIB)
        memory = bench.cards.card_memory.now()
        assert memory is not None
        assert memory.total_bytes == 16 * GIB
        assert memory.free_bytes == 12 * GIB - int(0.1 * 16 * GIB) - 2 * GIB


async def test_lent_layers_know_that_their_card_was_switched_off(bench: Bench) -> None:
    library = str(bench.libraries["vulkan"])
    async with running(bench, lambda: bench.cards.card):
        assert not bench.cards.is_switched_off("Vulkan0", library)
        bench.off.append("0000:01:00.0")
        bench.cards.changed()
        assert bench.cards.is_switched_off("Vulkan0", library)
        assert not bench.cards.is_switched_off("Vulkan1", library)
        assert not bench.cards.is_switched_off("Vulkan0", "/another/library.so")


async def test_the_owner_limits_how_much_of_its_memory_all_models_may_use(bench: Bench) -> None:
    bench.tested = Tested([BIG])
    async with running(bench, lambda: bench.cards.card):
        whole = bench.cards.card_memory.now()
        assert whole is not None
        assert whole.most_bytes is None
        bench.percents[0] = 25
        assert bench.cards.card_memory.room_bytes == 4 * GIB
        limited = bench.cards.card_memory.now()
        assert limited is not None
        assert (limited.most_bytes, limited.free_bytes) == (4 * GIB, whole.free_bytes)


OTHER = 4242  # another program's process


def report(pci: str, percent: float, **more: Any) -> DriverReport:
    return DriverReport(pci, True, 61.0, percent, 5 * GIB, frozenset({OTHER}), **more)


async def test_the_card_that_computes_is_read_and_no_other(bench: Bench) -> None:
    bench.tested = Tested([BIG])
    bench.reports += [report("0000:01:00.0", 12.0), report("0000:02:00.0", 99.0)]
    assert bench.cards.reading() == CardReading(others_percent=99.0), "without a card that computes, any may be busy"
    async with running(bench, lambda: bench.cards.card):
        expected = CardReading("0000:01:00.0", True, 61.0, 12.0, 12.0, 5 * GIB)
        assert await asyncio.to_thread(bench.cards.reading) == expected
        bench.reports.pop(0)
        assert bench.cards.reading() == CardReading(others_percent=99.0)


async def test_while_our_layers_are_on_the_card_its_whole_use_says_nothing(bench: Bench) -> None:
    bench.tested = Tested([BIG])
    bench.reports.append(report("0000:01:00.0", 99.0))  # which does not list our worker
    async with running(bench, lambda: bench.cards.card):
        use(bench, 2 * GIB)
        assert bench.cards.reading() == CardReading("0000:01:00.0", True, 61.0, 99.0)
        bench.cards.release(KEY)
        assert bench.cards.reading().others_percent == 99.0


async def test_memory_that_a_game_takes_is_not_free(bench: Bench) -> None:
    bench.tested = Tested([BIG])
    async with running(bench, lambda: bench.cards.card):
        before = bench.cards.card_memory.now()
        assert before is not None
        bench.reports.append(report("0000:01:00.0", 0.0))
        bench.cards.reading()
        now = bench.cards.card_memory.now()
        assert now is not None
        assert before.free_bytes - now.free_bytes == GIB, "12 of 16 GiB were free at first, and now others use 5"
        bench.reports.clear()
        bench.cards.reading()
        assert bench.cards.card_memory.now() == before, "unknown again"


async def test_memory_that_our_own_stages_use_is_subtracted_once(bench: Bench) -> None:
    bench.tested = Tested([BIG])
    async with running(bench, lambda: bench.cards.card):
        before = bench.cards.card_memory.now()
        bench.tested = Tested([msgspec.structs.replace(BIG, free_bytes=BIG.free_bytes - 2 * GIB)])
        bench.off.append("another card")  # which makes it look again
        bench.cards.changed()
        await reached(lambda: len(bench.asked) == 2 and not bench.cards.unused)
        assert bench.cards.card_memory.now() == before


async def test_a_card_without_memory_of_its_own_has_no_more_than_is_free_in_main_memory(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(card_memory, "memory", lambda: Memory(8 * GIB, 3 * GIB))
    bench.tested = Tested([msgspec.structs.replace(BIG, kind="igpu")])
    async with running(bench, lambda: bench.cards.card):
        assert bench.cards.card_memory.now() == Memory(8 * GIB, 3 * GIB)


async def test_without_packs_nothing_is_asked(bench: Bench) -> None:
    bench.libraries.clear()
    async with running(bench, lambda: bench.changes):
        assert bench.cards.card is None
        assert bench.cards.unused == ()
        assert bench.asked == []


async def test_of_several_cards_the_last_is_blamed_for_a_loss_nobody_can_attribute(bench: Bench) -> None:
    async with running(bench, lambda: bench.cards.card):
        for _ in range(2):
            lose_card(bench.cards, ("Vulkan0", "Vulkan1"))
        assert [card.name for card in bench.cards.computing] == ["Vulkan0"]
        lose_card(bench.cards, ("Vulkan1",))
        assert [card.name for card in bench.cards.computing] == ["Vulkan0"], "it computes no longer"


async def test_cards_of_the_same_product_without_a_known_place_are_told_apart(bench: Bench) -> None:
    twins = [msgspec.structs.replace(BIG, name=name, pci="") for name in ("Vulkan0", "Vulkan1")]
    bench.tested = Tested(twins)
    async with running(bench, lambda: bench.cards.card):
        assert [card.key for card in bench.cards.computing] == ["Big card", "Big card 2"]
        use(bench, *[GIB] * 15)
        bench.cards.lost(bench.cards.computing[1])
        bench.cards.lost(bench.cards.computing[1])
        assert [card.name for card in bench.cards.computing] == ["Vulkan0"]
