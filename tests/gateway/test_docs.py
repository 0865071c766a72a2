"""Every snippet of docs/api.md does what the page says, against a real node."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import gguf
import pytest
import typer

from app.cli.program import build
from tests import tiny_bert
from tests.gateway.conftest import Open
from tests.gateway.gate_calls import CHAT, status_of

FAMILIES = Path(__file__).resolve().parents[1] / "families"
PROJECT = Path(__file__).resolve().parents[2]
PAGE = PROJECT / "docs" / "api.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def snippets(language: str, page: Path = PAGE) -> list[str]:
    return [text for kind, text in BLOCK.findall(page.read_text("utf-8")) if kind == language]


def ask(model: str, text: str) -> str:
    return json.dumps({"model": model, "messages": [{"role": "user", "content": text}], "max_tokens": 1})


def ours(text: str, api: Open) -> str:
    """Return the example with the address and the key of this test."""
    assert "47114" in text
    assert "ph-YOUR-KEY" in text
    return text.replace("47114", str(api.port)).replace("ph-YOUR-KEY", api.key)


def test_the_page_has_what_is_tried_here() -> None:
    assert len(snippets("python")) == 6
    assert len(snippets("sh")) == 4


@pytest.fixture(scope="module")
def vectors(api: Open, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The shelf has one embedding model."""
    path = tiny_bert.bert(tmp_path_factory.mktemp("vectors") / "bert.gguf")
    assert api.node.run("import", str(path), "--name", "of-the-page").returncode == 0
    yield
    api.control("POST", "/unload", {"model": "of-the-page"})
    api.control("DELETE", "/models/of-the-page")


@pytest.fixture(scope="module")
def reranker(api: Open, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The shelf has one reranker."""
    path = tiny_bert.bert(tmp_path_factory.mktemp("rank") / "rank.gguf", gguf.PoolingType.RANK)
    assert api.node.run("import", str(path), "--name", "ranks-of-the-page").returncode == 0
    yield
    api.control("POST", "/unload", {"model": "ranks-of-the-page"})
    api.control("DELETE", "/models/ranks-of-the-page")


@pytest.mark.many(keep=1)
@pytest.mark.usefixtures("vectors")
@pytest.mark.parametrize("number", range(6))
def test_a_snippet_of_python(api: Open, number: int) -> None:
    text = ours(snippets("python")[number], api)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.usefixtures("reranker")
@pytest.mark.parametrize("number", [1, 2])
async def test_a_snippet_of_curl(api: Open, number: int) -> None:
    words = shlex.split(ours(snippets("sh")[number], api).replace("\\\n", " "))
    assert words[0] == "curl"
    headers = dict(words[at + 1].split(": ", 1) for at, word in enumerate(words) if word == "-H")
    body = words[words.index("-d") + 1]
    async with aiohttp.ClientSession(headers=headers) as session, session.post(words[1], data=body.encode()) as answer:
        assert answer.status == 200
        data = json.loads(await answer.text())
        results = data["results"] if number == 1 else data["choices"]
        assert len(results) == 1
        assert number == 1 or results[0]["message"]["content"]


@pytest.mark.parametrize("number", [0, 1])
async def test_a_snippet_of_curl_among_the_commands(api: Open, number: int) -> None:
    texts = snippets("sh", PROJECT / "docs" / "commands.md")
    assert len(texts) == 2
    text = texts[number].replace("47114", str(api.port)).replace("$(poolhouse api key)", api.key)
    words = shlex.split(text.replace("\\\n", " "))
    assert words[0] == "curl"
    headers = dict(words[at + 1].split(": ", 1) for at, word in enumerate(words) if word == "-H")
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(words[1], data=words[words.index("-d") + 1].encode()) as answer,
    ):
        assert answer.status == 200, await answer.text()
        written = (await answer.json())["choices"][0]["message"]["content"]
    assert written
    if number == 1:
        assert json.loads(written)["polite"] in (True, False)


async def test_what_the_page_says_you_see_is_what_is_said(api: Open) -> None:
    """Each quoted sentence, by a request that goes wrong in that way."""
    key, json_ = {"X-Api-Key": api.key}, {"Content-Type": "application/json"}
    tiny = api.node.root.parent / "tiny.gguf"
    tiny.write_bytes((FAMILIES / "llama.gguf").read_bytes())
    assert api.node.run("import", str(tiny)).returncode == 0
    long, other, odd = ask("guide", "word " * 4096), ask("tiny", "x"), ask("gpt-4o", "x")
    wrong: list[tuple[str, dict[str, str], str]] = [
        (CHAT, json_, ask("guide", "x")),
        (CHAT, json_ | {"X-Api-Key": "ph-YOUR-KEY"}, ask("guide", "x")),
        ("/chat/completions", json_ | key, ask("guide", "x")),
        (CHAT, key | {"Content-Type": "application/x-www-form-urlencoded"}, ask("guide", "x")),
        *((CHAT, json_ | key, data) for data in (long, other, odd)),
        (CHAT, json_ | key | {"Host": "host.docker.internal"}, ask("guide", "x")),
        (CHAT, json_ | key | {"Origin": "http://localhost:3000"}, ask("guide", "x")),
    ]
    said = [await status_of(api.base, "POST", *group) for group in wrong]
    quoted = re.findall(r'^\| (\d{3}) "([^"]+)"', PAGE.read_text("utf-8"), re.MULTILINE)
    quoted = [item for item in quoted if item[0] != "422"]  # that one takes a model that fails
    assert len(quoted) == len(wrong)
    for status, words in quoted:
        pattern = ".+".join(map(re.escape, words.split("…")))
        assert any(
            (got, bool(re.search(pattern, body["error"]["message"]))) == (int(status), True) for got, body in said
        ), (words, said)
    api.control("DELETE", "/models/tiny")


@pytest.mark.long
def test_the_commands_are_there(api: Open) -> None:
    for line in (snippets("sh")[0] + snippets("sh")[3]).splitlines():
        words = line.split("#")[0].split()
        assert words[:2] == ["poolhouse", "api"]
        shown = api.node.run("api", words[2], "--help")
        assert shown.returncode == 0
        assert all(word in shown.stdout for word in words if word.startswith("--"))


def test_every_command_of_the_text_is_one_with_these_options() -> None:
    text = re.sub(r"\s+", " ", BLOCK.sub("", PAGE.read_text("utf-8")))
    named = set(re.findall(r"`(poolhouse [^`>]+)", text))
    assert len(named) >= 15
    for line in sorted(named):
        at: Any = typer.main.get_command(build())
        words = shlex.split(line)[1:]
        while words and hasattr(at, "commands"):
            at = at.commands[words.pop(0)]
        options = {name for param in at.params for name in param.opts + param.secondary_opts}
        assert {word for word in words if word.startswith("--")} <= options, line


async def test_every_route_of_the_page_is_one(http: aiohttp.ClientSession) -> None:
    table = [line for line in PAGE.read_text("utf-8").splitlines() if re.match(r"\| `(GET|POST) ", line)]
    routes = [
        route for line in table for route in re.findall(r"/(?:v1|api|metrics|openapi)[\w/.]*", line.split("|")[1])
    ]
    assert len(routes) >= 10
    for route in routes:
        async with http.get(route) as got:
            assert got.status in (200, 405), route
