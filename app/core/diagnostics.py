"""The order of diagnostic checks, the most likely cause among their findings, and firewall commands that may help."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from app.core.errors import Reason

# Codes of findings, the most probable cause first. All other codes come after these, in the order of the checks.
LIKELIEST = (
    "node_away",
    "node_other_version",
    "removed_needs_reset",
    "discovery_no_network",
    "discovery_identity_copied",
    "identity_copied",
    "version_differs",
    "protocol_differs",
    "peer_is_another",
    "peer_refused_us",
    "peer_held_back",
    "peer_silent",
    "discovery_no_multicast",
    "discovery_failed",
    "peer_unreachable",
    "other_network",
    "peer_offline",
    "peer_address_unknown",
    "only_this_machine",
    "discovery_alone",
    "one_way_here",
    "one_way_there",
    "vpn_up",
    "virtual_chosen",
    "discovery_off",
    "link_slow",  # the machine was found, but its link is slow
)

# The names of the checks in the order in which a person would look: whether the node runs, whether machines find each
# other, whether they are admitted, what may block them, and then the details of this machine.
MACHINE = ""  # stands for each other machine, whose check bears its name
ORDER = (
    "Poolhouse", "Node", "Settings", "Identity", "Listening", "Household", "Version", "Discovery", "Mutual discovery",
    "Network", "Incoming connections", MACHINE, "VPN", "Virtual", "IPv6", "Lending", "Model", "Engine", "Sandbox",
    "Device", "Disk", "Memory", "Power", "Home", "Key", "Link",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Check:
    """The finding of one diagnostic check. `ok` is None for a note, which is not a fault.

    code: identifies the finding, so that a remedy can be offered. address: the address of the machine in question.
    tested: False if the check could not be performed.
    """

    name: str
    ok: bool | None
    cause: Reason | None = None
    cure: Reason | None = None
    code: str = ""
    machine: str = ""
    address: str = ""
    tested: bool = True


def check_of(finding: Mapping[str, Any]) -> Check:
    """Convert a finding from its JSON form to a Check. Raises KeyError."""
    cause, cure = finding.get("cause_facts"), finding.get("cure_facts")
    return Check(
        finding["name"],
        finding["ok"],
        Reason.from_json(cause) if cause else None,
        Reason.from_json(cure) if cure else None,
        finding.get("code", ""),
        finding.get("machine", ""),
        finding.get("address", ""),
        finding.get("tested", True),
    )


def sorted_checks(checks: Iterable[Check]) -> list[Check]:
    """Return the checks in the order in which a person would perform them. The sort is stable."""
    return sorted(checks, key=_place)


def _place(check: Check) -> int:
    name = MACHINE if check.machine == check.name else check.name
    return ORDER.index(name) if name in ORDER else len(ORDER)


def likeliest_cause(checks: Iterable[Check]) -> Check | None:
    """Return the finding that most likely explains why machines cannot see each other, or None if there is none.

    A failed check takes precedence over a note. A note counts only if its code is in LIKELIEST.
    """
    causes = [check for check in checks if check.ok is False or (check.ok is None and _may_explain(check))]
    return min(causes, key=_rank, default=None)


def _may_explain(check: Check) -> bool:
    return check.code in LIKELIEST


def _rank(check: Check) -> tuple[bool, int]:
    """Return a sort key that puts failed checks before notes and then follows the order of LIKELIEST."""
    known = LIKELIEST.index(check.code) if check.code in LIKELIEST else len(LIKELIEST)
    return check.ok is not False, known


MDNS_PORT = 5353


class Firewall(StrEnum):
    """A firewall whose commands are known."""

    WINDOWS = "Windows"
    UFW = "ufw"
    FIREWALLD = "firewalld"


def firewall_command(wall: Firewall, port: int) -> str:
    """Return the command that opens the household's port and the discovery port.

    If the firewall supports it, the ports are opened only for private networks.
    """
    match wall:
        case Firewall.WINDOWS:
            return (
                "New-NetFirewallRule -DisplayName Poolhouse -Direction Inbound -Action Allow "
                f"-Profile Private -Protocol TCP -LocalPort {port}; "
                "New-NetFirewallRule -DisplayName 'Poolhouse discovery' -Direction Inbound "
                f"-Action Allow -Profile Private -Protocol UDP -LocalPort {MDNS_PORT}"
            )
        case Firewall.UFW:
            return f"sudo ufw allow {port}/tcp && sudo ufw allow {MDNS_PORT}/udp"
        case Firewall.FIREWALLD:
            return (
                f"sudo firewall-cmd --permanent --add-port={port}/tcp --add-port={MDNS_PORT}/udp "
                "&& sudo firewall-cmd --reload"
            )
