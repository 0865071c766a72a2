"""Machines nearby that are not of the household: shown, and chosen from to pair with."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from app.api.snapshot import Snapshot, Stranger
from app.cli import hints, safe_text
from app.core.errors import BadInput

ID_SHOWN = 8
NAMELESS = "name unknown"
MOST_SHOWN = 8  # whoever announces more wants the screen


def nearby_view(strangers: Sequence[Stranger]) -> list[Text | Table]:
    """Return the machines nearby with what to type, the ones that let a machine in first; empty if there is none."""
    if not strangers:
        return []
    ranked = sorted(strangers, key=lambda stranger: (not stranger.pairing_address, stranger.id))
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    # A stranger chooses its name, and it is not to fill the screen.
    table.add_column("Nearby", overflow="ellipsis", no_wrap=True, max_width=24)
    table.add_column("Address", overflow="fold")
    table.add_column("", overflow="fold")
    fits, typed = not hints.home_option(), list[str]()  # a command that is cut off helps nobody
    for stranger in ranked[:MOST_SHOWN]:
        relation = "not of this household"
        if stranger.pairing_address:
            typed.append(f"poolhouse pair {shlex.quote(_typed(stranger))}{hints.home_option()}")
            relation = f"lets a machine in: {typed[-1]}" if fits else "lets a machine in"
        address = stranger.addresses[0] if stranger.addresses else ""
        table.add_row(_shown(stranger), safe_text.line(address), Text(relation, style="dim"))
    claimed = [claims for stranger in ranked[:MOST_SHOWN] if (claims := _claims(stranger))]
    rest = len(ranked) - MOST_SHOWN
    below = [f"and {rest} more"] if rest > 0 else []
    below += claimed
    below += [] if fits else [f"Join by: {command}" for command in typed]
    lines = (Text(line, "dim", no_wrap=True, overflow="ignore") for line in below)
    return [Text(), table, *lines]


def only_open(snapshot: Snapshot) -> Stranger:
    """The one machine nearby that lets others in. Raises BadInput for none, or for several."""
    is_open = [stranger for stranger in snapshot.strangers.values() if stranger.pairing_address]
    if not is_open:
        raise BadInput("pairing_nobody_near")
    if len(is_open) > 1:
        there = ", ".join(f"{_shown(stranger)} ({stranger.pairing_address})" for stranger in is_open[:MOST_SHOWN])
        raise BadInput("pairing_several_near", there=there)
    return is_open[0]


def _shown(stranger: Stranger) -> str:
    """An id is no name: whoever lets nobody in says none, and its address stands beside it."""
    return safe_text.name(stranger.name) if stranger.name else NAMELESS


def _claims(stranger: Stranger) -> str:
    """Return what a machine says about itself; empty if it says nothing."""
    parts = [safe_text.name(part) for part in (stranger.system, stranger.device) if part]
    return f"{_shown(stranger)} says it is: {', '.join(parts)}" if parts else ""


def _typed(stranger: Stranger) -> str:
    """Return what `pair` understands: the name, unless it could be an option or an address."""
    name = safe_text.name(stranger.name or "")
    return stranger.id[:ID_SHOWN] if not name or name.startswith("-") or ":" in name else name
