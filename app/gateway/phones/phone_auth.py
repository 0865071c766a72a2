"""The identity check for phones.

It requires a local address, this server's own name and origin, and a device's token.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable

from aiohttp import hdrs, web
from aiohttp.typedefs import Middleware

from app.core.scheduler.requester import Requester
from app.gateway.access.allowed_origins import Access
from app.gateway.access.auth import Handler, bearer
from app.gateway.phones.device_store import DeviceStore
from app.gateway.phones.phone_page import PREFIX, is_below_page
from app.network.sockets import plain_host
from app.network.waiting_room import network_of

PAGE_ROUTES = frozenset({"/chat", "/chat/", "/chat/{name}"})
JOIN_ROUTE = "/chat/join"
# No device or program can have these names. Those who join are limited by address, so that nobody with slow requests
# keeps others from joining.
PAGE_CALLER, JOIN_CALLER = "(a phone's page)", "(a phone that joins)"
MAX_JOIN_BYTES = 2048
SHARED_SPACE = ipaddress.ip_network("100.64.0.0/10")  # used by VPNs such as Tailscale, never routed on the internet
OFF = "Phones may not chat here. The owner can turn it on: Settings > Phones."
FAR = "Only devices on this network may chat here."
FOREIGN_HOST = "This address is not the one that Poolhouse shows for phones. Scan the code again."
FOREIGN_ORIGIN = "Only Poolhouse's own page may ask here."
NO_DEVICE = "This device is not connected, or was removed. Ask for a new code in Poolhouse: Settings > Phones."
JOIN_LARGE = "A code and a name are short."


class PhoneAuthenticator:
    """The identity check for the routes below /chat/.

    The page itself needs no token, because it contains no secret.

    own_addresses: returns the addresses at which the server listens.
    """

    def __init__(
        self,
        devices: DeviceStore,
        access: Access,
        is_on: Callable[[], bool],
        own_addresses: Callable[[], Iterable[str]],
    ) -> None:
        self._devices, self._access, self._is_on, self._own_addresses = devices, access, is_on, own_addresses

    def address_error(self, request: web.Request) -> tuple[int, str] | None:
        """Return the status and text for rejecting a request, or None. A browser sends our own page's origin."""
        if not self._is_on():
            return 404, OFF
        if not is_local(request.remote or "", self._own_addresses()):
            return 403, FAR
        if not self._access.accepts_host(request):
            return 421, FOREIGN_HOST
        origins = request.headers.getall(hdrs.ORIGIN, [])
        if origins and origins != [f"https://{request.host}"]:
            return 403, FOREIGN_ORIGIN
        route = _route(request)
        if route in PAGE_ROUTES:
            return None
        if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            return 403, FOREIGN_ORIGIN
        if route == JOIN_ROUTE:
            length = request.content_length
            return None if length is not None and length <= MAX_JOIN_BYTES else (413, JOIN_LARGE)
        return None if self.caller_name(request) else (401, NO_DEVICE)

    def caller_name(self, request: web.Request) -> str | None:
        """Return a caller name for the device.

        It contains a space, so it cannot be the name of a program's key.
        """
        route = _route(request)
        if route in PAGE_ROUTES:
            return PAGE_CALLER
        if route == JOIN_ROUTE:
            return f"{JOIN_CALLER} at {network_of(plain_host(request.remote or ''))}"
        device = self._devices.owner(bearer(request))
        return None if device is None else caller_of(device)

    def requester(self, request: web.Request, key: str) -> Requester:
        return Requester("phone", self._devices.name(device_of(key)))

    def accepts_form_type(self, request: web.Request) -> bool:
        """Return False, because our page declares its bodies as JSON."""
        return False


def caller_of(device: str) -> str:
    """Return the caller name of a device, used for limits and in the log."""
    return f"phone {device}"


def device_of(caller: str) -> str:
    """Return the ID of the device with this caller name, or "" if the name does not belong to a device."""
    kind, _, device = caller.partition(" ")
    return device if kind == "phone" else ""


def is_local(remote: str, own_addresses: Iterable[str]) -> bool:
    """Return whether a client's address is on a local network rather than on the internet behind the router.

    IPv6 addresses may be public even at home. They are local if they share the first 64 bits with one of ours.
    """
    try:
        address = ipaddress.ip_address(plain_host(remote).partition("%")[0])
    except ValueError:
        return False
    if address.is_private or address.is_loopback or address.is_link_local or address in SHARED_SPACE:
        return True
    own = [ipaddress.ip_address(text) for text in own_addresses]
    return address.version == 6 and any(ours.version == 6 and int(ours) >> 64 == int(address) >> 64 for ours in own)


def by_route(phones: Middleware, programs: Middleware) -> Middleware:
    """Return the middleware that checks routes below /chat/ with `phones` and all others with `programs`.

    The matched route decides, so a request cannot bypass a check by spelling its path differently.
    """

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        is_phones = is_below_page(_route(request) or request.path)
        return await (phones if is_phones else programs)(request, handler)

    return check


def programs_route(route: str) -> str:
    """Return the programs' route that corresponds to a phones' route. Any other route is returned unchanged."""
    return route.removeprefix(PREFIX.removesuffix("/"))


def _route(request: web.Request) -> str:
    resource = request.match_info.route.resource
    return "" if resource is None else resource.canonical
