"""Whether this computer's way out is a VPN, or a network that counts what is transferred."""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Callable, Sequence

from app.core.household.link import LinkKind
from app.core.lending.policy import Network
from app.machine import interfaces

Run = Callable[[Sequence[str]], str | None]

ELSEWHERE = ("192.0.2.1", 9)  # of RFC 5737: only looked up in the routes, nothing is sent
# NMMetered of NetworkManager's D-Bus interface: 1 yes, 2 no, 3 and 4 the same as guessed
NETWORK_MANAGER = (
    "gdbus", "call", "--system", "--timeout", "2", "--dest", "org.freedesktop.NetworkManager",
    "--object-path", "/org/freedesktop/NetworkManager",
    "--method", "org.freedesktop.DBus.Properties.Get", "org.freedesktop.NetworkManager", "Metered",
)  # fmt: skip
# NetworkCostType of Windows.Networking.Connectivity. Written from the manual; not yet run there.
WINRT = "Windows.Networking.Connectivity.NetworkInformation"
COST = (
    f"[void][{WINRT},Windows,ContentType=WindowsRuntime];"
    f"[{WINRT}]::GetInternetConnectionProfile().GetConnectionCost().NetworkCostType"
)
POWERSHELL = ("powershell", "-NoProfile", "-NonInteractive", "-Command", COST)
WINDOWS_COSTS = {"unrestricted": False, "fixed": True, "variable": True}


def network(run: Run) -> Network | None:
    """The kind of the way out; None: there is no way out, or nothing tells what it costs.

    macOS tells no program that Python starts whether a network is metered: only VPNs are seen there.
    """
    way = _way_out()
    if way is LinkKind.VPN:
        return "vpn"
    metered = _metered(run)
    if metered is None:
        return "free" if way is not None else None
    return "metered" if metered else "free"


def network_manager_says(text: str) -> bool | None:
    """From `(<uint32 4>,)`."""
    found = re.fullmatch(r"\(<uint32 ([0-4])>,\)", text.strip())
    return {"1": True, "3": True, "2": False, "4": False}.get(found[1]) if found else None


def windows_says(text: str) -> bool | None:
    """From the name of a NetworkCostType."""
    return WINDOWS_COSTS.get(text.strip().casefold())


def _metered(run: Run) -> bool | None:
    if sys.platform == "win32":
        return windows_says(run(POWERSHELL) or "")
    return network_manager_says(run(NETWORK_MANAGER) or "") if sys.platform == "linux" else None


def _way_out() -> LinkKind | None:
    """The kind of the interface that packets to elsewhere would take."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
            asked.connect(ELSEWHERE)
            local = asked.getsockname()[0]
    except OSError:
        return None
    carrying = interfaces.carrying(interfaces.interfaces(), local)
    return carrying.kind if carrying else None
