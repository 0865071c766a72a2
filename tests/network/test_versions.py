"""A machine of another version: what its first bytes are answered with, and what a person reads of it here."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from app import __version__
from app.core.errors import Reason, Refused
from app.core.reasons import said
from app.network.messages import OLDEST_PROTOCOL, PROTOCOL
from app.network.network import Network
from tests.network.nodes import Node, Nodes, at, opened, until
from tests.network.peer.test_peer_links import Puppet
from tests.network.test_replaced_links import gone

# As the version before protocol 2 sent them, byte for byte; only who speaks is filled in.
FIRST = (
    '{{"type":"{kind}","protocol":1,"build":"0.1.0","id":"{id}","instance":"0123456789abcdef0123456789abcdef",'
    '"name":"attic","engines":["llama.cpp 0.3.36"],"lendable_bytes":1073741824,"total_bytes":17179869184,'
    '"device":"CPU","peer_port":{port}}}'
)
# What the one after the next may say: fields of the greeting are the same in every version.
LATER = FIRST.replace('"protocol":1,"build":"0.1.0"', '"protocol":100,"build":"7.0"')
OLDER = f"attic runs 0.1.0 and den runs {__version__}, so they cannot share a model. Update attic."
NEWER = f"den runs {__version__} and attic runs 7.0, so they cannot share a model. Update den."


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[Nodes]:
    async with opened(tmp_path) as made:
        yield made


def words(form: str, kind: str, attic: Node) -> str:
    return form.format(kind=kind, id=attic.network.id, port=attic.network.port)


@pytest.mark.parametrize(("form", "sentence"), [(FIRST, OLDER), (LATER, NEWER)], ids=["1", "100"])
async def test_another_version_that_dials_is_told_who_is_to_be_updated(nodes: Nodes, form: str, sentence: str) -> None:
    assert 1 < OLDEST_PROTOCOL <= PROTOCOL < 100
    den, attic = await gone(nodes)
    async with Puppet(den, attic) as puppet:
        await puppet.socket.send_str(words(form, "hello", attic))
        async with asyncio.timeout(30):
            answer = json.loads((await puppet.socket.receive()).data)
            assert (await puppet.socket.receive()).type.name in ("CLOSE", "CLOSED", "CLOSING")
    assert (answer["type"], answer["code"]) == ("refuse", "version_differs")
    assert said(Reason(answer["code"], answer["facts"])) == sentence
    assert not den.network.links
    shown = den.network.link_manager.failed[attic.network.id]  # also here, where nobody could dial
    assert said(shown) == sentence


@pytest.mark.parametrize(("form", "sentence"), [(FIRST, OLDER), (LATER, NEWER)], ids=["1", "100"])
async def test_another_version_that_is_dialed_is_named_too(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch, form: str, sentence: str
) -> None:
    den, attic = await gone(nodes)

    async def old(self: Network, member: Any, socket: web.WebSocketResponse, host: str) -> None:
        await socket.receive()
        await socket.send_str(words(form, "hello_ack", attic))
        await socket.receive()

    monkeypatch.setattr(Network, "_on_control", old)
    serving = await nodes.prepare("attic")
    async with serving.network:
        member = den.network.members[attic.network.id]
        with pytest.raises(Refused) as refused:
            await den.network.link_manager.call(member, [at(serving)])
    assert said(refused.value) == sentence
    await until(lambda: not den.network.links)
