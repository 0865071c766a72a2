"""`poolhouse phones …` over a real node: turned on, a code, a device that joins, its removal, off."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest

from app.api.phones import PhoneCode
from app.cli.commands.phone_commands import _picture
from app.network.tls import upstream_context
from tests.gateway.phones.phone_door import Door, phone_door


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with phone_door(tmp_path_factory.mktemp("phones")) as made:
        yield made


def said(door: Door, *words: str) -> str:
    done = door.node.run("phones", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return " ".join(done.stdout.split())


def test_a_device_is_added_listed_and_removed(door: Door) -> None:
    assert f"{door.base}/chat/" in said(door, "on")
    assert "No device is connected." in said(door, "list")
    shown = said(door, "add")
    code = shown.partition("type this code: ")[2][:9]
    assert door.control("GET", "/phones")["fingerprint"] in shown.replace(" ", "")
    body = {"code": code, "name": "Anna's phone"}
    with httpx.Client(verify=upstream_context(door.pem)) as phone:
        assert phone.post(f"{door.base}/chat/join", json=body).status_code == 200
    listed = said(door, "list")
    assert "Anna's phone (" in listed
    assert "not used yet" in listed
    assert "Anna's phone may no longer chat here." in said(door, "remove", "Anna's phone")
    assert json.loads(said(door, "list", "--json"))["devices"] == []


def test_an_unknown_device_and_a_closed_door_are_refused(door: Door) -> None:
    unknown = door.node.run("phones", "remove", "nobody")
    assert unknown.returncode != 0
    assert "There is no phone called nobody." in unknown.stderr
    assert "may not chat here" in said(door, "off")
    refused = door.node.run("phones", "add")
    assert refused.returncode != 0
    assert "Turn it on first" in refused.stderr
    assert f"{door.base}/chat/" in said(door, "on")


def test_no_picture_is_drawn_into_a_pipe() -> None:
    assert _picture(PhoneCode("12345678", 300, ["https://192.168.1.20:47124/chat/"])) == []
