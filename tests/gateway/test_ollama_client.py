"""Ollama's own Python client against a real node with the Guide."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import aiohttp
import gguf
import ollama
import pytest

from app.gateway.dialects.ollama_routes import parameter_size
from testbed import tiny
from tests import tiny_bert
from tests.gateway.conftest import Open
from tests.gateway.tool_cases import HERMES

Json = dict[str, Any]
HELLO = [{"role": "user", "content": "Hello. Who are you?"}]
GREEDY = {"temperature": 0, "num_predict": 12}


@pytest.fixture(scope="module")
def client(api: Open) -> Iterator[Any]:
    with ollama.Client(host=api.base, headers={"Authorization": f"Bearer {api.key}"}) as item:
        yield item


@pytest.fixture(scope="module")
def plain(client: Any) -> str:
    return str(chat(client).message.content)


def chat(client: Any, **changes: Any) -> Any:
    return client.chat(**{"model": "guide", "messages": HELLO, "options": GREEDY} | changes)


CHATS: dict[str, tuple[Json, Callable[[Any, str], bool]]] = {
    "greedy twice is the same": ({}, lambda a, p: a.message.content == p),
    "its figures": (
        {},
        lambda a, _: (a.done, a.done_reason, a.eval_count) == (True, "length", 12)
        and a.total_duration > 0 and a.prompt_eval_count > 8,
    ),
    "latest": ({"model": "guide:latest"}, lambda a, _: a.model == "guide"),
    "the end": ({"options": {"temperature": 0, "num_predict": -1}}, lambda a, _: a.done_reason == "stop"),
    "a stop": (
        {"options": GREEDY | {"stop": [" Guide"]}}, lambda a, p: a.message.content == p.split(" Guide")[0] != p,
    ),
    "a schema": (
        {"format": {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]},
         "options": {"num_predict": 60}},
        lambda a, _: isinstance(json.loads(a.message.content)["a"], bool),
    ),
    "options it does not know": (
        {"options": GREEDY | {"num_ctx": 99, "mirostat": 0}}, lambda a, p: a.message.content == p,
    ),
    "kept alive": ({"keep_alive": "5m"}, lambda a, p: a.message.content == p),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("case", CHATS)
def test_a_chat(client: Any, plain: str, case: str) -> None:
    changes, holds = CHATS[case]
    answer = chat(client, **changes)
    assert holds(answer, plain), answer


def test_streams_say_what_the_whole_says(client: Any, plain: str) -> None:
    parts = list(chat(client, stream=True))
    assert "".join(part.message.content for part in parts) == plain
    assert [part.done for part in parts] == [False] * (len(parts) - 1) + [True]
    whole = client.generate(model="guide", prompt=HELLO[0]["content"], options=GREEDY)
    assert whole.response == plain
    parts = list(client.generate(model="guide", prompt=HELLO[0]["content"], options=GREEDY, stream=True))
    assert "".join(part.response for part in parts) == plain
    raw = client.generate(model="guide", prompt="Once", raw=True, options=GREEDY)
    assert raw.prompt_eval_count < whole.prompt_eval_count


def test_the_models(client: Any) -> None:
    (model,) = client.list().models
    assert (model.model, model.details.family, model.details.format) == ("guide", "llama", "gguf")
    assert model.size > 1e6


@pytest.mark.parametrize(
    ("changes", "status"),
    [({"model": "llama9"}, 404), ({"messages": [], "model": "llama9"}, 404), ({"format": {"type": "yaml"}}, 400),
     ({"options": {"temperature": -4}}, 400),
     ({"tools": [{"type": "function", "function": {"name": "f"}}]}, 400)],
)  # fmt: skip
def test_a_refusal_is_the_clients_own_error(client: Any, changes: Json, status: int) -> None:
    with pytest.raises(ollama.ResponseError) as refused:
        chat(client, **changes)
    assert refused.value.status_code == status
    assert refused.value.error.endswith(".")


def test_who_asks_nothing_has_the_model_loaded(client: Any) -> None:
    for result in (client.generate(model="guide"), chat(client, messages=[], keep_alive="5m")):
        assert (result.model, result.done, result.done_reason) == ("guide", True, "load")
    (loaded,) = client.ps().models
    assert loaded.model == "guide"
    assert loaded.context_length >= 1024
    for never in (0, "0s"):
        with pytest.raises(ollama.ResponseError, match="guide stays loaded because others may be"):
            client.generate(model="guide", keep_alive=never)
        assert chat(client, keep_alive=never).done  # its owner loaded it, for whomever
    assert [model.model for model in client.ps().models] == ["guide"]


@pytest.mark.long
def test_what_a_question_brought_goes_with_its_answer(api: Open, client: Any, plain: str) -> None:
    api.control("POST", "/unload")
    result = chat(client, keep_alive=0, stream=True)
    assert "".join(part.message.content for part in result) == plain
    assert client.ps().models == []
    gone = client.generate(model="guide", keep_alive=0)
    assert gone.done_reason == "unload"


async def test_so_it_does_with_who_leaves_before_the_end(api: Open, http: aiohttp.ClientSession) -> None:
    await asyncio.to_thread(api.control, "POST", "/unload")
    ask = {"model": "guide", "messages": [{"role": "user", "content": "Tell me all."}], "keep_alive": 0}
    async with http.post("/api/chat", json=ask | {"options": {"num_predict": 500}}) as answer:
        await answer.content.readline()
        answer.close()
    models: list[Any] = [None]
    async with asyncio.timeout(30):
        while models:
            async with http.get("/api/ps") as answer:
                models = (await answer.json())["models"]


async def test_who_looks_for_ollama_hears_that_it_runs_and_is_new_enough(
    api: Open, http: aiohttp.ClientSession
) -> None:
    async with http.head("/") as answer:  # its command line, before all else
        assert (answer.status, await answer.read()) == (200, b"")
    async with http.get("/") as answer:
        assert await answer.text() == "Ollama is running"
    async with http.get("/api/version") as answer:
        version = (await answer.json())["version"]
    assert tuple(map(int, version.split("."))) >= (0, 6, 4)  # Copilot in VS Code wants that
    async with aiohttp.ClientSession(api.base) as keyless, keyless.get("/") as answer:
        assert (answer.status, list(await answer.json())) == (401, ["error"])


def test_a_model_is_shown(client: Any) -> None:
    result = client.show("guide:latest")
    assert result.details.family == result.modelinfo["general.architecture"] == "llama"
    assert result.modelinfo["llama.context_length"] >= 1024
    assert result.capabilities == ["completion"]  # the Guide's template has no tools
    (listed,) = [model for model in client.list().models if model.model == "guide"]
    for details in (result.details, listed.details):
        assert (details.families, details.parent_model) == (["llama"], "")
        assert re.fullmatch(r"\d+(\.\d+)?[KMB]", details.parameter_size)
        assert details.quantization_level
    assert result.modelinfo["general.parameter_count"] > 10**6
    assert "tokenizer.ggml.tokens" not in result.modelinfo
    assert "<|im_start|>" in result.template
    assert re.search(r"^temperature +0.8$", result.parameters, re.MULTILINE)
    assert result.modified_at == listed.modified_at is not None
    assert result.license
    with pytest.raises(ollama.ResponseError, match="no model called llama9"):
        client.show("llama9")


@pytest.mark.long
def test_what_a_file_can_do_is_shown_before_it_is_loaded(
    api: Open, client: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("shown")
    files = {
        "tools": (tiny.llama(folder / "t.gguf", layers=2, template=HERMES), ["completion", "tools"]),
        "vectors": (tiny_bert.bert(folder / "v.gguf"), ["embedding"]),
        "judge": (tiny_bert.bert(folder / "j.gguf", gguf.PoolingType.RANK), []),
    }
    for name, (path, can) in files.items():
        assert api.node.run("import", str(path), "--name", name).returncode == 0
        try:
            result = client.show(name)
            assert result.capabilities == can
            assert result.modelinfo["general.parameter_count"] > 0
        finally:
            api.control("DELETE", f"/models/{name}")


@pytest.mark.parametrize(
    ("count", "written"),
    [(0, ""), (999, "999"), (1_500, "2K"), (134_515_008, "134.52M"), (134_000_000, "134M"),
     (8_030_261_248, "8.0B"), (70_000_000_000, "70B"), (1_200_000_000_000, "1200B")],
)  # fmt: skip
def test_a_number_of_weights_is_written_as_ollama_writes_it(count: int, written: str) -> None:
    assert parameter_size(count) == written


@pytest.mark.parametrize("name", ["suffix", "template"])
def test_what_is_not_supported_is_said(client: Any, name: str) -> None:
    with pytest.raises(ollama.ResponseError):
        client.generate(model="guide", prompt="x", **{name: "{{ 1 }}"})


def test_it_opens_without_a_key_only_where_the_owner_allows_it(api: Open, plain: str) -> None:
    with ollama.Client(host=api.base) as keyless:
        _try_without_key(api, keyless, plain)


def _try_without_key(api: Open, keyless: Any, plain: str) -> None:
    with pytest.raises(ollama.ResponseError) as refused:
        keyless.list()
    assert refused.value.status_code == 401
    api.control("POST", "/api", {"ollama_open": True})
    try:
        assert chat(keyless).message.content == plain
        assert keyless._client.head("/").status_code == 200
        import openai  # only Ollama's part is open

        with (
            openai.OpenAI(api_key="x", base_url=f"{api.base}/v1", max_retries=0) as other,
            pytest.raises(openai.AuthenticationError),
        ):
            other.models.list()
    finally:
        api.control("POST", "/api", {"ollama_open": False})
    with pytest.raises(ollama.ResponseError):
        keyless.list()
