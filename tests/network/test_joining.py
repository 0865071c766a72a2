"""Pairing two whole nodes when something is in the way: nothing half-joined remains."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from app.core.errors import AppError, Busy, DoesNotFit, Refused
from app.core.household import pairing
from app.core.household.operations import Role
from app.machine.paths import write_atomically
from app.network import network as network_module
from app.network.membership import pairing_window
from app.network.membership.household_log import JoinResult, LogStore
from app.network.sockets import Address
from tests.network.nodes import HOST_AND_LENDER, Nodes, full_disk, pair, until


def code_of(error: pytest.ExceptionInfo[AppError]) -> str:
    return error.value.reason.code


async def test_windows_are_shown_and_end_done(nodes: Nodes) -> None:
    den, attic = await nodes.open("den"), await nodes.open("attic")
    assert not den.network.members
    window = await den.network.open_pairing((Role.LENDER,))
    assert window.address.port in (den.network.port + 1, window.address.port)
    with pytest.raises(Busy):
        await den.network.open_pairing((Role.LENDER,))
    assert (await attic.network.join(window.address, window.code)).id == den.network.id
    assert await window.result() == attic.network.id
    kinds = [type(state) for state in den.windows]
    assert kinds == [pairing.Open, pairing.Checking, pairing.Exchange, pairing.Admitted, pairing.Done]
    await until(lambda: all(node.members and len(node.members[-1]) == 2 for node in (den, attic)))
    assert den.members[-1][attic.network.id].roles == {Role.LENDER}
    with pytest.raises(Refused) as refused:  # only an admin opens windows
        await attic.network.open_pairing((Role.LENDER,))
    assert code_of(refused) == "not_admin"
    with pytest.raises(Refused) as refused:
        await attic.network.join(window.address, window.code)
    assert code_of(refused) == "household_already"


async def test_a_newcomer_whose_name_is_taken_gets_a_number(nodes: Nodes) -> None:
    den, loud, wide = await nodes.open("den"), await nodes.open("DEN"), await nodes.open("ｄｅｎ")
    for newcomer in (loud, wide):
        await pair(den, newcomer)
    await until(lambda: all(len(node.network.members) == 3 for node in (den, loud, wide)))
    for node in (den, loud, wide):
        names = [node.network.members[other.network.id].name for other in (den, loud, wide)]
        assert names == ["den", "DEN 2", "ｄｅｎ 3"], "the same everywhere, and in the order of pairing"
    assert [den.network.link(node.network.id).name for node in (loud, wide)] == names[1:]
    den.name = "loft"  # what it calls itself now is nobody else's either
    another = await nodes.open("LOFT")
    await pair(den, another)
    assert den.network.members[another.network.id].name == "LOFT 2"


async def test_a_wrong_code_leaves_both_as_they_were(nodes: Nodes) -> None:
    den, attic = await nodes.open("den"), await nodes.open("attic")
    window = await den.network.open_pairing(HOST_AND_LENDER)
    with pytest.raises(Refused) as refused:
        await attic.network.join(window.address, f"{(int(window.code) + 1) % 1_000_000:06}")
    assert code_of(refused) == "code_wrong"
    assert attic.network.log is None
    assert set(den.network.members) == {den.network.id}
    await asyncio.sleep(0.3)
    await attic.network.join(window.address, window.code)


async def test_without_the_first_link_nobody_is_paired(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A firewall lets the pairing port through and not the peer port."""
    den, attic = await nodes.open("den"), await nodes.open("attic")
    window = await den.network.open_pairing(HOST_AND_LENDER)
    real = pairing_window.join

    async def elsewhere(*args: object) -> JoinResult:
        import dataclasses

        result = await real(*args)  # type: ignore[arg-type]
        return dataclasses.replace(result, peer_address=Address("127.0.0.1", 1))

    monkeypatch.setattr(network_module, "join", elsewhere)
    with pytest.raises(Refused) as refused:
        await attic.network.join(window.address, window.code)
    assert code_of(refused) == "pairing_unfinished"
    assert attic.network.log is None
    assert not attic.network.members
    assert isinstance(window.state, pairing.Admitted)
    await window.close()
    with pytest.raises(Refused) as refused:
        await window.result()
    assert code_of(refused) == "pairing_unfinished"
    assert set(den.network.members) == {den.network.id}
    monkeypatch.undo()
    await pair(den, attic)


async def test_a_full_disk_while_joining_is_said_and_undone(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    den, attic = await nodes.open("den"), await nodes.open("attic")
    window = await den.network.open_pairing(HOST_AND_LENDER)

    async def full(*_: object) -> None:
        raise DoesNotFit("household_unsaved", path="x", why="No space left on device")

    monkeypatch.setattr(attic.network._log._store, "save", full)
    with pytest.raises(DoesNotFit, match="household_unsaved"):
        await attic.network.join(window.address, window.code)
    assert attic.network.log is None
    assert not attic.network.links


async def test_a_newcomer_that_the_disk_does_not_take_is_no_member(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    den, attic = await nodes.open("den"), await nodes.open("attic")
    window = await den.network.open_pairing(HOST_AND_LENDER)
    monkeypatch.setattr(den.network._log._store, "_write_file", full_disk)
    with suppress(AppError):  # whether its first link counted before it was cut is chance
        await attic.network.join(window.address, window.code)
    with pytest.raises(Refused, match="household_unsaved"):
        await window.result()
    assert set(den.network.members) == {den.network.id}
    await until(lambda: not den.network.links)


async def test_the_household_is_there_again_after_a_restart(nodes: Nodes, tmp_path: Path) -> None:
    den, attic = await nodes.paired("den", "attic")
    await until(lambda: len(den.network.members) == 2)
    log = await LogStore(tmp_path / "attic" / "household", write_atomically).load()
    assert log is not None
    assert log == attic.network.log
    assert den.network.log is not None
    assert set(log.operations) == set(den.network.log.operations)


async def test_removing_an_admin_asks_what_it_added(nodes: Nodes) -> None:
    den, attic, loft = [await nodes.open(name) for name in ("den", "attic", "loft")]
    await pair(den, attic, (Role.ADMIN, Role.HOST))
    await pair(attic, loft)
    await until(lambda: loft.network.id in den.network.members)
    added = den.network.added_by(attic.network.id)
    assert [operation.body.machine for operation in added] == [loft.network.id]
    await den.network.remove(attic.network.id, [operation.id for operation in added])
    assert set(den.network.members) == {den.network.id, loft.network.id}
    await until(lambda: attic.network.dismissed)
    with pytest.raises(Refused):
        await den.network.remove(attic.network.id)
    with pytest.raises(Refused):
        await attic.network.remove(den.network.id)


async def test_news_reaches_a_machine_that_was_away(nodes: Nodes) -> None:
    den, attic = await nodes.open("den"), await nodes.prepare("attic")
    async with attic.network:
        await pair(den, attic)
        port = attic.network.port
    loft = await nodes.open("loft")
    await pair(den, loft)
    back = await nodes.open("attic", port=port)
    await until(lambda: loft.network.id in back.network.members)
