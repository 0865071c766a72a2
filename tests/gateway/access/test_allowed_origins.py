"""Host names and origins that the owner allowed, one by one: off by default, and effective at once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path

import aiohttp
import pytest

from tests.gateway.conftest import Open
from tests.gateway.gate_calls import ASK, CHAT
from tests.node.pool import Json

PAGE, APP, OTHER = "http://localhost:3000", "app://obsidian.md", "https://evil.example"
DOCKER = "host.docker.internal"
ASKS = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization, content-type"}
Got = tuple[int, dict[str, str]]


async def change(api: Open, **subject: object) -> Json:
    return await asyncio.to_thread(api.control, "POST", "/api", subject)


@pytest.fixture
async def allowed(api: Open) -> AsyncGenerator[Open, None]:
    """One name and two origins, for one test."""
    await change(api, add_host_names=[DOCKER.upper()], add_origins=[PAGE + "/", APP])
    try:
        yield api
    finally:
        changed = await change(api)
        await change(api, remove_host_names=changed["host_names"], remove_origins=changed["origins"])


async def asked(api: Open, method: str, path: str, **headers: str) -> Got:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    body = json.dumps(ASK).encode() if method == "POST" else None
    if body is not None:
        sent["Content-Type"] = "application/json"
    async with aiohttp.request(method, api.base + path, headers=sent, data=body) as answer:
        await answer.read()
        cors = {name: value for name, value in answer.headers.items()
                if name.lower().startswith("access-control") or name == "Vary"}  # fmt: skip
        return answer.status, cors


async def test_a_foreign_name_is_answered_only_while_it_is_allowed(api: Open) -> None:
    key = f"Bearer {api.key}"
    for host in (DOCKER, f"{DOCKER}:{api.port}"):
        assert (await asked(api, "GET", "/v1/models", Host=host, Authorization=key))[0] == 421
    changed = await change(api, add_host_names=[f"{DOCKER}:{api.port}"])
    assert changed["host_names"] == [DOCKER]
    for host in (DOCKER, f"{DOCKER}:{api.port}", f"{DOCKER}:80"):
        assert (await asked(api, "GET", "/v1/models", Host=host, Authorization=key))[0] == 200
        assert (await asked(api, "GET", "/v1/models", Host=host))[0] == 401
    assert (await asked(api, "GET", "/v1/models", Host=f"x.{DOCKER}", Authorization=key))[0] == 421
    assert (await change(api, remove_host_names=[DOCKER]))["host_names"] == []
    assert (await asked(api, "GET", "/v1/models", Host=DOCKER, Authorization=key))[0] == 421


async def test_an_allowed_page_may_ask_and_read_and_others_get_no_header(allowed: Open) -> None:
    key = f"Bearer {allowed.key}"
    for origin in (PAGE, APP):
        for method, path, text, status in (
            ("GET", "/v1/models", key, 200), ("POST", CHAT, key, 200), ("GET", "/api/tags", key, 200),
            ("GET", "/v1/models", "Bearer x", 401), ("GET", "/nothing", key, 404), ("DELETE", CHAT, key, 405),
        ):  # fmt: skip
            got, cors = await asked(allowed, method, path, Origin=origin, Authorization=text)
            assert (got, cors["Access-Control-Allow-Origin"]) == (status, origin)
            assert cors["Vary"] == "Origin"
            assert "X-Request-Id" in cors["Access-Control-Expose-Headers"]
            assert "Access-Control-Allow-Credentials" not in cors
    for origin in (
        OTHER,
        "null",
        PAGE + "0",
        PAGE.upper(),
        f"{PAGE}, {APP}",
        "http://localhost",
        "https://localhost:3000",
    ):
        assert await asked(allowed, "GET", "/v1/models", Origin=origin, Authorization=key) == (403, {}), origin
    assert (await asked(allowed, "GET", "/v1/models", Authorization=key))[1] == {}  # no page asks


async def test_a_stream_and_its_errors_can_be_read_by_an_allowed_page(allowed: Open) -> None:
    headers = {"Origin": PAGE, "Authorization": f"Bearer {allowed.key}"}
    async with aiohttp.request("POST", allowed.base + CHAT, json=ASK | {"stream": True}, headers=headers) as answer:
        assert answer.headers["Access-Control-Allow-Origin"] == PAGE
        assert b"[DONE]" in await answer.read()
    async with aiohttp.request("POST", allowed.base + CHAT, json={"messages": []}, headers=headers) as answer:
        assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (400, PAGE)


async def test_the_preflight_of_an_allowed_page_needs_no_key(allowed: Open) -> None:
    got, cors = await asked(allowed, "OPTIONS", CHAT, Origin=PAGE, **{k.replace("-", "_"): v for k, v in ASKS.items()})
    assert got == 204
    assert cors["Access-Control-Allow-Origin"] == PAGE
    assert "POST" in cors["Access-Control-Allow-Methods"]
    assert cors["Access-Control-Allow-Headers"] == ASKS["Access-Control-Request-Headers"]
    assert "Access-Control-Allow-Private-Network" not in cors
    near = {"Access_Control_Request_Method": "GET", "Access_Control_Request_Private_Network": "true"}
    got, cors = await asked(allowed, "OPTIONS", "/v1/models", Origin=APP, **near)
    assert (got, cors["Access-Control-Allow-Private-Network"]) == (204, "true")
    # a foreign page, a foreign name, and who is no browser: as without any of this
    assert await asked(allowed, "OPTIONS", CHAT, Origin=OTHER, **near) == (403, {})
    assert (await asked(allowed, "OPTIONS", CHAT, Origin=PAGE, Host="evil.example", **near)) == (421, {})
    assert (await asked(allowed, "OPTIONS", CHAT, Origin=PAGE))[0] == 401
    assert (await asked(allowed, "OPTIONS", CHAT, **near))[0] == 401


async def test_two_origins_in_one_request_are_no_allowed_page(allowed: Open) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", allowed.port)
    writer.write(
        f"GET /v1/models HTTP/1.1\r\nHost: localhost:{allowed.port}\r\nOrigin: {PAGE}\r\nOrigin: {OTHER}\r\n"
        f"Authorization: Bearer {allowed.key}\r\n\r\n".encode()
    )
    assert (await reader.readline()).split()[1] == b"403"
    writer.close()


async def test_an_origin_that_is_removed_is_refused_at_once_and_both_are_kept_in_settings(allowed: Open) -> None:
    saved = json.loads((Path(allowed.node.root) / "settings.json").read_text("utf-8"))
    assert (saved["api"]["host_names"], saved["api"]["origins"]) == ([DOCKER], [PAGE, APP])
    changed = await change(allowed, remove_origins=[PAGE], add_origins=[APP])
    assert changed["origins"] == [APP]
    key = f"Bearer {allowed.key}"
    assert await asked(allowed, "GET", "/v1/models", Origin=PAGE, Authorization=key) == (403, {})
    assert (await asked(allowed, "GET", "/v1/models", Origin=APP, Authorization=key))[0] == 200


@pytest.mark.parametrize(
    ("subject", "code"),
    [
        ({"add_host_names": ["*"]}, "api_host_name"),
        ({"add_origins": ["*"]}, "api_origin"),
        ({"add_origins": ["null"]}, "api_origin"),
        ({"remove_host_names": ["there.is.none"]}, "api_host_unknown"),
        ({"remove_origins": ["http://there.is.none"]}, "api_origin_unknown"),
        ({"add_origins": [f"http://a{n}.example" for n in range(33)]}, "api_access_many"),
    ],
)
async def test_what_cannot_be_allowed_changes_nothing(api: Open, subject: Json, code: str) -> None:
    async with api.node.client() as client:
        with pytest.raises(Exception, match=r".") as error:
            await client.post("/api", subject)
    assert error.value.reason.code == code  # type: ignore[attr-defined]
    result = await asyncio.to_thread(api.control, "GET", "/api")
    assert (result["host_names"], result["origins"]) == ([], [])
