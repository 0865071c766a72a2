"""Both HTTP surfaces of a node: the control API for its faces, the Chat API for other programs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from aiohttp import web

from app.lan.listener import GUEST_PATH, MODELS_PATH
from app.machine import release_place
from app.node.chat_api.surface import ChatApi
from app.node.control import Control
from app.node.giving import Giving
from app.node.updates import Updates

if TYPE_CHECKING:
    from app.node.node import Node


class Doors:
    """They open and close together; what each lets in is its own affair."""

    def __init__(self, node: Node) -> None:
        self.api = ChatApi(node)
        self.updates = Updates(
            node.home.root / "updates.json",
            release_place.named(),
            lambda: node.settings.look_for_updates,
            lambda reason: node.journal.note(reason),  # noqa: PLW0108  made later
        )
        self.giving = Giving(
            lambda hashes: node.shop.whole(hashes),  # noqa: PLW0108  made later
            lambda: node.settings.share_models,
            lambda: node.settings.name,
            lambda: node.network.pace,
            lambda path: node.shop.shelf.called(path),  # noqa: PLW0108  made later
            lambda: node.events.changed(),  # noqa: PLW0108  made later
            lambda repository, file: node.shop.pins.here(repository, file),  # noqa: PLW0108  made later
        )
        self.control = Control(node, self.updates.routes())

    def for_members(self) -> dict[str, web.Application]:
        """What members may ask besides stages, by its path."""
        return {GUEST_PATH: self.api.for_guests(), MODELS_PATH: self.giving.application()}

    async def start(self, group: asyncio.TaskGroup) -> None:
        await self.control.start(group)
        self._looking = group.create_task(self.updates.run(), name="look for updates")
        await self.api.start(group)

    async def stop(self) -> None:
        self._looking.cancel()
        await self.api.stop()
        await self.control.stop()
