"""The web chat for phones over a real node: what a code, a device and a stranger can do there."""

from __future__ import annotations

import asyncio
import hashlib
import re
import ssl
import time
from collections.abc import AsyncGenerator, Iterator
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest

from app.gateway.phones.phone_auth import PhoneAuthenticator
from app.gateway.phones.phone_page import page_files
from app.gateway.phones.phone_service import MAX_WRONG_TRIES
from app.machine.paths import phone_page_folder
from tests.gateway.phones.phone_door import Door, phone_door
from tests.node.pool import Json

CHAT, MODELS, JOIN = "/chat/v1/chat/completions", "/chat/v1/models", "/chat/join"
ASK: Json = {"model": "guide", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 3}
LONG: Json = ASK | {"stream": True, "max_tokens": 4000, "logit_bias": {"2": -100}}  # never the token that ends it
MOST_PAGE_BYTES = 300_000


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with phone_door(tmp_path_factory.mktemp("phones")) as made:
        made.node.work("/load", {"model": "guide"})
        yield made


@pytest.fixture
async def phone(door: Door) -> AsyncGenerator[aiohttp.ClientSession, None]:
    """A session of a phone that has not joined yet."""
    async with door.session() as session:
        yield session
    await asyncio.sleep(0.05)  # TLS takes a moment to close


async def joined(door: Door, phone: aiohttp.ClientSession, name: str = "Anna's phone") -> dict[str, str]:
    """The headers of a device that has just joined."""
    code = await asyncio.to_thread(door.code)
    async with phone.post(JOIN, json={"code": code, "name": name}) as answer:
        assert answer.status == 200, await answer.text()
        return {"Authorization": f"Bearer {(await answer.json())['token']}"}


async def test_a_code_lets_one_device_in_and_never_a_second(door: Door, phone: aiohttp.ClientSession) -> None:
    code = await asyncio.to_thread(door.code)
    body = {"code": f"{code[:4]} {code[4:]}", "name": "  Anna's\n\u202ephone "}
    async with phone.post(JOIN, json=body) as answer:
        joined_as = await answer.json()
        assert (answer.status, joined_as["name"]) == (200, "Anna's phone")
    async with phone.post(JOIN, json=body) as answer:
        assert answer.status == 403
    headers = {"Authorization": f"Bearer {joined_as['token']}"}
    async with phone.get(MODELS, headers=headers) as answer:
        listed = await answer.json()
    assert [(model["name"], model["machine"], model["vision"]) for model in listed["models"]] == [("guide", "", False)]
    assert listed["host"] == "den"
    async with phone.post(CHAT, json=ASK, headers=headers) as answer:
        assert (await answer.json())["usage"]["completion_tokens"] == 3
    state = await asyncio.to_thread(door.control, "GET", "/phones")
    (device,) = [known for known in state["devices"] if known["name"] == "Anna's phone"]
    assert device["used_at"] is not None
    saved = (door.node.root / "phones.json").read_text()
    assert joined_as["token"] not in saved  # only its hash is kept
    assert hashlib.sha256(joined_as["token"].encode()).hexdigest() in saved
    keys = (await asyncio.to_thread(door.control, "GET", "/api/keys"))["keys"]
    assert not [key for key in keys if key["key"] == joined_as["token"]]


async def test_five_wrong_codes_make_the_right_one_void_and_each_costs_a_second(
    door: Door, phone: aiohttp.ClientSession
) -> None:
    code = await asyncio.to_thread(door.code)
    wrong = f"{(int(code) + 1) % 10**8:08}"

    async def status(tried: str) -> int:
        async with phone.post(JOIN, json={"code": tried}) as answer:
            return answer.status

    began = time.monotonic()
    assert await status(wrong) == 403
    assert time.monotonic() - began >= 1
    await asyncio.gather(*(status(wrong) for _ in range(MAX_WRONG_TRIES - 1)))
    assert (await asyncio.to_thread(door.control, "GET", "/phones"))["code_seconds"] == 0
    assert await status(code) == 403
    assert await status("") == 403


async def test_a_new_code_replaces_the_old_one(door: Door, phone: aiohttp.ClientSession) -> None:
    old = await asyncio.to_thread(door.code)
    await asyncio.to_thread(door.code)
    async with phone.post(JOIN, json={"code": old}) as answer:
        assert answer.status == 403
    await asyncio.to_thread(door.control, "DELETE", "/phones/code")


async def test_foreign_names_and_origins_get_nothing(door: Door, phone: aiohttp.ClientSession) -> None:
    device = await joined(door, phone, "tablet")
    port = door.base.rsplit(":", 1)[1]
    cases: list[tuple[str, str, dict[str, str], int]] = [
        ("GET", "/chat/", {}, 200),
        ("GET", "/chat/main.js", {}, 200),
        ("GET", "/chat/", {"Host": f"evil.example:{port}"}, 421),
        ("GET", "/chat/", {"Host": f"localhost:{port}"}, 421),
        ("GET", MODELS, device | {"Host": f"evil.example:{port}"}, 421),
        ("GET", MODELS, device | {"Origin": "https://evil.example"}, 403),
        ("GET", MODELS, device | {"Origin": f"http://127.0.0.1:{port}"}, 403),
        ("GET", MODELS, device | {"Origin": "null"}, 403),
        ("GET", MODELS, device | {"Sec-Fetch-Site": "cross-site"}, 403),
        ("POST", JOIN, {"Origin": "https://evil.example"}, 403),
        ("POST", CHAT, device | {"Origin": "https://evil.example"}, 403),
        ("OPTIONS", CHAT, {"Origin": door.base, "Access-Control-Request-Method": "POST"}, 401),
        ("GET", MODELS, device | {"Origin": door.base}, 200),
        ("GET", MODELS, device, 200),
        ("GET", MODELS, {}, 401),
        ("GET", MODELS, {"Authorization": "Bearer pd-x"}, 401),
    ]
    for method, path, headers, status in cases:
        body = {"code": "x"} if method == "POST" else None
        async with phone.request(method, path, headers=headers, json=body) as answer:
            assert answer.status == status, (method, path, headers)
            assert not [name for name in answer.headers if name.startswith("Access-Control-")]
            assert answer.headers["Cache-Control"] == "no-store"
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            policy = answer.headers["Content-Security-Policy"]
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert str(door.node.root) not in await answer.text()


async def test_the_address_without_its_last_slash_leads_to_the_page(door: Door, phone: aiohttp.ClientSession) -> None:
    async with phone.get("/chat") as answer:
        assert (answer.status, answer.url.path) == (200, "/chat/")


async def test_a_device_chats_and_reaches_nothing_else(door: Door, phone: aiohttp.ClientSession) -> None:
    device = await joined(door, phone, "tablet")
    refused: list[tuple[str, str]] = [
        ("POST", "/v1/chat/completions"), ("GET", "/v1/models"), ("POST", "/api/generate"), ("GET", "/api/tags"),
        ("GET", "/phones"), ("POST", "/phones/code"), ("POST", "/load"), ("POST", "/unload"), ("GET", "/api/keys"),
        ("GET", "/metrics"), ("GET", "/chat/v1/../../v1/models"), ("GET", "/chat/%2e%2e/v1/models"),
        ("GET", "/chat/..%2fv1%2fmodels"), ("POST", "/chat/v1/completions"), ("POST", "/chat/load"),
        ("GET", "/chat/settings.json"), ("GET", "/chat/licenses"),
    ]  # fmt: skip
    for lan in (False, True):  # also where programs may use the same server
        await asyncio.to_thread(door.control, "POST", "/api", {"on": lan, "lan": lan})
        for method, path in refused:
            async with phone.request(method, path, headers=device, json=ASK if method == "POST" else None) as answer:
                assert answer.status in (401, 403, 404, 405), (path, answer.status)
    key = (await asyncio.to_thread(door.control, "GET", "/api/keys"))["keys"][0]["key"]
    async with phone.get("/v1/models", headers={"Authorization": f"Bearer {key}"}) as answer:
        assert answer.status == 200
    async with phone.get(MODELS, headers={"Authorization": f"Bearer {key}"}) as answer:
        assert answer.status == 401  # a program's key is not a device's
    await asyncio.to_thread(door.control, "POST", "/api", {"on": False, "lan": False})
    async with phone.get("/v1/models", headers={"Authorization": f"Bearer {key}"}) as answer:
        assert answer.status == 403
    async with phone.get(MODELS, headers=device) as answer:
        assert answer.status == 200  # phones stay


async def test_a_phone_loads_nothing(door: Door, phone: aiohttp.ClientSession) -> None:
    device = await joined(door, phone, "tablet")
    await asyncio.to_thread(door.control, "POST", "/api", {"may_load": True})  # that is for programs
    await asyncio.to_thread(door.control, "POST", "/unload", {"model": "guide"})
    try:
        async with phone.get(MODELS, headers=device) as answer:
            assert (await answer.json())["models"] == []
        for name in ("guide", "", "default", "no such"):
            async with phone.post(CHAT, json=ASK | {"model": name}, headers=device) as answer:
                assert answer.status == 404, name
        assert (await asyncio.to_thread(door.control, "GET", "/status"))["loaded"] is None
    finally:
        await asyncio.to_thread(door.node.work, "/load", {"model": "guide"})


async def test_a_removed_device_is_out_within_two_seconds_even_in_an_answer(
    door: Door, phone: aiohttp.ClientSession
) -> None:
    device = await joined(door, phone, "lost phone")
    listed = (await asyncio.to_thread(door.control, "GET", "/phones"))["devices"]
    (known,) = [entry for entry in listed if entry["name"] == "lost phone"]
    async with phone.post(CHAT, json=LONG, headers=device) as answer:
        await answer.content.readline()
        line = (await asyncio.to_thread(door.control, "GET", "/status"))["answers"]
        assert line["running"] == 1
        began = time.monotonic()
        await asyncio.to_thread(door.control, "DELETE", f"/phones/devices/{known['id']}")
        said = await answer.text()
        assert time.monotonic() - began < 2
    assert "[DONE]" not in said
    assert '"error"' in said.rstrip().splitlines()[-1]
    async with phone.get(MODELS, headers=device) as answer:
        assert answer.status == 401
    await door.node.until_nobody()


async def test_off_ends_answers_and_the_page_and_on_lets_devices_back_in(
    door: Door, phone: aiohttp.ClientSession
) -> None:
    device = await joined(door, phone, "tablet")
    async with phone.post(CHAT, json=LONG, headers=device) as answer:
        await answer.content.readline()
        off, said = await asyncio.gather(
            asyncio.to_thread(door.control, "POST", "/phones", {"on": False}), answer.text()
        )
    assert "[DONE]" not in said
    assert (off["listening"], off["addresses"]) == (False, [])
    with pytest.raises(aiohttp.ClientConnectorError):
        await phone.get("/chat/")
    result = await asyncio.to_thread(door.control, "POST", "/phones", {"on": True})
    assert f"{door.base}/chat/" in result["addresses"]  # at the same port, so that a kept page finds it again
    async with phone.get(MODELS, headers=device) as answer:
        assert answer.status == 200


async def test_off_ends_answers_also_while_programs_keep_the_server_open(
    door: Door, phone: aiohttp.ClientSession
) -> None:
    device = await joined(door, phone, "tablet")
    await asyncio.to_thread(door.control, "POST", "/api", {"on": True, "lan": True})
    try:
        async with phone.post(CHAT, json=LONG, headers=device) as answer:
            await answer.content.readline()
            await asyncio.to_thread(door.control, "POST", "/phones", {"on": False})
            async with asyncio.timeout(5):
                assert '"error"' in (await answer.text()).rstrip().splitlines()[-1]
        for path in ("/chat/", MODELS):
            async with phone.get(path, headers=device) as answer:
                assert (answer.status, "Settings > Phones" in await answer.text()) == (404, True)
    finally:
        await asyncio.to_thread(door.control, "POST", "/phones", {"on": True})
        await asyncio.to_thread(door.control, "POST", "/api", {"on": False, "lan": False})


def test_slow_requests_of_one_address_keep_no_other_from_joining() -> None:
    def at(address: str) -> str | None:
        route = SimpleNamespace(resource=SimpleNamespace(canonical=JOIN))
        request = SimpleNamespace(match_info=SimpleNamespace(route=route), remote=address)
        return PhoneAuthenticator.caller_name(cast("Any", None), cast("Any", request))

    assert at("192.168.1.7") != at("192.168.1.8")
    assert at("fd12::7") == at("fd12::8")  # one machine may have as many as it likes


async def test_a_join_has_a_small_body(door: Door, phone: aiohttp.ClientSession) -> None:
    async with phone.post(JOIN, json={"code": "1", "name": "x" * 5000}) as answer:
        assert answer.status == 413


def test_the_page_is_small_and_its_libraries_are_what_their_authors_publish() -> None:
    files = page_files()
    assert {"index.html", "main.js", "manifest.webmanifest", "icon-192.png"} <= set(files)
    assert sum(len(file.content) for file in files.values()) < MOST_PAGE_BYTES
    licenses = (phone_page_folder() / "licenses.txt").read_text("utf-8")
    for name in ("marked.esm.js", "purify.min.js"):
        assert f"sha256 {hashlib.sha256(files[name].content).hexdigest()}" in licenses, name


def test_the_page_has_no_script_or_style_in_itself_and_names_no_other_place() -> None:
    for file in sorted(phone_page_folder().iterdir()):
        if file.suffix in (".html", ".css", ".webmanifest") or file.name in OURS:
            text = file.read_text("utf-8")
            assert "https://" not in text, file.name
            assert "http://" not in text, file.name
            assert "innerHTML" not in text, file.name
    page = (phone_page_folder() / "index.html").read_text("utf-8")
    assert "style=" not in page
    assert " on" not in [part[:3] for part in page.split('"')]
    assert page.count("<script") == page.count("<script src=")


OURS = {"main.js", "markdown.js", "chats.js", "node.js", "words.js"}


def test_both_languages_have_every_text() -> None:
    text = (phone_page_folder() / "words.js").read_text("utf-8")
    english, _, german = text.partition("  de: {")
    keys = [set(_keys(part)) for part in (english, german)]
    assert keys[0] == keys[1]
    assert len(keys[0]) > 45
    users = "".join(file.content.decode() for name, file in page_files().items() if name in OURS | {"index.html"})
    assert not [key for key in keys[0] if f'"{key}"' not in users]


def _keys(text: str) -> Iterator[str]:
    yield from re.findall(r"(?:^    |, )([a-z_]+): \"", text, re.MULTILINE)


async def test_the_fingerprint_is_that_of_the_certificate_that_a_browser_shows(door: Door) -> None:
    def shown() -> bytes:
        host, port = door.base.removeprefix("https://").split(":")
        return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate((host, int(port))))

    fingerprint = (await asyncio.to_thread(door.control, "GET", "/phones"))["fingerprint"]
    assert hashlib.sha256(await asyncio.to_thread(shown)).hexdigest() == fingerprint.replace(":", "").lower()


async def test_the_owner_sees_whose_question_it_was(door: Door, phone: aiohttp.ClientSession) -> None:
    device = await joined(door, phone, "kitchen tablet")
    async with phone.post(CHAT, json=ASK, headers=device) as answer:
        assert answer.status == 200
    journal = await asyncio.to_thread(door.control, "GET", "/journal")
    assert journal["answers"][-1]["whose"] == {"kind": "phone", "name": "kitchen tablet"}
