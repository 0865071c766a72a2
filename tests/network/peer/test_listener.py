"""The one port: strangers, garbage, slow and oversized requests, and members without the right."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
import time
from pathlib import Path

import aiohttp
import pytest

from app.core.errors import AppError, Refused, StageLost, Unreachable
from app.core.household.operations import Role
from app.core.ids import PipelineId
from app.network import traffic_limits
from app.network.peer import listener
from app.network.peer.frame_channel import MAX_FRAME_BYTES
from app.network.peer.peer_client import HostClient, PeerClient
from app.network.tls import fingerprint, peer_context
from tests.network.certificates import PASSPHRASE, Recipe
from tests.network.nodes import SOON_SECONDS, Node, Nodes, an_identity, at, pair, until

PIPELINE = PipelineId(bytes(16))
DIAL = ssl.Purpose.SERVER_AUTH


def client_of(node: Node, other: Node) -> PeerClient:
    """A second client with the certificate of `other`, beside its own link."""
    member = node.network.members[node.network.id]
    return PeerClient(member, at(node), other.network.dialing_context(member))


async def raw_tls(node: Node, other: Node) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A bare mutual TLS connection of a member."""
    member = node.network.members[node.network.id]
    context = other.network.dialing_context(member)
    return await asyncio.open_connection("127.0.0.1", node.network.port, ssl=context)


async def closed_after(reader: asyncio.StreamReader) -> float:
    started = time.monotonic()
    try:
        while await reader.read(65536):
            pass
    except OSError:
        pass
    return time.monotonic() - started


async def test_unpaired_machines_are_refused(nodes: Nodes, tmp_path: Path) -> None:
    """S6, short: none, unknown, same CN, expired, issued by a member."""
    den, attic = await nodes.paired("den", "attic")
    den_der = den.network.members[den.network.id].der
    from app.network.identity import _label, check_profile

    attic_identity = attic.network._identity
    attic_label = _label(check_profile(attic_identity.der))
    import datetime as dt

    recipes = [
        Recipe(),
        Recipe(name=attic_label),
        Recipe(not_after=dt.datetime(2021, 1, 1, tzinfo=dt.UTC)),
        Recipe(issuer=attic_label, issuer_key=attic_identity.key),
    ]
    bare = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    bare.check_hostname, bare.verify_mode = False, ssl.CERT_NONE
    contexts = [bare]
    for number, recipe in enumerate(recipes):
        pem = tmp_path / f"{number}.pem"
        recipe.save(pem)
        contexts.append(peer_context(DIAL, pem, PASSPHRASE, [den_der]))
    member = den.network.members[den.network.id]
    for context in contexts * 4:
        client = PeerClient(member, at(den), context)
        with pytest.raises(AppError):
            await client.open_control()
        with pytest.raises(AppError):
            await client.open_data(PIPELINE)
        with pytest.raises(AppError):
            await client.offer_stage(PIPELINE, b"{}")
        await client.close()
    assert not den.unlinked


async def test_a_removed_machine_stays_out_also_after_another_is_paired(nodes: Nodes) -> None:
    den, attic = await nodes.paired("den", "attic")
    member = den.network.members[den.network.id]
    context = attic.network.dialing_context(member)
    await den.network.remove(attic.network.id)
    loft = await nodes.open("loft")
    await pair(den, loft)
    for _ in range(5):
        client = PeerClient(member, at(den), context)
        with pytest.raises(AppError):
            await client.open_control()
        with pytest.raises(AppError):
            await client.offer_stage(PIPELINE, b"{}")
        await client.close()


async def test_who_passes_the_handshake_and_is_no_member_now_gets_no_connection(nodes: Nodes, tmp_path: Path) -> None:
    """The pins of a context may be older than the log; and a member may have issued a certificate."""
    den, attic = await nodes.paired("den", "attic")
    network, member = den.network, den.network.members[den.network.id]
    stranger = Recipe().save(tmp_path / "stranger.pem")
    pins, own = [network.members[attic.network.id].der, stranger], network._identity
    pinned = peer_context(ssl.Purpose.CLIENT_AUTH, own.pem, own.passphrase, pins)
    network._listener.use(pinned, network._listener._members)
    dial = peer_context(DIAL, tmp_path / "stranger.pem", PASSPHRASE, [member.der])
    client = PeerClient(member, at(den), dial)
    with pytest.raises(AppError):
        await client.offer_stage(PIPELINE, b"{}")
    known = {connection.machine for connection in network._listener._connections.values()}
    assert fingerprint(stranger) not in known  # it was cut before it could ask
    await client.close()


async def test_a_removed_machine_that_does_not_leave_is_cut_off(nodes: Nodes) -> None:
    """The machine keeps its connections open although it was told."""
    den, attic = await nodes.paired("den", "attic")
    member = den.network.members[den.network.id]
    client = PeerClient(member, at(den), attic.network.dialing_context(member))
    channel = await client.open_data(PIPELINE)
    await den.network.remove(attic.network.id)
    async with asyncio.timeout(30):
        with pytest.raises(Unreachable):
            await channel.receive()
    await channel.close()
    await client.close()


async def test_who_refuses_layers_names_no_machine_but_itself(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    den, attic = await nodes.paired("den", "attic")

    async def refuse(*_: object) -> bytes:
        raise StageLost("stage_silent", machine="kitchen", seconds=3)

    monkeypatch.setattr(attic, "stage_offer", refuse)
    with pytest.raises(StageLost) as refused:
        await den.network.link(attic.network.id).offer_stage(PIPELINE, b"{}")
    assert refused.value.reason.facts == {"machine": "attic", "seconds": 3}


async def no_stages_for(machine: Node, at_: Node) -> None:
    link = machine.network.link(at_.network.id)
    with pytest.raises(Refused) as refused:
        await link.offer_stage(PIPELINE, b"{}")
    assert refused.value.reason.code == "role_missing_here"
    with pytest.raises(Refused):
        await link.open_data(PIPELINE)


async def test_stages_are_for_hosts_only(nodes: Nodes) -> None:
    den, attic = await nodes.open("den"), await nodes.open("attic")
    await pair(den, attic, (Role.LENDER,))
    await no_stages_for(attic, den)
    await until(lambda: attic.network.id in den.network.links)
    assert await den.network.link(attic.network.id).offer_stage(PIPELINE, b"{}")


async def test_guests_get_whole_answers_and_nothing_else(nodes: Nodes) -> None:
    den, attic = await nodes.open("den"), await nodes.open("attic")
    await pair(den, attic, (Role.GUEST,))
    await no_stages_for(attic, den)

    async def status(of: Node, at_: Node) -> int:
        async with guest_client(of, at_).request("GET", "/models") as answer:
            await answer.read()
            return answer.status

    assert await status(attic, den) == 200
    await until(lambda: attic.network.id in den.network.links)
    assert await status(den, attic) == 200  # a host may ask too; whether a machine answers is up to its Chat API


async def test_a_machine_that_only_lends_asks_nobody(nodes: Nodes) -> None:
    den, attic = await nodes.open("den"), await nodes.open("attic")
    await pair(den, attic, (Role.LENDER,))
    async with guest_client(attic, den).request("GET", "/models") as answer:
        assert answer.status == 409


def guest_client(of: Node, at_: Node) -> HostClient:
    link = of.network.link(at_.network.id)
    host = of.network.members[at_.network.id]
    return HostClient(host, link.address, link.host_session, link.finished)


async def test_a_guest_s_requests_share_a_connection_that_ends_with_its_membership(nodes: Nodes) -> None:
    den, attic = await nodes.open("den"), await nodes.open("attic")
    await pair(den, attic, (Role.GUEST,))
    await until(lambda: attic.network.id in den.network.links)
    connections = den.network._listener._connections
    before, client = set(connections), guest_client(attic, den)
    for _ in range(3):  # one by one
        async with client.request("GET", "/models") as answer:
            assert (await answer.json(), answer.status) == ({"models": []}, 200)
    [kept] = set(connections) - before
    async with client.request("GET", "/models"):
        pass  # nobody read it: its end was waited for
    assert set(connections) - before == {kept}
    with contextlib.suppress(KeyError):
        async with client.request("GET", "/endless"):
            raise KeyError  # who leaves in the middle hangs up
    await until(kept.is_closing)
    async with client.request("GET", "/endless") as answer:
        await answer.content.readany()  # its end does not come: nobody waits for that
    async with client.request("GET", "/models"):
        pass
    session = attic.network.link(den.network.id).host_session()
    await den.network.remove(attic.network.id)
    await until(lambda: not connections)
    await until(lambda: session.closed)
    with pytest.raises(Unreachable):
        async with client.request("GET", "/models"):
            pass


@pytest.mark.long
async def test_garbage_does_no_harm(nodes: Nodes) -> None:
    """S1, short: random, TLS-like, HTTP and cut-off connections while a member works."""
    den, attic = await nodes.paired("den", "attic")
    channel = await attic.network.link(den.network.id).open_data(PIPELINE)
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + os.urandom(400)
    kinds = [os.urandom(300), hello, b"GET / HTTP/1.1\r\n\r\n", b"", b"\x16\x03\x01\xff\xff"]

    async def stranger(garbage: bytes) -> None:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", den.network.port)
            writer.write(garbage)
            writer.close()
            await reader.read(100)
        except OSError:
            pass

    for _ in range(20):
        await asyncio.gather(*(stranger(kind) for kind in kinds))
        await channel.send(b"still here")
        assert await channel.receive() == b"still here"
    await until(lambda: not len(den.network._listener._strangers))


async def test_silent_strangers_are_counted_and_closed(nodes: Nodes) -> None:
    den = await nodes.open("den")
    loop = asyncio.get_running_loop()
    silent = [socket.create_connection(("127.0.0.1", den.network.port)) for _ in range(12)]
    await until(lambda: len(den.network._listener._strangers) == 8)
    started = time.monotonic()
    for sock in silent:
        sock.setblocking(False)
        with contextlib.suppress(ConnectionError):
            assert await loop.sock_recv(sock, 100) == b""
        sock.close()
    assert time.monotonic() - started < SOON_SECONDS
    await until(lambda: not len(den.network._listener._strangers))


HELLO_BEGUN = b"\x16\x03\x01\x02"


@pytest.mark.parametrize("said", [b"", HELLO_BEGUN], ids=["silent", "half a handshake"])
@pytest.mark.parametrize("n_hosts", [1, 8])
async def test_strangers_that_wait_keep_no_member_out(nodes: Nodes, said: bytes, n_hosts: int) -> None:
    """64 places from 8 addresses, or from the member's own, taken again soon after they are lost."""
    den, attic = await nodes.paired("den", "attic")
    hosts = [f"127.0.0.{2 + n}" if n_hosts > 1 else "127.0.0.1" for n in range(n_hosts)]
    n_met = 0

    async def besiege(host: str) -> None:
        nonlocal n_met
        loop = asyncio.get_running_loop()
        while True:
            with contextlib.suppress(OSError), socket.socket() as sock:
                sock.setblocking(False)
                sock.bind((host, 0))
                await loop.sock_connect(sock, ("127.0.0.1", den.network.port))
                n_met += 1
                await loop.sock_sendall(sock, said)
                await loop.sock_recv(sock, 1)
            await asyncio.sleep(0.2)

    async with asyncio.TaskGroup() as tasks:
        siege = [tasks.create_task(besiege(host)) for host in hosts for _ in range(64 // n_hosts)]
        await until(lambda: n_met >= 64)
        for _ in range(5):
            reader, writer = await raw_tls(den, attic)
            writer.write(b"GET /none HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1")
            writer.close()
        for besieger in siege:
            besieger.cancel()


async def test_idle_and_half_requests_of_members_are_closed(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    """S4, short: silent after the handshake, half a header, a missing body, one byte a second."""
    monkeypatch.setattr(listener, "IDLE_SECONDS", 0.5)
    monkeypatch.setattr(listener, "SWEEP_SECONDS", 0.1)
    monkeypatch.setattr(traffic_limits, "STALL_SECONDS", 0.5)
    monkeypatch.setattr(traffic_limits, "START_SECONDS", 1.0)
    den, attic = await nodes.paired("den", "attic")
    start = b"PUT /stage/" + PIPELINE.hex().encode() + b" HTTP/1.1\r\nHost: x\r\n"
    for begun in (b"", start, start + b"Content-Length: 100\r\n\r\n12345"):
        reader, writer = await raw_tls(den, attic)
        writer.write(begun)
        assert await closed_after(reader) < SOON_SECONDS
        writer.close()
    reader, writer = await raw_tls(den, attic)
    writer.write(start + b"Content-Length: 1000\r\n\r\n")

    async def drip() -> None:
        while True:
            writer.write(b"1")
            await asyncio.sleep(0.1)

    async with asyncio.TaskGroup() as tasks:
        dripping = tasks.create_task(drip())
        assert await closed_after(reader) < 2 * SOON_SECONDS
        dripping.cancel()
    writer.close()
    assert attic.network.links  # others are served


async def test_oversized_bodies_are_refused_before_reading(nodes: Nodes) -> None:
    """S5, short."""
    den, attic = await nodes.paired("den", "attic")
    reader, writer = await raw_tls(den, attic)
    start = b"PUT /stage/" + PIPELINE.hex().encode() + b" HTTP/1.1\r\nHost: x\r\n"
    writer.write(start + b"Content-Length: 10737418240\r\n\r\n")
    assert await closed_after(reader) < SOON_SECONDS
    writer.close()
    link = attic.network.link(den.network.id)
    assert await link.offer_stage(PIPELINE, bytes(16 << 20))
    with pytest.raises(Unreachable):
        await link.offer_stage(PIPELINE, bytes((16 << 20) + 1))


async def test_messages_have_limits(nodes: Nodes) -> None:
    den, attic = await nodes.paired("den", "attic")
    channel = await attic.network.link(den.network.id).open_data(PIPELINE)
    whole = bytes(MAX_FRAME_BYTES)
    await channel.send(whole)
    assert await channel.receive() == whole
    await channel.send(whole + b"x")
    with pytest.raises(Unreachable):
        await channel.receive()
    client = client_of(den, attic)
    control = await client.open_control()
    await control.send_str("x" * (64 << 10) + "x")
    assert (await control.receive()).type is not aiohttp.WSMsgType.BINARY
    await control.close()
    await client.close()
    await until(lambda: attic.network.links and den.network.links)


async def test_who_comes_back_for_a_run_that_is_gone_is_told_at_once(nodes: Nodes) -> None:
    den, attic = await nodes.paired("den", "attic")
    link = attic.network.link(den.network.id)
    await (await link.open_data(PIPELINE)).close()
    den.gone.add(PIPELINE)
    with pytest.raises(Refused):
        await link.open_data(PIPELINE)


@pytest.mark.parametrize("said", ["text", b"frames"])
async def test_a_data_channel_begins_in_one_way_only(nodes: Nodes, said: str | bytes) -> None:
    den, attic = await nodes.paired("den", "attic")
    client = client_of(den, attic)
    socket = await client._websocket(f"data/{PIPELINE.hex()}", 1000)
    await (socket.send_str(said) if isinstance(said, str) else socket.send_bytes(said))
    assert (await socket.receive()).type in (aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR)
    await client.close()


async def test_a_data_channel_that_never_begins_is_ended(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "LEAVE_SECONDS", 0.1)
    den, attic = await nodes.paired("den", "attic")
    client = client_of(den, attic)
    socket = await client._websocket(f"data/{PIPELINE.hex()}", 1000)
    async with asyncio.timeout(30):
        await socket.receive()
    assert socket.closed
    await client.close()


@pytest.mark.parametrize("path", ["/", "/control/x", "/stage/xyz", "/data/" + "0" * 31, "/../etc"])
async def test_there_is_nothing_else_on_the_port(nodes: Nodes, path: str) -> None:
    den, attic = await nodes.paired("den", "attic")
    for verb in (b"GET ", b"PUT ", b"POST ", b"DELETE "):
        reader, writer = await raw_tls(den, attic)
        writer.write(verb + path.encode() + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        try:
            answer = await reader.read(1000)
        except OSError:
            answer = b""
        assert b" 200 " not in answer
        assert b" 101 " not in answer
        writer.close()


async def test_another_machine_than_the_one_meant_is_refused(nodes: Nodes, tmp_path: Path) -> None:
    den, attic = await nodes.paired("den", "attic")
    _, other = await an_identity(tmp_path / "other")
    meant = den.network.members[den.network.id]
    import dataclasses

    member = dataclasses.replace(meant, id=other.id, der=other.der)
    client = PeerClient(member, at(den), attic.network._context(DIAL, [other.der]))
    with pytest.raises(Refused) as refused:
        await client.open_control()
    assert refused.value.reason.code == "peer_is_another"
    await client.close()
    wrong_id = PeerClient(dataclasses.replace(meant, id=other.id), at(den), attic.network.dialing_context(meant))
    with pytest.raises(AppError):  # the fingerprint is checked besides the pins
        await wrong_id.open_control()
    await wrong_id.close()


async def test_a_member_that_opens_too_many_connections_gets_no_more(nodes: Nodes) -> None:
    den, attic = await nodes.paired("den", "attic")
    limit = listener.CONNECTIONS_OF_ONE_MEMBER
    many = [await raw_tls(den, attic) for _ in range(limit + 5)]
    await until(lambda: len(den.network._listener._connections) <= limit + 1)
    for _, writer in many:
        writer.close()
    assert attic.network.links
