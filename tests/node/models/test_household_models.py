"""A member with several hosts: whom it asks, what it lists, and what it makes of odd answers; no network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import msgspec
import pytest

from app.api import requests
from app.api.responses import Answer, AnsweredBy
from app.api.snapshot import WaitingChat
from app.core.errors import BadInput, Reason, Refused, Unreachable
from app.core.household.household import Household, Machine, SelfDescription, SharedModel
from app.core.household.membership import Member
from app.core.household.operations import Role
from app.core.ids import MachineId, machine_id
from app.core.reasons import said
from app.inference.pipeline.completion import Delta
from app.machine.settings import Settings, SettingsStore
from app.node.control.answer_conversion import AnswerPart
from app.node.control.pairing_actions import find_machine
from app.node.known_household import Rights
from app.node.models.household_models import MOST_BYTES, HostNotice, HouseholdModels

ME = machine_id("a" * 64)
GUEST = {ME: Member(ME, b"", "visitor", frozenset({Role.GUEST}))}


@dataclass(frozen=True, slots=True)
class Members:
    """The household as the log of this machine has it."""

    members: Any
    id: Any = ME


WHOLE = b'{"delta": {"text": "a", "token_ids": [1]}}\n{"done": {"text": "a"}}\n'


class Content:
    """A body that comes in these chunks."""

    def __init__(self, *chunks: bytes, breaks_off: bool = False) -> None:
        self._chunks, self._breaks_off = [*chunks, b""], breaks_off

    async def readany(self) -> bytes:
        if self._breaks_off:
            raise aiohttp.ClientPayloadError("not complete")
        return self._chunks.pop(0)


class Host:
    """Stands in for a HostClient: says what it has, or is not there; answers with these bytes."""

    def __init__(self, name: str, offers: Any = None, answer: bytes = b"", status: int = 200) -> None:
        self.host = SimpleNamespace(name=name, id=name)
        self._offers, self._answer, self._status = offers, answer, status
        self.bodies: list[Any] = []
        self.stays = False  # connected, although an answer ended
        self.breaks_off = False  # in the middle of a response

    @asynccontextmanager
    async def request(self, method: str, path: str, body: bytes = b"", headers: object = None) -> AsyncIterator[Any]:
        if path == "/models" and self._offers is None:
            raise Unreachable("peer_offline", name=self.host.name)
        raw = self._answer if path == "/ask" else msgspec.json.encode(self._offers)
        self.bodies.append(msgspec.json.decode(body) if body else None)
        content = Content(raw, breaks_off=self.breaks_off)
        yield SimpleNamespace(content=content, content_length=len(raw), status=self._status)

    async def is_gone(self, seconds: float) -> bool:
        return not self.stays

    async def chunks(self, answer: Any) -> AsyncGenerator[bytes, None]:
        while chunk := await answer.content.readany():
            yield chunk


def has(*names: str, loaded: str | None = None) -> dict[str, Any]:
    return {"models": [{"name": name} for name in names], "loaded": loaded}


def household_of(members: Any, *machines: Machine) -> Any:
    """The household as this machine knows it: its rights, and these machines."""
    now = Household({each.id: each for each in machines})
    return SimpleNamespace(
        me=ME,
        rights=Rights(cast("Any", Members(members))),
        now=now,
        machine=lambda ref: find_machine(ref, now.machines),
    )


def manager_of(own: str | None, *, loading: bool = False, failed: object = None) -> Any:
    loaded = SimpleNamespace(names=[own] if own else [])
    return SimpleNamespace(loaded=loaded, loading=loading, failed_load=lambda: failed)


class Notice:
    """The notice about hosts, on a machine whose user has or has not read it."""

    def __init__(self, *, was_given: bool) -> None:
        self.was_given, self.hosts = was_given, list[str]()

    async def give(self, host: str) -> Reason | None:
        self.hosts.append(host)
        return None if self.was_given else Reason("host_answers", {"host": host})


def models_of(
    household: Any,
    manager: Any,
    *,
    network: Any = None,
    was_given: bool = False,
    files: Collection[str] = (),
    group: asyncio.TaskGroup | None = None,
) -> HouseholdModels:
    """files: names of the models whose files this machine has."""
    notice: Any = Notice(was_given=was_given)

    async def has_file(name: str) -> bool:
        return name in files

    return HouseholdModels(network, household, manager, notice, has_file, cast("Any", group))


async def at(made: HouseholdModels, model: str, **more: Any) -> tuple[str, str]:
    """The host that answers, or "" for this machine; and the name of the model there."""
    there = await made.destination(model, **more)
    return "" if there.host is None else there.host.host.name, there.model


def guest(*hosts: Host, own: str | None = None, members: Any = GUEST) -> HouseholdModels:
    made = models_of(household_of(members), manager_of(own))
    made.hosts = lambda: cast("Any", list(hosts))  # type: ignore[method-assign]
    return made


DEN, ATTIC = machine_id("d" * 64), machine_id("e" * 64)
OWNER = {ME: Member(ME, b"", "study", frozenset({Role.HOST, Role.LENDER}))}


def host_of(machine: MachineId, name: str, *models: str, **more: Any) -> Machine:
    """A connected host that shares these models; those in brackets are still loading."""
    shared = tuple(SharedModel(each.strip("()"), "f" * 64, 4096, "(" not in each) for each in models)
    about = SelfDescription(models=shared)
    return replace(Machine(machine, name, online=True, roles=("host", "lender"), about=about), **more)


def member(
    *machines: Machine,
    own: str | None = None,
    was_given: bool = True,
    roles: frozenset[Role] = frozenset({Role.HOST}),
    files: Collection[str] = (),
    group: asyncio.TaskGroup | None = None,
    **manager: Any,
) -> HouseholdModels:
    """This machine as a host of a household with these other machines."""
    me = Machine(ME, "study", online=True, roles=("host",))
    household = household_of({ME: Member(ME, b"", "study", roles)}, me, *machines)
    made = models_of(household, manager_of(own, **manager), was_given=was_given, files=files, group=group)
    hosts = [Host(machine.name, answer=WHOLE) for machine in machines]
    for host, machine in zip(hosts, machines, strict=True):
        host.host.id = machine.id
    made.hosts = lambda: cast("Any", hosts)  # type: ignore[method-assign]
    return made


async def test_a_member_forwards_what_another_host_has_loaded_and_it_has_not() -> None:
    den, here = host_of(DEN, "den", "qwen", "guide"), ""
    assert await at(member(den), "qwen") == ("den", "qwen")
    assert await at(member(den), "qwen:latest") == ("den", "qwen")
    assert await at(member(den), "other") == (here, "other")
    assert await at(member(den, own="qwen"), "qwen") == (here, "qwen")
    assert await at(member(den, files=["qwen"]), "qwen") == (here, "qwen")  # loads here, as the window says
    assert await at(member(den, files=["qwen"]), "qwen@den") == ("den", "qwen")
    assert await at(member(den, own="qwen"), "qwen@den") == ("den", "qwen")  # on purpose
    assert await at(member(den), "guide") == (here, "guide")  # every machine has the Guide
    assert await at(member(den), "guide@den") == ("den", "guide")
    assert await at(member(den), "qwen@study") == (here, "qwen")  # this machine
    # a program may mean a model of another server; a person has mistyped the machine
    assert await at(member(den), "@cf/model@nowhere", by_program=True) == (here, "@cf/model@nowhere")
    with pytest.raises(BadInput, match="machine_unknown"):
        await member(den).destination("qwen@nowhere")


async def test_the_guides_of_other_machines_are_no_duplicates_in_the_lists_of_programs() -> None:
    made = member(host_of(DEN, "den", "qwen", "guide"))
    assert [model.name for model in made.listed_by_reference()] == ["qwen@den"]
    assert [model.name for model in made.listed_by_reference(has_guide=False)] == ["qwen@den", "guide@den"]
    assert [model.reference for model in made.shared()] == ["qwen@den", "guide@den"]  # the window may choose it


async def test_a_machine_whose_name_contains_an_at_sign_can_be_asked() -> None:
    made = member(host_of(ATTIC, "qwen@den", "qwen"), host_of(DEN, "den", "qwen"))
    references = [model.reference for model in made.shared()]
    assert [await at(made, reference) for reference in references] == [("den", "qwen"), ("qwen@den", "qwen")]


async def test_a_question_without_a_model_goes_to_a_host_only_if_nothing_is_loaded_here() -> None:
    den, here = host_of(DEN, "den", "qwen"), ("", "")
    assert await at(member(den), "") == ("den", "qwen")
    assert await at(member(den), "default") == ("den", "qwen")
    assert await at(member(den, own="small"), "") == here
    assert await at(member(den, loading=True), "") == here
    assert await at(member(den, failed="why"), "") == here
    assert await at(member(host_of(DEN, "den", "guide")), "") == here
    assert await at(member(host_of(DEN, "den", "(qwen)")), "") == here  # still loading
    # a program cannot show the notice, so it must name the model until the user has read it
    assert await at(member(den, was_given=False), "", by_program=True) == here
    assert await at(member(den, was_given=False), "qwen", by_program=True) == ("den", "qwen")
    assert await at(member(den), "", by_program=True) == ("den", "qwen")


async def test_only_hosts_that_are_there_share_and_only_with_members_that_may_ask() -> None:
    shares = host_of(DEN, "den", "qwen")
    assert [model.reference for model in member(shares).shared()] == ["qwen@den"]
    for unheard in (replace(shares, online=False), replace(shares, roles=("lender",)), replace(shares, id=ME)):
        assert member(unheard).shared() == []
    assert member(shares, roles=frozenset({Role.LENDER})).shared() == []
    asks = member(shares)
    asks._household.rights.asks_household = lambda: False
    assert asks.shared() == []
    assert await at(asks, "qwen") == ("", "qwen")
    with pytest.raises(Refused, match="household_asks_not"):
        await asks.destination("qwen@den")


async def test_a_model_that_can_answer_is_chosen_before_one_that_is_loading() -> None:
    attic, den = host_of(ATTIC, "attic", "(qwen)"), host_of(DEN, "den", "qwen")
    made = member(attic, den)
    assert [(model.machine, model.ready) for model in made.shared()] == [("den", True), ("attic", False)]
    assert await at(made, "qwen") == ("den", "qwen")
    assert await at(made, "qwen@attic") == ("attic", "qwen")
    assert await at(made, "") == ("den", "qwen")


async def test_a_host_that_is_gone_is_replaced_by_whoever_can_answer_soonest() -> None:
    """First who has the model loaded, then this machine with the file, then another with the file."""
    gone = host_of(ATTIC, "attic", online=False)
    for made, expected in (
        (member(gone, host_of(DEN, "den", "qwen"), own="qwen"), ("", "qwen")),
        (member(gone, host_of(DEN, "den", "qwen"), files=["qwen"]), ("den", "qwen")),
        (member(gone, host_of(DEN, "den"), files=["qwen"]), ("", "qwen")),
        (member(gone, host_of(DEN, "den"), files=["qwen"], own="other"), ("den", "qwen")),
        (member(gone, host_of(DEN, "den")), ("den", "qwen")),
    ):
        hosts = [host for host in made.hosts() if host.host.name != "attic"]
        for host in hosts:
            host._offers = has("qwen")  # type: ignore[attr-defined]
        made.hosts = lambda hosts=hosts: hosts  # type: ignore[misc, method-assign]
        assert await at(made, "qwen@attic") == expected
    made.hosts = list  # type: ignore[method-assign]
    with pytest.raises(Unreachable, match="host_gone") as raised:
        await made.destination("qwen@attic")
    assert said(raised.value).startswith("attic has disconnected, and no other machine has the file of qwen.")


async def test_who_answers_instead_of_a_host_that_is_gone_is_said() -> None:
    gone = host_of(ATTIC, "attic", online=False)
    made = member(gone, host_of(DEN, "den", "qwen"))
    there_still = [host for host in made.hosts() if host.host.name == "den"]
    made.hosts = lambda: there_still  # type: ignore[method-assign]
    there = await made.destination("qwen@attic")
    notice = made.replacement_notice(there)
    assert notice is not None
    assert said(notice) == "attic is not connected, so den answers."
    here = await member(gone, files=["qwen"]).destination("qwen@study")
    assert made.replacement_notice(here) is None


async def test_a_host_that_ends_the_answer_itself_is_not_called_lost() -> None:
    """Its owner has just stopped sharing: nobody else loads the model for that."""
    made = member(host_of(DEN, "den", "qwen"))
    den: Any = made.hosts()[0]
    den._answer, den.stays = WHOLE.partition(b"\n")[0] + b"\n", True
    with pytest.raises(Refused, match="host_ended_answer"):
        await lines(made, "qwen@den")
    den._status = 403
    with pytest.raises(Refused, match="host_answers_not"):
        await lines(made, "qwen@den")


@pytest.mark.parametrize("status", [200, 409])
async def test_a_loss_among_the_host_s_own_machines_is_told_as_that(status: int) -> None:
    """The host is there, and names the machine that computes for it: nobody else has to load the model."""
    made = member(host_of(DEN, "den", "qwen"))
    den: Any = made.hosts()[0]
    error = {"kind": "Unreachable", "code": "link_lost", "facts": {"name": "attic"}, "message": "?"}
    den._answer, den._status = msgspec.json.encode({"error": error} if status == 200 else error) + b"\n", status
    with pytest.raises(Unreachable, match="link_lost"):
        await lines(made, "qwen@den")


async def test_a_host_lost_in_mid_answer_is_replaced_and_named() -> None:
    """Its replacement begins to load at once; the error names it, and what was written is kept."""
    async with asyncio.TaskGroup() as group:
        made = member(host_of(ATTIC, "attic", "qwen"), host_of(DEN, "den"), group=group)
        attic, den = made.hosts()
        attic._answer = WHOLE.partition(b"\n")[0] + b"\n"  # type: ignore[attr-defined]  # cut off
        den._offers = has("qwen")  # type: ignore[attr-defined]
        there = await made.destination("qwen@attic")
        parts = list[AnswerPart]()

        async def answer() -> None:
            async for part in made.ask(requests.Ask(prompt="Hello"), there):
                parts.append(part)

        with pytest.raises(Unreachable, match="host_gone_next") as raised:
            await answer()
        assert parts[-1] == Delta("a", (1,))
        assert said(raised.value).startswith("attic has disconnected. den is loading qwen. To continue the answer, ")
    assert den.bodies[-1] == {"model": "qwen"}  # type: ignore[attr-defined]


async def test_the_user_is_told_once_where_questions_go() -> None:
    den = host_of(DEN, "den", "qwen")
    first = await lines(member(den, was_given=False), "qwen@den")
    notice = Reason("host_answers", {"host": "den"})
    by = AnsweredBy("qwen@den", said(notice), notice)
    assert first == [by, Delta("a", (1,)), Answer(text="a", model="qwen@den")]
    assert await lines(member(den), "qwen@den") == first[1:]


async def test_the_notice_is_remembered(tmp_path: Path) -> None:
    store = SettingsStore(tmp_path / "settings.json", Settings("study"))
    notice = await HostNotice(store).give("den")
    assert notice is not None
    assert said(notice).startswith("den answers with its model.")
    assert HostNotice(store).was_given
    assert await HostNotice(store).give("den") is None


async def test_calls_from_another_host_are_checked() -> None:
    """Only offered tools, no ID that an earlier call has, and no more than the next request can repeat."""
    odd = [{"id": "1", "name": name, "arguments": "{}"} for name in ("rm", "bad name", "x" * 65)]
    good = [{"id": "1" * 200, "name": "clock", "arguments": '{"zone": "UTC"}'}] * (requests.MAX_CALLS + 1)
    made, order = member(host_of(DEN, "den", "qwen")), requests.Ask(prompt="Hi", tools=[requests.Tool(name="clock")])
    there = await made.destination("qwen")
    for calls, reason in ((odd + good, "calls"), (odd, "stop")):
        done = {"done": {"text": "a", "finish_reason": "calls", "calls": calls}}
        made.hosts()[0]._answer = msgspec.json.encode(done) + b"\n"  # type: ignore[attr-defined]
        (answer,) = [part async for part in made.ask(order, there)]
        assert isinstance(answer, Answer)
        assert answer.finish_reason == reason
        assert [call.name for call in answer.calls] == ["clock"] * (requests.MAX_CALLS if reason == "calls" else 0)
        assert len({call.id for call in answer.calls} - {"1" * 200}) == len(answer.calls)
        sent = [msgspec.to_builtins(call) for call in answer.calls]
        msgspec.convert({"role": "assistant", "content": "", "tool_calls": sent}, requests.Message)


async def test_a_place_in_the_line_of_a_host_is_shown_until_the_answer_begins() -> None:
    places = [{"waiting": {"place": 2, "seconds": 30}}, {"waiting": {"place": 1}}]
    body = b"\n".join(map(msgspec.json.encode, places)) + b"\n" + WHOLE
    made, seen = member(host_of(DEN, "den", "qwen")), list[list[WaitingChat]]()
    made.hosts()[0]._answer = body  # type: ignore[attr-defined]
    made._changed = lambda: seen.append(made.waiting())
    assert await lines(made, "qwen") == [Delta("a", (1,)), Answer(text="a", model="qwen@den")]
    assert seen == [[WaitingChat("c", 2, 30)], [WaitingChat("c", 1, None)], []]
    assert made.waiting() == []


async def test_two_questions_that_belong_to_no_chat_wait_at_once() -> None:
    """The end of one is not the end of the other one's wait."""
    made = member(host_of(DEN, "den", "qwen"))
    den: Any = made.hosts()[0]
    den._answer = b'{"waiting": {"place": 2}}\n' + WHOLE
    there, n_waiting, may_go_on = await made.destination("qwen"), list[int](), asyncio.Event()
    chunks = den.chunks

    async def slowly(answer: Any) -> AsyncGenerator[bytes, None]:
        async for chunk in chunks(answer):
            for line in chunk.splitlines(keepends=True):
                yield line
                await may_go_on.wait()

    async def ask() -> None:
        async for _ in made.ask(requests.Ask(prompt="Hello"), there):
            pass

    den.chunks = slowly
    made._changed = lambda: n_waiting.append(len(made.waiting()))
    async with asyncio.TaskGroup() as group:
        for name in "ab":
            group.create_task(ask(), name=name)
        await until(lambda: len(n_waiting) == 2)
        may_go_on.set()
    assert n_waiting == [1, 2, 1, 0]


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(50):
        if not holds():
            await asyncio.sleep(0)
    assert holds()


async def lines(household_models: HouseholdModels, model: str = "") -> list[AnswerPart]:
    there = await household_models.destination(model)
    return [line async for line in household_models.ask(requests.Ask(prompt="Hello", conversation="c"), there)]


@pytest.mark.parametrize(
    ("model", "name"), [("", "attic"), ("default", "attic"), ("big", "attic"), ("small", "den"), ("other", "barn")]
)
async def test_the_host_that_has_it_loaded_is_asked_before_one_that_has_it(model: str, name: str) -> None:
    hosts = Host("barn"), Host("den", has("big", "small")), Host("attic", has("big", loaded="big"))
    assert (await at(guest(*hosts), model))[0] == name


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
    made = models_of(household_of(GUEST), manager_of(None), network=network)
    assert [client.host.name for client in made.hosts()] == ["attic", "den"]
    assert made.answering_hosts() == ["attic", "den"]


async def test_a_host_that_does_not_answer_hides_no_other(caplog: pytest.LogCaptureFixture) -> None:
    listed = await guest(Host("barn"), Host("den", has("a", "b")), Host("loft", has("b"))).listed()
    assert [(item.name, item.machine) for item in listed] == [("a", "den"), ("b", "den")]
    with pytest.raises(Unreachable, match="guest_no_host"):
        await guest().destination("a")
    assert await guest(Host("den", {"models": [{"name": 7}]})).listed() == []


async def test_a_host_that_breaks_off_its_list_hides_no_other() -> None:
    broken = Host("barn", has("b"))
    broken.breaks_off = True
    assert [offer.name for offer in await guest(broken, Host("den", has("a"))).listed()] == ["a"]


async def test_what_is_listed_names_the_host_that_would_be_asked() -> None:
    """A model on two hosts is that of the one that has it loaded, as the question goes there."""
    hosts = Host("attic", has("a", "b")), Host("den", has("a", "b", loaded="b"))
    household_models = guest(*hosts)
    listed = {each.name: each.machine for each in await household_models.listed()}
    assert listed == {"a": "attic", "b": "den"}
    for name, machine in listed.items():
        assert (await at(household_models, name))[0] == machine


async def test_a_host_that_says_nothing_for_long_keeps_no_guest_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.node.models.household_models.OFFERS_SECONDS", 0.05)
    silent = Host("barn", has("b"))
    silent.request = lambda *_: _silence()  # type: ignore[method-assign]
    household_models = guest(silent, Host("den", has("a")))
    async with asyncio.timeout(30):
        assert [offer.name for offer in await household_models.listed()] == ["a"]
        assert (await at(household_models, "a"))[0] == "den"


@asynccontextmanager
async def _silence() -> AsyncIterator[Any]:
    await asyncio.Event().wait()
    yield


async def test_a_guest_forwards_everything_except_what_it_has_loaded_itself() -> None:
    den = Host("den")
    assert await at(guest(den), "") == ("den", "")
    assert await at(guest(den, own="guide"), "") == ("", "")
    assert await at(guest(den, own="guide"), "guide") == ("", "guide")
    assert await at(guest(den, own="guide"), "other") == ("den", "other")
    both = {ME: Member(ME, b"", "x", frozenset({Role.GUEST, Role.HOST}))}
    assert await at(guest(den, members=both), "") == ("", "")
    assert await at(guest(den, members={}), "") == ("", "")
    assert guest(den).answering_hosts() == ["den"]
    assert guest(den, own="guide").answering_hosts() is None


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
