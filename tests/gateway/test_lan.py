"""The Chat API on the LAN: off at first, over TLS, never without a key, by the names that the machine has there."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress

import aiohttp
import httpx
import openai
import pytest

from app.machine.interfaces import interfaces
from app.network.tls import upstream_context
from tests.gateway.conftest import Open, free_port
from tests.gateway.gate_calls import ASK, CHAT, LONG
from tests.node.pool import Json, TestNode, node


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestNode]:
    """A node to which loopback is a network of the household."""
    root = tmp_path_factory.mktemp("lan")
    (lo,) = [interface.name for interface in interfaces() if "127.0.0.1" in interface.addresses]
    (root / "settings.json").write_text(json.dumps({"name": "den", "interfaces": [lo]}), "utf-8")
    with node(root, "den") as test_node:
        yield test_node


@pytest.fixture(scope="module")
def lan(host: TestNode) -> tuple[Open, str, str]:
    """The node, its address on the network, and the certificate."""
    plain = host.control("POST", "/api", {"on": True, "port": free_port(), "ollama_open": True})
    assert plain["lan_addresses"] == []  # nobody asked for it
    assert host.control("GET", "/api/certificate") == {"certificate": None}
    result = host.control("POST", "/api", {"lan": True})
    (address,) = [
        lan_address for lan_address in result["lan_addresses"] if lan_address.startswith("https://127.0.0.1:")
    ]
    (key,) = host.control("GET", "/api/keys")["keys"]
    pem = host.control("GET", "/api/certificate")["certificate"]
    return Open(host, result["listens_at"], key["key"]), address, pem


@pytest.fixture
async def session(lan: tuple[Open, str, str]) -> AsyncGenerator[aiohttp.ClientSession, None]:
    _, address, pem = lan
    connector = aiohttp.TCPConnector(ssl=upstream_context(pem))
    base = address.removesuffix("/v1")
    async with aiohttp.ClientSession(base, connector=connector) as made:
        yield made


@pytest.mark.long
def test_openai_s_client_is_answered_there(lan: tuple[Open, str, str]) -> None:
    api, address, pem = lan
    with (
        httpx.Client(verify=upstream_context(pem)) as http,
        openai.OpenAI(api_key=api.key, base_url=address, max_retries=0, http_client=http) as client,
    ):
        answer = client.chat.completions.create(
            model="guide", messages=[{"role": "user", "content": "Hello"}], max_tokens=3
        )
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 3


async def test_nobody_passes_without_a_key_or_by_another_name(
    lan: tuple[Open, str, str], session: aiohttp.ClientSession
) -> None:
    api, address, _ = lan
    key = {"Authorization": f"Bearer {api.key}"}
    port = address.removesuffix("/v1").rsplit(":", 1)[1]
    cases: list[tuple[str, dict[str, str], int]] = [
        ("/v1/models", key, 200),
        ("/v1/models", {}, 401),
        ("/v1/models", {"X-Api-Key": "x"}, 401),
        ("/api/tags", {}, 401),  # though loopback is open for Ollama's
        ("/v1/models", key | {"Host": f"evil.example:{port}"}, 421),
        ("/v1/models", key | {"Host": f"localhost:{port}"}, 421),
        ("/v1/models", key | {"Host": f"127.0.0.1:{api.port}"}, 421),
        ("/v1/models", key | {"Origin": "https://evil.example"}, 403),
        ("/status", key, 404),
        ("/api/keys", key, 404),
    ]
    for path, headers, status in cases:
        async with session.get(path, headers=headers) as answer:
            assert answer.status == status, (path, headers)
            assert (answer.headers.get("Connection") == "close") == (status in (401, 403, 421))
            assert str(api.node.root) not in await answer.text()  # no path of this computer
    async with session.post(CHAT, json=ASK, headers=key) as answer:
        assert answer.status == 200


async def test_plain_http_and_silence_are_closed_and_keep_nobody_out(
    lan: tuple[Open, str, str], session: aiohttp.ClientSession
) -> None:
    api, address, _ = lan
    port = int(address.removesuffix("/v1").rsplit(":", 1)[1])

    async def ends(data: bytes, result: bytes = b"") -> float:
        began = asyncio.get_running_loop().time()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(data)
        with suppress(ConnectionError):
            said = await asyncio.wait_for(reader.read(), 60)
            assert result in said if result else b"HTTP" not in said
        writer.close()
        return asyncio.get_running_loop().time() - began

    async with asyncio.TaskGroup() as group:
        request = b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n"
        plain = group.create_task(ends(request, b"This port speaks TLS."), name="plain")
        silent = [group.create_task(ends(b""), name=f"silent {n}") for n in range(6)]
        await asyncio.sleep(0.2)
        async with session.get("/v1/models", headers={"X-Api-Key": api.key}) as answer:
            assert answer.status == 200
    assert all(0.5 < task.result() < 45 for task in silent)
    assert plain.result() < min(task.result() for task in silent)


async def test_who_does_not_know_the_certificate_is_not_served(lan: tuple[Open, str, str]) -> None:
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await session.get(lan[1] + "/models")
    old = upstream_context(lan[2])
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=old)) as session:
        with pytest.raises(aiohttp.ClientError):
            await session.get(lan[1] + "/models")


async def test_another_poolhouse_may_be_an_upstream_over_it(
    lan: tuple[Open, str, str], api: Open, http: aiohttp.ClientSession
) -> None:
    there, address, pem = lan
    order: Json = {"name": "den", "url": address, "models": {"den-guide": "guide"}, "cap_tokens": 9999,
                   "key": there.key, "certificate": pem}  # fmt: skip
    await asyncio.to_thread(api.control, "POST", "/api/upstreams", order)
    await asyncio.to_thread(api.control, "POST", "/api/upstreams/den", {"on": True})
    try:
        async with http.post(CHAT, json=ASK | {"model": "den-guide"}) as answer:
            assert (answer.status, answer.headers["X-Poolhouse-Upstream"]) == (200, "den")
    finally:
        await asyncio.to_thread(api.control, "DELETE", "/api/upstreams/den")


async def test_an_answer_that_is_under_way_hears_that_its_door_closes(
    lan: tuple[Open, str, str], session: aiohttp.ClientSession
) -> None:
    api, _, _ = lan
    key = {"Authorization": f"Bearer {api.key}"}
    async with session.post("/v1/completions", json=LONG, headers=key) as answer:
        await answer.content.readline()
        off = asyncio.to_thread(api.control, "POST", "/api", {"lan": False})
        _, said = await asyncio.gather(off, answer.text())
    await asyncio.to_thread(api.control, "POST", "/api", {"lan": True})
    assert said.rstrip().splitlines()[-1].startswith('data: {"error":{"message":"The API was')


@pytest.mark.long
def test_the_command_line_says_what_is_open_and_closes_it(lan: tuple[Open, str, str]) -> None:
    api, address, pem = lan
    said = " ".join(api.node.run("api", "status").stdout.split())
    assert "over TLS and with a key. Nothing else is open to them." in said
    assert address in said
    assert api.node.run("api", "certificate").stdout.strip() == pem.strip()
    assert "network too" not in api.node.run("api", "on", "--no-lan").stdout
    assert api.control("GET", "/api")["lan_addresses"] == []
    api.control("POST", "/api", {"lan": True})
    off = api.control("POST", "/api", {"on": False})
    assert (off["listening"], off["lan"], off["lan_addresses"]) == (False, True, [])
    assert api.control("POST", "/api", {"on": True})["lan_addresses"]  # as it was
