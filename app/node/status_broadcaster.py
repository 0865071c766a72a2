"""The status that this machine broadcasts on every change, and the statuses received from other machines."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from app.core.errors import Reason
from app.core.household.household import Described, IdleCard, SelfDescription, SharedModel
from app.core.ids import MachineId, clean_name, clean_text
from app.core.reasons import said
from app.network import messages
from app.network.network import MachineDescription, Network
from app.network.peer.peer_link import PeerLink
from app.node.lending.lending_policy import LendingPolicy
from app.node.links.link_gossip import LinkGossip, change_key, links_message
from app.node.links.link_registry import LinkRecord

STATUS_SECONDS = 0.25  # changes closer together are sent as one
FREE_SECONDS = 5.0  # interval of status checks without a notification, because free memory changes without one


class StatusBroadcaster:
    """Sends this machine's status and link measurements to the other machines whenever they change."""

    def __init__(
        self,
        status: Callable[[], messages.Status],
        measured: Callable[[], Mapping[MachineId, LinkRecord]],
        network: Network,
        machines_in_use: Callable[[], frozenset[MachineId]],
    ) -> None:
        self._status, self._measured, self._network = status, measured, network
        # links whose machine was told that answers use its layers
        self._machines_in_use, self._links_in_use = machines_in_use, set[PeerLink]()
        self._news = asyncio.Event()
        self.gossip = LinkGossip()  # the other machines' measurements of the links between them

    def changed(self) -> None:
        """Note that the status may have changed. This is cheap."""
        self._news.set()

    async def begin(self, link: PeerLink) -> None:
        """Send the status and the link measurements over a new link."""
        await link.send(self._status())
        await link.send(links_message(self._measured(), time.time()))

    async def run(self) -> None:
        """Send changes until canceled."""
        sent, links_told = None, change_key({})
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(FREE_SECONDS):
                    await self._news.wait()
            self._news.clear()
            now, links_now = self._status(), change_key(self._measured())
            if now != sent:
                sent = now
                await self._network.broadcast(now)
            await self._tell_lenders()
            if links_now != links_told:
                links_told = links_now
                await self._network.broadcast(links_message(self._measured(), time.time()))
            await asyncio.sleep(STATUS_SECONDS)

    async def _tell_lenders(self) -> None:
        """Notify lenders when answers start or stop using their layers. Without this message, a lender that wants
        its memory back could not tell whether an answer has ended or is only waiting for another machine.
        """
        network, machines_in_use = self._network, self._machines_in_use()
        links = set(network.links.values())
        in_use = {link for link in links if link.peer in machines_in_use}
        no_more = (self._links_in_use - in_use) & links  # a link that has closed needs no message
        for now, links_told in ((True, in_use - self._links_in_use), (False, no_more)):
            await network.broadcast(messages.Answering(now=now), [link.peer for link in links_told])
        self._links_in_use = in_use


@dataclass(frozen=True, slots=True)
class Refused:
    """The model families that this machine's graphics cards do not compute.

    families: the families that no card computes.
    processor_bytes: the main memory that is currently lent for these families.
    missing_bytes: for each family that only some cards compute, the memory that is lent on the other cards.
    """

    families: tuple[str, ...] = ()
    processor_bytes: int = 0
    missing_bytes: tuple[tuple[str, int], ...] = ()


def status_of(
    offer: MachineDescription,
    used_bytes: int,
    rules: LendingPolicy,
    idle_card: IdleCard | None,
    refused: Refused = Refused(),
    main_bytes: int = 0,
    models: Sequence[SharedModel] = (),
) -> messages.Status:
    """Return the status that this machine sends to the others. Reasons are sent as codes, without their facts.

    main_bytes: the part of the lent memory that is main memory next to graphics cards.
    models: the models that answer requests of the household.
    """
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
        idle_card=idle_card.name if idle_card else "",
        idle_card_pack=idle_card.pack if idle_card else "",
        refused_families=list(refused.families[: messages.MAX_FAMILIES]),
        processor_bytes=refused.processor_bytes,
        partly_refused=[messages.PartlyRefused(*each) for each in refused.missing_bytes[: messages.MAX_FAMILIES]],
        main_bytes=main_bytes,
        models=[
            messages.SharedModel(
                model.name, model.id, model.context, model.is_ready, model.is_base, model.sees, model.picture_tokens
            )
            for model in models[: messages.MAX_SHARED_MODELS]
        ],
    )


def self_description(status: messages.Status) -> SelfDescription:
    """Return the part of a status that describes the machine itself rather than its memory, cleaned for display."""
    used_by = tuple(MachineId(machine) for machine in status.used_by)
    card = IdleCard(clean_text(status.idle_card), clean_text(status.idle_card_pack)) if status.idle_card else None
    return SelfDescription(
        used_by,
        clean_text(status.engine),
        status.watts,
        status.link_mbit,
        card,
        tuple(status.refused_families),
        status.processor_bytes,
        tuple((partly.family, partly.missing_bytes) for partly in status.partly_refused),
        status.main_bytes,
        tuple(
            SharedModel(
                model.name, model.id, model.context, model.ready, model.base, model.vision, model.picture_tokens
            )
            for model in status.models
        ),
    )


def description_from_hello(link: PeerLink) -> Described:
    """Return the description from another machine's hello message, cleaned for display."""
    hello = link.hello
    device = clean_text(hello.device)
    return Described(link.peer, link.name, device, hello.total_bytes, hello.lendable_bytes, 0)


def description_from_status(link: PeerLink, status: messages.Status) -> Described:
    """Return the description from another machine's status, cleaned for display."""
    return Described(
        link.peer,
        clean_name(status.name),
        clean_text(status.device),
        status.total_bytes,
        status.lendable_bytes,
        status.used_bytes,
        status.state,
        _known_reason(status.reason),
        status.hottest_c,
        self_description(status),
    )


def _known_reason(code: str | None) -> Reason | None:
    """Return the reason with this code, or None if this version has no sentence for it or the sentence needs facts."""
    reason = Reason(code or "")
    try:
        said(reason)
    except (KeyError, IndexError):
        return None
    return reason
