"""`poolhouse api` against a real node: on, off, where, keys, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gateway.conftest import free_port
from tests.node.pool import TestNode, node


@pytest.fixture(scope="module")
def den(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestNode]:
    with node(tmp_path_factory.mktemp("api"), "den") as test_node:
        yield test_node


def said(den: TestNode, *words: str) -> str:
    done = den.run("api", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
def test_it_is_turned_on_and_off_and_says_where(den: TestNode) -> None:
    port = free_port()
    assert "cannot use the pool" in said(den, "status")
    assert f"`poolhouse api on --home {den.root} --lan` allows it" in said(den, "certificate")
    on = said(den, "on", "--port", str(port), "--may-load", "--ollama-without-key")
    assert f"http://127.0.0.1:{port}/v1" in on
    assert "Programs may load another model" in on
    assert "without a key" in on
    data = json.loads(said(den, "status", "--json"))
    assert (data["listens_at"], data["may_load"], data["keys"]) == (port, True, ["default"])
    assert "key" not in data  # only `api key` says it
    assert "cannot use the pool" in said(den, "off")
    settings = json.loads((Path(den.root) / "settings.json").read_text("utf-8"))
    assert settings["api"] == {"port": port, "may_load": True, "ollama_open": True}


@pytest.mark.long
def test_keys_are_shown_made_rotated_and_removed(den: TestNode) -> None:
    first = said(den, "key").strip()
    assert first.startswith("ph-")
    assert said(den, "key").strip() == first
    new = json.loads(said(den, "key", "--rotate", "--json"))
    assert (new["name"], new["key"] == first) == ("default", False)
    editor = said(den, "key", "editor").strip()
    assert editor not in (first, new["key"])
    assert "is revoked" in said(den, "key", "editor", "--remove")
    refused = den.run("api", "key", "../x")
    assert refused.returncode == 1
    assert "is not a valid name for a key" in refused.stderr
    assert den.run("api", "key", "--rotate", "--remove").returncode == 2
    mistyped = den.run("api", "key", "defualt", "--rotate")
    assert (mistyped.returncode, mistyped.stderr) == (1, "There is no key called defualt. Available: default.\n")
    assert said(den, "key").strip() == new["key"]


@pytest.mark.long
def test_host_names_and_origins_are_allowed_one_by_one_listed_and_removed(den: TestNode) -> None:
    port = str(free_port())
    said(den, "on", "--port", port, "--host-name", "host.docker.internal", "--host-name", "pool")
    on = said(den, "on", "--origin", "http://localhost:3000", "--origin", "app://obsidian.md/")
    assert "to these host names: host.docker.internal, pool." in on
    assert "from these origins may send requests: http://localhost:3000, app://obsidian.md." in " ".join(on.split())
    assert said(den, "status") == on
    on = said(den, "on", "--no-host-name", "pool", "--no-origin", "http://localhost:3000")
    data = json.loads(said(den, "status", "--json"))
    assert (data["host_names"], data["origins"]) == (["host.docker.internal"], ["app://obsidian.md"])
    refused = den.run("api", "on", "--origin", "*")
    assert (refused.returncode, "is not a web origin" in refused.stderr) == (1, True)
    said(den, "on", "--no-host-name", "host.docker.internal", "--no-origin", "app://obsidian.md")
    assert "these" not in said(den, "status")
    said(den, "off")
