"""Management of upstreams by the owner."""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Callable, Collection, Coroutine, Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from app.api import requests
from app.api.chat_api import OtherServer, UpstreamMeasured, UpstreamTest
from app.api.chat_api import Upstream as UpstreamState
from app.core.errors import BadInput, Reason, Refused
from app.gateway.upstreams.upstream_speed import UpstreamSpeeds
from app.gateway.upstreams.upstreams import Upstreams
from app.machine.settings import Upstream
from app.network.tls import upstream_context

MOST_SPENT = 1 << 50  # reported for an upstream whose count is lost: the largest cap
MOST_TOLD = 200  # models of an upstream to report

Change = Callable[[dict[str, Upstream]], dict[str, Upstream]]


class UpstreamAdmin:
    """The operations that list, add, change, remove and test upstreams.

    `now` returns the saved upstreams, and `save` applies a change to them.
    """

    def __init__(
        self,
        upstreams: Upstreams,
        speeds: UpstreamSpeeds,
        now: Callable[[], Mapping[str, Upstream]],
        save: Callable[[Change], Coroutine[Any, Any, None]],
    ) -> None:
        self._upstreams, self._speeds, self._now, self._save = upstreams, speeds, now, save

    def turned_on(self) -> list[OtherServer]:
        """Return the upstreams that are on, for the map and the lists of models."""
        return [
            OtherServer(
                name=name,
                models=list(upstream.models),
                chats=upstream.chats,
                continues=upstream.continues,
                answering=self._upstreams.n_answering(name),
                last_contact=self._upstreams.last_contact.get(name),
                speeds={model: speed for model, speed in self._speeds.of(name).items() if model in upstream.models},
            )
            for name, upstream in sorted(self._now().items())
            if upstream.on
        ]

    async def state(self) -> list[UpstreamState]:
        """Return all upstreams, without their keys. `has_key` is None if the key store cannot be opened."""
        configured = self._now()
        keys = await self._names_of_keys() if configured else frozenset[str]()
        return [
            UpstreamState(
                name=name,
                url=upstream.url,
                models=upstream.models,
                on=upstream.on,
                cap_tokens=upstream.cap_tokens,
                spent_tokens=min(self._upstreams.spent.get(name, 0), MOST_SPENT),
                is_counted=self._upstreams.is_counted(name),
                last_contact=self._upstreams.last_contact.get(name),
                own_certificate=bool(upstream.certificate),
                has_key=None if keys is None else name in keys,
                speeds={model: speed for model, speed in self._speeds.of(name).items() if model in upstream.models},
                chats=upstream.chats,
                continues=upstream.continues,
            )
            for name, upstream in sorted(configured.items())
        ]

    async def add(self, order: requests.AddUpstream) -> None:
        """Add an upstream, or replace the one with this name. It is off at first. Raises BadInput, Refused."""
        new = Upstream(checked_url(order.url), order.models, order.cap_tokens, certificate=order.certificate)
        try:
            upstream_context(order.certificate)
        except (ssl.SSLError, ValueError):
            raise BadInput("upstream_certificate", name=order.name) from None
        if not (order.key.isascii() and (order.key.isprintable() or not order.key)):
            raise BadInput("upstream_key_odd")
        await self._keep_key(order.name, order.key)
        self._upstreams.last_contact.pop(order.name, None)  # the address may have changed
        await self._speeds.forget(order.name)
        await self._save(lambda configured: configured | {order.name: new})

    async def test(self, name: str) -> UpstreamTest:
        """Return the models that the upstream offers, and the configured models that it lacks.

        Raises BadInput, Unreachable, Busy.
        """
        upstream = self._known(name)
        there = await self._upstreams.list_models(name, upstream)
        missing = sorted(set(upstream.models.values()) - set(there))
        return UpstreamTest(name, list(there[:MOST_TOLD]), missing)

    async def measure(self, name: str, model: str) -> UpstreamMeasured:
        """Measure a server with one of its models. Raises BadInput, Busy, Unreachable."""
        upstream = self._known(name)
        model = model or next(iter(upstream.models))
        return UpstreamMeasured(name, model, await self._speeds.measure(name, upstream, model))

    async def change(self, name: str, order: requests.ChangeUpstream) -> None:
        """Turn an upstream on or off, or change its limit. Raises BadInput."""
        was = self._known(name)
        changes: dict[str, object] = {} if order.on is None else {"on": order.on}
        changes |= {} if order.cap_tokens is None else {"cap_tokens": order.cap_tokens}
        changes |= {} if order.chats is None else {"chats": order.chats}
        changes |= {} if order.continues is None else {"continues": order.continues}
        if order.forget_spent:
            await self._upstreams.reset_spent(name)
        new = msgspec.structs.replace(was, **changes)
        await self._save(lambda configured: configured | {name: new})

    async def remove(self, name: str) -> None:
        """Remove an upstream and its key. Raises BadInput, Refused."""
        self._known(name)
        await self._keep_key(name, "")
        await self._upstreams.reset_spent(name)
        await self._speeds.forget(name)
        await self._save(lambda configured: {key: upstream for key, upstream in configured.items() if key != name})

    def _known(self, name: str) -> Upstream:
        configured = self._now()
        if name not in configured:
            there = ", ".join(sorted(configured)) or Reason("none")
            raise BadInput("upstream_unknown", name=name[:40], there=there)
        return configured[name]

    async def _names_of_keys(self) -> Collection[str] | None:
        try:
            return (await self._upstreams.keys.all()).keys()
        except Refused:
            return None

    async def _keep_key(self, name: str, key: str) -> None:
        had = name in await self._upstreams.keys.all()
        if key or had:
            await self._upstreams.keys.change(
                lambda keys: (
                    {upstream: kept for upstream, kept in keys.items() if upstream != name}
                    | ({name: key} if key else {})
                )
            )


def checked_url(url: str) -> str:
    """Return the URL without a trailing slash. Raises BadInput.

    Plain HTTP is accepted only for this computer, because keys are sent to the URL.
    """
    odd = BadInput("upstream_url", url=url[:100])
    try:
        parts = urlsplit(url.strip())
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise odd from None
    if not host or parts.query or parts.fragment or parts.username or parts.password:
        raise odd
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_here(host)):
        raise odd
    return url.strip().rstrip("/")


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
