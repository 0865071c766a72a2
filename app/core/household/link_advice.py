"""Which interface of this machine a link should use instead of the one it uses. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from app.core.errors import Fact, Reason
from app.core.household.link import End, LinkKind

CABLES = (LinkKind.THUNDERBOLT, LinkKind.ETHERNET)
BETTER = {  # than each wrong kind, the best first
    LinkKind.WIFI: CABLES,
    LinkKind.VPN: (*CABLES, LinkKind.WIFI),
    LinkKind.VIRTUAL: (*CABLES, LinkKind.WIFI),
}
CODES = {
    LinkKind.WIFI: "interface_wifi_beside_cable",
    LinkKind.VPN: "interface_through_vpn",
    LinkKind.VIRTUAL: "interface_through_virtual",
}


def better_ends(used: End, others: Iterable[End]) -> tuple[End, ...]:
    """Interfaces worth a try in place of the one in use, the best first; none where it is right."""
    order = BETTER.get(used.kind, ())
    found = [one for one in others if one.kind in order and one.interface != used.interface]
    found.sort(key=lambda one: (order.index(one.kind), -(one.negotiated_bits_per_s or 0)))
    return tuple(found)


def wrong_interface(machine: str, used: End, instead: End) -> Reason:
    """That traffic to `machine` goes another way than it could."""
    facts: dict[str, Fact] = {"machine": machine, "used": used.interface or "?", "interface": instead.interface}
    return Reason(CODES[used.kind], facts)
