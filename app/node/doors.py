"""Both HTTP surfaces of a node: the control API for its faces, the Chat API for other programs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from app.node.chat_api.surface import ChatApi
from app.node.control import Control

if TYPE_CHECKING:
    from app.node.node import Node


class Doors:
    """They open and close together; what each lets in is its own affair."""

    def __init__(self, node: Node) -> None:
        self.api = ChatApi(node)
        self.control = Control(node)

    async def start(self, group: asyncio.TaskGroup) -> None:
        await self.control.start()
        await self.api.start(group)

    async def stop(self) -> None:
        await self.api.stop()
        await self.control.stop()
