"""Tests of measurements of links between other machines: sent, received, and shown once each."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import msgspec

from app.client import NodeClient
from app.core.household.link import Link, LinkKind
from app.core.ids import MachineId
from app.network.messages import LinksMeasured, MeasuredLink, Status, decode, encode
from app.network.peer.peer_link import PeerLink
from app.node.links.link_gossip import LinkGossip, change_key, links_message
from app.node.links.link_registry import LinkRecord
from app.node.status_broadcaster import StatusBroadcaster
from tests.node.pool import TestNode

DEN, ATTIC, STUDIO = (MachineId(letter * 64) for letter in "abc")
LINK = Link(0.0004, 0.001, 0.0001, 1e8, 9e7, "eth0", LinkKind.ETHERNET, 1500, 10**9)
NOW = 2e9


def heard(between: LinkGossip, teller: MachineId, far: MachineId, link: Link, at: float) -> None:
    """Return a message as it arrives over the wire."""
    message = decode(encode(links_message({far: LinkRecord(link, "10.0.0.2:1", at)}, NOW)))
    assert isinstance(message, LinksMeasured)
    between.receive(teller, message, {DEN, ATTIC, STUDIO})


def test_a_link_is_shown_once_as_it_was_measured_last() -> None:
    between = LinkGossip(lambda: NOW + 5000)  # the clocks differ; ages do not
    heard(between, ATTIC, STUDIO, LINK, NOW - 60)
    heard(between, STUDIO, ATTIC, replace(LINK, out_bytes_per_s=5e7), NOW - 10)
    shown = between.snapshot([ATTIC, STUDIO])
    assert list(shown) == [STUDIO]
    result = shown[STUDIO][ATTIC]
    assert (result.out_bytes_per_s, result.in_bytes_per_s) == (5e7, 9e7)
    assert result.measured_at == NOW + 5000 - 10
    assert (result.kind, result.interface) == ("ethernet", "eth0")
    assert result.measured_round_trip_seconds == 0.0004


def test_only_members_that_are_there_are_shown() -> None:
    between = LinkGossip(lambda: NOW)
    heard(between, ATTIC, STUDIO, LINK, NOW)
    assert between.snapshot([ATTIC]) == between.snapshot([STUDIO]) == {}
    stranger = links_message({MachineId("d" * 64): LinkRecord(LINK, "", NOW)}, NOW)
    between.receive(ATTIC, stranger, {DEN, ATTIC, STUDIO})
    assert between.snapshot([ATTIC, STUDIO, MachineId("d" * 64)]) == {}  # and the old word is gone
    heard(between, ATTIC, STUDIO, LINK, NOW)
    between.receive(STUDIO, LinksMeasured(links=[]), {DEN, STUDIO})  # the attic was removed
    assert between.snapshot([ATTIC, STUDIO]) == {}


def test_what_a_system_or_another_machine_calls_an_interface_is_fit_to_be_shown() -> None:
    odd = replace(LINK, interface="\u202eeth\n" * 40, negotiated_bits_per_s=-1)
    message = links_message({STUDIO: LinkRecord(odd, "", NOW + 9)}, NOW)
    assert message.links[0].interface == "eth" * 10 + "et"
    assert message.links[0].negotiated_bits_per_s is None
    assert message.links[0].age_s == 0.0
    between = LinkGossip(lambda: NOW)
    forged = msgspec.structs.replace(message.links[0], interface="a\x1b[2Jb")
    between.receive(ATTIC, LinksMeasured(links=[forged]), {ATTIC, STUDIO})
    assert between.snapshot([ATTIC, STUDIO])[ATTIC][STUDIO].interface == "a[2Jb"


def test_age_alone_is_no_news() -> None:
    known = {STUDIO: LinkRecord(LINK, "", NOW)}
    assert change_key(known) == change_key({STUDIO: LinkRecord(LINK, "elsewhere", NOW)})
    assert change_key(known) != change_key({STUDIO: LinkRecord(LINK, "", NOW + 1)})
    assert change_key(known) != change_key({})


async def test_whoever_comes_is_told_all_of_it() -> None:
    """This includes that nothing is measured, since it may remember an earlier report."""
    reports: list[Any] = []

    async def send(message: Any) -> None:
        reports.append(message)

    status = Status(name="den", device="", total_bytes=1, lendable_bytes=1, used_bytes=0, state="ready")
    for known in ({STUDIO: LinkRecord(LINK, "", NOW)}, {}):
        telling = StatusBroadcaster(lambda: status, lambda known=known: known, Mock(), frozenset)  # type: ignore[misc]
        await telling.begin(cast("PeerLink", SimpleNamespace(send=send)))
    assert [type(item) for item in reports] == [Status, LinksMeasured] * 2
    assert [len(item.links) for item in reports[1::2]] == [1, 0]
    assert isinstance(reports[1].links[0], MeasuredLink)


async def told_between(host: NodeClient, name: str, other: str) -> dict[str, Any]:
    """Return how a real node shows the link between two others after it was told."""
    async with asyncio.timeout(60):
        while True:
            between = (await host.get("/status"))["links_between"]
            if result := between.get(name, {}).get(other) or between.get(other, {}).get(name):
                return dict(result)
            await asyncio.sleep(0.05)


async def linked(node: TestNode, far: str) -> None:
    """Two that were paired with a third find each other by themselves, soon."""
    async with asyncio.timeout(60), node.client() as client:
        while not (await client.get("/status"))["machines"].get(far, {}).get("online"):  # noqa: ASYNC110  in another process
            await asyncio.sleep(0.05)


async def measured(node: TestNode, far: str) -> None:
    """One link, as soon as both machines rest: what was loaded before may still be measured."""
    async with asyncio.timeout(60):
        while True:
            result = await asyncio.to_thread(node.control, "POST", f"/measure?machine={far}", {})
            if [link["reason"] for link in result["links"]] == [None]:
                return
            await asyncio.sleep(0.2)
