"""The sentences about the interfaces that links go by."""

from __future__ import annotations

LINK_SENTENCES: dict[str, str] = {
    "interface_wifi_beside_cable": "Traffic to {machine} goes through the Wi-Fi ({used}), and a cable leads there too. "
    "Poolhouse can use {interface} instead.",
    "interface_through_vpn": "Traffic to {machine} goes through a VPN ({used}). "
    "Poolhouse can use {interface} instead.",
    "interface_through_virtual": "Traffic to {machine} goes through a network of containers "
    "or virtual machines ({used}). Poolhouse can use {interface} instead.",
    "interface_away": "{interface} was chosen for this link and is not connected now, so another interface is used. "
    "Connect it, or choose another one.",
    "interface_no_way": "{interface} was chosen for this link and does not lead to {machine}, so another interface "
    "is used. Choose another one.",
    "interface_down": "{interface} is not connected, or has no address. Connect it first, or choose another one.",
    "interface_not_own": "{machine} is this computer itself. Choose another machine of the household.",
}
