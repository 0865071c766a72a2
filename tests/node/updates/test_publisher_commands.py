"""The publisher's commands refuse mistakes in one sentence, before anything is written."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from app.machine.versions.layer_archive import write_archive
from app.machine.versions.tree_hash import tree_bytes, tree_hash
from app.network.messages import OLDEST_PROTOCOL, PROTOCOL
from app.node.updates.release import Release, ReleasedLayer
from app.node.updates.updater import ROOT
from installers.release.__main__ import main
from scripts.setup_errors import Trouble
from tests.node.updates.publisher import SYSTEM, Publisher, write_files

Refused = Callable[..., str]


@pytest.fixture
def publisher(tmp_path: Path) -> Publisher:
    return Publisher(tmp_path / "publisher")


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refused:
    """`refused("keys", "DIR")` returns the one sentence with which the command refuses."""

    def run(*words: object) -> str:
        monkeypatch.setattr(sys, "argv", ["release", *map(str, words)])
        assert main() == 1
        (sentence,) = capsys.readouterr().err.strip().splitlines()
        return sentence

    return run


def state_of(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_more_signatures_than_keys(refused: Refused, tmp_path: Path) -> None:
    assert "5 of 3 root keys" in refused("keys", tmp_path / "new", "--threshold", 5)
    assert not (tmp_path / "new").exists()


def rotation(publisher: Publisher, new: Path) -> list[object]:
    return ["rotate", "--keys", publisher.folder / "keys", "--repository", publisher.place, new]


def test_a_rotation_without_enough_old_keys(refused: Refused, publisher: Publisher, tmp_path: Path) -> None:
    for number in (1, 2):
        (publisher.folder / "keys" / f"root-{number}.pem").unlink()
    before = state_of(publisher.folder)
    assert "2 of the old root keys must sign" in refused(*rotation(publisher, tmp_path / "new"))
    assert not (tmp_path / "new").exists()
    assert state_of(publisher.folder) == before


def test_a_rotation_to_too_few_new_keys(refused: Refused, publisher: Publisher, tmp_path: Path) -> None:
    assert "2 of 1 root keys" in refused(*rotation(publisher, tmp_path / "new"), "--roots", 1)
    assert not (tmp_path / "new").exists()


def test_a_mistyped_repository(refused: Refused, publisher: Publisher, tmp_path: Path) -> None:
    keys = publisher.folder / "keys"
    words = ["rotate", "--keys", keys, "--repository", tmp_path / "mistyped", tmp_path / "new"]
    assert "no repository of updates" in refused(*words)
    assert not (tmp_path / "new").exists()


def test_a_repository_that_was_not_finished_is_created_again(
    refused: Refused, publisher: Publisher, tmp_path: Path
) -> None:
    (publisher.place / "metadata" / "timestamp.json").unlink()
    (publisher.folder / "keys" / ROOT).write_bytes(publisher.root.to_bytes())
    words = ["--keys", publisher.folder / "keys", "--repository", publisher.place, "--updates", tmp_path]
    assert f"needs a {ROOT}" in refused("publish", *words)  # the folder of the build is checked next
    assert publisher.repository.exists


def test_a_layer_of_another_size_is_not_signed(publisher: Publisher, tmp_path: Path) -> None:
    """Computers compare its size too, and would refuse it."""
    folder = write_files(tmp_path / "app", {"data.bin": b"x" * 100})
    archive = tmp_path / "app.tar.zst"
    write_archive(folder, archive, 1_700_000_000)
    layer = ReleasedLayer("app", tree_hash(folder), tree_bytes(folder) + 1)
    release = Release(version="2.0", protocol=PROTOCOL, oldest_protocol=OLDEST_PROTOCOL, layers=[layer])
    with pytest.raises(Trouble, match="would refuse the layer app"):
        publisher.repository.publish(SYSTEM, release, {layer.target: archive})


@pytest.mark.parametrize("content", [None, b"", b"{}", b"\xff"])
def test_a_first_release_without_the_root_of_the_keys(
    refused: Refused, publisher: Publisher, tmp_path: Path, content: bytes | None
) -> None:
    place = tmp_path / "new"
    if content is not None:
        (publisher.folder / "keys" / ROOT).write_bytes(content)
    words = ["--keys", publisher.folder / "keys", "--repository", place, "--updates", tmp_path]
    assert f"needs the file {ROOT} beside the keys" in refused("publish", *words)
    assert not place.exists()


def test_a_folder_that_is_a_file(refused: Refused, publisher: Publisher, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    assert str(tmp_path / "file") in refused("keys", tmp_path / "file" / "keys")
    (publisher.folder / "keys" / ROOT).write_bytes(publisher.root.to_bytes())
    words = ["--keys", publisher.folder / "keys", "--repository", tmp_path / "file", "--updates", tmp_path]
    assert "is missing" in refused("publish", *words) or str(tmp_path / "file") in refused("publish", *words)


@pytest.mark.parametrize("damage", [b"", b"{}", None])
def test_a_damaged_repository_is_named(refused: Refused, publisher: Publisher, damage: bytes | None) -> None:
    publisher.publish("1.1")
    words = ["--keys", publisher.folder / "keys", "--repository", publisher.place]
    (listed,) = (publisher.place / "targets").glob(f"*.{SYSTEM}.json")
    content = listed.read_bytes()
    listed.unlink() if damage is None else listed.write_bytes(b"x" + damage)
    assert "is missing or damaged" in refused("withdraw", *words, "1.1")
    listed.write_bytes(content)
    for name in ("2.snapshot.json", "timestamp.json"):
        file = publisher.place / "metadata" / name
        content = file.read_bytes()
        file.unlink() if damage is None else file.write_bytes(damage)
        assert ("is missing" if damage is None else "is damaged") in refused("renew", *words)
        file.write_bytes(content)


def test_a_damaged_list_of_unnamed_files_only_starts_their_days_anew(publisher: Publisher) -> None:
    publisher.publish("1.1")
    (publisher.place / "unnamed.json").write_bytes(b"[")
    publisher.publish("1.2")
    assert [release.version for release in publisher.repository.channel(SYSTEM).releases] == ["1.2", "1.1"]
