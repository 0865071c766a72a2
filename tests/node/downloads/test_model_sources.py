"""Getting models from a real node: the routes, the snapshot, and `poolhouse pull` over a hub on loopback."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from app.core.errors import AppError
from testbed import tiny
from tests.catalog.hub_server import FILE, REPOSITORY, TOKEN, Faults, HubServer, serving
from tests.node.pool import TestNode, node
from tests.vision.tiny_models import projector, text_model

pytestmark = pytest.mark.asyncio(loop_scope="module")

Json = dict[str, Any]
OFFER = {
    "id", "name", "maker", "about", "about_in", "good_at", "n_languages", "parameters", "active_parameters",
    "architecture",    "n_layers", "context_length", "kv_bytes_per_token", "license", "gated", "splits", "repository",
    "revision", "page", "files",
}  # fmt: skip
FILE_KEYS = {
    "file", "parts", "quantization", "size_bytes", "sha256", "recommended", "usable", "reason", "on_shelf",
    "download", "reason_facts",
}  # fmt: skip


@contextmanager
def node_of(server: HubServer, root: Path) -> Iterator[TestNode]:
    """A node that takes its models from this server, in a home where no other app is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_ENDPOINT", server.hub.endpoint)
        patch.setenv("HOME", str(root / "person"))
        for name in ("HF_HOME", "HF_HUB_CACHE", "OLLAMA_MODELS", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
            patch.delenv(name, raising=False)
        with node(root / "home", "den") as made:
            yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def both(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[tuple[HubServer, TestNode], None]:
    """One hub and one node for all tests here."""
    folder = tmp_path_factory.mktemp("shop")
    data = tiny.llama(folder / "served.gguf", layers=4, width=256, ffn=512).read_bytes()
    async with serving(data) as up:
        manager = node_of(up, folder)
        made = await asyncio.to_thread(manager.__enter__)
        try:
            yield up, made
        finally:
            await asyncio.to_thread(manager.__exit__, None, None, None)


@pytest.fixture
def server(both: tuple[HubServer, TestNode]) -> HubServer:
    """The hub, without faults."""
    both[0].faults = Faults()
    return both[0]


@pytest_asyncio.fixture(loop_scope="module")
async def den(both: tuple[HubServer, TestNode], server: HubServer) -> AsyncGenerator[TestNode, None]:
    """The node; afterwards it has nothing but the Guide."""
    yield both[1]
    async with both[1].client() as client:
        for download in (await client.get("/downloads"))["downloads"]:
            await client.delete(f"/downloads/{download['id']}")
        for model in (await client.get("/models"))["models"]:
            if not model["builtin"]:
                await client.delete(f"/models/{model['name']}")


async def until(client: Any, holds: Callable[[Json], bool]) -> Json:
    """The only download, once that holds of it."""
    async with asyncio.timeout(30):
        while True:
            for now in (await client.get("/status"))["downloads"].values():
                if holds(now):
                    return dict(now)
            await asyncio.sleep(0.05)


async def ended(client: Any) -> Json:
    return await until(client, lambda now: now["state"] in ("done", "failed"))


async def test_from_the_search_to_the_shelf_and_off_again(den: TestNode, server: HubServer, tmp_path: Path) -> None:
    async with den.client() as client:
        before = (await client.get("/status"))["shelf"]["changes"]
        result = (await client.get("/search?q=tiny"))["models"][0]
        assert result["repository"] == REPOSITORY
        listing = await client.get(f"/search/files?repo={REPOSITORY}")
        file = listing["files"][0]
        assert set(file) == FILE_KEYS
        assert file["recommended"]
        order = {"repository": REPOSITORY, "file": file["file"], "revision": listing["revision"]}
        await client.post("/downloads", order)
        done = await ended(client)
        assert done["state"] == "done"
        (model,) = [m for m in (await client.get("/models"))["models"] if not m["builtin"]]
        assert (model["downloaded"], model["from"], model["missing"]) == (True, "Poolhouse", None)
        listed = (await client.get(f"/search/files?repo={REPOSITORY}"))["files"][0]
        assert listed["on_shelf"] == model["name"] == done["model"]
        assert (await client.get("/status"))["shelf"]["changes"] == before + 1
        await asyncio.to_thread(os.rename, model["path"], tmp_path / "elsewhere")
        (missing,) = [m for m in (await client.get("/models"))["models"] if not m["builtin"]]
        assert "is missing" in missing["missing"]
        await asyncio.to_thread(os.rename, tmp_path / "elsewhere", model["path"])
        removed = await client.delete(f"/models/{model['name']}")
        assert removed["file_deleted"]
        assert removed["freed_bytes"] == len(server.data)
        assert not list((den.root / "models" / "files").iterdir())
        assert (await client.get("/status"))["hub"]["last_contact"] > 0
        assert (await client.get("/status"))["downloads"] == {}


async def test_a_projector_that_is_here_is_listed_as_present(den: TestNode, server: HubServer, tmp_path: Path) -> None:
    served = server.data, dict(server.others)
    server.data = text_model("gemma3", "gemma3", tmp_path / "tiny.gguf").read_bytes()
    server.others["mmproj-F16.gguf"] = projector("gemma3", 32, tmp_path / "mmproj.gguf").read_bytes()
    try:
        async with den.client() as client:

            async def listed() -> Json:
                return dict((await client.get(f"/search/files?repo={REPOSITORY}"))["projectors"][0])

            await client.post("/downloads", {"repository": REPOSITORY, "file": FILE})
            name = (await ended(client))["model"]
            assert (await listed())["on_shelf"] is None
            await client.post("/downloads", {"repository": REPOSITORY, "file": "mmproj-F16.gguf"})
            await until(client, lambda now: now["file"] == "mmproj-F16.gguf" and now["state"] == "done")
            assert (await listed())["on_shelf"] == name
    finally:
        server.data = served[0]
        server.others.clear()


async def test_the_catalog_and_the_files_of_other_apps(den: TestNode) -> None:
    other = den.root.parent / "person" / ".lmstudio" / "models" / "maker" / "Tiny" / "Tiny-F16.gguf"
    other.parent.mkdir(parents=True)
    tiny.llama(other, layers=2)
    async with den.client() as client:
        catalog = await client.get("/catalog")
        assert all(set(offer) == OFFER for offer in catalog["models"])
        assert all(set(f) == FILE_KEYS for offer in catalog["models"] for f in offer["files"])
        value = await client.get("/found")
        (file,) = value["files"]
        assert (file["app"], file["name"], file["usable"]) == ("LM Studio", "Tiny-F16", True)
        taken = await client.work("POST", "/models", {"path": file["path"], "name": file["name"]})
        assert taken["model"]["from"] == "LM Studio"
        assert (await client.get("/found"))["files"][0]["on_shelf"] == "Tiny-F16"
        other.unlink()
        (model,) = [m for m in (await client.get("/models"))["models"] if not m["builtin"]]
        assert "LM Studio has deleted" in model["missing"]
        removed = await client.delete("/models/Tiny-F16")
        assert not removed["file_deleted"]


async def test_a_gated_model_with_a_token(den: TestNode, server: HubServer) -> None:
    server.faults.gated = True
    async with den.client() as client:
        order = {"repository": REPOSITORY, "file": FILE}
        key = (await client.post("/downloads", order))["download"]["id"]
        assert (await ended(client))["code"] == "hub_token_needed"
        value = await client.get("/token")
        assert (value["set"], value["where"]) == (False, "in a file only you can read")
        assert (await client.post("/token", {"token": TOKEN}))["set"]
        assert TOKEN not in json.dumps(await client.get("/token"))
        await client.post(f"/downloads/{key}/resume")
        assert (await ended(client))["state"] == "done"
        assert not (await client.delete("/token"))["set"]
        assert await client.delete(f"/downloads/{key}") == {"removed": key, "freed_bytes": 0}
        assert len((await client.get("/models"))["models"]) == 2


ODD: tuple[tuple[str, str, Json | None], ...] = (
    ("POST", "/downloads", {"repository": "../..", "file": "x.gguf"}),
    ("POST", "/downloads", {"repository": REPOSITORY, "file": "x.gguf", "more": 1}),
    ("POST", "/downloads", {}),
    ("POST", "/downloads/none/pause", {}),
    ("DELETE", "/downloads/none", None),
    ("POST", "/token", {"token": "two words"}),
    ("GET", "/search?q=x&limit=1000", None),
    ("GET", "/search?q=x&limit=000000001" + "9" * 5000, None),
    ("GET", "/search?q=" + "x" * 300, None),
    ("GET", "/search/files?repo=x", None),
)


async def test_odd_questions_get_a_sentence(den: TestNode) -> None:
    async with den.client() as client:
        for method, path, body in ODD:
            with pytest.raises(AppError) as caught:
                await client._call(method, path, body, dict)
            assert caught.value.reason.code != "bug", path


def pull(den: TestNode, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "app", "pull", *words, "--home", str(den.root)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.long
async def test_pull_on_the_command_line(den: TestNode) -> None:
    said = await asyncio.to_thread(den.run, "pull", REPOSITORY, "--name", "tiny", "--json")
    assert said.returncode == 0, said.stderr
    assert json.loads(said.stdout)["model"]["name"] == "tiny"
    wrong = await asyncio.to_thread(den.run, "pull", "maker/None-GGUF")
    assert wrong.returncode == 1
    assert "is not on" in wrong.stderr
    listed = await asyncio.to_thread(den.run, "pull")
    assert "qwen3-8b" in listed.stdout
    removed = await asyncio.to_thread(den.run, "rm", "tiny", "--yes")
    assert "its file was deleted" in removed.stdout


@pytest.mark.skipif(os.name != "posix", reason="Ctrl-C cannot be sent to one process there")
async def test_ctrl_c_pauses_a_pull_and_cancel_deletes_it(den: TestNode, server: HubServer) -> None:
    server.faults.hold = asyncio.Event()
    process = await asyncio.to_thread(pull, den, REPOSITORY)
    async with den.client() as client:
        await until(client, lambda now: now["state"] == "running")
        assert process.stderr is not None
        await asyncio.to_thread(process.stderr.readline)  # now it knows which download is its own
        process.send_signal(signal.SIGINT)
        _, said = await asyncio.to_thread(process.communicate)
        assert process.returncode == 130
        assert "Paused" in said
        (download,) = (await client.get("/downloads"))["downloads"]
        assert download["state"] == "paused"
        gone = await asyncio.to_thread(den.run, "pull", REPOSITORY, "--cancel")
        assert "canceled" in gone.stdout
        assert (await client.get("/downloads"))["downloads"] == []
