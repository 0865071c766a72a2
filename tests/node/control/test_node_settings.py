"""Tests of the owner's settings of the node itself, shown and changed on a real one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.core.errors import BadInput, Unreachable
from app.node.control.node_settings import used_bytes
from tests.node.pool import TestNode, node, pair


@pytest.fixture(scope="module")
def den(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestNode]:
    with node(tmp_path_factory.mktemp("own") / "den", "den") as test_node:
        yield test_node


async def test_they_are_told_with_what_is_in_force(den: TestNode) -> None:
    async with den.client() as client:
        value, models = await client.get("/settings"), await client.get("/folder")
    assert value["port_fixed"]  # by --port
    assert value["port"] == den.ready["peer_port"]
    assert value["keys"] == "in a file only you can read"
    assert value["home"] == str(den.root)
    paths = {folder["what"]: folder["path"] for folder in value["folders"]}
    assert paths.keys() == {"models", "stages", "kept", "logs"}
    assert paths["models"] == models["folder"]
    loopback = next(interface for interface in value["interfaces"] if interface["kind"] == "loopback")
    assert not loopback["unasked"]


async def test_what_is_saved_waits_for_the_next_start(den: TestNode) -> None:
    async with den.client() as client:
        name = (await client.get("/settings"))["interfaces"][0]["name"]
        reply = await client.post("/settings", {"port": 4242, "interfaces": [name]})
        assert reply["restart"]
        assert [interface["chosen"] for interface in reply["interfaces"] if interface["name"] == name] == [True]
        saved = json.loads((den.root / "settings.json").read_text())
        assert (saved["port"], saved["interfaces"]) == (4242, [name])
        reply = await client.post("/settings", {"interfaces": []})
        assert not reply["restart"]
        with pytest.raises(BadInput, match="interface_unknown"):
            await client.post("/settings", {"interfaces": ["nothing0"]})


async def test_a_machine_is_looked_for_where_a_person_says(den: TestNode, tmp_path: Path) -> None:
    with node(tmp_path / "attic", "attic") as attic:
        pair(den, attic)
        async with den.client() as client:
            path = f"/machines/{attic.ready['id']}/address"
            reached = await client.post(path, {"address": "127.0.0.1:1"})
            assert reached["reached"]["name"] == "attic"  # it is linked anyway
            with pytest.raises(BadInput, match="peer_is_this"):
                await client.post("/machines/den/address", {"address": "127.0.0.1:1"})
            with pytest.raises(BadInput, match="address_wrong"):
                await client.post(path, {"address": "nowhere"})
    async with den.client() as client:
        async with asyncio.timeout(60):  # den may hear of its end a little later
            while (await client.get("/status"))["machines"][attic.ready["id"]]["online"]:  # noqa: ASYNC110  another process
                await asyncio.sleep(0.05)
        with pytest.raises(Unreachable):
            await client.post(path, {"address": "127.0.0.1:1"})
        checks = (await client.get("/doctor?whole=1"))["checks"]
    away = next(check for check in checks if check["machine"] == "attic")
    assert (away["ok"], away["code"]) == (False, "peer_unreachable")
    assert {"Engine", "Disk", "Memory", "Home", "Key"} <= {check["name"] for check in checks}


async def test_a_machine_is_called_what_it_is_called_now(den: TestNode, tmp_path: Path) -> None:
    with node(tmp_path / "shed", "shed") as shed:
        pair(den, shed)
        shed.process.kill()  # it says no goodbye
        async with den.client() as client:
            ref = shed.ready["id"]
            async with asyncio.timeout(60):
                while (await client.get("/status"))["machines"][ref]["online"]:  # noqa: ASYNC110  another process
                    await asyncio.sleep(0.05)
            with pytest.raises(Unreachable):
                await client.post(f"/machines/{ref}/address", {"address": "127.0.0.1:1"})
            await client.post(f"/machines/{ref}/name", {"name": "hut"})
            checks = (await client.get("/doctor"))["checks"]
    away = next(check for check in checks if check["machine"] == "hut")
    assert away["cause"].startswith("hut ")
    assert not any("shed" in check["cause"] for check in checks)


def test_folders_are_counted_without_links(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    (tmp_path / "gone").symlink_to(tmp_path / "nothing")
    assert used_bytes(tmp_path.rglob("*")) == 5
