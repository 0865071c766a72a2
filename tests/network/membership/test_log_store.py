"""The household on the disk: whole or not at all, and checked again when it is read."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from app.core.errors import Damaged, DoesNotFit, Reason
from app.core.household.membership import Log
from app.core.household.operations import FIRST_ROLES, Add
from app.core.ids import MachineId
from app.machine.paths import write_atomically
from app.network.identity import Identity
from app.network.membership.household_log import LogStore, decode_lines, new_household, sign_operation
from app.network.sockets import Address
from tests.network.nodes import an_identity


@pytest.fixture
async def me(tmp_path: Path) -> Identity:
    return (await an_identity(tmp_path / "home"))[1]


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    return LogStore(tmp_path, write_atomically)


async def test_what_was_saved_is_loaded(store: LogStore, me: Identity, tmp_path: Path) -> None:
    assert await store.load() is None
    _, other = await an_identity(tmp_path / "other")
    log = new_household(me, "den")
    add = sign_operation(me, Add(log.household, other.id, other.der, "attic", FIRST_ROLES))
    log = Log(log.household, (*log.operations, add))
    await store.save(log)
    assert await store.load() == log
    await store.forget()
    assert await store.load() is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: text.replace('"signature\\":\\"', '"signature\\":\\"AAAA'),
        lambda text: json.dumps({"household": "0" * 64, "operations": ["{}"]}),
        lambda text: json.dumps({**json.loads(text), "household": "0" * 64}),
        lambda text: json.dumps({"operations": []}),
        lambda text: "[]",
        lambda text: "",
    ],
)
async def test_a_damaged_log_is_never_half_used(  # type: ignore[no-untyped-def]
    store: LogStore, me: Identity, tmp_path: Path, damage
) -> None:
    await store.save(new_household(me, "den"))
    path = tmp_path / "household.json"
    path.write_text(damage(path.read_text()))
    with pytest.raises(Damaged) as damaged:
        await store.load()
    assert damaged.value.reason.code == "household_damaged"


@pytest.mark.parametrize("call", ["fsync", "replace"])
async def test_a_full_disk_leaves_the_old_log(
    store: LogStore, me: Identity, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    first = new_household(me, "den")
    await store.save(first)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, call, full)
    with pytest.raises(DoesNotFit) as full_disk:
        await store.save(new_household(me, "other"))
    assert full_disk.value.reason.facts["why"] == Reason("os_enospc")
    monkeypatch.undo()
    assert await store.load() == first
    assert sorted(os.listdir(tmp_path)) == ["home", "household.json"]


async def test_addresses_are_hints(store: LogStore, tmp_path: Path) -> None:
    machine = MachineId("a" * 64)
    places = tuple(Address("10.0.0.2", port) for port in range(1, 12))
    await store.save_addresses({machine: places})
    assert await store.load_addresses() == {machine: places[:8]}
    for broken in ("", "[]", '{"x": ["y"]}', '{"%s": [1]}' % ("a" * 64), '{"%s": ["x y"]}'):
        (tmp_path / "addresses.json").write_text(broken)
        assert await store.load_addresses() == {}


def test_lines_that_are_none_are_left_out(me: Identity) -> None:
    from app.core.household.operations import encode

    first = new_household(me, "den").operations[0]
    assert decode_lines(["x", encode(first).decode(), "{}"]) == [first]
