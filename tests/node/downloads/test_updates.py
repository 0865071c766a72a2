"""Newer versions: asked of a real server on loopback, by a person or once a day, and of nobody else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from app import __version__
from app.core.errors import AppError, Busy, Reason, Unreachable
from app.node.downloads import updates as looking
from app.node.downloads.updates import DAY_SECONDS, ReleaseRepository, Updates, find_release_repository
from tests.catalog.hub_server import closed_hub
from tests.network.nodes import until
from tests.node.pool import node

Json = dict[str, Any]
REPOSITORY = "someone/poolhouse"
PAGE = f"https://github.com/{REPOSITORY}/releases"


@dataclass
class Server:
    """The service that releases are published on."""

    answer: Any = None
    status: int = 200
    port: int = 0
    asked: list[web.BaseRequest] = field(default_factory=list)

    @property
    def place(self) -> ReleaseRepository:
        return ReleaseRepository(REPOSITORY, api=f"http://127.0.0.1:{self.port}")

    def publish(self, tag: str, page: str = "") -> None:
        self.answer, self.status = {"tag_name": tag, "html_url": page, "assets": []}, 200

    async def latest(self, request: web.Request) -> web.Response:
        self.asked.append(request)
        raw = self.answer if isinstance(self.answer, bytes) else json.dumps(self.answer).encode()
        return web.Response(body=raw, status=self.status)


@pytest.fixture
async def server() -> AsyncGenerator[Server, None]:
    made, app = Server(), web.Application()
    app.router.add_get(f"/repos/{REPOSITORY}/releases/latest", made.latest)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.port = runner.addresses[0][1]
    yield made
    await runner.cleanup()


@dataclass
class Home:
    """The owner's choice, the time, and the entries of the journal."""

    folder: Path
    daily: bool = False
    now: float = 1_800_000_000.0
    noted: list[Reason] = field(default_factory=list)

    def updates(self, place: ReleaseRepository | None) -> Updates:
        return Updates(
            self.folder / "updates.json", place, lambda: self.daily, self.noted.append, lambda: self.now
        )  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


async def test_a_newer_version_is_told_with_its_page_and_kept(server: Server, home: Home) -> None:
    server.publish("v99.1.0", f"{PAGE}/tag/v99.1.0")
    updates = home.updates(server.place)
    assert updates.state().last_contact is None
    check = await updates.check()
    assert (check.version, check.newer, check.page) == (
        "99.1.0", True, f"{PAGE}/tag/v99.1.0",
    )  # fmt: skip
    assert check.last_contact == home.now
    assert home.updates(server.place).state() == check  # after a restart too
    assert [reason.code for reason in home.noted] == ["log_node_newer"]
    await updates.check()
    assert len(home.noted) == 1  # said once


@pytest.mark.parametrize("tag", [__version__, f"v{__version__}", "0.0.1", "v0.1.0rc1"])
async def test_this_version_and_older_ones_are_no_news(server: Server, home: Home, tag: str) -> None:
    server.publish(tag)
    check = await home.updates(server.place).check()
    assert not check.newer
    assert not home.noted


async def test_ten_is_more_than_nine(server: Server, home: Home) -> None:
    server.publish("0.10.0")
    assert (await home.updates(server.place).check()).newer


async def test_what_is_asked_tells_nothing_of_who_asks(server: Server, home: Home) -> None:
    server.publish(__version__)
    await home.updates(server.place).check()
    headers = server.asked[0].headers
    assert headers["User-Agent"] == "poolhouse"
    assert not {"Cookie", "Authorization", "Referer"} & set(headers)


async def test_a_page_elsewhere_is_not_opened(server: Server, home: Home) -> None:
    server.publish("99.0", "https://example.org/poolhouse.exe")
    assert (await home.updates(server.place).check()).page == PAGE


async def test_nothing_published_is_no_error(server: Server, home: Home) -> None:
    server.answer, server.status = {"message": "Not Found"}, 404
    check = await home.updates(server.place).check()
    assert (check.version, check.newer, check.last_contact) == (None, False, home.now)


@pytest.mark.parametrize(
    ("status", "answer", "kind", "code"),
    [
        (403, {}, Busy, "hub_busy"),
        (429, {}, Busy, "hub_busy"),
        (500, {}, Unreachable, "hub_fault"),
        (302, {}, Unreachable, "hub_fault"),
        (200, b"<html>", Unreachable, "hub_odd"),
        (200, {"name": "no tag"}, Unreachable, "hub_odd"),
        (200, {"tag_name": "the best one"}, Unreachable, "hub_odd"),
        (200, b"[" * (2 << 20), Unreachable, "hub_odd"),
    ],
)
async def test_odd_answers_become_sentences(
    server: Server, home: Home, status: int, answer: Any, kind: type[AppError], code: str
) -> None:
    server.status, server.answer = status, answer
    with pytest.raises(kind) as refused:
        await home.updates(server.place).check()
    assert refused.value.reason.code == code


async def test_no_way_there_is_said_with_the_cause(home: Home) -> None:
    away = ReleaseRepository(REPOSITORY, api=closed_hub().endpoint)
    with pytest.raises(Unreachable) as refused:
        await home.updates(away).check()
    assert refused.value.reason.code == "updates_unreached"
    assert refused.value.reason.facts["why"] == Reason("connection_refused")


async def test_without_a_place_nobody_is_asked(home: Home) -> None:
    home.daily = True
    updates = home.updates(None)
    assert updates.state().place is None
    assert not updates.is_due()
    with pytest.raises(AppError) as refused:
        await updates.check()
    assert refused.value.reason.code == "updates_no_place"


async def test_by_itself_only_where_that_was_chosen_and_once_a_day(
    server: Server, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "LOOK_SECONDS", 0.0)
    server.publish("99.0")
    updates = home.updates(server.place)
    assert not updates.is_due()  # nobody chose it
    home.daily = True
    async with asyncio.TaskGroup() as group:
        task = group.create_task(updates.run())
        await until(lambda: bool(home.noted), 30)
        assert len(server.asked) == 1
        assert not updates.is_due()
        home.now += DAY_SECONDS
        await until(lambda: len(server.asked) == 2, 30)
        task.cancel()
    home.now -= 3 * DAY_SECONDS  # the clock was wrong
    assert updates.is_due()
    home.daily = False
    assert not updates.is_due()


@pytest.mark.parametrize(
    ("line", "repository"),
    [
        ("Repository, https://github.com/someone/poolhouse", "someone/poolhouse"),
        ("Source Code, https://github.com/someone/pool.house.git", "someone/pool.house"),
        ("source, https://github.com/someone/poolhouse/", "someone/poolhouse"),
        ("Homepage, https://github.com/someone/poolhouse", None),
        ("Repository, http://github.com/someone/poolhouse", None),
        ("Repository, https://github.com.example.org/someone/poolhouse", None),
        ("Repository, https://github.com/someone", None),
        ("Repository, https://github.com/someone/..", None),
        ("Repository, https://github.com/a/b/../../c/d", None),
        ("Repository", None),
    ],
)
def test_the_place_is_what_the_build_names(line: str, repository: str | None) -> None:
    release_place = find_release_repository(["Documentation, https://example.org", line])
    assert (release_place.repository if release_place else None) == repository


def test_a_node_tells_its_faces_and_keeps_the_choice(tmp_path: Path) -> None:
    with node(tmp_path, "den") as den:
        result = den.control("GET", "/updates")
        assert (result["daily"], result["last_contact"], result["newer"]) == (False, None, False)
        if result["place"] is not None:
            return  # it would be asked for real
        den.control("POST", "/settings", {"look_for_updates": True})
        assert den.control("GET", "/settings")["look_for_updates"]
        with pytest.raises(AppError) as refused:
            den.control("POST", "/updates")
        assert refused.value.reason.code == "updates_no_place"
