"""Measured links as people read them: Mb/s, milliseconds, and what carries them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table

from app.api.links import Link, LinkMeasurement, LinkReport
from app.cli import hints, safe_text
from app.cli.views.amounts import milliseconds

KINDS = {
    "ethernet": "cable",
    "wifi": "Wi-Fi",
    "thunderbolt": "Thunderbolt",
    "vpn": "VPN",
    "loopback": "this computer",
    "virtual": "virtual network",
}


def links_view(links: Sequence[LinkReport]) -> RenderableType:
    """A row for each link; below, why some were not measured."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for title in ("Machine", "There", "Back", "Round trip", "95 %", "Jitter", "By"):
        table.add_column(title, overflow="fold")
    for link in links:
        table.add_row(
            safe_text.name(link.name),
            megabits(link.out_bytes_per_s),
            megabits(link.in_bytes_per_s),
            milliseconds(link.measured_round_trip_seconds),
            milliseconds(link.round_trip_p95_seconds),
            milliseconds(link.jitter_seconds),
            way(link),
        )
    why = [hints.text(safe_text.line(link.reason), "dim") for link in links if link.reason]
    return Group(table, *why)


def megabits(bytes_per_s: float | None) -> str:
    """A rate as networks are sold: `94 Mb/s`, `2.1 Gb/s`."""
    if bytes_per_s is None:
        return "not measured"
    bits = bytes_per_s * 8
    if bits >= 1e9:
        return f"{bits / 1e9:.1f} Gb/s"
    return f"{bits / 1e6:.0f} Mb/s" if bits >= 1e7 else f"{bits / 1e6:.1f} Mb/s"


def way(link: LinkMeasurement) -> str:
    """Return what carries a link: `cable (eth0)`, and `Wi-Fi there` if only the other end is on it."""
    if not link.kind:
        return ""
    words = KINDS.get(link.kind, "")
    if link.interface:
        words = f"{words} ({safe_text.line(link.interface)})".strip()
    if link.far_kind != link.kind and link.far_kind in KINDS:
        words += f", {KINDS[link.far_kind]} there"
        if link.far_interface:
            words += f" ({safe_text.line(link.far_interface)})"
    return words


def in_short(link: LinkMeasurement) -> str:
    """Return a link for a narrow column: `94 Mb/s, 0.3 ms`, at the slower rate; other kinds than cable are named."""
    if link.out_bytes_per_s is None or link.in_bytes_per_s is None:
        return milliseconds(link.round_trip_seconds if isinstance(link, Link) else None)
    slower = megabits(min(link.out_bytes_per_s, link.in_bytes_per_s))
    named = [KINDS[kind] for kind in ("wifi", "vpn") if kind in (link.kind, link.far_kind)]
    return ", ".join((slower, milliseconds(link.measured_round_trip_seconds), *named))
