"""The status that this machine broadcasts whenever it changes, and the status received from others."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from app.core.errors import Reason
from app.core.household.household import Described, SelfDescription
from app.core.ids import MachineId, clean_name
from app.core.reasons import said
from app.network import messages
from app.network.network import MachineDescription, Network
from app.network.peer.peer_link import PeerLink
from app.node.lending.lending_policy import LendingPolicy
from app.node.links.link_gossip import LinkGossip, key_of, message_of
from app.node.links.link_registry import Known

STATUS_SECONDS = 0.25  # changes closer together are told as one
FREE_SECONDS = 5.0  # between looks at the free memory, which changes without news of ours


class StatusBroadcaster:
    """Sends the other machines what this one lends and measured, whenever that has changed."""

    def __init__(
        self,
        status: Callable[[], messages.Status],
        measured: Callable[[], Mapping[MachineId, Known]],
        network: Network,
        machines_in_use: Callable[[], frozenset[MachineId]],
    ) -> None:
        self._status, self._measured, self._network = status, measured, network
        self._asked_of, self._asked = machines_in_use, set[PeerLink]()  # over which that was said
        self._news = asyncio.Event()
        self.gossip = LinkGossip()  # what the others measured of the links between them

    def changed(self) -> None:
        """Note that the status may have changed. Cheap to call."""
        self._news.set()

    async def begin(self, link: PeerLink) -> None:
        """Send the whole status over a new link."""
        await link.send(self._status())
        await link.send(message_of(self._measured(), time.time()))

    async def run(self) -> None:
        """Send changes until canceled."""
        sent, links_told = None, key_of({})
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(FREE_SECONDS):
                    await self._news.wait()
            self._news.clear()
            now, links_now = self._status(), key_of(self._measured())
            if now != sent:
                sent = now
                await self._network.broadcast(now)
            await self._tell_lenders()
            if links_now != links_told:
                links_told = links_now
                await self._network.broadcast(message_of(self._measured(), time.time()))
            await asyncio.sleep(STATUS_SECONDS)

    async def _tell_lenders(self) -> None:
        """Tell lenders when answers start or stop using their layers. Otherwise a lender that wants its memory back
        might mistake a long wait for another machine for the end of the answer."""
        network, machines_in_use = self._network, self._asked_of()
        links = set(network.links.values())
        in_use = {link for link in links if link.peer in machines_in_use}
        no_more = (self._asked - in_use) & links  # with a link ends what was said over it
        for now, links_told in ((True, in_use - self._asked), (False, no_more)):
            await network.broadcast(messages.Answering(now=now), [link.peer for link in links_told])
        self._asked = in_use


def status_of(offer: MachineDescription, used_bytes: int, rules: LendingPolicy) -> messages.Status:
    """Return this machine's status for the others. Reasons are sent as codes, without their facts."""
    why = rules.reason()
    return messages.Status(
        name=offer.name[:64],
        device=offer.device,
        total_bytes=offer.total_bytes,
        lendable_bytes=offer.lendable_bytes,
        used_bytes=used_bytes,
        state=rules.state_word(),
        reason=why.code if why else None,
        hottest_c=rules.hottest_c(),
        used_by=list(rules.used_by()[: messages.MAX_LISTED_MACHINES]),
        engine=offer.engines[0][:200] if offer.engines else "",
        watts=rules.watts(),
        link_mbit=rules.rules.link_mbit,
    )


def about(status: messages.Status) -> SelfDescription:
    """Return the facts of a status other than its memory, cleaned for display."""
    used_by = tuple(MachineId(machine) for machine in status.used_by)
    return SelfDescription(used_by, cleaned(status.engine), status.watts, status.link_mbit)


def greeted(link: PeerLink) -> Described:
    """Return the description that another machine sent when it connected."""
    hello = link.hello
    device = cleaned(hello.device)
    return Described(link.peer, link.name, device, hello.total_bytes, hello.lendable_bytes, 0)


def told(link: PeerLink, status: messages.Status) -> Described:
    """Return the description in another machine's status, cleaned for display."""
    return Described(
        link.peer,
        clean_name(status.name),
        cleaned(status.device),
        status.total_bytes,
        status.lendable_bytes,
        status.used_bytes,
        status.state,
        _understood(status.reason),
        status.hottest_c,
        about(status),
    )


def cleaned(device: str) -> str:
    """Return another machine's text about its processor, cleaned for display."""
    return clean_name(device) if device else ""


def _understood(code: str | None) -> Reason | None:
    """Return the reason of another machine, if this version has a sentence for it that needs no facts."""
    reason = Reason(code or "")
    try:
        said(reason)
    except (KeyError, IndexError):
        return None
    return reason
