"""The command that lets Poolhouse through a firewall. Shown to be copied; never run by the app."""

from __future__ import annotations

from enum import StrEnum

MDNS_PORT = 5353


class Wall(StrEnum):
    """Firewalls that people have."""

    WINDOWS = "Windows"
    UFW = "ufw"
    FIREWALLD = "firewalld"


def command(wall: Wall, port: int) -> str:
    """For the household's port, and for finding each other. Private networks only where that can be said."""
    match wall:
        case Wall.WINDOWS:
            return (
                "New-NetFirewallRule -DisplayName Poolhouse -Direction Inbound -Action Allow "
                f"-Profile Private -Protocol TCP -LocalPort {port}; "
                "New-NetFirewallRule -DisplayName 'Poolhouse discovery' -Direction Inbound "
                f"-Action Allow -Profile Private -Protocol UDP -LocalPort {MDNS_PORT}"
            )
        case Wall.UFW:
            return f"sudo ufw allow {port}/tcp && sudo ufw allow {MDNS_PORT}/udp"
        case Wall.FIREWALLD:
            return (
                f"sudo firewall-cmd --permanent --add-port={port}/tcp --add-port={MDNS_PORT}/udp "
                "&& sudo firewall-cmd --reload"
            )
