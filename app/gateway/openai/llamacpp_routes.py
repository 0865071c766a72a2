"""Routes by which llama.cpp's clients learn how the server is: `/health` and `/props`, with llama.cpp's meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
from aiohttp import web

from app import __version__
from app.core.errors import BadInput
from app.gateway.access.auth import HEALTH
from app.gateway.answering import Answering
from app.gateway.api_request import USUAL, Json
from app.gateway.model_cards import ModelCards
from app.gateway.openai.openai_routes import Listed

if TYPE_CHECKING:
    from app.node.models.model_manager import ModelManager

LOADING = "Loading model"  # word for word as llama.cpp's server: programs wait while they read it
SAMPLING = ("temperature", "top_k", "top_p", "min_p", "repeat_penalty", "repeat_last_n", "presence_penalty",
            "frequency_penalty")  # fmt: skip


class ServerRoutes:
    """No prompt and no folder of this computer is in what they tell."""

    def __init__(
        self, answering: Answering, hosting: Callable[[], ModelManager], listed: Listed, cards: ModelCards
    ) -> None:
        self._answering, self._hosting, self._listed = answering, hosting, listed
        self._cards = cards

    def routes(self) -> list[web.RouteDef]:
        return [*(web.get(path, self.health) for path in HEALTH), web.get("/props", self.props)]

    async def health(self, request: web.Request) -> web.Response:
        """Whether a request is answered now. Where nothing is loaded it is: the request has its model loaded."""
        if self._hosting().loading and not self._answering.ready():
            error = {"code": 503, "message": LOADING, "type": "unavailable_error"}
            return web.json_response({"error": error}, status=503)
        return web.json_response({"status": "ok"})

    async def props(self, request: web.Request) -> web.Response:
        """Of the model that `?model=NAME` names, or of the one that answers where none is named. Raises BadInput."""
        name = await self._answering.model(request.query.get("model", ""))
        running = self._answering.ready().get(name)
        if running is None:
            raise BadInput("nothing_loaded")
        known = {model["name"]: model for model in await self._listed()}
        found = await self._cards.of(known.get(name, {"name": name}))
        card = found.card if found else None
        params: Json = {field: getattr(USUAL, field) for field in SAMPLING}
        told: Json = {
            "default_generation_settings": {
                "params": params | {"max_tokens": -1, "n_predict": -1},
                "n_ctx": running.context,
            },
            "total_slots": running.slots,
            "model_alias": name,
            "model_path": f"{name}.gguf",
            "model_ftype": running.entry.model.quantisation,
            "modalities": {"vision": False, "video": False, "audio": False},
            "endpoint_slots": False,
            "endpoint_props": False,
            "endpoint_metrics": True,
            "chat_template": card.template if card else "",
            "bos_token": card.bos if card else "",
            "eos_token": card.eos if card else "",
            "build_info": f"poolhouse-{__version__}",
            "is_sleeping": False,
        }
        return web.Response(body=msgspec.json.encode(told), content_type="application/json")
