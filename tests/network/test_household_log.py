"""Names, roles and removals between whole nodes, also for those who were away when it happened."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.core.errors import DoesNotFit, Reason, Refused, Unreachable
from app.core.household.membership import Log, members
from app.core.household.operations import Add, Role, encode
from app.core.ids import MachineId, PipelineId
from app.core.reasons import said
from app.network import messages
from app.network.membership.household_log import sign_operation
from tests.network.nodes import SOON_SECONDS, Node, Nodes, full_disk, opened, pair, until

ALL = (Role.ADMIN, Role.HOST, Role.LENDER)


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[Nodes]:
    async with opened(tmp_path) as made:
        yield made


def name_of(seen_by: Node, node: Node) -> str:
    return seen_by.network.members[node.network.id].name


def roles_of(seen_by: Node, node: Node) -> set[Role]:
    return set(seen_by.network.members[node.network.id].roles)


async def all_linked(*some: Node) -> None:
    await until(lambda: all(len(node.network.links) == len(some) - 1 for node in some))


async def test_names_and_roles_reach_everybody(nodes: Nodes) -> None:
    den, attic, loft = await nodes.paired("den", "attic", "loft")
    await all_linked(den, attic, loft)
    await den.network.rename(loft.network.id, " studio \u202e")
    await den.network.set_roles(attic.network.id, [Role.LENDER])
    rest = (attic, loft)
    await until(lambda: all(name_of(node, loft) == "studio" for node in rest))
    await until(lambda: all(roles_of(node, attic) == {Role.LENDER} for node in rest))
    assert loft.network.members[loft.network.id].renamed
    # told once its port goes by them, too: the log knows them a moment before
    lends = frozenset({Role.LENDER})
    await until(lambda: loft.members[-1][attic.network.id].roles == lends)
    with pytest.raises(Refused) as raised:  # its certificate still opens the link; stages need a host
        await attic.network.link(loft.network.id).offer_stage(PipelineId(bytes(16)), b"{}")
    assert raised.value.reason == Reason("role_missing_here", {"name": "loft"})


async def test_only_an_admin_names_others_and_gives_roles(nodes: Nodes) -> None:
    den, attic = await nodes.paired("den", "attic")
    await all_linked(den, attic)
    for change in (
        attic.network.rename(den.network.id, "x"),
        attic.network.set_roles(attic.network.id, ALL),
        attic.network.remove(den.network.id),
    ):
        with pytest.raises(Refused) as raised:
            await change
        assert raised.value.reason.code == "not_admin"
    await den.network.set_roles(attic.network.id, ALL)
    await until(lambda: roles_of(attic, attic) == set(ALL))
    await attic.network.rename(den.network.id, "study")
    await until(lambda: name_of(den, den) == "study")
    with pytest.raises(Refused) as raised:
        await den.network.set_roles(attic.network.id, [Role.LENDER])
    assert raised.value.reason.code == "admin_stays"
    assert "Add --admin" in said(raised.value)
    with pytest.raises(Refused) as raised:
        await den.network.rename("0" * 64, "x")  # type: ignore[arg-type]
    assert raised.value.reason.code == "machine_unknown"


async def test_who_was_away_learns_it_from_any_member(nodes: Nodes) -> None:
    """The admin is off when the last one comes back: a plain member tells it everything."""
    attic, loft = [await nodes.open(name) for name in ("attic", "loft")]
    den, away = await nodes.prepare("den"), await nodes.prepare("away")
    async with den.network:
        for node in (attic, loft):
            await pair(den, node)
        async with away.network:
            await pair(den, away)
            await all_linked(den, attic, loft, away)
            port = away.network.port
        await until(lambda: away.network.id not in den.network.links)
        await den.network.rename(attic.network.id, "study")
        await den.network.remove(loft.network.id)
        await until(lambda: name_of(attic, attic) == "study")
        await until(lambda: loft.network.id not in attic.network.members)
    await until(lambda: not attic.network.links)
    back = await nodes.open("away", port=port)
    assert loft.network.id in back.network.members
    await until(lambda: attic.network.id in back.network.links)
    await until(lambda: loft.network.id not in back.network.members)
    assert name_of(back, attic) == "study"
    assert loft.network.id not in back.network.links


async def test_a_removed_machine_loses_its_links_to_all_soon(nodes: Nodes) -> None:
    den, attic, loft, barn = await nodes.paired("den", "attic", "loft", "barn")
    await all_linked(den, attic, loft, barn)
    channels = [
        await node.network.link(other.network.id).open_data(PipelineId(bytes([number] * 16)))
        for number, (node, other) in enumerate([(loft, den), (loft, attic), (attic, loft), (loft, barn), (barn, loft)])
    ]
    began = time.monotonic()
    await den.network.remove(loft.network.id)
    for channel in channels:
        with pytest.raises(Unreachable):
            await channel.receive()
        await channel.close()
    rest = (den, attic, barn)
    await until(lambda: not loft.network.links)
    await until(lambda: not any(loft.network.id in node.network.links for node in rest))
    took = time.monotonic() - began
    assert took < SOON_SECONDS, took
    assert loft.network.dismissed
    await until(lambda: all(len(node.network.links) == 2 for node in rest))
    # told of the removal before the link was cut: nobody looks lost
    await until(lambda: all(loft.network.id not in node.members[-1] for node in rest))
    await until(lambda: not any(node.network.addresses(loft.network.id) for node in rest))


async def test_what_a_removed_admin_did_to_others_stays(nodes: Nodes) -> None:
    den, attic = await nodes.paired("den", "attic")
    await den.network.set_roles(attic.network.id, ALL)
    await until(lambda: roles_of(attic, attic) == set(ALL))
    loft = await nodes.open("loft")
    await pair(attic, loft)
    await all_linked(den, attic, loft)
    await attic.network.rename(den.network.id, "study")
    await attic.network.set_roles(den.network.id, [Role.ADMIN, Role.LENDER])
    await until(lambda: roles_of(den, den) == {Role.ADMIN, Role.LENDER})
    [line] = den.network.added_by(attic.network.id)
    await den.network.remove(attic.network.id, [line.id])
    await until(lambda: attic.network.id not in loft.network.members)
    assert set(loft.network.members) == {den.network.id, loft.network.id}
    assert (name_of(loft, den), roles_of(loft, den)) == ("study", {Role.ADMIN, Role.LENDER})


async def test_one_line_that_nobody_can_use_ends_no_node(nodes: Nodes) -> None:
    """An admin adds what is no certificate. Nobody takes that in or relays it, and all go on, also after a start."""
    den, attic = await nodes.paired("den", "attic")
    loft = await nodes.open("loft")
    await pair(den, loft)
    await all_linked(den, attic, loft)
    await den.network.set_roles(attic.network.id, ALL)
    await until(lambda: roles_of(loft, attic) == set(ALL))
    log, garbage = den.network.log, b"no certificate"
    assert log is not None
    machine = MachineId(hashlib.sha256(garbage).hexdigest())
    bad = sign_operation(attic.network._identity, Add(log.household, machine, garbage, "x", ALL))
    line = messages.Log(operations=[encode(bad).decode("ascii")])
    await attic.network.link(den.network.id).send(line)
    await attic.network.rename(loft.network.id, "study")  # comes after it on the same link
    await until(lambda: name_of(den, loft) == name_of(loft, loft) == "study")
    assert den.network.log == loft.network.log
    assert machine not in den.network.members
    barn = await nodes.open("barn")
    await pair(den, barn)
    await until(lambda: barn.network.id in loft.network.links)


async def test_what_follows_the_log_outlives_a_fault(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    den = await nodes.open("den")
    faults: list[str] = []
    whole = den.network._reconcile

    async def faulty() -> None:
        if not faults:
            faults.append("once")
            raise ValueError("a line that nobody thought of")
        await whole()

    monkeypatch.setattr(den.network, "_reconcile", faulty)
    attic = await nodes.open("attic")
    await pair(den, attic)
    await until(lambda: den.members and attic.network.id in den.members[-1])
    assert faults


async def test_a_removal_that_the_disk_does_not_take_has_never_been(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    den, attic = await nodes.paired("den", "attic")
    await all_linked(den, attic)
    with monkeypatch.context() as disk:
        disk.setattr(den.network._log._store, "_write_file", full_disk)
        with pytest.raises(DoesNotFit, match="household_unsaved"):
            await den.network.remove(attic.network.id)
        with pytest.raises(DoesNotFit, match="household_unsaved"):
            await den.network.rename(attic.network.id, "loft")
        assert set(den.network.members) == {den.network.id, attic.network.id}
        assert name_of(den, attic) == "attic"
    await den.network.remove(attic.network.id)  # now there is room
    await until(lambda: attic.network.dismissed)


async def test_a_change_is_told_once_it_is_kept(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change that is not stored may still be taken back, and a machine that hears of a removal disconnects the
    other."""
    den, attic = await nodes.paired("den", "attic")
    await all_linked(den, attic)
    keeper, done = den.network._log, list[set[str]]()
    tell, save = keeper._changed, keeper._store.save

    def changed() -> None:
        done.append(set(keeper.members))
        tell()

    async def saved(log: Log) -> None:
        await save(log)
        done.append({"kept"})

    monkeypatch.setattr(keeper, "_changed", changed)
    monkeypatch.setattr(keeper._store, "save", saved)
    await den.network.remove(attic.network.id)
    assert done[:2] == [{"kept"}, {den.network.id}]


async def test_of_two_changes_at_once_the_one_that_was_kept_stays(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one meets a full disk while the second stands on it already."""
    den, attic = await nodes.paired("den", "attic")
    await all_linked(den, attic)
    store = den.network._log._store
    write, failing = store._write_file, [full_disk]

    def one_fails(path: Path, content: bytes) -> None:
        is_first = failing and path.name == "household.json"
        (failing.pop() if is_first else write)(path, content)

    monkeypatch.setattr(store, "_write_file", one_fails)
    first, second = await asyncio.gather(
        den.network.rename(attic.network.id, "loft"),
        den.network.rename(den.network.id, "study"),
        return_exceptions=True,
    )
    assert isinstance(first, DoesNotFit)
    assert not isinstance(second, BaseException), second
    assert name_of(den, den) == "study"
    await until(lambda: name_of(attic, den) == "study")
    kept = await store.load()
    assert kept is not None
    assert members(kept)[den.network.id].name == "study"


async def test_a_removal_is_heeded_where_the_disk_is_full_and_the_node_goes_on(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    den, attic, loft = await nodes.paired("den", "attic", "loft")
    await all_linked(den, attic, loft)
    await until(lambda: loft.network._log.addresses(attic.network.id))
    tried: list[str] = []

    def full(path: Path, _content: bytes) -> None:
        tried.append(path.name)
        full_disk()

    with monkeypatch.context() as disk:
        disk.setattr(loft.network._log._store, "_write_file", full)
        await den.network.remove(attic.network.id)
        await until(lambda: loft.members[-1].keys() == {den.network.id, loft.network.id})
        await until(lambda: attic.network.id not in loft.network.links)
        await until(lambda: {"household.json", "addresses.json"} <= set(tried))
    await den.network.rename(loft.network.id, "studio")
    await until(lambda: name_of(loft, loft) == "studio")
