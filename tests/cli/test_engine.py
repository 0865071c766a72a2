"""`poolhouse engine …`, with a node that answers and without one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.machine.engine_packs.fake_pack import LIBRARY, folder_pack, name_of

CARD = {"name": "Vulkan0", "description": "Big card", "kind": "gpu", "api": "Vulkan", "total_bytes": 8 << 30}
PACK = {
    "name": "vulkan-0.3.36-linux-x86_64-12345678", "backend": "vulkan", "label": "Vulkan", "size_bytes": 43 << 20,
    "built": "2026-11-30", "current": True, "tested": True, "devices": [CARD], "lacks": ["bf16 arithmetic"],
}  # fmt: skip
OTHER = {**PACK, "name": "vulkan-old", "current": False, "devices": [], "lacks": []}
REASON = {"code": "pack_no_device", "facts": {"backend": "Vulkan"}}
FAILED = {**OTHER, "name": "vulkan-bad", "problem": "No card.", "problem_facts": REASON}


def test_the_list(poolhouse: Any, answering: Any) -> None:
    answering({("GET", "/engines"): {"packs": [PACK, {**OTHER, "previous": True}, FAILED]}})
    said = poolhouse("engine", "list")
    assert said.code == 0, said.err
    lines = " ".join(said.out.split())
    assert "vulkan-0.3.36-linux-x86_64-12345678, 43.0 MiB, built on 2026-11-30: in use." in lines
    assert "It was built without bf16 arithmetic. Big card: 8.0 GiB, memory of its own." in lines
    assert "vulkan-old, 43.0 MiB, built on 2026-11-30: used before." in lines
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
    assert (
        "built on 2026-11-30: chosen, but it computes nothing now. Big card is not used. It is switched off." in lines
    )
    assert "in use" not in lines


def test_without_a_node_the_packs_of_the_home_are_changed(poolhouse: Any, home: Path, tmp_path: Path) -> None:
    home.mkdir()
    said = poolhouse("engine", "list")
    assert "No engine pack is installed" in said.out
    source = folder_pack(tmp_path)
    said = poolhouse("engine", "add", str(source))
    assert said.code == 1  # its library is none
    assert f"{name_of()}, " in said.out
    assert "not used" in said.out
    assert poolhouse("engine", "list", "--json").json["packs"][0]["name"] == name_of()
    assert "library could not be loaded" in poolhouse("engine", "use", "vulkan").err
    (source / LIBRARY).unlink()
    assert "is incomplete" in poolhouse("engine", "add", str(source)).err
    assert "was deleted" in poolhouse("engine", "remove", "vulkan", "-y").out
    assert "No engine pack called vulkan" in poolhouse("engine", "remove", "vulkan", "-y").err
