"""The addresses at which members may be reached, including hints from announcements and from other members.

Only a handshake proves that an address is right. Hints are kept in memory. Addresses at which a member was actually
reached are stored on disk and always tried. False hints can therefore neither make this machine forget an address
nor make it dial outside its own network.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from app.core.errors import BadInput
from app.core.household.household import Announced, AnnouncementEnded
from app.core.household.membership import Member
from app.core.ids import MachineId
from app.network.discovery.announcement import believable
from app.network.messages import MAX_LISTED_ADDRESSES, MAX_LISTED_MACHINES, Message, Whereabouts
from app.network.peer.peer_link import PeerLink
from app.network.sockets import Address, plain_host

MET_FIRST = 4  # addresses at which a member was reached that are tried before hints; the others follow
HOSTS_SECONDS = 1.0  # how long the set of hosts at which members were reached is cached
DIAL_SECONDS = 1.0  # hints that follow more quickly trigger no call

SendTo = Callable[[Message, Iterable[MachineId]], Awaitable[None]]


class AddressBook:
    """The known addresses of all members. A hint about a member calls `dial`, at most once per second."""

    def __init__(
        self,
        members: Callable[[], Mapping[MachineId, Member]],
        met: Callable[[MachineId], Sequence[Address]],
        dial: Callable[[MachineId], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._members, self._met, self._dial, self._clock = members, met, dial, clock
        self.own: str | None = None  # the best address of this machine, once known
        self._announced: dict[str, Announced] = {}  # at most as many as discovery keeps
        self._reported: dict[MachineId, tuple[Address, ...]] = {}
        self._hosts, self._hosts_until_seconds = frozenset[str](), float("-inf")
        self._dialed_seconds: dict[MachineId, float] = {}

    def addresses(self, machine: MachineId) -> tuple[Address, ...]:
        """Return the addresses to try for `machine`, most likely first. The result is empty if it is no longer a
        member."""
        if machine not in self._members():
            self._reported.pop(machine, None)
            return ()
        met = tuple(self._met(machine))
        hints = (*self._announced_at(machine), *self._reported.get(machine, ()))
        return tuple(dict.fromkeys((*met[:MET_FIRST], *hints, *met[MET_FIRST:])))

    def was_reached_at(self, host: str) -> bool:
        """Return whether a member was ever reached at `host`. The result is cached, since every unknown caller is
        checked."""
        now = self._clock()
        if now >= self._hosts_until_seconds:
            self._hosts_until_seconds = now + HOSTS_SECONDS
            self._hosts = frozenset(
                plain_host(place.host.partition("%")[0]) for machine in self._members() for place in self._met(machine)
            )
        return host.partition("%")[0] in self._hosts

    def note_announcement(self, news: Announced | AnnouncementEnded) -> None:
        """Record an event from discovery. Strangers are also recorded because they may become members."""
        if isinstance(news, AnnouncementEnded):
            self._announced.pop(news.id16, None)
            return
        self._announced[news.id16] = news
        self._hint(machine for machine in self._members() if news.is_of(machine))

    def learn(self, message: Whereabouts, by: Address) -> None:
        """Record the addresses that a member reports for other members. Addresses outside the reporter's network are
        ignored."""
        members = self._members()
        named = [machine for machine in map(MachineId, message.machines) if machine in members]
        for machine in named:
            known = self._reported.get(machine, ())
            places = _parsed(message.machines[machine], by.host)
            self._reported[machine] = tuple(dict.fromkeys((*places, *known)))[:MAX_LISTED_ADDRESSES]
        self._reported = {machine: at for machine, at in self._reported.items() if machine in members}
        self._hint(named)

    async def introduce(self, newcomer: MachineId, up: Mapping[MachineId, PeerLink], send: SendTo) -> None:
        """Send a newly linked member the addresses of the other members, and send them its address."""
        peers = [machine for machine in self._members() if machine != newcomer]
        await send(self._to_tell(up, peers), [newcomer])
        await send(self._to_tell(up, [newcomer]), peers)

    def _to_tell(self, up: Mapping[MachineId, PeerLink], machines: Iterable[MachineId]) -> Whereabouts:
        places: dict[str, list[str]] = {}
        for machine in list(machines)[:MAX_LISTED_MACHINES]:
            met = self._met(machine)
            # An address of a machine that is not linked now is the weakest hint and must not displace a better one.
            known = dict.fromkeys((up[machine].address, *met) if machine in up else met[:1])
            if known:
                places[machine] = [str(place)[:64] for place in known][:MAX_LISTED_ADDRESSES]
        return Whereabouts(machines=places)

    def _announced_at(self, machine: MachineId) -> list[Address]:
        seen = self._announced.get(machine[:16])
        return [Address(host, seen.port) for host in seen.addresses] if seen else []

    def _hint(self, machines: Iterable[MachineId]) -> None:
        now = self._clock()
        for machine in machines:
            if now - self._dialed_seconds.get(machine, float("-inf")) >= DIAL_SECONDS:
                self._dialed_seconds[machine] = now
                self._dial(machine)


def _parsed(texts: Iterable[str], near: str) -> list[Address]:
    """Parse the addresses that a member sent, and return those in the same network as `near`, the member's own
    address."""
    near_addresses = []
    for text in texts:
        try:
            address = Address.parse(text)
        except BadInput:
            continue
        if believable((address.host,), (near,)):
            near_addresses.append(address)
    return near_addresses
