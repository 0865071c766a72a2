"""Updates in the node: asked of a real server by a person or once a day, installed in the background, and told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from app import launcher
from app.api.computer import Updates
from app.core.errors import AppError, Reason
from app.network.messages import PROTOCOL
from app.node.updates import update_service
from app.node.updates.release import is_in_turn, share_of
from app.node.updates.update_service import DAY_SECONDS, UpdateService
from app.node.updates.updater import Build, Updater
from tests.network.nodes import until
from tests.node.pool import node
from tests.node.updates.files_server import FilesServer, serving
from tests.node.updates.publisher import SYSTEM, Copy, Publisher, copied, layers_of

Json = dict[str, Any]


@pytest.fixture
def publisher(tmp_path: Path) -> Publisher:
    return Publisher(tmp_path / "publisher")


@pytest.fixture
def server(publisher: Publisher) -> Iterator[FilesServer]:
    with serving(publisher.place) as state:
        yield state


@dataclass
class Home:
    """The owner's choice, the time, and the entries of the journal."""

    copy: Copy
    daily: bool = False
    now: float = 1_800_000_000.0
    machine: str = ""
    members: Mapping[str, int] = field(default_factory=dict)
    noted: list[Reason] = field(default_factory=list)

    def updates(self, build: Build, own: str = "1.0") -> UpdateService:
        updater = Updater(build, self.copy.store, self.copy.folder, own)
        return UpdateService(
            self.copy.folder / "updates.json", updater, lambda: self.daily, self.noted.append,
            machine=lambda: self.machine, members=lambda: self.members, now=lambda: self.now,
        )  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(Copy(tmp_path / "user"))


def built(publisher: Publisher, server: FilesServer) -> Build:
    return replace(publisher.build, address=server.address)


@asynccontextmanager
async def running(updates: UpdateService) -> AsyncGenerator[UpdateService, None]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(updates.run(), name="updates")
        await asyncio.sleep(0.05)
        yield updates
        task.cancel()


async def ended(updates: UpdateService) -> Updates:
    """Wait for the end of an installation."""
    await until(lambda: not updates.state().phase, seconds=30)
    return updates.state()


async def test_a_newer_version_is_told_once_and_kept(publisher: Publisher, server: FilesServer, home: Home) -> None:
    publisher.publish("2.0")
    build = built(publisher, server)
    updates = home.updates(build)
    assert updates.state().last_contact is None
    state = await updates.check()
    assert (state.version, state.newer, state.last_contact, state.can_install) == ("2.0", True, home.now, True)
    assert state.download_bytes == publisher.archive_of("app").stat().st_size
    assert "A change." in state.changes
    assert home.updates(build).state() == state  # after a restart too
    assert [reason.code for reason in home.noted] == ["log_node_newer"]
    await updates.check()
    assert len(home.noted) == 1


@pytest.mark.parametrize("version", ["1.0", "0.9"])
async def test_this_version_and_older_ones_are_no_news(
    publisher: Publisher, server: FilesServer, home: Home, version: str
) -> None:
    publisher.publish(version)
    assert not (await home.updates(built(publisher, server)).check()).newer
    assert not home.noted


async def test_an_update_is_installed_in_the_background(publisher: Publisher, server: FilesServer, home: Home) -> None:
    publisher.publish("2.0")
    async with running(home.updates(built(publisher, server))) as updates:
        assert (await updates.install()).phase == "looking"
        with pytest.raises(AppError) as busy:
            await updates.install()
        assert busy.value.reason.code == "update_busy"
        state = await ended(updates)
    assert (state.ready, state.previous, state.error) == ("2.0", "1.0", None)
    assert home.copy.chosen == "2.0"
    assert (await updates.roll_back()).ready is None


async def test_a_canceled_update_keeps_what_arrived(publisher: Publisher, server: FilesServer, home: Home) -> None:
    layers = layers_of("2.0") | {"app": {"data.bin": bytes(range(256)) * 40_000}}
    publisher.publish("2.0", layers=layers)
    async with running(home.updates(built(publisher, server))) as updates:
        await updates.install()
        state = await updates.cancel()
        assert (state.phase, state.error) == ("", None)
        await updates.install()
        assert (await ended(updates)).ready == "2.0"


async def test_a_failed_update_says_why(publisher: Publisher, server: FilesServer, home: Home, tmp_path: Path) -> None:
    stranger = Publisher(tmp_path / "stranger")
    stranger.publish("2.0")
    async with running(home.updates(built(publisher, server))) as updates:
        await updates.install(str(stranger.place))
        state = await ended(updates)
        assert state.ready is None
        assert state.error_facts is not None
        assert state.error_facts.code == "update_wrong_key"
        publisher.publish("2.0")
        await updates.install(str(copied(publisher, tmp_path / "stick")))
        state = await ended(updates)
    assert (state.ready, state.error) == ("2.0", None)


async def test_a_version_that_does_not_start_is_told_and_noted_once(
    publisher: Publisher, server: FilesServer, home: Home
) -> None:
    marks = home.copy.store.folder / launcher.MARKS
    marks.mkdir(parents=True)
    (marks / "2.0.failed").write_text(json.dumps({"how": "ended", "code": 3, "at": 1.0}))
    for _ in range(2):
        async with running(home.updates(built(publisher, server))) as updates:
            assert "it stopped with code 3" in (updates.state().notice or "")
    assert [reason.code for reason in home.noted] == ["update_rolled_back"]
    publisher.publish("2.0")
    async with running(updates):
        await updates.install()
        assert (await ended(updates)).notice is None  # the user wants it once more


async def test_a_node_that_runs_has_started_well(
    publisher: Publisher, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(update_service, "HEALTHY_SECONDS", 0.01)
    async with running(home.updates(publisher.build)):
        await until((home.copy.store.folder / launcher.MARKS / "1.0.node").exists)


async def test_machines_that_it_would_not_understand_are_told_before(
    publisher: Publisher, server: FilesServer, home: Home
) -> None:
    home.members = {"attic": PROTOCOL, "cellar": PROTOCOL + 1}
    publisher.publish("2.0", protocol=PROTOCOL + 2, oldest=PROTOCOL + 1)
    state = await home.updates(built(publisher, server)).check()
    assert state.warning is not None
    assert "attic" in state.warning
    assert "cellar" not in state.warning
    assert state.protocols == home.members


async def test_a_folder_is_warned_about_before_it_is_installed(
    publisher: Publisher, server: FilesServer, home: Home
) -> None:
    home.members = {"attic": PROTOCOL}
    publisher.publish("2.0", protocol=PROTOCOL + 2, oldest=PROTOCOL + 1)
    async with running(home.updates(publisher.build)) as updates:
        await updates.install(str(publisher.place))
        state = await ended(updates)
        assert state.error_facts == Reason("update_others_first", {"machines": "attic", "version": "2.0"})
        assert state.ready is None
        await updates.install(str(publisher.place), anyway=True)
        state = await ended(updates)
    assert (state.ready, state.error) == ("2.0", None)


async def test_a_staged_release_reaches_the_same_machines_each_time(
    publisher: Publisher, server: FilesServer, home: Home
) -> None:
    release = publisher.publish("2.0", rollout=30)
    machines = [f"{number:064x}" for number in range(2000)]
    shares = [share_of(machine, "2.0") for machine in machines]
    assert shares == [share_of(machine, "2.0") for machine in machines]
    assert 0.26 < sum(is_in_turn(release, machine) for machine in machines) / len(machines) < 0.34
    early = next(machine for machine, share in zip(machines, shares, strict=True) if share < 30)
    late = next(machine for machine, share in zip(machines, shares, strict=True) if 30 <= share < 60)
    updates = home.updates(built(publisher, server))
    home.machine = early
    assert not (await updates.check()).staged
    home.machine = late
    home.noted.clear()
    assert (await home.updates(built(publisher, server)).check()).staged
    publisher.repository.roll_out(SYSTEM, "2.0", 60)
    assert not (await updates.check()).staged


async def test_once_a_day_only_where_the_owner_wants_it(publisher: Publisher, server: FilesServer, home: Home) -> None:
    publisher.publish("2.0")
    updates = home.updates(built(publisher, server))
    assert not updates.is_due()
    home.daily = True
    assert updates.is_due()
    await updates.check()
    assert not updates.is_due()
    home.now += DAY_SECONDS - 1
    assert not updates.is_due()
    home.now += 1
    assert updates.is_due()
    await updates.check()
    home.now -= 3 * DAY_SECONDS
    assert updates.is_due()  # the clock was set back


async def test_the_daily_check_runs_by_itself_and_survives_a_broken_one(
    publisher: Publisher, server: FilesServer, home: Home
) -> None:
    server.status, home.daily = 500, True
    async with running(home.updates(built(publisher, server))) as updates:
        await until(lambda: bool(server.requests))
        await until(lambda: updates.state().last_contact == home.now)
    assert not home.noted


async def test_a_damaged_record_is_put_aside(publisher: Publisher, server: FilesServer, home: Home) -> None:
    publisher.publish("2.0")
    (home.copy.folder / "updates.json").write_text("{")
    assert (await home.updates(built(publisher, server)).check()).newer


async def test_a_build_without_an_address_says_so(publisher: Publisher, home: Home) -> None:
    updates = home.updates(publisher.build)
    assert updates.state().place is None
    with pytest.raises(AppError) as error:
        await updates.check()
    assert error.value.reason.code == "updates_no_place"


def test_a_node_of_this_build_says_that_it_cannot_update(tmp_path: Path) -> None:
    with node(tmp_path, "den") as den:
        state = den.control("GET", "/updates")
        assert (state["place"], state["last_contact"], state["newer"]) == (None, None, False)
        assert (state["can_install"], state["cannot_facts"]["code"]) == (False, "update_from_source")
        den.control("POST", "/settings", {"look_for_updates": True})
        assert den.control("GET", "/settings")["look_for_updates"]
        expected = {
            "/updates": "updates_no_place",
            "/updates/install": "update_from_source",
            "/updates/rollback": "update_from_source",
            "/updates/restart": "update_none_ready",
        }
        for path, code in expected.items():
            with pytest.raises(AppError) as refused:
                den.control("POST", path)
            assert refused.value.reason.code == code


async def test_only_what_was_shown_is_installed(publisher: Publisher, server: FilesServer, home: Home) -> None:
    home.machine = "0" * 64
    publisher.publish("2.0")
    async with running(home.updates(built(publisher, server))) as updates:
        assert (await updates.check()).version == "2.0"
        share = share_of(home.machine, "3.0")
        publisher.publish("3.0", rollout=share)  # meant for others so far
        await updates.install()
        assert (await ended(updates)).ready == "2.0"
        publisher.publish("4.0")
        await updates.install()
        state = await ended(updates)
        assert state.error_facts is not None
        assert (state.error_facts.code, state.version, state.ready) == ("update_changed", "4.0", "2.0")
        await updates.install()
        assert (await ended(updates)).ready == "4.0"


async def test_an_unforeseen_error_ends_nothing_else(
    publisher: Publisher, server: FilesServer, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ValueError("odd")

    home.daily = True
    monkeypatch.setattr(Updater, "find", fail)
    async with running(home.updates(built(publisher, server))) as updates:
        await until(lambda: updates.state().last_contact == home.now)
        await updates.install()
        state = await ended(updates)
        assert state.error_facts is not None
        assert state.error_facts.code == "system_error"
        monkeypatch.undo()
        publisher.publish("2.0")
        await updates.install()
        assert (await ended(updates)).ready == "2.0"
