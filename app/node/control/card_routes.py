"""Control API routes for the graphics cards: their state, and the owner's limits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
from aiohttp import web

from app.api import requests
from app.api.computer import Cards, CardState
from app.core.errors import BadInput, Reason
from app.core.reasons import sentence
from app.machine.hardware.cards import Card
from app.machine.sensors.card_use import CardReading
from app.machine.settings import SettingsStore
from app.node.control.json_bodies import answer, body
from app.node.graphics_cards import GraphicsCards


class CardRoutes:
    """Routes that describe the cards and change their limits."""

    def __init__(
        self,
        graphics: GraphicsCards,
        choices: SettingsStore,
        changed: Callable[[], None],
        judge_lending: Callable[[], Awaitable[None]],
    ) -> None:
        self._graphics, self._choices, self._changed = graphics, choices, changed
        self._judge_lending = judge_lending

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/cards", self.describe), web.post("/cards", self.change)]

    async def describe(self, request: web.Request) -> web.Response:
        return answer(await self._cards())

    async def change(self, request: web.Request) -> web.Response:
        """Change the limits, effective immediately.

        A card that is switched off stops computing layers for other machines. This machine's own models stay on it
        until they are loaded again.
        """
        order = await body(request, requests.ChangeCards)
        if order.off is not msgspec.UNSET:
            known = {card.key: card.label for card in self._graphics.cards}
            unknown = set(order.off) - known.keys() - set(self._choices.now.graphics.off)
            if unknown:
                names = ", ".join(sorted(known.values())) or Reason("none")
                raise BadInput("card_unknown", name=min(unknown), cards=names)
        changes = {
            field: tuple(value) if isinstance(value, list) else value
            for field in order.__struct_fields__
            if (value := getattr(order, field)) is not msgspec.UNSET
        }
        if changes:
            replace = msgspec.structs.replace
            await self._choices.change(lambda now: replace(now, graphics=replace(now.graphics, **changes)))
            self._changed()
            await self._judge_lending()  # at once, without the usual time of calm
        return answer(await self._cards())

    async def _cards(self) -> Cards:
        settings, graphics = self._choices.now.graphics, self._graphics
        reading = await asyncio.to_thread(graphics.reading)
        return Cards(
            [self._state(card, reading) for card in graphics.cards], settings.memory_percent, settings.card_only
        )

    def _state(self, card: Card, reading: CardReading) -> CardState:
        on = card.key not in self._choices.now.graphics.off
        computes = on and card.key in {other.key for other in self._graphics.computing}
        why = None if computes else self._why_not(card, on=on)
        known = reading if computes else CardReading()
        return CardState(
            key=card.key,
            label=card.label,
            api=card.api,
            is_integrated=card.is_integrated,
            total_bytes=card.total_bytes,
            on=on,
            computes=computes,
            reason=sentence(why),
            reason_facts=why,
            celsius=known.celsius,
            busy_percent=known.busy_percent,
            others_percent=known.others_percent,
        )

    def _why_not(self, card: Card, *, on: bool) -> Reason:
        """Return why a card does not compute. A card that was just switched on is tested first."""
        if not on:
            return Reason("card_switched_off")
        reasons = (other.why for other in self._graphics.unused if other.key == card.key)
        return next((why for why in reasons if why.code != "card_switched_off"), Reason("card_testing"))
