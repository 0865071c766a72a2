"""Tests of places at a port before a client has proved anything: nobody keeps others out by being there first."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Coroutine
from typing import Any

import pytest

from app.network import waiting_room
from app.network.waiting_room import (
    PLACES,
    PLACES_OF_ONE_NETWORK,
    AuthenticatedHosts,
    Entrance,
    WaitingRoom,
    first_message,
    network_of,
)

HALF_HELLO = b"\x16\x03\x01\x02"
WHOLE_RECORD = b"\x16\x03\x01\x00\x03abc"
Room = WaitingRoom[int]


@pytest.mark.parametrize(
    ("host", "network"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("2001:db8:1:2::7", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::7", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("somewhere", "somewhere"),
    ],
)
def test_what_one_machine_chooses_itself_counts_as_one(host: str, network: str) -> None:
    assert network_of(host) == network


def besieged(room: Room, *hosts: str, of_each: int = PLACES_OF_ONE_NETWORK) -> None:
    for number in range(of_each * len(hosts)):
        room.enter(number, hosts[number % len(hosts)])


def test_sixty_four_from_eight_addresses_keep_nobody_out() -> None:
    room = Room()
    besieged(room, *(f"10.0.0.{n}" for n in range(8)))
    assert len(room) == PLACES
    assert room.enter(1000, "10.0.0.99") == 0  # the one that waits longest, where all have as many
    assert 1000 in room
    assert len(room) == PLACES


def test_a_machine_with_any_number_of_addresses_has_eight_places() -> None:
    room = Room()
    for number in range(1000):
        room.enter(number, f"2001:db8::{number:x}")
    assert len(room) == PLACES_OF_ONE_NETWORK
    assert room.enter(1000, "2001:db8:0:1::1") is None


def test_the_silent_go_before_those_that_spoke() -> None:
    room = Room()
    besieged(room, "10.0.0.1")
    for number in range(PLACES_OF_ONE_NETWORK - 1):
        room.spoke(number)
    assert room.enter(1000, "10.0.0.1") == PLACES_OF_ONE_NETWORK - 1
    room.spoke(1000)
    assert room.enter(1001, "10.0.0.1") == 0  # all spoke: the one that waits longest


def test_the_network_that_has_most_gives_way() -> None:
    room = Room(places=10)
    besieged(room, "10.0.0.1", of_each=7)
    for number in range(100, 103):
        room.enter(number, f"10.0.1.{number}")
    for number in range(200, 205):
        gone = room.enter(number, f"10.0.2.{number}")
        assert gone is not None
        assert gone < 7


def test_who_is_expected_has_room_kept() -> None:
    room = Room(places=4, of_one_network=4, is_known_host=lambda host: host.startswith("10.9."))
    assert room.enter(1, "10.9.0.1") is None
    assert room.enter(2, "10.9.0.2") is None
    assert room.enter(3, "10.0.0.3") is None
    assert room.enter(4, "10.0.0.4") is None
    assert room.enter(5, "10.0.0.5") == 3
    assert room.enter(6, "10.9.0.6") == 4
    assert room.enter(7, "10.9.0.7") == 5
    assert room.enter(8, "10.0.0.8") == 8  # only members wait, and it is none
    assert room.enter(9, "10.9.0.9") == 1


def test_whatever_comes_the_limits_hold_and_only_strangers_are_turned_away() -> None:
    chance = random.Random(32)
    expected = {"10.0.0.1", "2001:db8::1"}
    hosts = [*expected, *(f"10.0.1.{n}" for n in range(12)), *(f"2001:db8::{n:x}" for n in range(2, 30))]  # fmt: skip
    room = Room(is_known_host=expected.__contains__)
    here: dict[int, str] = {}
    for number in range(1500):
        value, host = chance.random(), chance.choice(hosts)
        if value < 0.2 and here:
            gone = chance.choice(list(here))
            room.leave(gone)
            room.leave(gone)
            del here[gone]
        elif value < 0.4 and here:
            room.spoke(chance.choice(list(here)))
        else:
            out = room.enter(number, host)
            assert out != number or host not in expected
            here[number] = host
            if out is not None:
                del here[out]
        assert len(room) == len(here) <= PLACES
        assert all(peer in room for peer in here)
        networks = [network_of(host) for host in here.values()]
        assert all(networks.count(network) <= PLACES_OF_ONE_NETWORK for network in set(networks))


def test_hosts_that_proved_something_are_remembered_a_bounded_number_of_them() -> None:
    met = AuthenticatedHosts(most=3)
    for host in ("::ffff:10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.1", "10.0.0.4"):
        met.met(host)
    assert "10.0.0.2" not in met
    assert all(f"10.0.0.{n}" in met for n in (1, 3, 4))


async def test_a_first_message_is_waited_for_and_not_read() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        with pytest.raises(TimeoutError):
            await first_message(ours, 0.05, 0.05)
        theirs.send(HALF_HELLO)
        with pytest.raises(TimeoutError):
            await first_message(ours, 1.0, 0.05)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(first_message(ours, 1.0, 5.0))
            await asyncio.sleep(0)
            theirs.send(WHOLE_RECORD[len(HALF_HELLO) :] + bytes(0x200))
        assert ours.recv(4) == HALF_HELLO


@pytest.mark.parametrize("said", [b"GET / HTTP/1.1", b"\x00", WHOLE_RECORD])
async def test_what_can_be_decided_on_is_decided_on(said: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.send(said)
        await first_message(ours, 1.0, 1.0)


async def test_who_leaves_at_once_is_waited_for_no_longer() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        ours.setblocking(False)
        theirs.close()
        await first_message(ours, 1.0, 1.0)


async def test_an_entrance_ends_whoever_must_go_and_leaves_no_socket_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_room, "FIRST_BYTE_SECONDS", 0.2)
    welcomed: list[str] = []

    async def welcome(sock: socket.socket, host: str) -> None:
        welcomed.append(host)
        await asyncio.Event().wait()

    entrance = Entrance(welcome, WaitingRoom(places=3, of_one_network=3), 1.0)
    pairs = [socket.socketpair() for _ in range(5)]
    async with asyncio.TaskGroup() as tasks:

        def start(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
            return tasks.create_task(work, name=name)

        for number, (ours, theirs) in enumerate(pairs):
            ours.setblocking(False)
            if number in (0, 4):
                theirs.send(WHOLE_RECORD)
            entrance.admit(ours, f"10.0.0.{number}", start)
            if number == 0:
                await asyncio.sleep(0.02)  # this one is being welcomed; the others are silent
        await asyncio.sleep(0.05)
        assert welcomed == ["10.0.0.0", "10.0.0.4"]
        await asyncio.sleep(0.3)  # the silent one that had a place is gone too
        assert [ours.fileno() >= 0 for ours, _ in pairs] == [True, False, False, False, True]
        assert len(entrance.room) == 2
        for task in list(entrance._tasks.values()):
            task.cancel()
    assert not len(entrance.room)
    for ours, theirs in pairs:
        assert ours.fileno() < 0
        theirs.close()
