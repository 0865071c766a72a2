"""Tests of the limits of a key: concurrent requests and tokens per minute, set by the command line, over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import aiohttp
import pytest

from tests.gateway.conftest import Open
from tests.gateway.gate_calls import ASK, CHAT, rests
from tests.node.pool import Json


@pytest.fixture
def slow(api: Open) -> Iterator[str]:
    """A key of its own, so that no other test waits."""
    key = api.control("POST", "/api/keys", {"name": "slow"})["key"]
    yield key
    api.control("DELETE", "/api/keys/slow")
    assert "slow" not in api.control("GET", "/api")["limits"]


async def limited(api: Open, *words: str) -> str:
    done = await asyncio.to_thread(api.node.run, "api", "limit", "slow", *words)
    assert done.returncode == 0, done.stderr
    return " ".join(done.stdout.split())


async def test_tokens_a_minute(api: Open, slow: str) -> None:
    said = await limited(api, "--tokens-a-minute", "5")
    assert "slow may have 32 requests open at once and use 5 tokens per minute." in said
    async with aiohttp.ClientSession(api.base, headers={"X-Api-Key": slow}) as session:
        async with session.post(CHAT, json=ASK) as answer:
            assert answer.status == 200  # its prompt alone is more
        async with session.post(CHAT, json=ASK) as answer:
            assert answer.status == 429
            assert 1 <= int(answer.headers["Retry-After"]) <= 60
            assert "5 tokens for this minute" in (await answer.json())["error"]["message"]
        for path, body in (("/v1/completions", {"prompt": "x"}), ("/v1/responses", {"input": "x"})):
            async with session.post(path, json=body) as answer:
                assert answer.status == 429
        async with session.post("/api/generate", json={"prompt": "x"}) as answer:
            assert (answer.status, list(await answer.json())) == (429, ["error"])
    async with (
        aiohttp.ClientSession(api.base, headers={"X-Api-Key": api.key}) as session,
        session.post(CHAT, json=ASK) as answer,
    ):
        assert answer.status == 200  # another key's
    assert "slow may have" not in await limited(api)  # as for all keys again


async def test_who_leaves_early_has_had_the_prompt_read(api: Open, slow: str) -> None:
    await limited(api, "--tokens-a-minute", "250")
    words = "a shed is a house " * 60  # its tokens are more, and those of its answer fewer
    body: Json = {"prompt": words, "max_tokens": 100, "logit_bias": {"2": -100}, "stream": True}
    async with aiohttp.ClientSession(api.base, headers={"X-Api-Key": slow}) as session:
        async with session.post("/v1/completions", json=body) as answer:
            assert answer.status == 200
            await answer.content.readline()
            answer.close()
        await rests(api)
        async with session.post(CHAT, json=ASK) as answer:
            assert answer.status == 429


async def test_requests_at_once(api: Open, slow: str) -> None:
    assert "slow may have 1 request open at once" in await limited(api, "--at-once", "1")
    long: Json = ASK | {"max_tokens": 2000, "stream": True, "logit_bias": {"2": -100}}
    async with (
        aiohttp.ClientSession(api.base, headers={"X-Api-Key": slow}) as session,
        session.post(CHAT, json=long) as held,
    ):
        assert held.status == 200
        async with session.post(CHAT, json=ASK) as answer:
            assert answer.status == 429
            assert "open than 1." in (await answer.json())["error"]["message"]


def test_a_key_that_is_not_there_has_no_limits(api: Open) -> None:
    done = api.node.run("api", "limit", "nobody", "--at-once", "2")
    assert done.returncode == 1
    assert "no key called nobody" in done.stderr


def test_limits_of_all_keys_are_kept_and_told(api: Open) -> None:
    done = api.node.run("api", "on", "--at-once", "16", "--tokens-a-minute", "1000000")
    try:
        assert "Each key may have 16 requests open at once and use 1,000,000 tokens per minute." in " ".join(
            done.stdout.split()
        )
        result = api.control("GET", "/api")
        assert (result["at_once"], result["tokens_a_minute"]) == (16, 1_000_000)
    finally:
        api.control("POST", "/api", {"at_once": 32, "tokens_a_minute": 0})
