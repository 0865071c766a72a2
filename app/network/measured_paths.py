"""Measurement of the network paths to a machine, each over separate connections, and the choice of the best path."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from app.core.errors import Busy, Unreachable
from app.core.ids import MachineId
from app.network.network import Network
from app.network.peer.frame_channel import FrameChannel
from app.network.peer.peer_client import PeerClient
from app.network.peer.probe import Measured, RoundTrips
from app.network.sockets import Address, LocalInterface, plain_host

FRAME_BYTES = 64 << 10  # the hidden states of eight tokens, with a width of 4096, in f16
MUCH_BETTER = 1.5  # how many times faster a path must be to replace the current one


@dataclass(frozen=True, slots=True)
class Path:
    """A measured path to a machine: the machine's address, this machine's address on the connection, and the
    measurement.

    through: the local interface chosen for the path, or None if the system chooses.
    """

    address: Address
    own_host: str
    measured: Measured
    through: LocalInterface | None = None

    @property
    def frame_seconds(self) -> float:
        """Return the round-trip time of a typical frame, which is used to compare paths."""
        probe = self.measured
        each_way = FRAME_BYTES / probe.out_bytes_per_s + FRAME_BYTES / probe.in_bytes_per_s
        return probe.round_trips.median_s + each_way


async def measure(network: Network, machine: MachineId, address: Address) -> Path:
    """Measure the path to `address`. Raises Busy, Refused, or Unreachable (also if the machine is not a member)."""
    through = network.link_manager.chosen_interfaces.get(machine)
    async with _client(network, machine, address, through) as client:
        own_host: list[str] = []

        async def opened() -> FrameChannel:
            channel, host = await client.open_probe()
            own_host.append(plain_host(host))
            return channel

        measurement = await network.probes.measure(opened, client.member.name)
        return Path(address, own_host[0], measurement, through)


async def round_trips(
    network: Network, machine: MachineId, address: Address, through: LocalInterface | None = None
) -> RoundTrips:
    """Measure only the round trips of a path. Raises the same errors as `measure`.

    through: the interface to use instead of the currently chosen one.
    """
    through = through or network.link_manager.chosen_interfaces.get(machine)
    async with _client(network, machine, address, through) as client:

        async def opened() -> FrameChannel:
            return (await client.open_probe())[0]

        return await network.probes.round_trips(opened, client.member.name)


def choose(paths: Sequence[Path], present: Address) -> Path:
    """Return the best path if it is much better than the current one (`present`), otherwise the current one."""
    best = min(paths, key=lambda path: path.frame_seconds)
    now = next((path for path in paths if path.address == present), None)
    if now is None or now.frame_seconds >= MUCH_BETTER * best.frame_seconds:
        return best
    return now


def switch_to(network: Network, machine: MachineId, address: Address, through: LocalInterface | None = None) -> None:
    """Use this path for new data connections.

    Raises Busy while this machine has work to do, and Unreachable if there is no link.
    """
    link = network.link(machine)
    if network.probes.is_busy:
        raise Busy("probe_busy_here")
    member = network.members[machine]
    link.use(PeerClient(member, address, network.dialing_context(member), through, network.pace))


@asynccontextmanager
async def _client(
    network: Network, machine: MachineId, address: Address, through: LocalInterface | None
) -> AsyncIterator[PeerClient]:
    member = network.members.get(machine)
    if member is None:
        raise Unreachable("peer_offline", name=machine[:16])
    client = PeerClient(member, address, network.dialing_context(member), through, network.pace)
    try:
        yield client
    finally:
        await client.close()
