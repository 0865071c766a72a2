"""The served description names every route, every body, and every answer that is given."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from weakref import WeakSet

import aiohttp
import msgspec
from aiohttp import web

from app.gateway.open_requests import OpenRequests
from app.gateway.openapi_document import GETS, POSTS, description
from app.gateway.servers.chat_api_service import ChatApiService
from tests.gateway.conftest import Open

Json = dict[str, Any]


def refs(of: object) -> set[str]:
    if isinstance(of, dict):
        own = {str(of["$ref"])} if "$ref" in of else set()
        return own.union(*(refs(value) for value in of.values()))
    return set().union(*(refs(value) for value in of)) if isinstance(of, list) else set()


def test_the_document_is_the_golden_one() -> None:
    """A change of the described API shows as a change of the file. To renew it: write `described` there."""
    described = msgspec.json.decode(description(), type=Json)
    described["info"]["version"] = "0"
    golden = Path(__file__).with_name("openapi.golden.json")
    assert described == msgspec.json.decode(golden.read_bytes(), type=Json)


def test_every_reference_is_there() -> None:
    document = msgspec.json.decode(description(), type=Json)
    known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert refs(document) <= known
    names = [call["operationId"] for path in document["paths"].values() for call in path.values()]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+", name.rsplit("/", 1)[1]) for name in known)
    assert "app.node" not in description().decode()


def test_no_route_is_missing() -> None:
    """Covers the port for programs, as a node builds it."""
    api, nobody = object.__new__(ChatApiService), cast("Any", SimpleNamespace())
    api.answering = api.budget = api.metrics = api.cards = nobody
    api._open_requests = WeakSet()
    api._household_models, api._hosting = nobody, cast("Any", SimpleNamespace(embeddings=nobody))
    api._models = cast("Any", SimpleNamespace(listed=nobody))
    gate = SimpleNamespace(  # any: nobody comes
        check=web.normalize_path_middleware(), open_requests=OpenRequests()
    )
    routes = api._application(cast("Any", gate)).router.routes()
    reports = {(route.method, route.resource.canonical) for route in routes if route.resource is not None}
    described = {("GET", path) for path in GETS} | {("POST", path) for path in POSTS}
    assert {group for group in reports if group[0] != "HEAD"} == described


async def test_it_is_served_and_says_what_happens(api: Open, http: aiohttp.ClientSession) -> None:
    async with http.get("/openapi.json") as answer:
        assert answer.content_type == "application/json"
        document = await answer.json()
    assert set(document["paths"]) == {*GETS, *POSTS}
    for path in GETS:
        async with http.get(path.replace("{name}", "guide")) as answer:
            assert answer.status == 200 or path == "/props"  # where no model is loaded
            assert answer.content_type in document["paths"][path]["get"]["responses"]["200"]["content"]
    for path in POSTS:
        async with http.post(path, json={"temperature": "hot", "options": 7}) as answer:
            assert str(answer.status) in document["paths"][path]["post"]["responses"]
            assert answer.status in (400, 404)  # of vectors, that no model here makes them
    log = (api.node.root / "logs" / "node.log").read_text("utf-8")
    named = set(re.findall(r"(?:GET|POST) (/\S+) of default", log))
    assert named <= set(document["paths"])  # every route that any test used so far
