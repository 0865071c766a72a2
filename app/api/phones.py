"""The phones and tablets that may chat here, as the owner sees them."""

from __future__ import annotations

import msgspec


class Phone(msgspec.Struct, frozen=True):
    """A phone or tablet that may chat here. Times are Unix times."""

    id: str
    name: str
    added_at: float = 0.0
    used_at: float | None = None


class PhoneCode(msgspec.Struct, frozen=True):
    """A one-time code for one more device, and the addresses of the page, which reads the code from `#CODE`."""

    code: str
    seconds_left: float
    addresses: list[str]


class Phones(msgspec.Struct, frozen=True, kw_only=True):
    """The response of the `/phones` routes.

    fingerprint: SHA-256 of the certificate that browsers show, or "" while the page is closed. code_seconds: how long
    the current code is still valid; 0 if there is none.
    """

    on: bool = False
    listening: bool = False
    addresses: list[str] = []
    fingerprint: str = ""
    code_seconds: float = 0.0
    devices: list[Phone] = []
