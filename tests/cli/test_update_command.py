"""`poolhouse update` with a stick: which machines it warns about, and what it says when nothing is newer."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from app import __version__, launcher
from app.network.messages import PROTOCOL
from app.node.updates.updater import Build
from tests.cli.conftest import Said
from tests.cli.fake_node import FakeNode
from tests.node.updates.publisher import Copy, Publisher


@pytest.fixture
def publisher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Publisher:
    made = Publisher(tmp_path / "publisher")
    monkeypatch.setattr(Build, "of_this_copy", lambda: made.build)
    return made


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Copy:
    made = Copy(tmp_path / "user", __version__)
    monkeypatch.setenv(launcher.FOLDER, str(made.store.folder))
    monkeypatch.setenv(launcher.BASE, str(made.base))
    return made


@pytest.mark.parametrize(("is_newer", "warned"), [(True, ["attic"]), (False, [])])
def test_the_warning_is_about_the_release_on_the_stick(
    poolhouse: Callable[..., Said], answering: Callable[..., FakeNode], publisher: Publisher, copy: Copy,
    is_newer: bool, warned: list[str],
) -> None:  # fmt: skip
    """The node knows another release, and warns about that one."""
    state = {"warning": "The warning of another release.", "protocols": {"attic": PROTOCOL, "cellar": PROTOCOL + 1}}
    answering({("GET", "/updates"): state})
    if is_newer:
        publisher.publish("99.1", protocol=PROTOCOL + 2, oldest=PROTOCOL + 1)
    else:
        publisher.publish("99.1")
    said = poolhouse("update", "--check", "--from", str(publisher.place), "--json")
    assert said.code == 0, said.err
    warning = said.json.get("warning", "")
    assert re.findall("attic|cellar|another", warning) == warned
    assert ("99.1" in warning) is is_newer


def test_an_installed_update_that_waits_for_a_restart_is_named(
    poolhouse: Callable[..., Said], home: Path, publisher: Publisher, copy: Copy
) -> None:
    home.mkdir()
    publisher.publish(__version__)
    words = poolhouse("update", "--from", str(publisher.place)).out
    assert f"You have the newest version, {__version__}." in words
    publisher.publish("99.1")
    assert poolhouse("update", "--yes", "--from", str(publisher.place)).code == 0
    assert copy.chosen == "99.1"
    words = " ".join(poolhouse("update", "--from", str(publisher.place)).out.split())
    assert words.startswith("Poolhouse 99.1 is installed. Restart Poolhouse to use it")
    assert "newest" not in words


def test_who_is_asked_and_who_need_not_be(poolhouse: Callable[..., Said], answering: Callable[..., FakeNode]) -> None:
    machines = [
        {"name": "attic", "answer": "asked"}, {"name": "cellar", "answer": "settled"}, {"name": "den", "answer": ""},
    ]  # fmt: skip
    answering({("POST", "/updates/ask"): {"machines": machines, "version": "99.1"}})
    assert poolhouse("update", "--all").out.splitlines() == [
        "attic: asked on its screen",
        "cellar: already updated, or declined by its owner",
        "den: update it by hand",
    ]
