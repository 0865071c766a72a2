"""The content of mDNS announcements, and the validation of received ones. No I/O.

The names in all records contain the first 16 hex digits of the machine's id, so every record identifies its
machine. The names of the computer, its user and its household are never announced. See RFC 6762 (mDNS) and RFC 6763
(DNS-SD).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.core.ids import NO_NAME, clean_name

SERVICE = "_poolhouse._tcp.local."
ID_DIGITS = 16
MAX_TXT_BYTES = 1024  # ours are shorter than 500
MAX_NAME_BYTES = 200  # of UTF-8; a string in a TXT record has at most 255
MAX_ADDRESSES = 8
SYSTEMS = ("Linux", "macOS", "Windows")  # any other value is ignored
MAX_DEVICE_CHARACTERS = 40

_INSTANCE = re.compile(rf"([0-9a-f]{{{ID_DIGITS}}})\.{re.escape(SERVICE)}")
_SERVER = re.compile(rf"poolhouse-([0-9a-f]{{{ID_DIGITS}}})\.local\.")
_LOCAL = tuple(
    map(
        ipaddress.ip_network,
        # RFC 1918, RFC 3927, RFC 4193
        ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "fc00::/7"),
    )
)
_ONE_LINK = {4: 24, 6: 64}  # the usual prefix lengths of home networks

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class TxtRecord:
    """The contents of an announcement's TXT record."""

    protocol: int
    name: str | None = None  # set only while the pairing window is open
    pairing_port: int | None = None
    system: str | None = None  # like `device`, set only while the window is open, and unverified
    device: str | None = None  # the hardware that the machine computes on


def instance_name(id16: str) -> str:
    """Return the service instance name of a machine."""
    return f"{id16}.{SERVICE}"


def host_name(id16: str) -> str:
    """Return the host name under which a machine's addresses are announced. It is not the computer's own name."""
    return f"poolhouse-{id16}.local."


def id_of(name: str) -> str | None:
    """Return the id of the machine with this instance or host name, or None if the name is not Poolhouse's."""
    low = name.lower()
    match = _INSTANCE.fullmatch(low) or _SERVER.fullmatch(low)
    return match.group(1) if match else None


def txt_fields(txt: TxtRecord) -> dict[str, str]:
    """Return the fields of an announcement's TXT record."""
    fields = {"v": str(txt.protocol)}
    if txt.name is not None and txt.pairing_port is not None:
        name = clean_name(txt.name).encode("utf-8")[:MAX_NAME_BYTES]
        fields |= {"name": name.decode("utf-8", "ignore"), "pair": str(txt.pairing_port)}
        if txt.system in SYSTEMS:
            fields["os"] = txt.system
        if device := _device(txt.device or ""):
            fields["dev"] = device.encode("utf-8")[:MAX_NAME_BYTES].decode("utf-8", "ignore")
    return fields


def parse_txt(text: bytes) -> TxtRecord | None:
    """Parse a TXT record, and sanitize its texts for display. Return None if the record is not Poolhouse's."""
    if len(text) > MAX_TXT_BYTES:
        return None
    fields = _fields(text)
    protocol = _number(fields.get(b"v"), 1 << 16)
    if protocol is None:
        return None
    name, pairing_port = fields.get(b"name"), _number(fields.get(b"pair"), 1 << 16)
    if name is None or not pairing_port:
        return TxtRecord(protocol)
    system = fields.get(b"os", b"").decode("utf-8", "replace")
    device = _device(fields.get(b"dev", b"").decode("utf-8", "replace"))
    shown = clean_name(name.decode("utf-8", "replace"))
    return TxtRecord(protocol, shown, pairing_port, system if system in SYSTEMS else None, device)


def believable(addresses: Iterable[str], ours: Sequence[str]) -> tuple[str, ...]:
    """Return the addresses that a machine on our network could have, most likely first. Other addresses are never
    dialed.

    ours: the addresses of this machine. Loopback addresses are accepted only if `ours` contains one.
    """
    mine = [own for own in map(_parsed, ours) if own]
    near: list[tuple[bool, bool, str]] = []
    for text in dict.fromkeys(addresses):
        address = _parsed(text)
        if address is None or not _is_local(address, mine):
            continue
        on_link = any(_is_neighbor(address, own) for own in mine)
        near.append((not on_link, address.version == 6, text))
    return tuple(text for _, _, text in sorted(near))[:MAX_ADDRESSES]


def is_on_local_link(host: str, ours: Sequence[str]) -> bool:
    """Return whether `host` is probably in the same network as one of our addresses."""
    address, mine = _parsed(host), [own for own in map(_parsed, ours) if own]
    return address is not None and any(_is_neighbor(address, own) for own in mine)


def _is_local(address: IpAddress, mine: Sequence[IpAddress]) -> bool:
    if address.is_loopback:
        return any(own.is_loopback for own in mine)
    if isinstance(address, ipaddress.IPv6Address) and address.is_link_local:
        return address.scope_id is not None  # without its interface, it cannot be dialed
    if address.is_multicast or address.is_unspecified:
        return False
    local = any(address in network for network in _LOCAL if network.version == address.version)
    return local or any(_is_neighbor(address, own) for own in mine)


def _is_neighbor(address: IpAddress, other: IpAddress) -> bool:
    """Return whether two addresses are probably on the same link. Their unknown prefix lengths are guessed."""
    if address.version != other.version:
        return False
    rest = address.max_prefixlen - _ONE_LINK[address.version]
    return int(address) >> rest == int(other) >> rest


def _parsed(text: str) -> IpAddress | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _device(text: str) -> str | None:
    """Return the device name, sanitized for display, or None if it is empty."""
    shown = clean_name(text)[:MAX_DEVICE_CHARACTERS].strip() if text.strip() else ""
    return None if shown in ("", NO_NAME) else shown


def _fields(text: bytes) -> Mapping[bytes, bytes]:
    """Parse a TXT record: length-prefixed `key=value` pairs. If a key is repeated, its first value counts (RFC 6763
    6)."""
    fields: dict[bytes, bytes] = {}
    at = 0
    while at < len(text):
        end = at + 1 + text[at]
        key, equals, value = text[at + 1 : end].partition(b"=")
        if equals:
            fields.setdefault(key.lower(), value)
        at = end
    return fields


def _number(digits: bytes | None, below: int) -> int | None:
    if digits is None or not digits.isdigit() or len(digits) > len(str(below)):
        return None
    return int(digits) if int(digits) < below else None
