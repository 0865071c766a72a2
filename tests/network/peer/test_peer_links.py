"""HELLO, heartbeats, versions, copied identities: one link for each machine, and only live ones."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from typing import Any

import aiohttp
import msgspec
import pytest

from app.core.errors import AppError, Reason, Refused, Unreachable
from app.network.messages import (
    OLDEST_PROTOCOL,
    PROTOCOL,
    CloseStage,
    Hello,
    HelloAck,
    Leaving,
    Log,
    Message,
    OpenStage,
    Ping,
    Pong,
    Refuse,
    as_ack,
    encode,
)
from app.network.peer import peer_client
from app.network.peer.peer_client import PeerClient
from app.network.peer.peer_link import PeerLink, receive
from app.network.peer.peer_links import check_greeting, say_hello
from app.network.sockets import LocalInterface
from tests.network.nodes import QUICK, SOON_SECONDS, Node, Nodes, at, pair, until
from tests.network.test_messages import HELLO, OPEN


class Puppet:
    """A member without a node of its own: says only what the test says."""

    def __init__(self, den: Node, attic: Node) -> None:
        member = den.network.members[den.network.id]
        self.client = PeerClient(member, at(den), attic.network.dialing_context(member))
        self.hello = attic.network.hello()
        self.socket: aiohttp.ClientWebSocketResponse

    async def __aenter__(self) -> Puppet:
        self.socket = await self.client.open_control()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()

    async def say(self, message: Message) -> None:
        await self.socket.send_str(encode(message).decode())

    async def next(self) -> Message | None:
        async with asyncio.timeout(30):
            return await receive(self.socket)

    async def greet(self, **changed: object) -> Message | None:
        await self.say(msgspec.structs.replace(self.hello, **changed))
        return await self.next()


async def gone(nodes: Nodes) -> tuple[Node, Node]:
    """den, and attic: paired, but attic's node has ended."""
    den, attic = await nodes.open("den", QUICK), await nodes.prepare("attic")
    async with attic.network:
        await pair(den, attic)
    await until(lambda: not den.network.links)
    return den, attic


async def test_a_machine_that_hangs_is_suspected_then_dead(nodes: Nodes) -> None:
    den, attic = await gone(nodes)
    async with Puppet(den, attic) as puppet:
        started = time.monotonic()
        assert isinstance(await puppet.greet(), HelloAck)
        await until(lambda: den.network.links)
        await until(lambda: not den.network.links)
        assert time.monotonic() - started > 0.4
        assert den.doubts[-1:] == [True]
        assert den.unlinked[-1].ended is not None
        assert den.unlinked[-1].ended.code == "peer_stopped"


async def test_a_machine_that_only_answers_stays(nodes: Nodes) -> None:
    den, attic = await gone(nodes)
    async with Puppet(den, attic) as puppet:
        await puppet.greet()
        pings = 0
        while pings < 12:
            match await puppet.next():
                case Ping(n=n):
                    pings += 1
                    await puppet.say(Pong(n=n, steps_done=3, busy_seconds=0.5))
        link = den.network.link(attic.network.id)
        assert link.progress.work.steps_done == 3
        assert link.round_trip_seconds is not None
        assert 0 < link.round_trip_seconds < SOON_SECONDS


async def test_our_answer_tells_how_far_the_work_is(nodes: Nodes) -> None:
    den, attic = await gone(nodes)
    async with Puppet(den, attic) as puppet:
        await puppet.greet()
        await puppet.say(Ping(n=5))
        while not isinstance(answer := await puppet.next(), Pong):
            assert answer is not None
        assert answer == Pong(n=5, steps_done=7, busy_seconds=0.5)


@pytest.mark.parametrize("apart", [-1, 0, 1])
async def test_neighboring_protocols_link(nodes: Nodes, apart: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.network.messages.OLDEST_PROTOCOL", PROTOCOL - 1)
    den, attic = await gone(nodes)
    async with Puppet(den, attic) as puppet:
        assert isinstance(await puppet.greet(protocol=PROTOCOL + apart), HelloAck)


async def test_what_was_never_released_is_told_both_versions(nodes: Nodes) -> None:
    """Otherwise it would repeatedly treat the link as broken: a Status has a field that it does not know."""
    den, attic = await gone(nodes)
    async with Puppet(den, attic) as puppet:
        answer = await puppet.greet(protocol=OLDEST_PROTOCOL - 1, build="0.0.9")
        assert isinstance(answer, Refuse)
        assert (answer.code, answer.facts["older_build"]) == ("version_differs", "0.0.9")
    assert not den.network.links


@pytest.mark.parametrize("apart", [2, -2])
async def test_distant_protocols_are_told_both_versions(nodes: Nodes, apart: int) -> None:
    den, attic = await gone(nodes)
    async with Puppet(den, attic) as puppet:
        answer = await puppet.greet(protocol=PROTOCOL + apart, build="9.9")
        assert isinstance(answer, Refuse)
        assert answer.code == "version_differs"
        assert answer.facts["newer_build" if apart > 0 else "older_build"] == "9.9"
        assert answer.facts["older" if apart > 0 else "newer"] == "den"
        assert await puppet.next() is None
    assert not den.network.links


async def test_silence_and_nonsense_instead_of_hello(nodes: Nodes) -> None:
    den, attic = await gone(nodes)
    for first in (Ping(n=1), None):
        async with Puppet(den, attic) as puppet:
            if first is not None:
                await puppet.say(first)
            else:
                await puppet.socket.send_str('{"type":"hello"}')
            assert isinstance(await puppet.next(), Refuse)
    started = time.monotonic()
    async with Puppet(den, attic) as puppet:
        answer = await puppet.next()
        assert isinstance(answer, Refuse)
        assert answer.code == "peer_no_hello"
        assert time.monotonic() - started > 1.5


@pytest.mark.parametrize("raw", ["{}", '{"type":"shutdown"}', '{"type":"hello"}', "[" * 1000])
async def test_a_bad_message_ends_the_link(nodes: Nodes, raw: str) -> None:
    den, attic = await gone(nodes)
    async with Puppet(den, attic) as puppet:
        await puppet.greet()
        await puppet.socket.send_str(raw)
        await until(lambda: den.unlinked and not den.network.links)
    ended = den.unlinked[-1].ended
    assert ended is not None
    assert ended.code == "peer_speaks_oddly"


async def test_a_flood_ends_the_link(nodes: Nodes) -> None:
    den, attic = await gone(nodes)

    async def slow(link: object, message: object) -> None:
        await asyncio.sleep(60)

    den.message = slow  # type: ignore[method-assign]
    async with Puppet(den, attic) as puppet:
        await puppet.greet()
        with contextlib.suppress(ConnectionError):
            for _ in range(1000):
                await puppet.say(CloseStage(pipeline="0" * 32))
                await asyncio.sleep(0)
        await until(lambda: not den.network.links)


async def test_a_copied_disk_is_refused_while_the_original_lives(nodes: Nodes) -> None:
    den, attic = await nodes.paired("den", "attic")
    async with Puppet(den, attic) as puppet:
        answer = await puppet.greet(instance="c" * 32)
        assert isinstance(answer, Refuse)
        assert answer.code == "identity_copied"
    assert den.network.links
    assert attic.network.links


async def test_a_restarted_machine_replaces_its_dead_link(nodes: Nodes) -> None:
    den, attic = await nodes.open("den"), await nodes.prepare("attic")  # slow heartbeats
    async with attic.network:
        await pair(den, attic)
    await until(lambda: not den.network.links)
    async with Puppet(den, attic) as frozen, Puppet(den, attic) as restarted:
        assert isinstance(await frozen.greet(), HelloAck)
        await until(lambda: den.network.links)
        assert isinstance(await restarted.greet(instance="c" * 32), HelloAck)
        assert len(den.network.links) == 1
        link = den.network.link(attic.network.id)
        assert link.hello.instance == "c" * 32


async def test_only_hosts_open_stages(nodes: Nodes) -> None:
    den, attic = await nodes.open("den", QUICK), await nodes.prepare("attic")
    from app.core.household.operations import Role

    async with attic.network:
        await pair(den, attic, (Role.LENDER,))
        await attic.network.link(den.network.id).send(OPEN)
        await until(lambda: any(isinstance(heard, Refuse) for heard in attic.heard))
    assert not any(isinstance(heard, OpenStage) for heard in den.heard)


async def test_forged_logs_change_nothing(nodes: Nodes) -> None:
    den, attic = await gone(nodes)
    before = den.network.log
    async with Puppet(den, attic) as puppet:
        await puppet.greet()
        assert before is not None
        from app.core.household.operations import encode as encode_operation

        line = encode_operation(before.operations[-1]).decode()
        forged = [line.replace('"host"', '"admin"'), "x", "{}", "[" * 99]
        await puppet.say(Log(operations=forged))
        await puppet.say(Leaving(reason="shutting_down"))
        await until(lambda: Leaving(reason="shutting_down") in den.heard)
    assert den.network.log == before


async def test_dialing_reports_what_is_wrong(nodes: Nodes) -> None:
    den, attic = await gone(nodes)
    with pytest.raises(Unreachable) as unreachable:
        den.network.link(attic.network.id)
    assert unreachable.value.reason.code == "peer_offline"
    member = den.network.members[attic.network.id]
    with pytest.raises(Unreachable) as unreachable:
        await den.network.link_manager.call(member, [])
    assert unreachable.value.reason.code == "peer_address_unknown"
    from app.network.sockets import Address

    with pytest.raises(Unreachable) as unreachable:
        await den.network.link_manager.call(member, [Address("127.0.0.1", 1)] * 2)
    assert unreachable.value.reason.code == "peer_unreachable"


async def test_who_comes_back_in_another_version_is_not_taken_for_closed(nodes: Nodes) -> None:
    den, attic = await nodes.open("den", QUICK), await nodes.prepare("attic")
    async with attic.network:
        await pair(den, attic)
    calls, machine = den.network.link_manager, attic.network.id
    await until(lambda: machine in calls.failed)
    assert (calls.refusals, den.outside) == ({}, [])  # nobody is there: that is no sign
    again = await nodes.prepare("attic", port=attic.network.port)
    was = again.network.hello
    again.network.hello = lambda: msgspec.structs.replace(was(), protocol=PROTOCOL + 9)  # type: ignore[method-assign]
    async with again.network:
        await until(lambda: machine in calls.refusals)
        assert calls.refusals[machine].code == "version_differs"
        assert den.outside == [machine]
    calls.hint(machine)
    await until(lambda: machine not in calls.refusals)
    assert den.outside == [machine] * 2


async def test_a_machine_that_moved_is_reached_where_a_person_says(nodes: Nodes) -> None:
    den, attic = await gone(nodes)
    calls, member = den.network.link_manager, den.network.members[attic.network.id]
    await until(lambda: attic.network.id in calls.failed)
    home = nodes.home("attic")
    (home.household / "addresses.json").unlink()  # it does not know where den is either
    again = await nodes.open("attic")
    await calls.reach(member, at(again))
    await until(lambda: den.network.id in again.network.links)
    assert attic.network.id not in calls.failed
    await calls.reach(member, at(again))  # there already
    await until(lambda: den.network.addresses(member.id)[:1] == (at(again),))


async def test_what_hangs_on_an_address_that_is_gone_is_cut_and_dialed_anew(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody would say so: without this, it takes until the silence counts as death."""
    den, attic = await nodes.open("den"), await nodes.open("attic")
    await pair(den, attic)
    me, other = den.network.id, attic.network.id
    await until(lambda: me in attic.network.links and other in den.network.links)
    old = den.network.link(other)
    assert old.own_host == "127.0.0.1"
    for stays in ("127.0.0.1", "127.0.0.2", "::1", "192.168.1.7", ""):  # no interface has 127.0.0.2
        monkeypatch.setattr(PeerLink, "own_host", stays)
        den.network.link_manager.drop_stale(frozenset({"127.0.0.1", "192.168.1.7"}))
    await asyncio.sleep(0)
    assert old.ended is None
    monkeypatch.setattr(PeerLink, "own_host", "192.168.1.9")
    den.network.link_manager.drop_stale(frozenset({"192.168.1.7"}))  # also where the lost one was never seen
    await until(lambda: old.ended is not None and old.ended.code == "link_lost")
    await until(lambda: den.network.links.get(other) not in (None, old))


async def test_a_dialler_that_was_removed_hears_why(nodes: Nodes) -> None:
    """TLS 1.3 shows the refusal only at the first read."""
    den, attic = await nodes.paired("den", "attic")
    await den.network.remove(attic.network.id)
    await until(lambda: attic.network.dismissed)
    member = den.network.members[den.network.id]
    context = attic.network.dialing_context(member)
    peer_client = PeerClient(member, at(den), context)
    with pytest.raises(AppError):
        await peer_client.open_control()
    await peer_client.close()


async def test_a_call_that_is_given_up_at_any_moment_leaves_no_socket(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[socket.socket] = []
    den, attic = await gone(nodes)
    monkeypatch.setattr(peer_client, "tune", made.append)
    for steps in range(40):
        puppet = Puppet(den, attic)
        async with asyncio.TaskGroup() as tasks:
            call = tasks.create_task(puppet.client.open_control(), name="call")
            for _ in range(steps):
                await asyncio.sleep(0)
            call.cancel()
        await puppet.client.close()
    await until(lambda: all(sock.fileno() < 0 for sock in made))
    assert made


async def test_nobody_is_dialed_once_all_links_were_closed(nodes: Nodes) -> None:
    """The log may change while a node takes its leave; it would wait for that call for ever."""
    den, attic = await nodes.paired("den", "attic")
    links, member = den.network.link_manager, den.network.members[attic.network.id]
    await links.close(Reason("shutting_down"))
    links.maintain(member)
    assert not links._calls


class Replies:
    """A control socket that answers HELLO with what the test says."""

    def __init__(self, answer: str) -> None:
        self.answer = answer

    async def send_str(self, _: str) -> None:
        return None

    async def receive(self) -> aiohttp.WSMessage:
        if not self.answer:
            return aiohttp.WSMessage(aiohttp.WSMsgType.CLOSED, None, None)
        return aiohttp.WSMessage(aiohttp.WSMsgType.TEXT, self.answer, None)


async def test_the_dialing_side_checks_the_answer_too(nodes: Nodes) -> None:
    den = await nodes.open("den")
    await den.network._log.create_if_missing("den")
    member = den.network.members[den.network.id]
    theirs = msgspec.structs.replace(as_ack(den.network.hello()), instance="c" * 32)
    mine = Hello(**HELLO)  # type: ignore[arg-type]

    async def said(answer: Message | None) -> str:
        text = encode(answer).decode() if answer else ""
        with pytest.raises(AppError) as error:
            await say_hello(Replies(text), mine, member)  # type: ignore[arg-type]
        return error.value.reason.code

    assert await say_hello(Replies(encode(theirs).decode()), mine, member) == theirs  # type: ignore[arg-type]
    assert await said(None) == "peer_refused_us"
    assert await said(Ping(n=1)) == "peer_speaks_oddly"
    assert await said(Refuse(code="link_doubled", facts={"name": "x"})) == "link_doubled"
    assert await said(msgspec.structs.replace(theirs, protocol=PROTOCOL + 2)) == "version_differs"
    assert await said(msgspec.structs.replace(theirs, id="d" * 64)) == "peer_speaks_oddly"
    for instance, code in ((mine.instance, "peer_is_this"), ("d" * 32, "identity_copied")):
        with pytest.raises(Refused) as refused:
            check_greeting(msgspec.structs.replace(theirs, id=mine.id, instance=instance), mine, member)
        assert refused.value.reason.code == code


async def test_who_calls_itself_as_another_is_called_as_the_household_calls_it(nodes: Nodes) -> None:
    den, attic, _ = await nodes.paired("den", "attic", "kitchen")
    for name, shown in (("Kitchen", "attic"), ("ＤＥＮ", "attic"), ("loft", "loft")):
        attic.name = name
        before = den.network.link(attic.network.id)
        await before.close(Reason("shutting_down"))
        links = den.network.links
        await until(lambda: links.get(attic.network.id) not in (None, before))  # noqa: B023  waited for here
        assert den.network.link(attic.network.id).name == shown


@pytest.mark.parametrize("code", ["identity_copied", "link_doubled", "peer_floods"])
async def test_who_refuses_a_link_names_nobody_but_itself_and_us(nodes: Nodes, code: str) -> None:
    den = await nodes.open("den")
    await den.network._log.create_if_missing("den")
    member, mine = den.network.members[den.network.id], Hello(**HELLO)  # type: ignore[arg-type]
    for name, named in (("kitchen", "den"), (mine.name, mine.name), ("renamed", "renamed")):
        refuse = encode(Refuse(code=code, facts={"name": name})).decode()
        with pytest.raises(Refused) as error:
            await say_hello(Replies(refuse), mine, member, our_name="renamed")  # type: ignore[arg-type]
        assert error.value.reason == Reason(code, {"name": named})


async def test_another_machine_at_that_address_on_the_chosen_interface_is_gone_around(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two networks may both have a 192.168.1.20."""
    monkeypatch.setattr("app.network.peer.peer_links.SIMULTANEOUS_SECONDS", 0.0)  # whichever id is the smaller
    den, attic = await nodes.paired("den", "attic")
    calls, member = den.network.link_manager, den.network.members[attic.network.id]
    calls.chosen_interfaces[attic.network.id] = LocalInterface("eth0", ("192.0.2.1",))
    raced = calls._race

    async def race(*to: Any) -> Any:
        if to[2] is not None:
            raise Refused("peer_is_another", name="attic")
        return await raced(*to)

    monkeypatch.setattr(calls, "_race", race)
    link = await calls.call(member, [at(attic)])
    assert link.peer == attic.network.id
    await link.close(Reason("shutting_down"))
