"""A guest with several hosts: whom it asks, what it lists, and what it makes of odd answers; no network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from app.api import requests
from app.api.responses import Answer
from app.core.errors import BadInput, Refused, Unreachable
from app.core.household.membership import Member
from app.core.household.operations import Role
from app.core.ids import machine_id
from app.inference.pipeline.completion import Delta
from app.node.control.answer_conversion import AnswerPart
from app.node.known_household import Rights
from app.node.models.household_models import MOST_BYTES, HouseholdModels

ME = machine_id("a" * 64)
GUEST = {ME: Member(ME, b"", "visitor", frozenset({Role.GUEST}))}


@dataclass(frozen=True, slots=True)
class Members:
    """The household as the log of this machine has it."""

    members: Any
    id: Any = ME


class Content:
    """A body that comes in these chunks."""

    def __init__(self, *chunks: bytes) -> None:
        self._chunks = [*chunks, b""]

    async def readany(self) -> bytes:
        return self._chunks.pop(0)


class Host:
    """Stands in for a HostClient: says what it has, or is not there; answers with these bytes."""

    def __init__(self, name: str, offers: Any = None, answer: bytes = b"", status: int = 200) -> None:
        self.host = SimpleNamespace(name=name)
        self._offers, self._answer, self._status = offers, answer, status
        self.bodies: list[Any] = []

    @asynccontextmanager
    async def request(self, method: str, path: str, body: bytes = b"", headers: object = None) -> AsyncIterator[Any]:
        if path == "/models" and self._offers is None:
            raise Unreachable("peer_offline", name=self.host.name)
        raw = self._answer if path == "/ask" else msgspec.json.encode(self._offers)
        self.bodies.append(msgspec.json.decode(body) if body else None)
        yield SimpleNamespace(content=Content(raw), content_length=len(raw), status=self._status)

    async def chunks(self, answer: Any) -> AsyncGenerator[bytes, None]:
        while chunk := await answer.content.readany():
            yield chunk


def has(*names: str, loaded: str | None = None) -> dict[str, Any]:
    return {"models": [{"name": name} for name in names], "loaded": loaded}


def guest(*hosts: Host, own: str | None = None, members: Any = GUEST) -> HouseholdModels:
    hosting = cast("Any", SimpleNamespace(loaded=SimpleNamespace(names=[own] if own else [])))
    made = HouseholdModels(cast("Any", None), Rights(cast("Any", Members(members))), hosting)
    made.hosts = lambda: cast("Any", list(hosts))  # type: ignore[method-assign]
    return made


async def lines(household_models: HouseholdModels) -> list[AnswerPart]:
    return [line async for line in household_models.ask(requests.Ask(prompt="Hello", conversation="c"))]


@pytest.mark.parametrize(
    ("model", "name"), [("", "attic"), ("default", "attic"), ("big", "attic"), ("small", "den"), ("other", "barn")]
)
async def test_the_host_that_has_it_loaded_is_asked_before_one_that_has_it(model: str, name: str) -> None:
    hosts = Host("barn"), Host("den", has("big", "small")), Host("attic", has("big", loaded="big"))
    guest_client = await guest(*hosts).host_for(model)
    assert guest_client.host.name == name


def test_only_members_that_may_host_and_are_linked_answer() -> None:
    """Members are asked in the order of their names. Lenders and former members are not asked."""
    roles = {
        "den": {Role.HOST}, "attic": {Role.HOST, Role.LENDER}, "barn": {Role.LENDER},
        "visitor": {Role.GUEST}, "loft": {Role.HOST},
    }  # fmt: skip
    ids = {name: machine_id(f"{n:064x}") for n, name in enumerate((*roles, "stranger"))}
    members = {ids[name]: Member(ids[name], b"", name, frozenset(may)) for name, may in roles.items()}
    linked = [name for name in ids if name != "loft"]  # that one is away
    network: Any = SimpleNamespace(
        members=members,
        links={
            ids[name]: SimpleNamespace(
                name=name, peer=ids[name], address="", finished=asyncio.Event(), host_session=None
            )
            for name in linked
        },
    )
    hosting = cast("Any", SimpleNamespace(loaded=SimpleNamespace(names=[])))
    made = HouseholdModels(network, Rights(cast("Any", Members(GUEST))), hosting)
    assert [client.host.name for client in made.hosts()] == ["attic", "den"]
    assert made.answering_hosts() == ["attic", "den"]


async def test_a_host_that_does_not_answer_hides_no_other(caplog: pytest.LogCaptureFixture) -> None:
    listed = await guest(Host("barn"), Host("den", has("a", "b")), Host("loft", has("b"))).listed()
    assert [(item.name, item.machine) for item in listed] == [("a", "den"), ("b", "den")]
    with pytest.raises(Unreachable, match="guest_no_host"):
        await guest().host_for("a")
    assert await guest(Host("den", {"models": [{"name": 7}]})).listed() == []


async def test_what_is_listed_names_the_host_that_would_be_asked() -> None:
    """A model on two hosts is that of the one that has it loaded, as the question goes there."""
    hosts = Host("attic", has("a", "b")), Host("den", has("a", "b", loaded="b"))
    household_models = guest(*hosts)
    listed = {each.name: each.machine for each in await household_models.listed()}
    assert listed == {"a": "attic", "b": "den"}
    for name, machine in listed.items():
        assert (await household_models.host_for(name)).host.name == machine


async def test_a_host_that_says_nothing_for_long_keeps_no_guest_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.node.models.household_models.OFFERS_SECONDS", 0.05)
    silent = Host("barn", has("b"))
    silent.request = lambda *_: _silence()  # type: ignore[method-assign]
    household_models = guest(silent, Host("den", has("a")))
    async with asyncio.timeout(30):
        assert [offer.name for offer in await household_models.listed()] == ["a"]
        assert (await household_models.host_for("a")).host.name == "den"


@asynccontextmanager
async def _silence() -> AsyncIterator[Any]:
    await asyncio.Event().wait()
    yield


def test_only_a_guest_passes_on_and_not_what_it_has_loaded_itself() -> None:
    assert guest().is_forwarded("")
    assert not guest(own="guide").is_forwarded("")
    assert not guest(own="guide").is_forwarded("guide")
    assert guest(own="guide").is_forwarded("other")
    both = {ME: Member(ME, b"", "x", frozenset({Role.GUEST, Role.HOST}))}
    assert not guest(members=both).is_forwarded("")
    assert not guest(members={}).is_forwarded("")
    assert guest(Host("den")).answering_hosts() == ["den"]
    assert guest(Host("den"), own="guide").answering_hosts() is None


async def test_an_answer_comes_line_by_line_and_its_error_is_the_host_s() -> None:
    delta, done = {"delta": {"text": "a", "token_ids": [1]}}, {"done": {"text": "a"}}
    whole = b"\n".join(map(msgspec.json.encode, (delta, done))) + b"\n"
    den = Host("den", answer=whole)
    assert await lines(guest(den)) == [Delta("a", (1,)), Answer(text="a")]
    assert den.bodies[0]["conversation"] == "c"
    facts = {"name": "x", "there": "y"}
    error = {"kind": "BadInput", "code": "model_unknown", "facts": facts, "message": "?"}
    with pytest.raises(BadInput) as raised:
        await lines(guest(Host("den", answer=msgspec.json.encode({"error": error}) + b"\n")))
    assert raised.value.reason.code == "model_unknown"


@pytest.mark.parametrize(
    ("answer", "status", "kind"),
    [
        (b"no JSON\n", 200, Refused),
        (b'{"delta": "\xff"}\n', 200, Refused),
        (b'{"delta": ' + b"[" * 100_000 + b"\n", 200, Refused),
        (b"[]\n", 200, Refused),
        (b"x" * (MOST_BYTES + 1), 200, Refused),
        (b'{"delta":' + b"[" * 200_000 + b"\n", 200, Refused),
        (b'{"delta": {}}\n', 200, Refused),
        (b'{"delta": {"text": "a", "token_ids": [1]}}\n', 200, Unreachable),  # it ended in the middle
        (b"<html>", 404, Refused),
    ],
)
async def test_what_is_no_answer_is_an_error_with_a_sentence(answer: bytes, status: int, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        await lines(guest(Host("den", answer=answer, status=status)))
