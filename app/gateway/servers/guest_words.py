"""What a guest is told where a host's own programs are told to change a setting: it is the host's, not the guest's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from aiohttp import web

from app.core.errors import AppError
from app.gateway.access.auth import Handler

FOR_GUESTS = {
    "api_model_not_loaded": "guest_model_not_loaded",
    "api_model_stays": "guest_model_stays",
    "embedding_model_missing": "guest_embedding_missing",
    "reranker_missing": "guest_reranker_missing",
    "upstream_spent": "guest_upstream_spent",
    "upstream_short": "guest_upstream_spent",
    "upstream_uncounted": "guest_upstream_spent",
    "upstream_off": "guest_upstream_off",
}


@contextmanager
def naming(host: Callable[[], str]) -> Iterator[None]:
    """Within it an error whose cure lies with the host says so. host: what the household calls it."""
    try:
        yield
    except AppError as error:
        if code := FOR_GUESTS.get(error.reason.code):
            raise type(error)(code, **error.reason.facts | {"host": host()}) from None
        raise


def naming_the_host(host: Callable[[], str]) -> Callable[..., Awaitable[web.StreamResponse]]:
    """The middleware that does so."""

    @web.middleware
    async def named(request: web.Request, handler: Handler) -> web.StreamResponse:
        with naming(host):
            return await handler(request)

    return named
