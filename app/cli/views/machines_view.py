"""Views of the household's machines, the machines nearby, and the links between machines."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from app.api.snapshot import Link, LinkMeasurement, LinkReport, Machine, Snapshot, Stranger
from app.cli import terminal_text
from app.cli.terminal_text import milliseconds
from app.core.errors import BadInput

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions

ID_SHOWN = 8  # `remove` accepts any six or more
ANY_WIDTH = 1_000
IPV4_WIDTH = 21  # width of an IPv4 address with its port; only longer addresses are wrapped
NAMELESS = "name unknown"
MAX_SHOWN = 8  # more announcements are probably an attempt to fill the screen
COLOR_OF_STATE = {
    "ready": "green",
    "loaded": "green",
    "lending": "green",
    "working": "blue",
    "draining": "yellow",
    "paused": "yellow",
    "failed": "red",
    "lost": "red",
}
KINDS = {
    "ethernet": "cable",
    "wifi": "Wi-Fi",
    "thunderbolt": "Thunderbolt",
    "vpn": "VPN",
    "loopback": "this computer",
    "virtual": "virtual network",
}


class MachinesView:
    """A table of the machines, this one first.

    If the terminal is too narrow, the devices are listed below the table.
    """

    def __init__(self, machines: Sequence[Machine]) -> None:
        self._machines = sorted(machines, key=lambda machine: (not machine.this, machine.name))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        full_table = self._table(with_devices=True)
        needed = Measurement.get(console, options.update(max_width=ANY_WIDTH), full_table).maximum
        if needed <= options.max_width:
            yield full_table
            return
        yield self._table(with_devices=False)
        yield Text()
        for machine in self._machines:
            yield Text(f"{terminal_text.name(machine.name)}: {_device(machine)}", style="dim")

    def _table(self, *, with_devices: bool) -> Table:
        addresses = [terminal_text.line(_address(machine)) for machine in self._machines]
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
        table.add_column("Machine", overflow="fold")
        table.add_column("ID", no_wrap=True, style="dim")
        table.add_column("State", no_wrap=True)
        table.add_column("Roles")
        short = all(len(address) <= IPV4_WIDTH for address in addresses)
        table.add_column("Address", overflow="fold", no_wrap=short)
        if with_devices:
            table.add_column("Device")
        for machine, address in zip(self._machines, addresses, strict=True):
            table.add_row(
                machine_name(machine),
                terminal_text.line(machine.id[:ID_SHOWN]),
                state_of(machine),
                terminal_text.line(", ".join(machine.roles)),
                address,
                *([_device(machine)] if with_devices else []),
            )
        return table


def _address(machine: Machine) -> str:
    return machine.address or ("" if machine.this else "unknown")


def _device(machine: Machine) -> str:
    return terminal_text.line(machine.device or "unknown")


def machine_name(machine: Machine) -> Text:
    """Return the name of a machine, marked if it is this one."""
    name = Text(terminal_text.name(machine.name))
    if machine.this:
        name.append(" (this)", style="dim")
    return name


def state_of(machine: Machine) -> Text:
    """Return a machine's state in one word, such as `loaded` if it holds layers or `working` if it is computing."""
    state = machine.state if machine.online or machine.this else "offline"
    return Text(terminal_text.line(state), style=COLOR_OF_STATE.get(state, "dim"))


def nearby_view(strangers: Sequence[Stranger]) -> list[Text | Table]:
    """Return a view of the machines nearby, with the commands that pair with them.

    Machines that are open for pairing come first. If no machine is nearby, the list is empty.
    """
    if not strangers:
        return []
    ranked = sorted(strangers, key=lambda stranger: (not stranger.pairing_address, stranger.id))
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    # A stranger chooses its own name, which must not fill the screen.
    table.add_column("Nearby", overflow="ellipsis", no_wrap=True, max_width=24)
    table.add_column("Address", overflow="fold")
    table.add_column("", overflow="fold")
    fits, typed = not terminal_text.home_option(), list[str]()  # a truncated command is useless
    for stranger in ranked[:MAX_SHOWN]:
        relation = "not in this household"
        if stranger.pairing_address:
            typed.append(f"poolhouse pair {shlex.quote(_pair_target(stranger))}{terminal_text.home_option()}")
            relation = f"open for pairing: {typed[-1]}" if fits else "open for pairing"
        address = stranger.addresses[0] if stranger.addresses else ""
        table.add_row(_stranger_name(stranger), terminal_text.line(address), Text(relation, style="dim"))
    claimed = [claims for stranger in ranked[:MAX_SHOWN] if (claims := _claimed_hardware(stranger))]
    n_hidden = len(ranked) - MAX_SHOWN
    below = [f"and {n_hidden} more"] if n_hidden > 0 else []
    below += claimed
    below += [] if fits else [f"To join: {command}" for command in typed]
    lines = (Text(line, "dim", no_wrap=True, overflow="ignore") for line in below)
    return [Text(), table, *lines]


def only_open(snapshot: Snapshot) -> Stranger:
    """Return the only machine nearby that is open for pairing. Raises BadInput if there is not exactly one."""
    is_open = [stranger for stranger in snapshot.strangers.values() if stranger.pairing_address]
    if not is_open:
        raise BadInput("pairing_nobody_near")
    if len(is_open) > 1:
        names = ", ".join(
            f"{_stranger_name(stranger)} ({stranger.pairing_address})" for stranger in is_open[:MAX_SHOWN]
        )
        raise BadInput("pairing_several_near", there=names)
    return is_open[0]


def _stranger_name(stranger: Stranger) -> str:
    """Return the machine's name, or a placeholder if it is not open for pairing, because it then announces only its
    id."""
    return terminal_text.name(stranger.name) if stranger.name else NAMELESS


def _claimed_hardware(stranger: Stranger) -> str:
    """Return a sentence about the hardware that a machine claims to have, or "" if it claims none."""
    parts = [terminal_text.name(part) for part in (stranger.system, stranger.device) if part]
    return f"{_stranger_name(stranger)} claims to be: {', '.join(parts)}" if parts else ""


def _pair_target(stranger: Stranger) -> str:
    """Return the argument for `pair`: the machine's name, or its id if the name looks like an option or an address."""
    name = terminal_text.name(stranger.name or "")
    return stranger.id[:ID_SHOWN] if not name or name.startswith("-") or ":" in name else name


def links_view(links: Sequence[LinkReport]) -> RenderableType:
    """Show a row for each link. Below the table, explain why measurements are missing."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for title in ("Machine", "Outgoing", "Incoming", "Round trip", "95%", "Jitter", "Over"):
        table.add_column(title, overflow="fold")
    for link in links:
        table.add_row(
            terminal_text.name(link.name),
            megabits(link.out_bytes_per_s),
            megabits(link.in_bytes_per_s),
            milliseconds(link.measured_round_trip_seconds),
            milliseconds(link.round_trip_p95_seconds),
            milliseconds(link.jitter_seconds),
            link_medium(link),
        )
    why = [terminal_text.command_text(terminal_text.line(link.reason), "dim") for link in links if link.reason]
    return Group(table, *why)


def megabits(bytes_per_s: float | None) -> str:
    """Format a rate in units used for network hardware, such as `94 Mb/s` or `2.1 Gb/s`."""
    if bytes_per_s is None:
        return "not measured"
    bits = bytes_per_s * 8
    if bits >= 1e9:
        return f"{bits / 1e9:.1f} Gbit/s"
    return f"{bits / 1e6:.0f} Mbit/s" if bits >= 1e7 else f"{bits / 1e6:.1f} Mbit/s"


def link_medium(link: LinkMeasurement) -> str:
    """Return the medium of a link, such as `cable (eth0)`.

    If the other end uses a different medium, it is added, as in `cable (eth0), Wi-Fi there`.
    """
    if not link.kind:
        return ""
    medium = KINDS.get(link.kind, "")
    if link.interface:
        medium = f"{medium} ({terminal_text.line(link.interface)})".strip()
    if link.far_kind != link.kind and link.far_kind in KINDS:
        medium += f", {KINDS[link.far_kind]} there"
        if link.far_interface:
            medium += f" ({terminal_text.line(link.far_interface)})"
    return medium


def short_link(link: LinkMeasurement) -> str:
    """Return a link's speed and delay for a narrow column, such as `94 Mb/s, 0.3 ms`.

    The speed is that of the slower direction. Wi-Fi and VPNs are mentioned.
    """
    if link.out_bytes_per_s is None or link.in_bytes_per_s is None:
        return milliseconds(link.round_trip_seconds if isinstance(link, Link) else None)
    slower = megabits(min(link.out_bytes_per_s, link.in_bytes_per_s))
    slow_kinds = [KINDS[kind] for kind in ("wifi", "vpn") if kind in (link.kind, link.far_kind)]
    return ", ".join((slower, milliseconds(link.measured_round_trip_seconds), *slow_kinds))
