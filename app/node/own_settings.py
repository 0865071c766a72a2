"""What the owner chose about the node itself, and where it keeps things: shown, and changed."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from app.core.errors import BadInput
from app.machine import walls
from app.machine.checks import confined
from app.machine.interfaces import UNASKED, Interface, interfaces
from app.machine.keystore import open_keystore
from app.machine.models_folders import ModelsFolders
from app.machine.paths import Home
from app.machine.settings import Settings, load
from app.node import requests as asked
from app.node.finding import choice_of
from app.node.models_move import existing

if TYPE_CHECKING:
    from app.node.node import Node

Json = dict[str, Any]


async def told(node: Node) -> Json:
    """All of it. `restart`: whether what is saved differs from what this start goes by."""
    saved = await asyncio.to_thread(load, node.home.settings_file)
    every = await asyncio.to_thread(interfaces)
    keys = await open_keystore(node.home)
    moved = node.options.port is None and saved.port != node.network.port
    return {
        "address": str(node.network.address),
        "port": node.network.port if node.options.port is not None else saved.port,
        "port_fixed": node.options.port is not None,
        "discovery": saved.discovery,
        "look_for_updates": saved.look_for_updates,
        "share_models": saved.share_models,
        "interfaces": [_interface_json(one, saved) for one in every],
        "restart": moved or choice_of(node.options, saved) != node.finding.choice,
        "keys": keys.where,
        "home": str(node.home.root),
        "folders": await asyncio.to_thread(_folders, node.home, node.shop.folders),
    }


async def change(node: Node, order: asked.ChangeSettings) -> Json:
    """Save what is given; it counts from the node's next start. Raises BadInput."""
    if order.interfaces is not msgspec.UNSET:
        known = {one.name for one in await asyncio.to_thread(interfaces)}
        saved = await asyncio.to_thread(load, node.home.settings_file)
        known |= set(saved.interfaces)  # one that is unplugged now
        for name in order.interfaces:
            if name not in known:
                raise BadInput("interface_unknown", name=name)
    given = {
        field: tuple(value) if isinstance(value, list) else value
        for field in order.__struct_fields__
        if (value := getattr(order, field)) is not msgspec.UNSET
    }
    if given:
        await node.choices.change(lambda now: msgspec.structs.replace(now, **given))
    return await told(node)


async def walls_told() -> Json:
    """What is kept from whatever reads model files here, why it is no more, and what to do about it."""
    found = await walls.tried()
    check = confined(found)
    level = found.level if found is not None else "unknown"
    return {"level": level, "cause": check.cause, "cure": check.cure}


def _interface_json(one: Interface, saved: Settings) -> Json:
    return {
        "name": one.name,
        "kind": str(one.kind),
        "addresses": list(one.addresses),
        "up": one.is_up,
        "unasked": one.kind in UNASKED,
        "chosen": one.name in saved.interfaces,
        "bits_per_s": one.negotiated_bits_per_s,
    }


def _folders(home: Home, of_models: ModelsFolders) -> list[Json]:
    """Where the large things are, and how much they are; a folder whose disk is away is not looked at."""
    here = [one for one in of_models.all if one not in (of_models.own, *of_models.known_away)]
    now = of_models.now  # as `poolhouse folder` tells it
    now_free = 0 if now in of_models.known_away else _free(now)
    models = used_bytes(file for one in (home.models, *here) for file in one.rglob("*"))
    free = _free(home.root)
    return [
        {"what": what, "path": str(path), "bytes": n_bytes, "free_bytes": free_bytes}
        for what, path, n_bytes, free_bytes in (
            ("models", now, models, now_free),
            ("stages", home.stages, used_bytes(home.stages.rglob("*")), free),
            ("logs", home.logs, used_bytes(home.logs.rglob("*")), free),
        )
    ]


def _free(folder: Path) -> int:
    return shutil.disk_usage(existing(folder)).free


def used_bytes(files: Iterable[Path]) -> int:
    """What these files take on the disk; links are not followed."""
    total = 0
    for file in files:
        try:
            if file.is_file() and not file.is_symlink():
                total += file.stat().st_size
        except OSError:
            continue  # it went away while we looked
    return total
