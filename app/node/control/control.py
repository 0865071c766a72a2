"""The loopback control API: what its window and its commands ask of the node."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Collection, Iterable

from aiohttp import web

from app.gateway.access.slow_client_guard import FirstWords, runner_of
from app.node.control.guard import MAX_BODY_BYTES, guard
from app.node.models.detached_answers import KeptAnswers


class Control:
    """The surface of management: loopback only, a port of its own, a token on every route."""

    def __init__(self, answers: KeptAnswers, routes: Iterable[web.RouteDef]) -> None:
        self.answers = answers
        self.token = secrets.token_urlsafe(32)
        self.port = 0
        self._words = FirstWords()
        checked = guard(self.token, lambda: self.port, self._words.heard)
        app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[checked])
        app.add_routes(routes)
        self._runner = runner_of(app)

    @property
    def routes(self) -> Collection[web.AbstractRoute]:
        """All that may be asked."""
        return self._runner.app.router.routes()

    async def start(self, group: asyncio.TaskGroup) -> None:
        """Listen on a free loopback port."""
        self.answers.open(group)
        await self._runner.setup()
        self.port = await self._words.listen(self._runner, [0])

    async def stop(self) -> None:
        self._words.close()
        await self.answers.close()
        await self._runner.cleanup()
