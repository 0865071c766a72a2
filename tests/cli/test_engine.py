"""`poolhouse engine …`, with a node that answers and without one."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.fake_node import FakeNode
from tests.machine.engine_packs.fake_pack import LIBRARY, folder_pack, name_of

CARD = {"name": "Vulkan0", "description": "Big card", "kind": "gpu", "api": "Vulkan", "total_bytes": 8 << 30}
PACK = {
    "name": "vulkan-0.3.36-linux-x86_64-12345678", "backend": "vulkan", "label": "Vulkan", "size_bytes": 43 << 20,
    "built": "2026-11-30", "current": True, "tested": True, "devices": [CARD], "lacks": ["bf16 arithmetic"],
}  # fmt: skip
OTHER = {**PACK, "name": "vulkan-old", "current": False, "devices": [], "lacks": []}
REASON = {"code": "pack_no_device", "facts": {"backend": "Vulkan"}}
COPIED = {"copied_from": "study", "sha256": "e" * 64}
FAILED = {**OTHER, "name": "vulkan-bad", "problem": "No card.", "problem_facts": REASON}


def test_the_list(poolhouse: Any, answering: Any) -> None:
    answering({("GET", "/engines"): {"packs": [PACK, {**OTHER, "previous": True}, FAILED | COPIED]}})
    said = poolhouse("engine", "list")
    assert said.code == 0, said.err
    lines = " ".join(said.out.split())
    assert f"Copied from study. Checksum {'e' * 64}" in lines
    assert "vulkan-0.3.36-linux-x86_64-12345678, 43.0 MiB, built on 2026-11-30: in use." in lines
    assert "It was built without bf16 arithmetic. Big card: 8.0 GiB, memory of its own." in lines
    assert "vulkan-old, 43.0 MiB, built on 2026-11-30: previously used." in lines
    assert "vulkan-bad, 43.0 MiB, built on 2026-11-30: not used. No card." in lines


def test_what_each_command_asks(poolhouse: Any, answering: Any, tmp_path: Path) -> None:
    answer = {"packs": [PACK, OTHER], "changed": [PACK["name"]]}
    node = answering({
        ("POST", "/engines"): answer,
        ("POST", "/engines/vulkan/use"): answer,
        ("POST", "/engines/rollback"): answer,
        ("POST", "/engines/test"): answer,
        ("DELETE", "/engines/vulkan"): answer,
        ("GET", "/engines"): answer,
    })  # fmt: skip
    for command in (
        ["add", str(tmp_path / "pack.tar.gz")], ["use", "vulkan"], ["rollback", "vulkan"], ["test"], ["test", "vulkan"],
        ["remove", "vulkan", "--yes"],
    ):  # fmt: skip
        said = poolhouse("engine", *command)
        assert said.code == 0, said.err
        assert PACK["name"] in said.out
        assert "vulkan-old" not in said.out
    bodies = [body for method, _, body in node.asked if method != "GET"]
    assert bodies[0] == {"path": str(tmp_path / "pack.tar.gz")}
    assert bodies[1:] == [{}, {"backend": "vulkan"}, {"backend": None}, {"backend": "vulkan"}, {}]


def test_nothing_is_removed_unasked(poolhouse: Any, answering: Any) -> None:
    node = answering({("GET", "/engines"): {"packs": [PACK]}})
    assert poolhouse("engine", "remove", "vulkan").code != 0
    assert [method for method, _, _ in node.asked] == ["GET"]


LEFT = "No pack is left for Big card. Models will run on the processor the next time they are loaded."


def test_a_removal_tells_what_follows(poolhouse: Any, answering: Any) -> None:
    packs = [{**PACK, "removal": LEFT}, {**OTHER, "removal": "No model uses it."}]
    answering({
        ("GET", "/engines"): {"packs": packs},
        ("DELETE", f"/engines/{PACK['name']}"): {"packs": packs[1:], "changed": [PACK["name"]]},
        ("DELETE", "/engines/vulkan"): {"packs": packs, "changed": [PACK["name"]]},
    })  # fmt: skip
    removed = poolhouse("engine", "remove", str(PACK["name"]), "--yes")
    assert f"was deleted. {LEFT}" in " ".join(removed.out.split())
    unclear = poolhouse("engine", "remove", "vulkan", "--yes")  # the name of both
    assert LEFT not in " ".join(unclear.out.split())


def test_a_pack_whose_card_is_switched_off_is_not_called_in_use(poolhouse: Any, answering: Any) -> None:
    idle = "Big card is not used. It is switched off."
    answering({("GET", "/engines"): {"packs": [{**PACK, "idle": idle}]}})
    lines = " ".join(poolhouse("engine", "list").out.split())
    assert "built on 2026-11-30: selected, but not in use now. Big card is not used. It is switched off." in lines
    assert ", in use" not in lines


def test_without_a_node_the_packs_of_the_home_are_changed(poolhouse: Any, home: Path, tmp_path: Path) -> None:
    home.mkdir()
    said = poolhouse("engine", "list")
    assert "No engine pack is installed" in said.out
    source = folder_pack(tmp_path)
    said = poolhouse("engine", "add", str(source))
    assert said.code == 1  # its library is none
    assert f"{name_of()}, " in said.out
    assert "not used" in " ".join(said.out.split())
    assert poolhouse("engine", "list", "--json").json["packs"][0]["name"] == name_of()
    assert "library could not be loaded" in poolhouse("engine", "use", "vulkan").err
    (source / LIBRARY).unlink()
    assert "is incomplete" in poolhouse("engine", "add", str(source)).err
    assert "was deleted" in poolhouse("engine", "remove", "vulkan", "-y").out
    assert "No engine pack called vulkan" in poolhouse("engine", "remove", "vulkan", "-y").err


OFFER = {
    "machine": "a" * 64, "name": "study", "pack": "vulkan-0.3.36-linux-x86_64", "backend": "vulkan", "label": "Vulkan",
    "built": "2026-11-30", "size_bytes": 43 << 20, "sha256": "c" * 64,
}  # fmt: skip
OLD_ENGINE = {"code": "pack_other_engine", "facts": {"pack": "vulkan", "theirs": "0.3.35", "own": "0.3.36"}}


def copying(state: str, **more: Any) -> dict[str, Any]:
    now = {"machine": "study", "pack": OFFER["pack"], "state": state, "done_bytes": 1, "total_bytes": 2, **more}
    return {"packs": [PACK], "copy": now}


def test_what_others_offer(poolhouse: Any, answering: Any) -> None:
    odd = {**OFFER, "name": "old", "problem": "It is for another engine.", "problem_facts": OLD_ENGINE}
    half = {**OFFER, "name": "half", "here_bytes": 1 << 20}
    answering({("GET", "/engines/offers"): {"offers": [OFFER, odd, half]}})
    lines = " ".join(poolhouse("engine", "offers").out.split())
    assert f"vulkan-0.3.36-linux-x86_64 from study, 43.0 MiB, built on 2026-11-30 Checksum {'c' * 64}" in lines
    assert "from old, 43.0 MiB, built on 2026-11-30 It is for another engine." in lines
    assert "1.0 MiB of it is already here" in lines
    answering({("GET", "/engines/offers"): {"offers": []}})
    assert "`poolhouse share on`" in poolhouse("engine", "offers").out


def test_a_copy_asks_for_the_confirmed_hash_and_waits(poolhouse: Any, answering: Any) -> None:
    node = answering({
        ("GET", "/engines/offers"): {"offers": [OFFER]},
        ("POST", "/engines/copy"): copying("copying"),
        ("GET", "/engines"): copying("done"),
    })  # fmt: skip
    assert poolhouse("engine", "copy", "vulkan").code != 0  # nobody is there to be asked
    assert all(method == "GET" for method, _, _ in node.asked)
    named = ("engine", "copy", "vulkan", "--from", "study", "--checksum")
    for missing in (("engine", "copy", "vulkan", "--yes"), (*named, "c" * 15, "--yes")):
        assert "To copy a pack with --yes, add --from" in poolhouse(*missing).err
    assert "No machine offers" in poolhouse(*named, "d" * 16, "--yes").err
    assert all(method == "GET" for method, _, _ in node.asked)
    said = poolhouse(*named, "C" * 16, "--yes")
    assert said.code == 0, said.err
    assert "vulkan-0.3.36-linux-x86_64 is in use." in said.out
    order = {"machine": "a" * 64, "sha256": "c" * 64, "pack": OFFER["pack"], "built": "2026-11-30"}
    assert ("POST", "/engines/copy", {**order, "size_bytes": 43 << 20}) in node.asked


def test_a_copy_that_cannot_be_is_said(poolhouse: Any, answering: Any) -> None:
    other = {**OFFER, "name": "old", "sha256": "d" * 64}
    failed = copying("failed", problem="No.", problem_facts=REASON)
    answering({
        ("GET", "/engines/offers"): {"offers": [OFFER, other, {**OFFER, "pack": "hip-x", "problem_facts": OLD_ENGINE}]},
        ("POST", "/engines/copy"): failed,
    })  # fmt: skip
    assert "No machine offers an engine pack called metal" in poolhouse("engine", "copy", "metal").err
    assert "Several engine packs called vulkan are offered" in poolhouse("engine", "copy", "vulkan").err
    assert "is for llama.cpp 0.3.35" in poolhouse("engine", "copy", "hip").err
    agreed = ("--from", "study", "--checksum", "c" * 64, "--yes")
    assert "No graphics card was found" in poolhouse("engine", "copy", "ccc", *agreed).err


@pytest.mark.skipif(sys.platform == "win32", reason="interrupts by SIGINT")
@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("canceled", "was canceled, and nothing of it was kept"),
        ("done", "had already passed its test, so it is in use"),
    ],
)
def test_an_interrupted_copy_says_what_became_of_it(home: Path, state: str, words: str) -> None:
    named = ("vulkan", "--from", "study", "--checksum", "c" * 64, "--yes", "--home", str(home))
    answers: Any = {
        ("GET", "/engines/offers"): {"offers": [OFFER]},
        ("POST", "/engines/copy"): copying("testing"),
        ("GET", "/engines"): copying("testing"),
        ("POST", "/engines/copy/cancel"): copying(state),
    }
    with FakeNode(home, answers) as node:
        process = subprocess.Popen(
            [sys.executable, "-m", "app", "engine", "copy", *named], stderr=subprocess.PIPE, text=True
        )
        while not any(path == "/engines" for _, path, _ in node.asked):
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert words in " ".join(err.split())
    assert process.returncode != 0


def test_an_export_without_a_node(poolhouse: Any, home: Path, tmp_path: Path) -> None:
    home.mkdir()
    poolhouse("engine", "add", str(folder_pack(tmp_path)))
    place = tmp_path / "stick"
    place.mkdir()
    said = poolhouse("engine", "export", "vulkan", str(place))
    assert (place / "vulkan.tar.gz").stat().st_size > 100
    assert "was written to" in said.out
    assert poolhouse("engine", "export", "vulkan", str(place)).code != 0  # it would replace the file, unasked
    assert poolhouse("engine", "export", "vulkan", str(place), "--yes").code == 0
