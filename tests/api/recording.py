"""The answers of two real nodes on the routes of the loopback API, reduced to their form.

`python -m tests.api.recording` writes golden/. Do that only if the contract is meant to change.
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from app.api import requests
from app.api.requests import Request
from app.client import NodeClient
from tests.node.pool import TestNode, paired

Json = dict[str, Any]
GOLDEN = Path(__file__).parent / "golden"
ANSWERS = GOLDEN / "answers.json"
REQUESTS = GOLDEN / "requests.json"

PAUSE_CHANGES = ("state", "reason", "reason_facts", "code")
EVENTS_SECONDS = 60.0
KEY_OF_MAP = re.compile(r"[0-9a-f]{16,64}")  # an id of a machine: the map has one form for all
PLAIN_GETS = (
    "/status", "/machines", "/lending", "/models", "/models/guide", "/starter", "/machine", "/programs", "/autostart",
    "/cards", "/engines", "/engines/offers", "/settings", "/doctor", "/journal", "/catalog", "/downloads", "/folder",
    "/token", "/api",
    "/api/keys", "/api/upstreams", "/api/certificate", "/answers", "/history/key", "/updates", "/phones",
)  # fmt: skip
SKETCH = {"key": "made", "file_bytes": 1 << 20, "architecture": "llama", "n_layers": 4}
POSTS_AT_REST: tuple[tuple[str, Json], ...] = (
    ("/lending", {"idle_s": 60}),
    ("/lending/pause", {"seconds": 60}),
    ("/lending/resume", {}),
    ("/api/keys", {"name": "made"}),
    ("/measure", {}),
    ("/verdicts", {"sketches": [SKETCH], "place": True}),
    ("/cards", {"memory_percent": 90, "card_only": False}),
    ("/settings", {"look_for_updates": False}),
)
STREAMS: tuple[tuple[str, Json], ...] = (
    ("/plan", {"model": "guide", "split": [2, 4, 2]}),
    ("/load", {"model": "guide", "split": [2, 4, 2]}),
    ("/ask", {"model": "gui", "prompt": "How do I add a computer?", "max_tokens": 8}),
)


def form(value: object) -> object:
    """The keys in their order and the kinds of the values: what a reader of the JSON relies on."""
    match value:
        case dict() if value and all(KEY_OF_MAP.fullmatch(key) for key in value):
            return {"<id>": form(next(iter(value.values())))}
        case dict():
            return {key: form(item) for key, item in value.items()}
        case list():
            return [form(value[0])] if value else []
        case bool():
            return "truth"
        case int() | float():
            return "number"
        case str():
            return "text"
    return None


def differences(golden: object, now: object, at: str) -> Iterator[str]:
    """Return where `now` has another form. None and an empty list or map match anything: nothing was there at that
    moment."""
    if golden in (None, [], {}) or now in (None, [], {}):
        return
    if isinstance(golden, dict) and isinstance(now, dict):
        if list(golden) != list(now):
            yield f"{at}: the keys are {list(now)}, not {list(golden)}"
        for key in golden.keys() & now.keys():
            yield from differences(golden[key], now[key], f"{at}.{key}")
    elif isinstance(golden, list) and isinstance(now, list):
        yield from differences(golden[0], now[0], f"{at}[]")
    elif golden != now:
        yield f"{at}: it is {now!r}, not {golden!r}"


def request_schemas() -> Json:
    """Every body that may be sent, with its bounds, as JSON Schema."""
    kinds = [var for var in vars(requests).values() if _is_request(var)]
    return {kind.__name__: without_descriptions(msgspec.json.schema(kind)) for kind in kinds}


def without_descriptions(schema: Any) -> Any:
    """Return a JSON schema without its prose, which may change while the form stays."""
    if isinstance(schema, list):
        return [without_descriptions(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    is_prose = isinstance(schema.get("description"), str)  # else a field of that name
    return {key: without_descriptions(part) for key, part in schema.items() if key != "description" or not is_prose}


def _is_request(item: object) -> bool:
    return isinstance(item, type) and issubclass(item, Request) and item is not Request


async def answers(nodes: list[TestNode]) -> Json:
    """Return each answer, by method and path."""
    result: Json = {}
    async with nodes[0].client() as client:
        for path, body in POSTS_AT_REST:
            result[f"POST {path}"] = await client.post(path, body)
        result["POST /pairing"] = await client.post("/pairing", {"role": "lend"})
        result["GET /status while pairing"] = await client.get("/status")
        result["DELETE /pairing"] = await client.delete("/pairing")
        for path, body in STREAMS:
            result |= await _streamed(client, path, body)
        result["POST /tokens"] = await client.post("/tokens", {"text": "How many?"})
        for path in PLAIN_GETS:
            result[f"GET {path}"] = await client.get(path)
        result |= await _events(client)
        result["GET /machines/{ref}"] = await client.get("/machines/attic")
        result["DELETE /api/keys/{name}"] = await client.delete("/api/keys/made")
        result["POST /unload"] = await client.post("/unload")
        result["a refusal"] = await _refusal(client)
    return result


def forms(result: Json) -> Json:
    """Return the form of each answer."""
    return {name: form(answer) for name, answer in result.items()}


async def _streamed(client: NodeClient, path: str, body: Json) -> Json:
    """The last line, and the last of each other kind of line."""
    kinds: Json = {}
    async with aclosing(client.stream("POST", path, body)) as lines:
        async for line in lines:
            for kind, value in line.items():
                kinds[f"POST {path}: {kind}"] = value
    return kinds


async def _events(client: NodeClient) -> Json:
    """The event a listener begins with, and the change that a pause of lending brings."""
    result: Json = {}
    async with asyncio.timeout(EVENTS_SECONDS), _plainly(client, "/events") as response:
        while "lending" not in result.get("change", {}).get("node", {}):  # something else may change before
            line = (await response.content.readuntil(b"\n")).decode().rstrip("\n")
            field, _, value = line.partition(": ")
            if field == "event":
                name = value
            elif field == "data":
                result[name] = json.loads(value)
                if name == "snapshot":
                    await client.post("/lending/pause", {"seconds": 60})
    await client.post("/lending/resume")
    # A change has what differs, and memory that is free may differ or not: what each pause changes is compared.
    lending = result["change"]["node"]["lending"]
    result["change"] = {"node": {"lending": {key: lending[key] for key in PAUSE_CHANGES}}}
    return {f"GET /events: {name}": result[name] for name in ("snapshot", "change")}


async def _refusal(client: NodeClient) -> Json:
    async with _plainly(client, "/machines/nobody") as response:
        body: Json = await response.json()
    return body


@asynccontextmanager
async def _plainly(client: NodeClient, path: str) -> AsyncGenerator[aiohttp.ClientResponse, None]:
    """The answer as it is sent, which the client would already have read."""
    right = {"Authorization": f"Bearer {client.runtime.token}"}
    url = f"http://127.0.0.1:{client.runtime.port}{path}"
    async with aiohttp.ClientSession(read_bufsize=1 << 24) as session, session.get(url, headers=right) as response:
        yield response


def as_text(result: Json) -> str:
    return json.dumps(result, indent=1) + "\n"


def _write() -> None:
    REQUESTS.write_text(as_text(request_schemas()))
    with tempfile.TemporaryDirectory() as folder, paired(Path(folder), "den", "attic") as nodes:
        ANSWERS.write_text(as_text(forms(asyncio.run(answers(nodes)))))


if __name__ == "__main__":
    _write()
