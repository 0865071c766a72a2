"""The machines of the household as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from app.api.snapshot import Machine
from app.cli import safe_text
from app.cli.views.status_view import state_of

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

ID_SHOWN = 8  # `remove` takes any six or more
ANY_WIDTH = 1_000
IPV4_WIDTH = 21  # with its port: never broken; a longer address is, where it must be


class MachinesView:
    """A row for each machine, this one first. Where lines are too short for all, devices stand below."""

    def __init__(self, machines: Sequence[Machine]) -> None:
        self._machines = sorted(machines, key=lambda machine: (not machine.this, machine.name))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        whole = self._table(with_devices=True)
        needed = Measurement.get(console, options.update(max_width=ANY_WIDTH), whole).maximum
        if needed <= options.max_width:
            yield whole
            return
        yield self._table(with_devices=False)
        yield Text()
        for machine in self._machines:
            yield Text(f"{safe_text.name(machine.name)}: {_device(machine)}", style="dim")

    def _table(self, *, with_devices: bool) -> Table:
        addresses = [safe_text.line(_address(machine)) for machine in self._machines]
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
        table.add_column("Machine", overflow="fold")
        table.add_column("Id", no_wrap=True, style="dim")
        table.add_column("State", no_wrap=True)
        table.add_column("May")
        short = all(len(address) <= IPV4_WIDTH for address in addresses)
        table.add_column("Address", overflow="fold", no_wrap=short)
        if with_devices:
            table.add_column("Device")
        for machine, address in zip(self._machines, addresses, strict=True):
            name = Text(safe_text.name(machine.name))
            if machine.this:
                name.append(" (this)", style="dim")
            table.add_row(
                name,
                safe_text.line(machine.id[:ID_SHOWN]),
                state_of(machine),
                safe_text.line(", ".join(machine.roles)),
                address,
                *([_device(machine)] if with_devices else []),
            )
        return table


def _address(machine: Machine) -> str:
    return machine.address or ("" if machine.this else "not known")


def _device(machine: Machine) -> str:
    return safe_text.line(machine.device or "not known")
