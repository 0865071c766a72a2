"""A person prefers an interface for a link: it is dialed, kept, and a better one is named."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.core.errors import BadInput
from app.core.household.link import LinkKind
from app.core.ids import MachineId
from app.core.reasons import said
from app.machine.interfaces import Interface, interfaces
from app.network import measured_paths
from app.network.peer.peer_client import PeerClient
from app.network.peer.probe import RoundTrips
from app.network.sockets import Address
from app.node.links.interface_choice import InterfaceChoice
from app.node.links.link_registry import LinkRegistry
from tests.network.nodes import Node, Nodes, opened

LOOPBACK = next(interface.name for interface in interfaces() if interface.kind is LinkKind.LOOPBACK)
CHOSEN = Interface(LOOPBACK, LinkKind.ETHERNET, True, ("127.0.0.2",))
ASTRAY = Interface("nowhere9", LinkKind.ETHERNET, True, ("127.0.0.3",))
DOWN = Interface("down9", LinkKind.ETHERNET, False, ())
pytestmark = pytest.mark.skipif(sys.platform == "darwin", reason="macOS has only one address of its loopback")


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[Nodes]:
    async with opened(tmp_path) as made:
        yield made


def test_a_damaged_list_of_choices_is_told_and_put_aside(tmp_path: Path) -> None:
    file, messages = tmp_path / "preferred_interfaces.json", list[str]()
    file.write_bytes(b'{"a": 3}')
    assert InterfaceChoice(file, lambda why: messages.append(said(why))).of(MachineId("a")) is None
    (sentence,) = messages
    aside = tmp_path / "preferred_interfaces.damaged"
    assert str(aside) in sentence
    assert aside.read_bytes() == b'{"a": 3}'


async def measured(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *args: Interface
) -> tuple[Node, MachineId, LinkRegistry]:
    """den, paired with attic that it has measured, where den has these interfaces."""
    monkeypatch.setattr("app.node.links.link_registry.interfaces", lambda: args)
    den, attic = await nodes.paired("den", "attic")
    book = LinkRegistry(den.network, tmp_path / "links.json", lambda: None)
    await book._measure(attic.network.id)
    return den, attic.network.id, book


async def test_the_interface_that_a_person_prefers_is_dialed_and_kept(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    den, far, book = await measured(nodes, tmp_path, monkeypatch, CHOSEN, ASTRAY, DOWN)
    link = den.network.link(far)
    result = await book.prefer(far, LOOPBACK)
    reports = [result.preferred, result.preferred_reason, result.reason]
    assert reports == [LOOPBACK, None, None]
    member = den.network.members[far]
    context = den.network.dialing_context(member)
    client = PeerClient(member, link.address, context, link.through)
    channel, own = await client.open_probe()
    await channel.close()
    await client.close()
    assert own == "127.0.0.2"
    again = LinkRegistry(den.network, tmp_path / "links.json", lambda: None)  # as after a restart
    assert again.snapshot()[far].preferred == LOOPBACK
    assert (await book.prefer(far, None)).preferred is None
    assert link.through is None


async def test_a_preferred_interface_that_does_not_lead_there_is_named_and_another_used(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    den, far, book = await measured(nodes, tmp_path, monkeypatch, CHOSEN, ASTRAY, DOWN)
    for name, code in (("eth77", "interface_unknown"), ("down9", "interface_down")):
        with pytest.raises(BadInput) as refused:
            await book.prefer(far, name)
        assert refused.value.reason.code == code
    result = await book.prefer(far, "nowhere9")
    assert result.reason is None
    assert "nowhere9 was chosen" in (result.preferred_reason or "")
    assert "cannot reach attic" in (result.preferred_reason or "")
    assert den.network.link(far).through is None
    assert book.link(far) is not None
    monkeypatch.setattr("app.node.links.link_registry.interfaces", lambda: (CHOSEN,))
    await book._check_interfaces()
    assert "not connected" in (book.snapshot()[far].preferred_reason or "")


async def test_a_link_by_a_vpn_beside_a_cable_names_the_cable_that_leads_there(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vpn = Interface("wg7", LinkKind.VPN, True, ("127.0.0.1",))
    _, far, book = await measured(nodes, tmp_path, monkeypatch, ASTRAY, CHOSEN, vpn)
    known = book._known[far]
    wrong = replace(known.link, kind=LinkKind.VPN, interface="wg7")
    book._known[far] = msgspec.structs.replace(known, link=wrong)
    await book._check_interfaces()
    await book._try_better_interfaces()
    result = book.snapshot()[far]
    assert result.better_interface == LOOPBACK  # not the other one, which leads nowhere
    assert "through a VPN (wg7)" in (result.better_reason or "")
    await book.prefer(far, LOOPBACK)
    await book._try_better_interfaces()
    assert book.snapshot()[far].better_interface is None


async def test_a_link_that_ends_during_a_trial_of_another_interface_harms_nobody(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vpn = Interface("wg7", LinkKind.VPN, True, ("127.0.0.1",))
    den, far, book = await measured(nodes, tmp_path, monkeypatch, CHOSEN, vpn)
    known = book._known[far]
    wrong = replace(known.link, kind=LinkKind.VPN, interface="wg7")
    book._known[far] = msgspec.structs.replace(known, link=wrong)
    await book._check_interfaces()
    tried = measured_paths.round_trips
    up = dict(den.network.link_manager.up)

    async def and_ends(*way: Any) -> RoundTrips:
        round_trips = await tried(*way)
        den.network.link_manager.up.clear()  # as when its cable is pulled
        return round_trips

    monkeypatch.setattr(measured_paths, "round_trips", and_ends)
    await book._try_better_interfaces()
    assert not book._better.found
    den.network.link_manager.up.update(up)


async def test_what_leads_nowhere_within_seconds_is_no_better_way_and_not_tried_again(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vpn = Interface("wg7", LinkKind.VPN, True, ("127.0.0.1",))
    _, far, book = await measured(nodes, tmp_path, monkeypatch, CHOSEN, vpn)
    wrong = replace(book._known[far].link, kind=LinkKind.VPN, interface="wg7")
    tries: list[object] = []

    async def silent(*way: object) -> None:
        tries.append(way)
        await asyncio.Event().wait()

    monkeypatch.setattr(measured_paths, "round_trips", silent)
    monkeypatch.setattr("app.node.links.interface_choice.TRY_SECONDS", 0.05)
    addresses = [Address("127.0.0.1", 1)]
    async with asyncio.timeout(10):
        for _ in range(2):
            await book._better.check(far, wrong, (CHOSEN, vpn), addresses)
    assert len(tries) == 1
    assert not book._better.found
    book.keep_only([])
    assert not book._better._tried
