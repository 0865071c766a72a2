"""Tests of who may use a host as a guest, how that ends, and what a guest forwards. No network."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer, make_mocked_request
from yarl import URL

from app.api import requests
from app.api.responses import WaitingPlace
from app.core.errors import BadInput
from app.core.household.operations import Role
from app.core.ids import machine_id
from app.core.reasons import said
from app.core.scheduler.requester import Requester
from app.gateway.access.auth import BODY, CALLER, PROGRAM, Handler
from app.gateway.answer_service import Caller
from app.gateway.error_responses import status_of
from app.gateway.fair_queue import FairQueue, Turn
from app.gateway.servers import member_server
from app.gateway.servers.host_proxy import forward_to_host
from app.gateway.servers.member_server import FOR_MEMBERS, MemberAuthenticator, MemberRoutes, naming_host, while_allowed
from app.gateway.upstreams.upstreams import FORWARDED_BY
from app.inference.pipeline.completion import Delta
from app.network.peer.listener import MEMBER
from app.node.control.answer_conversion import AnswerPart
from app.node.models.household_models import Destination
from tests.node.models.test_household_models import Content

VISITOR = machine_id("b" * 64)


def request(**headers: str) -> web.Request:
    made = make_mocked_request("POST", "/ask", headers=headers)
    made[MEMBER] = cast("Any", SimpleNamespace(id=VISITOR))
    return made


def test_only_a_host_answers_guests_and_no_web_page_asks() -> None:
    door = MemberAuthenticator(lambda machine: machine == VISITOR)
    assert door.address_error(request()) is None
    assert door.address_error(request(Origin="https://example.org")) is not None
    refused = MemberAuthenticator(lambda _: False).address_error(request())
    assert refused is not None
    assert "does not answer" in refused[1]


def test_whoever_may_only_ask_is_a_guest_and_who_lends_too_a_machine() -> None:
    door, asks = MemberAuthenticator(lambda _: True), request()
    result = []
    for roles in ({Role.GUEST}, {Role.GUEST, Role.LENDER}):
        asks[MEMBER] = cast("Any", SimpleNamespace(id=VISITOR, name="loft", roles=roles))
        result.append(door.requester(asks, "guest bbbb"))
    assert result == [Requester("guest", "loft"), Requester("machine", "loft")]


@pytest.mark.parametrize("code", FOR_MEMBERS)
def test_where_the_host_s_setting_decides_a_guest_is_told_whose_it_is(code: str) -> None:
    facts: Any = {"name": "m", "model": "m", "loaded": "guide", "most": 9, "tokens": 2, "asked": 5}
    with pytest.raises(BadInput) as raised, naming_host(lambda: "den"):
        raise BadInput(code, **facts)
    assert "den" in said(raised.value)
    assert status_of(raised.value) == status_of(BadInput(code, **facts))
    with pytest.raises(BadInput, match="model_unknown"), naming_host(lambda: "den"):
        raise BadInput("model_unknown", name="x", there="guide")


async def test_an_answer_that_must_end_may_clean_up_as_long_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member_server, "LOOK_SECONDS", 0.01)
    messages: list[str] = []

    async def handler(_: web.Request) -> web.StreamResponse:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.05)  # a second cancellation would fall in here
            messages.append("cleaned up")
        raise AssertionError("never")

    answer = await while_allowed(lambda _: False)(request(), handler)
    assert messages == ["cleaned up"]
    assert answer.status == 403


class Answering:
    """Stands in for the service that answers: a queue with room for one answer."""

    def __init__(self) -> None:
        self.queue = FairQueue(lambda _: 1)

    @asynccontextmanager
    async def line(self, key: str, model: str) -> AsyncIterator[Turn]:
        with self.queue.line(key, model) as turn:
            yield turn

    async def assigned_model(self, turn: Turn, model: str) -> str:
        assert turn.admitted.done()
        return model

    def needs_load(self, _: str) -> bool:
        return False


async def test_a_member_that_waits_is_sent_its_place_whenever_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member_server, "PLACE_SECONDS", 0)
    answering, parts = Answering(), list[AnswerPart]()

    async def answer(*_: object, may_load: bool) -> AsyncGenerator[AnswerPart, None]:
        assert not may_load
        yield Delta("a", (1,))

    budget: Any = SimpleNamespace(check=lambda _: None, spender=lambda _: None, spend=lambda *_: None)
    hosting: Any = SimpleNamespace(answer=answer, notice=lambda *_: "")
    made = MemberRoutes(cast("Any", answering), budget, hosting, cast("Any", None), lambda: "den")

    async def collect() -> None:
        async for part in made._answer(requests.Ask(prompt="Hello", model="guide"), Caller("member b", "r1")):
            parts.append(part)

    async def soon() -> list[AnswerPart]:
        for _ in range(50):
            await asyncio.sleep(0)
        return parts

    async with asyncio.TaskGroup() as group:
        with answering.queue.line("a"):
            with answering.queue.line("a"):
                group.create_task(collect(), name="collect")
                assert await soon() == [WaitingPlace(2, 20)]
            assert await soon() == [WaitingPlace(2, 20), WaitingPlace(1, 10)]
    assert parts[2:] == [Delta("a", (1,))]
    assert (answering.queue.n_running, answering.queue.n_waiting) == (0, 0)


class Host:
    """Stands in for a HostClient: keeps the paths that were asked."""

    def __init__(self) -> None:
        self.host = SimpleNamespace(name="den")
        self.paths: list[str] = []
        self.programs: list[str] = []
        self.marks: list[str] = []

    @asynccontextmanager
    async def request(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> AsyncIterator[Any]:
        self.paths.append(path)
        self.programs.append(headers[PROGRAM])
        self.marks.append(headers[FORWARDED_BY])
        yield SimpleNamespace(
            status=200, content_type="application/json", headers={}, content=Content(), content_length=0
        )


async def test_only_routes_of_ours_are_passed_on_as_they_are_written() -> None:
    host = Host()

    async def destination(name: str, *, by_program: bool) -> Destination:
        assert by_program
        return Destination(cast("Any", host), name)

    household_models = cast("Any", SimpleNamespace(destination=destination))

    @web.middleware
    async def checked(request: web.Request, handler: Handler) -> web.StreamResponse:
        request[BODY] = b"{}"
        request[CALLER] = Caller(request.query.get("key", "default"), "r1", forwarded_by=("one", "two"))
        return await handler(request)

    async def never(_: web.Request) -> web.StreamResponse:
        raise AssertionError("a guest answers nothing itself")

    app = web.Application(middlewares=[checked, forward_to_host(household_models)])
    app.add_routes([web.post("/v1/completions", never)])
    async with TestClient(TestServer(app)) as client:
        assert (await client.post("/v1/completions")).status == 200
        for path in ("/v1/%2e%2e/%2e%2e/stage/ab/pieces", "/v1/completions/%2e%2e/ask", "/v1/x"):
            url = URL(str(client.make_url("/")).rstrip("/") + path, encoded=True)
            assert (await client.session.post(url)).status == 404
        assert host.paths == ["/v1/completions"]
        for key in ("default", "editor", "editor"):
            await client.post(f"/v1/completions?key={key}")
    assert set(host.marks) == {"one,two"}  # else an upstream that is a guest would lead in a circle
    first, again, other, same = host.programs
    assert first == again != other == same
    assert all(re.fullmatch(r"[0-9a-f]{32}", program) for program in host.programs)  # no name is told
