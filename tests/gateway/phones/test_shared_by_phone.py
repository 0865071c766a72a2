"""A phone asks a model that another host of the household has loaded, through the computer that serves its page."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.machine.interfaces import interfaces
from tests.gateway.conftest import free_port
from tests.gateway.phones.phone_door import Door, opened
from tests.node.pool import Json, TestNode, node, pair, paired
from tests.node.test_shared_models import until_shared

CHAT, MODELS = "/chat/v1/chat/completions", "/chat/v1/models"
ASK: Json = {"messages": [{"role": "user", "content": "Hello"}], "temperature": 0, "max_tokens": 6}


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TestNode, Door]]:
    """A host with a loaded model, and a member with a phone's door that has loaded nothing."""
    folder = tmp_path_factory.mktemp("shared_by_phone")
    write_settings(folder / "study")
    with paired(folder, "den", "study") as (host, member):
        host.work("/load", {"model": "guide", "split": [8], "measure": False})
        until_shared(member, ["guide@den"])
        yield host, opened(member)


def write_settings(home: Path) -> None:
    home.mkdir()
    (lo,) = [interface.name for interface in interfaces() if "127.0.0.1" in interface.addresses]
    (home / "settings.json").write_text(
        json.dumps({"name": home.name, "interfaces": [lo], "api": {"port": free_port()}}), "utf-8"
    )


async def test_it_is_listed_with_its_machine_and_answers_through_it(pool: tuple[TestNode, Door]) -> None:
    host, door = pool
    code = await asyncio.to_thread(door.code)
    async with door.session() as phone:
        async with phone.post("/chat/join", json={"code": code, "name": "Anna's phone"}) as answer:
            assert answer.status == 200
            headers = {"Authorization": f"Bearer {(await answer.json())['token']}"}
        async with phone.get(MODELS, headers=headers) as answer:
            listed = (await answer.json())["models"]
        assert [(model["name"], model["machine"]) for model in listed] == [("guide@den", "den")]
        used = (await asyncio.to_thread(door.control, "GET", "/phones"))["devices"][0]["used_at"]
        for stream in (False, True):
            order = ASK | {"model": "guide@den", "stream": stream}
            async with phone.post(CHAT, json=order, headers=headers) as answer:
                said = await answer.text()
                assert answer.status == 200, said
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
                assert ("data: [DONE]" in said) is stream
        now = (await asyncio.to_thread(door.control, "GET", "/phones"))["devices"][0]["used_at"]
        assert now > used  # a question that another host answers is a use, too
        async with phone.post(CHAT, json=ASK | {"model": "guide"}, headers=headers) as answer:
            assert answer.status == 404  # this computer has it, and has not loaded it
    assert not door.node.workers()
    kept = (await asyncio.to_thread(host.control, "GET", "/journal"))["answers"][-1]
    assert kept["whose"] == {"kind": "machine", "name": "study"}  # the host learns no more than a name
    await asyncio.sleep(0.05)  # TLS takes a moment to close


async def test_a_guest_s_phone_joins_there_and_asks_its_host(tmp_path: Path) -> None:
    write_settings(tmp_path / "visitor")
    with node(tmp_path / "den", "den") as host, node(tmp_path / "visitor", "visitor") as guest:
        await asyncio.to_thread(pair, host, guest, role="guest")
        await asyncio.to_thread(host.work, "/load", {"model": "guide", "split": [8], "measure": False})
        door = await asyncio.to_thread(opened, guest)
        code = await asyncio.to_thread(door.code)
        async with door.session() as phone:
            async with phone.post("/chat/join", json={"code": code, "name": "Ben's phone"}) as answer:
                assert answer.status == 200  # it is not passed on to the host, as other requests of a guest are
                headers = {"Authorization": f"Bearer {(await answer.json())['token']}"}
            async with phone.get(MODELS, headers=headers) as answer:
                listed = (await answer.json())["models"]
            assert [(model["name"], model["machine"]) for model in listed] == [("guide", "den")]
            async with phone.post(CHAT, json=ASK | {"model": "guide"}, headers=headers) as answer:
                assert answer.status == 200, await answer.text()
        assert not guest.workers()
        await asyncio.sleep(0.05)
