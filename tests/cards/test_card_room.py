"""Cards with too little memory: the driver refuses it, when a stage opens or while it computes, or it is known before.

Fewer layers are then on the card, or none. Answers stay the same, and the plan and the journal tell it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.core.planner.stage_memory import WORK_FLOOR_BYTES
from scripts.real_models import SMOLLM2, folder
from tests.cards import device
from tests.cards.card_nodes import Json, card_of, cards_of, device_environment, install_pack, load, until, uses_card
from tests.cards.scarce_memory.device import ScarceMemory
from tests.cards.test_nodes import asked
from tests.cards.test_real_nodes import with_card
from tests.node.pool import TestNode, node, pair

pytestmark = [pytest.mark.cards, pytest.mark.timeout(900)]

FOLDER = folder()
SPLIT = [1, 6, 1]
MANY = 16  # users: each layer takes 8.7 MB, so that layers count beside the working memory
LITTLE = 40 << 20  # less than six of its layers take
NOTHING = 1 << 10


@dataclass
class Bench:
    """A host, alone or with a lender. The card of one of them has scarce memory."""

    host: TestNode
    owner: TestNode  # of the card
    memory: ScarceMemory
    label: str

    def order(self, users: int) -> Json:
        return {"users": users, "context": 1024} | ({"shape": "one"} if self.host is self.owner else {"split": SPLIT})

    def load(self, users: int = MANY) -> list[str]:
        """Load the Guide and return the names of the cards that compute."""
        load(self.host, **self.order(users))
        return [card for card in cards_of(self.host) if card]

    def work_bytes(self) -> int:
        """Return the working memory that the host plans on the card's owner."""
        plan = self.host.work("/plan", {"model": "guide", "measure": False, **self.order(MANY)})
        return sum(stage["work_bytes"] for stage in plan["stages"] if stage["machine"] == "attic")

    def is_overflow_planned(self, users: int) -> bool:
        """Return whether the host knows that a part of the card's owner's layers has no room on the card."""
        plan = self.host.work("/plan", {"model": "guide", "measure": False, **self.order(users)})
        reasons = [each for each in plan["why"] if each["code"] == "plan_overflow"]
        assert all(reason["facts"]["machine"] == "attic" for reason in reasons)
        return bool(reasons)

    def has_told(self) -> bool:
        """Return whether the plan tells the host, and the journal the owner, that memory was scarce."""
        plan = json.dumps(self.host.control("GET", "/status")["loaded"])
        journal = json.dumps(self.owner.control("GET", "/journal"))
        return "plan_card_short" in plan and "log_node_card_short" in journal


@pytest.fixture(params=["own", "lent"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    with device_environment(), ExitStack() as stack:
        with_card(tmp_path / "attic")
        memory = ScarceMemory(tmp_path / "attic")
        with memory.environment():
            attic = stack.enter_context(node(tmp_path / "attic", "attic"))
        host = attic
        if request.param == "lent":
            host = stack.enter_context(node(tmp_path / "den", "den"))
            pair(host, attic)
        install_pack(attic)
        card = card_of(attic)
        assert card is not None
        yield Bench(host, attic, memory, card["label"])


def test_a_stage_that_a_card_refuses_memory_for_is_partly_or_not_on_it(bench: Bench) -> None:
    assert bench.load() == [bench.label]
    expected = asked(bench.host)["token_ids"]
    assert not bench.has_told()
    with bench.memory.limited(LITTLE):
        assert bench.load() == [f"{bench.label} + CPU"]
        assert bench.has_told()
        assert asked(bench.host)["token_ids"] == expected
    with bench.memory.limited(NOTHING):
        assert bench.load() == []
        assert asked(bench.host)["token_ids"] == expected
    assert bench.owner.control("GET", "/machine")["unused_cards"] == [], "the card is sound"


def test_a_card_that_runs_out_of_memory_in_the_middle_of_an_answer_ends_nothing(bench: Bench) -> None:
    bench.load()
    expected = asked(bench.host)
    bench.load()
    with ThreadPoolExecutor(1) as apart, bench.memory.limited(1 << 40):
        answer = apart.submit(asked, bench.host)
        until(lambda: bench.host.answers()["running"] == 1, "nothing is being answered")
        bench.memory.limit(LITTLE)
        after: Json = answer.result()
    assert after["token_ids"] == expected["token_ids"]
    assert after["recoveries"] >= 1
    assert bench.owner.control("GET", "/machine")["unused_cards"] == [], "the card is sound"
    assert "log_node_card_short" in json.dumps(bench.owner.control("GET", "/journal"))


def test_a_stage_too_large_for_its_card_is_divided_between_card_and_processor_as_planned(bench: Bench) -> None:
    """The owner allows 205 MB of the card, and each of the Guide's layers takes 34 MB."""
    bench.owner.control("POST", "/cards", {"memory_percent": 10})
    until(lambda: bench.is_overflow_planned(64), "the host does not know it")
    assert bench.load(64) == [f"{bench.label} + CPU"]
    assert not bench.has_told(), "the driver refused nothing"
    expected = asked(bench.host)["token_ids"]
    (worker,) = [worker for worker in bench.owner.workers() if uses_card(worker)]
    assert worker.memory_info().rss > 64 << 20, "a part is in main memory"
    bench.owner.control("POST", "/cards", {"memory_percent": 100})
    until(lambda: not bench.is_overflow_planned(64), "the host does not know it")
    assert bench.load(64) == [bench.label]
    assert asked(bench.host)["token_ids"] == expected


def test_the_next_plan_counts_with_the_working_memory_that_the_card_took(bench: Bench) -> None:
    planned = bench.work_bytes()
    bench.load()
    for each in (bench.host, bench.owner):
        until((each.root / "card-memory.json").exists, "it is not saved")
        stages = json.loads((each.root / "card-memory.json").read_text("utf-8"))["stages"]
        assert any(0 < stage["n_bytes"] < planned - WORK_FLOOR_BYTES for stage in stages), stages
    assert WORK_FLOOR_BYTES < bench.work_bytes() < planned
    assert bench.load() == [bench.label], "and it is enough"


@pytest.mark.parametrize("model", ["llama", "gemma3", "qwen3-moe", "qwen3-5", "lfm2", "deepseek-v32", SMOLLM2.file])
def test_more_working_memory_is_planned_than_the_engine_allocates(model: str) -> None:
    path = FOLDER / model
    if model == SMOLLM2.file and not path.exists():
        pytest.skip("needs the real models: `make real` fetches them")
    results = device.in_a_process("tests.cards.buffers_case", [str(path) if path.exists() else model])["results"]
    for result in results:
        assert 0 < result["device_bytes"] <= result["estimated_bytes"], result
    short, long = results[:2]
    planned, allocated = (long[name] - short[name] for name in ("estimated_bytes", "device_bytes"))
    assert 1.01 * planned >= allocated > 0, "it grows with the cells that a row may read"
