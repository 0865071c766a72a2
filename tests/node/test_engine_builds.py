"""Machines with another build of the engine: known over the real wire, named, and given no part of a model."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

import pytest

from app.client import NodeClient
from app.core.errors import BadInput
from tests.node.pool import BUSY, TestNode, node, pair

OTHER = "0.3.35"
ASK = {"prompt": "Hello", "max_tokens": 3, "sampling": {"temperature": 0}}


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TestNode, TestNode]]:
    """The second one finds another version of llama-cpp-python, and so do its workers."""
    folder = tmp_path_factory.mktemp("builds")
    about = folder / "other" / f"llama_cpp_python-{OTHER}.dist-info" / "METADATA"
    about.parent.mkdir(parents=True)
    about.write_text(f"Metadata-Version: 2.1\nName: llama-cpp-python\nVersion: {OTHER}\n", "utf-8")
    before = os.environ.get("PYTHONPATH", "")
    with node(folder / "den", "den") as den, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(folder / "other"), before])))
        with node(folder / "attic", "attic") as attic:
            pair(den, attic)
            yield den, attic


@pytest.mark.long
async def test_a_lender_with_another_build_holds_nothing_and_is_named(pool: tuple[TestNode, TestNode]) -> None:
    den, _ = pool
    async with den.client() as host:
        async with asyncio.timeout(20 * BUSY):
            while "left_out_engine" not in await planned(host):  # noqa: ASYNC110  asked in a child
                await asyncio.sleep(0.05)
        with pytest.raises(BadInput, match="engine_in_the_way") as caught:
            await host.work("POST", "/load", {"model": "guide", "split": [3, 3, 2]})
        assert caught.value.reason.facts["machine"] == "attic"
        assert caught.value.reason.facts["engine"] == OTHER
        loaded = (await host.work("POST", "/load", {"model": "guide", "measure": False}))["loaded"]
        assert {stage["machine"] for stage in loaded["stages"]} == {"den"}
        (why,) = [item for item in loaded["why"] if item["code"] == "left_out_engine"]
        assert f"attic is not used because its engine is llama-cpp-python {OTHER}" in why["sentence"]
        done = await host.work("POST", "/ask", ASK)
    assert len(done["token_ids"]) == 3


async def planned(host: NodeClient) -> list[str]:
    """The codes of all that is to be said of a plan."""
    reply = await host.work("POST", "/plan", {"model": "guide", "measure": False})
    return [item["code"] for item in reply["why"]]


@pytest.mark.long
async def test_a_host_with_another_build_computes_alone(pool: tuple[TestNode, TestNode]) -> None:
    den, attic = pool
    async with den.client() as other, attic.client() as host:
        await other.post("/unload")
        with pytest.raises(BadInput, match="engine_in_the_way"):
            await host.work("POST", "/load", {"model": "guide", "split": [3, 3, 2]})
        loaded = (await host.work("POST", "/load", {"model": "guide", "measure": False}))["loaded"]
        assert {stage["machine"] for stage in loaded["stages"]} == {"attic"}
        assert "plan_engine" in [item["code"] for item in loaded["why"]]
        done = await host.work("POST", "/ask", ASK)
    assert len(done["token_ids"]) == 3
