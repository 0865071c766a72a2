"""Control API routes for the computed prompts on this computer's disk."""

from __future__ import annotations

import msgspec
from aiohttp import web

from app.api import requests
from app.api.prompts import KeptPrompts
from app.inference.pipeline.kept_prompts import PromptIndex
from app.machine.settings import Settings, SettingsStore
from app.node.control.json_bodies import answer, body


def routes(prompts: PromptIndex, choices: SettingsStore) -> list[web.RouteDef]:
    """Return the routes for the switch, the limit and the deletion of all kept prompts."""
    vault = prompts.vault

    async def state(request: web.Request) -> web.Response:
        await vault.measure()
        now = choices.now
        return answer(
            KeptPrompts(now.keep_prompts, now.prompt_bytes, vault.limit_bytes, vault.used_bytes, vault.is_locked)
        )

    async def change(request: web.Request) -> web.Response:
        order = await body(request, requests.ChangePrompts)

        def changed(now: Settings) -> Settings:
            on = now.keep_prompts if order.on is msgspec.UNSET else order.on
            most_bytes = now.prompt_bytes if order.most_bytes is msgspec.UNSET else order.most_bytes
            return msgspec.structs.replace(now, keep_prompts=on, prompt_bytes=most_bytes)

        await choices.change(changed)
        if not choices.now.keep_prompts:
            prompts.forget()
        await vault.apply_rules()
        return await state(request)

    async def delete(request: web.Request) -> web.Response:
        prompts.forget()
        await vault.remove_all()
        return await state(request)

    return [web.get("/prompts", state), web.post("/prompts", change), web.delete("/prompts", delete)]
