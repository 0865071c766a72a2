"""The owner's rules in force: drained, stopped, refused, and told to the host. Real nodes and workers."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Set
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.api import requests
from app.client import NodeClient
from app.core.errors import AppError, BadInput, Reason, Refused
from app.core.ids import MachineId
from app.core.lending import policy
from app.core.lending.lending import Working
from app.core.lending.policy import Battery, Readings, Rules
from app.core.reasons import said
from app.machine.hardware.cards import Card, ProcessorOnly
from app.machine.hardware.devices import Memory
from app.machine.sensors.owner_activity import OwnerSensors
from app.machine.settings import GraphicsSettings, Settings, SettingsStore, load, save
from app.network.traffic_limits import LinkPace
from app.node.lending import lending_policy
from app.node.lending.lending_policy import LendingPolicy, MemoryRules
from tests.node.pool import BUSY, TestNode, node, paired

Json = dict[str, Any]
HOST = MachineId("a" * 64)
TOKENS = 400  # a second or more
LONG = {"prompt": "?", "raw": True, "max_tokens": TOKENS, "ignore_end": True,
        "sampling": {"temperature": 0}}  # fmt: skip


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[TestNode]]:
    with paired(tmp_path_factory.mktemp("rules"), "den", "attic") as nodes:
        yield nodes


@pytest.fixture
async def den(pool: list[TestNode]) -> AsyncGenerator[NodeClient, None]:
    async with pool[0].client() as client:
        yield client


@pytest.fixture
async def attic(pool: list[TestNode]) -> AsyncGenerator[NodeClient, None]:
    """The lender; each test leaves it lending."""
    async with pool[1].client() as client:
        yield client
        await client.post("/lending", {"memory_bytes": 1 << 30, "drain_s": 30, "programs": []})
        await client.post("/lending/resume")


async def loaded(den: NodeClient) -> None:
    """The Guide with its middle on the lender, once the host has heard that it lends."""
    await told(den, lent_bytes=1 << 30)
    await den.work("POST", "/load", {"model": "guide", "split": [2, 4, 2]})


async def told(den: NodeClient, **expected: Any) -> Json:
    """The lender as the host shows it, once it has heard all of that."""
    async with asyncio.timeout(60):
        while True:
            machines = (await den.get("/machines"))["machines"]
            lender = dict(next(machine for machine in machines if not machine["this"]))
            if expected.items() <= lender.items():
                return lender
            await asyncio.sleep(0.05)


async def alone(den: NodeClient) -> bool:
    """Return whether its model answers without the lender."""
    now = (await den.get("/status"))["loaded"]
    return now["state"] == "ready" and {stage["machine"] for stage in now["stages"]} == {"den"}


async def answer(den: NodeClient, begun: asyncio.Event | None = None, most: int = TOKENS) -> int:
    """A long answer; how many tokens it had."""
    n_tokens = 0
    async with aclosing(den.stream("POST", "/ask", LONG | {"max_tokens": most})) as lines:
        async for line in lines:
            n_tokens += len(line.get("delta", {}).get("token_ids", ()))
            if begun is not None and n_tokens > 5:
                begun.set()
    return n_tokens


@pytest.mark.long
async def test_between_answers_a_pause_is_quiet_and_its_layers_go_elsewhere(
    pool: list[TestNode], den: NodeClient, attic: NodeClient
) -> None:
    await loaded(den)
    holds = (await attic.get("/status"))["node"]["lending"]
    assert holds["state"] in ("working", "lending")
    began = time.monotonic()
    shown = (await attic.post("/lending/pause"))["lending"]
    assert shown["state"] == "draining"
    assert shown["used_by"] == ["den"]
    assert shown["gives_back_in_s"] > 20
    await told(den, state="paused", reason="Paused by the owner.", lent_bytes=0)
    assert time.monotonic() - began < 20  # they need not wait until it gives back
    async with asyncio.timeout(60):  # the host may hear of the end before it has gone on
        while not await alone(den):  # noqa: ASYNC110  seen from outside
            await asyncio.sleep(0.05)
    assert pool[1].workers() == []
    assert await answer(den) == TOKENS  # without the lender: the Guide fits on the host


@pytest.mark.long
async def test_a_pause_lets_a_running_answer_end(pool: list[TestNode], den: NodeClient, attic: NodeClient) -> None:
    await loaded(den)
    async with asyncio.TaskGroup() as tasks:
        begun = asyncio.Event()
        answering = tasks.create_task(answer(den, begun, 2 * TOKENS))
        await begun.wait()
        await attic.post("/lending/pause")
        await told(den, state="draining", reason="Paused by the owner.")
        assert not answering.done()
    assert answering.result() == 2 * TOKENS
    await told(den, state="paused")
    assert pool[1].workers() == []


@pytest.mark.long
async def test_an_answer_that_takes_too_long_goes_on_without_the_lender(
    pool: list[TestNode], den: NodeClient, attic: NodeClient
) -> None:
    await loaded(den)
    await attic.post("/lending", {"drain_s": 0.1})
    begun = asyncio.Event()

    async def pause() -> float:
        await begun.wait()
        pauses_at = time.monotonic()
        await attic.post("/lending/pause", {"seconds": 600})
        return pauses_at

    ended, paused_at = await asyncio.gather(answer(den, begun), pause(), return_exceptions=True)
    assert ended == TOKENS
    assert isinstance(paused_at, float)
    assert time.monotonic() - paused_at < 20
    await told(den, state="paused")  # the answer may end before the lender looks again
    shown = (await attic.get("/lending"))["lending"]
    assert (shown["state"], shown["used_bytes"]) == ("paused", 0)
    assert 0 <= 600 - shown["resumes_in_s"] <= time.monotonic() - paused_at + 1
    assert pool[1].workers() == []


@pytest.mark.long
async def test_stop_ends_everything_at_once(pool: list[TestNode], den: NodeClient, attic: NodeClient) -> None:
    await loaded(den)
    begun = asyncio.Event()

    async def stop() -> tuple[float, Json]:
        await begun.wait()
        began = time.monotonic()
        shown = await attic.post("/lending/pause", {"at_once": True})
        assert pool[1].workers() == []
        return time.monotonic() - began, shown["lending"]

    ended, stopped = await asyncio.gather(answer(den, begun), stop(), return_exceptions=True)
    assert ended == TOKENS  # what attic held was placed anew
    assert isinstance(stopped, tuple), stopped
    assert stopped[0] < 2 * BUSY  # SAFETY.md 8, on a machine with nothing else to do: two
    assert (stopped[1]["state"], stopped[1]["used_bytes"]) == ("paused", 0)
    await told(den, state="paused")
    with pytest.raises(AppError) as refused:  # the planner knows already
        await den.work("POST", "/load", {"model": "guide", "split": [2, 4, 2]})
    assert "attic" in said(refused.value)


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="needs a `sleep` to copy")
async def test_a_program_beside_which_nothing_is_lent(den: NodeClient, attic: NodeClient, tmp_path: Path) -> None:
    await loaded(den)
    game = tmp_path / "a-game"
    shutil.copy(shutil.which("sleep") or "", game)
    process = subprocess.Popen([str(game), "60"])  # noqa: ASYNC220  returns at once
    try:
        shown = await attic.post("/lending", {"programs": ["A-Game.exe"]})
        assert shown["readings"]["programs"] == ["a-game"]
        reason = (await told(den, state="paused"))["reason"]
        assert reason.startswith("Paused: a program that pauses lending")
        assert "game" not in reason  # which one it is stays on its machine
        assert "a-game is running" in (await attic.get("/status"))["node"]["lending"]["reason"]
    finally:
        process.kill()
        process.wait()
    await attic.post("/lending", {"programs": []})
    assert (await told(den, state="ready"))["reason"] is None


@pytest.mark.long
async def test_less_memory_holds_at_once_and_is_used_again(den: NodeClient, attic: NodeClient) -> None:
    await loaded(den)
    await den.post("/lending", {"limit_bytes": 300 << 20})
    held = (await den.get("/status"))["loaded"]["machines"]
    assert [item["lends_bytes"] >> 20 for item in held] == [300, 1024], "the limits of now"
    await den.post("/lending", {"limit_bytes": 1 << 30})
    shown = await attic.post("/lending", {"memory_bytes": 50 << 20})
    assert shown["lending"]["reason"] == "Paused: the owner now lends less memory than was in use."
    await told(den, state="ready", used_bytes=0, lent_bytes=50 << 20)
    await attic.post("/lending", {"memory_bytes": 0})
    await told(den, state="off", reason="The machine's owner has turned lending off.")


async def test_nonsense_is_refused_and_changes_nothing(attic: NodeClient) -> None:
    before = (await attic.get("/lending"))["rules"]
    for body in ({"hours": "noon"}, {"battery_percent": 101}, {"idle_s": -1}, {"unknown": 1},
                 {"memory_bytes": -1}, {"memory_bytes": 1}, {"memory_bytes": 1 << 50}, {"programs": [""]},
                 {"devices": ["nope"]}, {"card_celsius": 49}, {"card_celsius": 111}, {"link_mbit": 1},
                 {"link_mbit": -1}, {"link_mbit": 100_001}, {"threads": 1024}):  # fmt: skip
        with pytest.raises(BadInput):
            await attic.post("/lending", body)
    with pytest.raises(BadInput):
        await attic.post("/lending/pause", {"seconds": 0})
    assert (await attic.get("/lending"))["rules"] == before


@pytest.mark.long
def test_the_command_shows_and_changes_and_a_pause_outlives_a_restart(tmp_path: Path) -> None:
    with node(tmp_path, "attic") as test_node:
        words = ("--idle", "5m", "--schedule", "mon-fri 18:00-08:00, sat", "--battery", "30",
                 "--not-with", "game.exe", "--memory", "512MiB", "--threads", "1", "--despite-heat",
                 "--hot", "80", "--card-hot", "85", "--despite-full-screen", "--pause-on-metered",
                 "--link", "50")  # fmt: skip
        rules = json.loads(test_node.run("lend", *words, "--json").stdout)["rules"]
        assert rules == {
            "on": True, "memory_bytes": 512 << 20, "devices": [], "idle_s": 300.0,
            "hours": "mon-fri 18:00-08:00, sat", "battery_percent": 30, "programs": ["game.exe"],
            "gpu": True, "drain_s": 30.0, "threads": 1, "hot": False,
            "hot_celsius": 80, "screen": False, "network": True, "link_mbit": 50,
            "card_celsius": 85, "limit_bytes": 1 << 30,  # the limit is told to this start by the tests' node
        }  # fmt: skip
        assert test_node.run("lend", "--schedule", "always", "--pause", "1h").returncode == 0
    with node(tmp_path, "attic", "2GiB") as test_node:
        shown = json.loads(test_node.run("lend", "--json").stdout)
        assert shown["lending"]["state"] == "paused"
        assert 3500 < shown["lending"]["resumes_in_s"] < 3600
        assert shown["rules"]["memory_bytes"] == 2 << 30  # told to this start
        said = test_node.run("lend", "--resume")
        assert said.stdout.startswith("Ready: others may use ")
    assert load(tmp_path / "settings.json").pause is None
    assert load(tmp_path / "settings.json").lending.memory_bytes == 512 << 20


class Owner(OwnerSensors):
    """A simulated owner, whose actions a test sets."""

    def __init__(self) -> None:
        self.now = Readings(0.0)

    def read(self, rules: Rules) -> Readings:
        return replace(self.now, now_s=time.monotonic())


class Layers:
    """The layers of others on this machine, which a kill removes."""

    def __init__(self) -> None:
        self.hosts: set[MachineId] = set()
        self.quiet, self.is_asked, self.is_answering = 0.0, False, lambda: self.is_asked
        self.told: list[Reason] = []
        self.card_off = self.on_processor = False

    def is_on_processor(self) -> bool:
        return self.on_processor and bool(self.hosts)

    def is_on_card_switched_off(self) -> bool:
        return self.card_off and bool(self.hosts)

    def borrowers(self) -> Set[MachineId]:
        return self.hosts

    def quiet_s(self) -> float:
        return self.quiet

    async def stop_now(self, why: Reason) -> None:
        self.told.append(why)
        self.hosts = set()


class OneCard(ProcessorOnly):
    """The graphics card of a computer, while it can be used."""

    is_there = False

    @property
    def card(self) -> Card | None:
        return Card("Vulkan0", "A card", "Vulkan", Path(), Path(), "", False, 1, 1) if self.is_there else None


class Bench:
    """The rules of one machine without a node."""

    def __init__(self, path: Path, rules: Rules, *, card_only: bool = False) -> None:
        save(path, Settings("attic", rules, graphics=GraphicsSettings(card_only=card_only)))
        self.graphics = OneCard()
        self.owner, self.layers = Owner(), Layers()
        self.may = True
        household: Any = SimpleNamespace(rights=SimpleNamespace(may_lend=lambda: self.may), name=str)
        self.rules = LendingPolicy(
            SettingsStore(path, load(path)),
            lambda: (len(self.layers.hosts), 0, 0),
            household,
            LinkPace(),
            lambda: None,
            self.owner,
            graphics=self.graphics,
        )

    def word(self) -> str:
        return self.rules.state_word()


@pytest.fixture
async def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Callable[..., Any], None]:
    for name in ("SENSE_SECONDS", "LOOK_SECONDS", "DRAIN_LOOK_SECONDS"):
        monkeypatch.setattr(lending_policy, name, 0.02)
    async with asyncio.TaskGroup() as tasks:
        running: list[asyncio.Task[None]] = []

        async def begin(rules: Rules | None = None, *, card_only: bool = False) -> Bench:
            made = Bench(tmp_path / "settings.json", rules or Rules(memory_bytes=1 << 30), card_only=card_only)
            await made.rules.begin(made.layers)
            running.append(tasks.create_task(made.rules.run()))
            return made

        yield begin
        for task in running:
            task.cancel()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110  seen from outside
            await asyncio.sleep(0.01)


async def test_nothing_is_lent_before_the_first_look(tmp_path: Path) -> None:
    made = Bench(tmp_path / "settings.json", Rules(memory_bytes=1 << 30))
    assert made.rules.lent_bytes() == 0
    with pytest.raises(Refused):
        made.rules.require()


async def test_what_only_lies_here_is_lent_but_not_at_work(bench: Any) -> None:
    item = await bench(Rules(memory_bytes=1 << 30))
    item.layers.hosts, item.layers.quiet = {HOST}, 60.0
    await until(lambda: item.word() == "lending")
    item.layers.quiet = 0.0
    await until(lambda: item.word() == "working" and isinstance(item.rules.state, Working))
    shown = (await item.rules.pause(3600, at_once=False)).lending
    assert (shown.state, shown.resumes_in_s) == ("draining", 3600)


async def test_an_owner_who_comes_back_is_seen_and_one_who_leaves_too(bench: Any) -> None:
    item = await bench(Rules(memory_bytes=1 << 30, idle_s=60.0))
    assert (item.word(), item.rules.lent_bytes()) == ("ready", 1 << 30)
    item.layers.hosts = {HOST}
    await until(lambda: item.word() == "working")
    item.owner.now = Readings(0.0, idle_s=2.0)
    await until(lambda: item.word() == "draining")
    with pytest.raises(Refused) as raised:
        item.rules.require()
    assert raised.value.reason.code == "pause_active"
    assert item.rules.lent_bytes() == 0
    assert item.layers.told == []
    item.layers.quiet = 2.0
    await until(lambda: item.word() == "paused")
    assert item.layers.told == [Reason("pause_active")]
    item.owner.now = Readings(0.0, idle_s=61.0)
    await until(lambda: item.word() == "ready")
    item.rules.require()


async def test_a_battery_about_to_end_waits_for_no_answer(bench: Any) -> None:
    item = await bench()
    item.layers.hosts = {HOST}
    item.owner.now = Readings(0.0, battery=Battery(4.0, plugged=False))
    await until(lambda: item.word() == "paused")
    assert item.layers.told == [Reason("pause_battery")]


async def test_a_pause_by_hand_ends_in_time_and_rules_do_not_end_it(bench: Any) -> None:
    item = await bench()
    await item.rules.pause(600, at_once=False)
    assert item.word() == "paused"
    await item.rules.change(requests.ChangeLending(idle_s=1.0))
    assert item.word() == "paused"
    await item.rules.pause(0.05, at_once=False)
    await until(lambda: item.word() == "ready")
    await item.rules.pause(None, at_once=True)
    assert item.rules.snapshot().reason == "Stopped by the owner."
    await asyncio.sleep(0.1)
    assert item.word() == "paused"
    assert (await item.rules.resume()).lending.state == "ready"


async def test_a_machine_that_the_household_does_not_let_lend(bench: Any) -> None:
    item = await bench()
    item.may = False
    assert item.rules.lent_bytes() == 0
    item.rules.apply_soon()
    await until(lambda: item.word() == "paused")
    assert item.rules.reason() == Reason("lend_no_role")
    item.may = True
    item.rules.apply_soon()
    await until(lambda: item.word() == "ready")


async def test_layers_on_a_card_that_was_switched_off_are_taken_back_and_the_rest_goes_on(bench: Any) -> None:
    item = await bench()
    item.layers.hosts = {HOST}
    await until(lambda: item.word() == "working")
    item.layers.card_off, item.layers.quiet = True, 60.0
    await until(lambda: item.layers.told)
    assert item.layers.told == [Reason("pause_card_off")]
    await until(lambda: item.word() == "ready")
    item.rules.require()


async def test_nothing_is_lent_before_the_cards_are_tested(bench: Any) -> None:
    """Layers that came before would stay on the processor."""
    item = await bench()
    item.graphics.is_starting = True
    await until(lambda: item.word() == "paused")
    with pytest.raises(Refused) as raised:
        item.rules.require()
    assert raised.value.reason.code == "pause_card_test"
    item.graphics.is_starting = False
    await until(lambda: item.word() == "ready")


async def test_an_owner_who_lends_only_a_card_lends_nothing_without_it(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(policy.CALM_SECONDS, "pause_no_card", 0.1)
    item = await bench(card_only=True)
    assert item.rules.lent_bytes() == 0
    with pytest.raises(Refused) as raised:
        item.rules.require()
    assert raised.value.reason.code == "pause_no_card"
    item.graphics.is_there = True
    await until(lambda: item.word() == "ready")
    item.rules.require()
    item.layers.hosts, item.layers.on_processor, item.layers.quiet = {HOST}, True, 60.0  # loaded before the choice
    await until(lambda: item.layers.told)
    assert item.layers.told == [Reason("pause_card_only")]
    await until(lambda: item.word() == "ready")
    item.graphics.is_there = False
    with pytest.raises(Refused):
        item.rules.require()


def test_the_most_of_a_card_limits_all_models_together() -> None:
    rules = MemoryRules(None, lambda: Memory(1000, 800, most_bytes=500))
    assert (rules.room(0, 0, 0).lent_bytes, rules.room(0, 0, 0).most_bytes) == (0, 400)  # less than one step is free
    assert rules.own_bytes(0, 0, 0) == 500
    assert rules.own_bytes(300, 0, 0) == 200
    assert rules.room(450, 0, 100).lent_bytes == 400
    rules.limit_bytes = 300
    assert (rules.room(0, 0, 0).most_bytes, rules.own_bytes(100, 0, 0)) == (300, 200)
    rules.limit_bytes = 900
    assert rules.own_bytes(100, 0, 0) == 400
    rules = MemoryRules(None, lambda: Memory(1000, 800))
    assert (rules.own_bytes(300, 0, 0), rules.room(0, 0, 0).limit_bytes) == (640, 0)


async def test_what_was_opened_in_the_moment_of_a_pause_is_given_back(bench: Any) -> None:
    item = await bench()
    await item.rules.pause(None, at_once=False)
    item.layers.hosts = {HOST}
    await until(lambda: not item.layers.hosts)
    assert item.layers.told == [Reason("pause_owner")]
