"""A model goes from one real node to another where its owner allows that: commands, routes, roles; no internet."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from app.core.errors import AppError
from testbed import tiny
from tests.catalog.hub_server import FILE, REPOSITORY, HubServer, closed_hub, serving
from tests.node.pool import TestNode, node, pair

pytestmark = pytest.mark.asyncio(loop_scope="module")

Json = dict[str, Any]
SECONDS = 30.0


@dataclass
class Household:
    """den has downloaded a model; attic uses models too, the shed only lends. These two reach no hub."""

    server: HubServer
    den: TestNode
    attic: TestNode
    shed: TestNode

    @property
    def question(self) -> Json:
        return {"repository": REPOSITORY, "file": FILE, "sha256": self.server.sha256}

    def order(self) -> Json:
        return self.question | {"machine": self.den.ready["id"]}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def home(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Household, None]:
    folder = tmp_path_factory.mktemp("copies")
    data = tiny.llama(folder / "served.gguf", layers=4, width=256, ffn=512).read_bytes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder / "person"))
        for name in ("HF_HOME", "HF_HUB_CACHE", "OLLAMA_MODELS", "XDG_DATA_HOME"):
            patch.delenv(name, raising=False)
        async with serving(data) as server:
            patch.setenv("HF_ENDPOINT", server.hub.endpoint)
            with node(folder / "den", "den") as den:
                patch.setenv("HF_ENDPOINT", closed_hub().endpoint)
                with node(folder / "attic", "attic") as attic, node(folder / "shed", "shed") as shed:
                    await asyncio.to_thread(pair, den, attic)
                    await asyncio.to_thread(pair, den, shed, role="lend")
                    answer = await ask(den, "/downloads", {"repository": REPOSITORY, "file": FILE})
                    await ended(den, answer["download"]["id"])
                    yield Household(server, den, attic, shed)


async def ask(test_node: TestNode, path: str, body: Json | None = None) -> Json:
    return await asyncio.to_thread(test_node.control, "POST", path, body)


async def ended(test_node: TestNode, key: str) -> Json:
    async with asyncio.timeout(SECONDS):
        while True:
            listed = (await asyncio.to_thread(test_node.control, "GET", "/downloads"))["downloads"]
            now: Json = next(result for result in listed if result["id"] == key)
            if now["state"] in ("done", "failed"):
                return now
            await asyncio.sleep(0.05)


@pytest.mark.long
async def test_nothing_is_given_before_the_owner_allows_it(home: Household) -> None:
    assert (await ask(home.attic, "/copies", home.question))["machines"] == []
    begun = await ask(home.attic, "/downloads", home.order())
    failed = await ended(home.attic, begun["download"]["id"])
    assert failed["code"] == "copy_not_offered"
    assert failed["reason"].startswith("den does not share its models.")


async def test_it_is_copied_with_its_hash_checked_and_the_hub_is_asked_nothing(home: Household) -> None:
    shared = await asyncio.to_thread(home.den.run, "share", "on", "--json")
    assert json.loads(shared.stdout) == {"on": True}
    count = len(home.server.requests)
    den = {"id": home.den.ready["id"], "name": "den"}
    assert (await ask(home.attic, "/copies", home.question))["machines"] == [den]
    begun = await ask(home.attic, "/downloads", home.order())
    done = await ended(home.attic, begun["download"]["id"])
    assert (done["state"], done["source"], done["sha256"]) == ("done", "den", home.server.sha256)
    assert len(home.server.requests) == count
    models = (await asyncio.to_thread(home.attic.control, "GET", "/models"))["models"]
    path = next(Path(model["path"]) for model in models if model["name"] == done["model"])
    assert (await asyncio.to_thread(path.read_bytes)) == home.server.data


async def test_who_only_lends_gets_no_model(home: Household) -> None:
    assert (await ask(home.shed, "/copies", home.question))["machines"] == []
    begun = await ask(home.shed, "/downloads", home.order())
    failed = await ended(home.shed, begun["download"]["id"])
    assert failed["code"] == "role_missing_here"


async def test_a_machine_that_nobody_knows_is_refused_at_once(home: Household) -> None:
    with pytest.raises(AppError) as refused:
        await ask(home.attic, "/downloads", home.question | {"machine": "0" * 64})
    assert refused.value.reason.code == "peer_offline"
    with pytest.raises(AppError) as odd:
        await ask(home.attic, "/copies", home.question | {"sha256": "../../etc/passwd"})
    assert odd.value.reason.code == "bad_request"


async def test_a_file_that_was_imported_is_given_until_somebody_touches_it(home: Household, tmp_path: Path) -> None:
    await asyncio.to_thread(home.den.run, "share", "on", "--json")
    path = tiny.llama(tmp_path / "theirs.gguf", seed=7)
    data = path.read_bytes()
    async with home.den.client() as client:
        await client.work("POST", "/models", {"path": str(path)})
    question = {"repository": "somebody/theirs", "file": "theirs.gguf", "sha256": hashlib.sha256(data).hexdigest()}
    den = {"id": home.den.ready["id"], "name": "den"}
    assert (await ask(home.attic, "/copies", question))["machines"] == [den]
    begun = await ask(home.attic, "/downloads", question | {"machine": den["id"]})
    done = await ended(home.attic, begun["download"]["id"])
    assert (done["state"], done["source"]) == ("done", "den")
    about = path.stat()
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns + 1_000_000_000))
    assert (await ask(home.attic, "/copies", question))["machines"] == []
