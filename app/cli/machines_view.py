"""The machines of the household as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from app.cli import safe_text
from app.cli.shapes import Machine
from app.cli.status_view import state_of

ID_SHOWN = 8  # `remove` takes any six or more


def machines_view(machines: Sequence[Machine]) -> Table:
    """A row for each machine, this one first."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("Machine", overflow="ellipsis", no_wrap=True, max_width=24)
    table.add_column("Id", no_wrap=True, style="dim")
    table.add_column("State", no_wrap=True)
    table.add_column("May", no_wrap=True)
    table.add_column("Address", overflow="ellipsis", no_wrap=True)
    table.add_column("Device")  # the one that gives way: its cells are cut, not wrapped
    for machine in sorted(machines, key=lambda one: (not one.this, one.name)):
        name = Text(safe_text.name(machine.name))
        if machine.this:
            name.append(" (this)", style="dim")
        address = machine.address or ("" if machine.this else "not known")
        table.add_row(
            name,
            safe_text.line(machine.id[:ID_SHOWN]),
            state_of(machine),
            safe_text.line(", ".join(machine.roles)),
            safe_text.line(address),
            Text(safe_text.line(machine.device or "not known"), no_wrap=True, overflow="ellipsis"),
        )
    return table
