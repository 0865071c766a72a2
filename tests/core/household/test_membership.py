"""The household log: any order of arrival gives the same members, and nobody sneaks in."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.household import membership
from app.core.household.membership import Log, added_by, members, next_turn, removed_machines
from app.core.household.operations import (
    FIRST_ROLES,
    NO_HOUSEHOLD,
    Add,
    BadOperation,
    Body,
    Operation,
    OperationId,
    Remove,
    Rename,
    Role,
    SetRoles,
    decode,
    encode,
    household_of,
    signed_bytes,
)
from app.core.ids import MachineId

DERS = [b"certificate %d" % n for n in range(7)]
IDS = [MachineId(hashlib.sha256(der).hexdigest()) for der in DERS]
ADMIN, HOST, LENDER = (Role.ADMIN,), (Role.HOST,), (Role.LENDER,)


def signature(der: bytes, payload: bytes) -> bytes:
    return hashlib.sha512(der + payload).digest()


def verify(der: bytes, payload: bytes, data: bytes) -> bool:
    return signature(der, payload) == data


def sign(signer: int, body: Body) -> Operation:
    payload = signed_bytes(body, IDS[signer])
    return Operation(body, IDS[signer], signature(DERS[signer], payload))


FIRST = sign(0, Add(NO_HOUSEHOLD, IDS[0], DERS[0], "first", FIRST_ROLES))
HOUSEHOLD = household_of(FIRST)
EMPTY = Log(HOUSEHOLD)


def is_fit(der: bytes) -> bool:
    return der in DERS


def merge(log: Log, arrived: Sequence[Operation]) -> Log:
    return membership.merge(log, arrived, verify, is_fit).log


def add(signer: int, machine: int, roles: tuple[Role, ...] = LENDER, name: str = "x") -> Operation:
    return sign(signer, Add(HOUSEHOLD, IDS[machine], DERS[machine], name, roles))


def remove(signer: int, machine: int, kept: Sequence[OperationId] = ()) -> Operation:
    return sign(signer, Remove(HOUSEHOLD, IDS[machine], tuple(sorted(kept))))


def roles(signer: int, machine: int, turn: int, chosen: tuple[Role, ...] = LENDER) -> Operation:
    return sign(signer, SetRoles(HOUSEHOLD, IDS[machine], turn, chosen))


def rename(signer: int, machine: int, turn: int, name: str = "new") -> Operation:
    return sign(signer, Rename(HOUSEHOLD, IDS[machine], turn, name))


def names(log: Log) -> set[int]:
    return {IDS.index(machine) for machine in members(log)}


def test_the_first_machine_is_admin_host_and_lender() -> None:
    log = merge(EMPTY, [FIRST])
    assert members(log)[IDS[0]].roles == set(FIRST_ROLES)
    assert members(log)[IDS[0]].name == "first"


def test_an_operation_survives_being_written() -> None:
    some = (roles(0, 1, 1), roles(0, 1, 9, ()), rename(0, 1, 1 << 53, "Küche"))
    for operation in (FIRST, add(0, 1, ADMIN), remove(0, 1, [add(1, 2).id]), *some):
        assert decode(encode(operation)) == operation
        assert decode(encode(operation).decode()) == operation


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw + b" ",
        lambda raw: raw.replace(b'"op":"add"', b'"op":"grant"'),
        lambda raw: raw.replace(b'"name":"x"', b'"name":""'),
        lambda raw: raw.replace(b'"name":"x"', b'"name":7'),
        lambda raw: raw.replace(b'"name":"x"', b'"name":"' + b"x" * 65 + b'"'),
        lambda raw: raw.replace(b'"name":"x"', b'"name":"\\u0078"'),
        lambda raw: raw.replace(b'["lender"]', b'["lender","lender"]'),
        lambda raw: raw.replace(b'["lender"]', b"[]"),
        lambda raw: raw.replace(b'["lender"]', b'["king"]'),
        lambda raw: raw.replace(b'"der":"', b'"der":"AAAA'),
        lambda raw: raw.replace(b'"der":"', b'"der":"*'),
        lambda raw: raw.replace(b'"signature":"', b'"signature":"AAAA'),
        lambda raw: raw.replace(IDS[0].encode(), IDS[0].upper().encode()),
        lambda raw: raw[:-1] + b',"zebra":1}',
        lambda raw: b"x" * 5000,
        lambda raw: b"[" * 2000,
        lambda raw: b"null",
        lambda raw: b"\xff",
        lambda raw: encode(remove(0, 1)).replace(b'"kept":[]', b'"kept":["1"]'),
        lambda raw: encode(remove(0, 1)).replace(b'"kept":[]', b'"kept":1'),
        lambda raw: encode(remove(0, 1)).replace(HOUSEHOLD.encode(), b""),
        lambda raw: encode(roles(0, 1, 1)).replace(HOUSEHOLD.encode(), b""),
        lambda raw: encode(roles(0, 1, 1)).replace(b'["lender"]', b'["admin"]'),
        lambda raw: encode(roles(0, 1, 1)).replace(b'["lender"]', b"null"),
        lambda raw: encode(roles(0, 1, 1)).replace(b'"turn":1', b'"turn":0'),
        lambda raw: encode(roles(0, 1, 1)).replace(b'"turn":1', b'"turn":true'),
        lambda raw: encode(roles(0, 1, 1)).replace(b'"turn":1', b'"turn":1.0'),
        lambda raw: encode(roles(0, 1, 1)).replace(b'"turn":1', b'"turn":"1"'),
        lambda raw: encode(rename(0, 1, 1 << 53)).replace(b'"turn":9007199254740992', b'"turn":9007199254740993'),
        lambda raw: encode(rename(0, 1, 1)).replace(b'"new"', b'""'),
        lambda raw: encode(rename(0, 1, 1)).replace(b'"new"', b'"' + b"x" * 65 + b'"'),
        lambda raw: encode(rename(0, 1, 1)).replace(b'"new"', b"7"),
    ],
)
def test_only_the_one_spelling_is_read(damage) -> None:  # type: ignore[no-untyped-def]
    raw = encode(add(0, 1))
    with pytest.raises(BadOperation):
        decode(damage(raw))


def test_forged_foreign_and_unfounded_operations_are_dropped() -> None:
    forged = dataclasses.replace(add(0, 1), signature=bytes(64))
    foreign = sign(0, Add(household_of(add(0, 3)), IDS[2], DERS[2], "x", ADMIN))
    usurper = sign(3, Add(NO_HOUSEHOLD, IDS[3], DERS[3], "x", FIRST_ROLES))
    by_lender = add(4, 5)
    log = merge(EMPTY, [FIRST, forged, foreign, usurper, add(0, 4), by_lender])
    assert names(log) == {0, 4}
    assert len(log.operations) == 2


def test_roles_add_up_and_the_name_does_not_depend_on_order() -> None:
    both = [add(0, 1, HOST, "beta"), add(0, 1, LENDER, "alpha")]
    for operations in (both, both[::-1]):
        member = members(merge(EMPTY, [FIRST, *operations]))[IDS[1]]
        assert member.roles == {Role.HOST, Role.LENDER}
        assert member.name == "alpha"


def test_the_last_line_about_a_machine_counts() -> None:
    lines = [roles(0, 1, 1, HOST), roles(0, 1, 2, LENDER), rename(0, 1, 3, "b"), rename(0, 1, 2)]
    log = merge(EMPTY, [FIRST, add(0, 1, (Role.HOST, Role.LENDER)), *lines])
    member = members(log)[IDS[1]]
    assert (set(member.roles), member.name, member.renamed) == ({Role.LENDER}, "b", lines[2].id)
    assert members(log)[IDS[0]].renamed is None
    assert next_turn(log, IDS[1]) == 4
    assert next_turn(log, IDS[2]) == 1
    log = merge(log, [roles(0, 1, 1 << 53, ())])
    assert members(log)[IDS[1]].roles == set()
    assert next_turn(log, IDS[1]) == 1 << 53


def test_lines_of_those_who_may_not_sign_change_nothing() -> None:
    lines = [roles(1, 1, 9, HOST), rename(1, 2, 9), rename(5, 1, 9), roles(0, 6, 1, HOST)]
    log = merge(EMPTY, [FIRST, add(0, 1), add(0, 2), *lines])
    assert members(log)[IDS[1]].roles == {Role.LENDER}
    assert members(log)[IDS[2]].name == "x"
    assert names(log) == {0, 1, 2}
    forged = dataclasses.replace(rename(0, 1, 9), signature=bytes(64))
    assert merge(log, [forged]) == log


def test_the_right_to_sign_is_neither_given_nor_taken_by_roles() -> None:
    log = merge(EMPTY, [FIRST, add(0, 1, (Role.ADMIN, Role.HOST)), roles(0, 1, 5, LENDER)])
    assert members(log)[IDS[1]].roles == {Role.ADMIN, Role.LENDER}
    log = merge(log, [add(1, 2), roles(1, 0, 1, HOST)])
    assert names(log) == {0, 1, 2}
    assert members(log)[IDS[0]].roles == {Role.ADMIN, Role.HOST}


def test_what_a_removed_admin_changed_counts_only_if_it_is_kept() -> None:
    narrowed, named = roles(1, 2, 1, LENDER), rename(1, 2, 1)
    start = [FIRST, add(0, 1, ADMIN), add(0, 2, HOST), narrowed, named]
    assert members(merge(EMPTY, start))[IDS[2]].name == "new"
    member = members(merge(EMPTY, [*start, remove(0, 1)]))[IDS[2]]
    assert (set(member.roles), member.name) == ({Role.HOST}, "x")
    member = members(merge(EMPTY, [*start, remove(0, 1, [narrowed.id])]))[IDS[2]]
    assert (set(member.roles), member.name) == ({Role.LENDER}, "x")


def test_a_removed_machine_never_returns() -> None:
    log = merge(EMPTY, [FIRST, add(0, 1), remove(0, 1), add(0, 1, ADMIN)])
    assert names(log) == {0}
    assert removed_machines(log) == {IDS[1]}


def test_what_a_removed_admin_added_counts_only_if_every_removal_keeps_it() -> None:
    second, third = add(1, 2), add(1, 3)
    start = [FIRST, add(0, 1, ADMIN), add(0, 4, ADMIN), second, third]
    log = merge(EMPTY, [*start, remove(0, 1, [second.id, third.id])])
    assert names(log) == {0, 2, 3, 4}
    log = merge(log, [remove(4, 1, [third.id])])
    assert names(log) == {0, 3, 4}
    assert [operation.id for operation in added_by(log, IDS[1])] == [second.id, third.id]


def test_a_kept_machine_gets_no_new_rights_from_the_removed_one() -> None:
    kept = add(1, 2, LENDER)
    log = merge(EMPTY, [FIRST, add(0, 1, ADMIN), kept, remove(0, 1, [kept.id])])
    log = merge(log, [add(1, 2, ADMIN), add(2, 5)])
    assert names(log) == {0, 2}
    assert members(log)[IDS[2]].roles == {Role.LENDER}


def test_the_first_machine_can_be_removed() -> None:
    heir = add(0, 1, ADMIN)
    log = merge(EMPTY, [FIRST, heir, remove(1, 0, [heir.id])])
    assert names(log) == {1}
    assert names(merge(log, [add(1, 2)])) == {1, 2}


@pytest.fixture
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    room = {Add: 3, Remove: 2, SetRoles: 1, Rename: 1}
    for name in ("FOUNDER_ROOM", "SIGNER_ROOM"):
        monkeypatch.setattr(membership, name, room)
    monkeypatch.setattr(membership, "OTHERS_ROOM", {Add: 4, Remove: 3, SetRoles: 2, Rename: 2})


@pytest.mark.usefixtures("little_room")
def test_a_full_log_still_takes_removals() -> None:
    log = merge(EMPTY, [FIRST, add(0, 1), add(0, 2), add(0, 3), add(0, 4)])
    assert len(log.operations) == 3
    gone = min(names(log) - {0})
    assert names(merge(log, [remove(0, gone)])) == names(log) - {gone}


@pytest.mark.usefixtures("little_room")
def test_of_changes_without_room_for_all_the_newest_stay() -> None:
    start = [FIRST, add(0, 1), add(0, 2)]
    log = merge(EMPTY, [*start, rename(0, 1, 1, "a"), rename(0, 1, 2, "b"), roles(0, 1, 1)])
    assert len(log.operations) == 5
    assert members(log)[IDS[1]].name == "b"
    log = merge(log, [rename(0, 1, 3, "c")])
    assert members(log)[IDS[1]].name == "c"


def test_a_certificate_that_may_not_be_pinned_is_never_taken_in() -> None:
    garbage = b"no certificate"
    machine = MachineId(hashlib.sha256(garbage).hexdigest())
    bad = sign(0, Add(HOUSEHOLD, machine, garbage, "x", LENDER))
    merged = membership.merge(EMPTY, [FIRST, bad, add(0, 1)], verify, is_fit)
    assert names(merged.log) == {0, 1}
    assert merged.unpinnable == (bad,)
    assert not merged.forged


@pytest.mark.usefixtures("little_room")
def test_invented_ids_take_no_room() -> None:
    log = merge(EMPTY, [FIRST, add(0, 1, ADMIN), add(0, 2)])
    invented = [sign(1, Remove(HOUSEHOLD, MachineId(hashlib.sha256(bytes([n])).hexdigest()), ())) for n in range(9)]
    assert merge(log, invented) == log
    assert names(merge(merge(log, invented), [remove(1, 2)])) == {0, 1}


def test_who_signed_more_than_there_is_room_for_takes_none_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hostile admin, and the admins that it adds, fill what is there for them: the first machine removes them,
    and an honest admin next to it keeps its own lines."""
    room = {Add: 2, Remove: 2, SetRoles: 1, Rename: 1}
    monkeypatch.setattr(membership, "SIGNER_ROOM", room)
    monkeypatch.setattr(membership, "OTHERS_ROOM", {Add: 4, Remove: 4, SetRoles: 2, Rename: 2})
    honest = [FIRST, add(0, 1, ADMIN), add(0, 2, ADMIN), add(2, 6), rename(2, 6, 1)]
    log = merge(EMPTY, honest)
    flood = [add(1, machine, ADMIN) for machine in range(3, 6)]
    flood += [add(signer, machine, ADMIN) for signer in range(3, 6) for machine in range(1, 7)]
    flood += [remove(signer, machine) for signer in range(3, 6) for machine in (3, 4, 5)]
    flooded = merge(log, flood)
    assert set(honest) <= set(flooded.operations)
    assert len(flooded.operations) < len(honest) + len(flood)
    after = merge(flooded, [remove(0, 1)])
    assert names(after) == {0, 2, 6}


def test_a_name_with_the_highest_turn_goes_with_who_gave_it() -> None:
    log = merge(EMPTY, [FIRST, add(0, 1, ADMIN), add(0, 2), rename(1, 2, 1 << 53, "evil")])
    assert next_turn(log, IDS[2]) == 1 << 53
    assert next_turn(log, IDS[2], leaving=IDS[1]) == 1
    log = merge(log, [remove(0, 1)])
    assert next_turn(log, IDS[2]) == 1
    assert members(merge(log, [rename(0, 2, 1, "good")]))[IDS[2]].name == "good"


def test_of_two_under_one_name_one_gets_a_number_in_any_order() -> None:
    """Two admins that do not hear each other let two machines in, or name them."""
    lines = [
        add(0, 1, ADMIN, "a"),
        add(0, 2, name="Laptop"),
        add(1, 3, name="b"),
        rename(1, 3, 1, "ＬＡＰＴＯＰ\u200b"),
    ]
    first, second = sorted(IDS[2:4])
    shown = set()
    for order in itertools.permutations(lines):
        log = merge(EMPTY, [FIRST, *order])
        log = merge(log, order)  # what rested on a line that came later comes again
        shown.add(tuple(members(log)[machine].name for machine in (first, second)))
    plain, other = ("Laptop", "ＬＡＰＴＯＰ") if first == IDS[2] else ("ＬＡＰＴＯＰ", "Laptop")
    assert shown == {(plain, f"{other} 2")}
    log = merge(log, [rename(0, 3, 2, "FIRST")])
    assert (members(log)[IDS[0]].name, members(log)[IDS[3]].name) == ("first", "FIRST 2")


MACHINES = st.integers(0, len(IDS) - 1)
ROLES = st.sets(st.sampled_from(list(Role)), min_size=1).map(lambda results: tuple(sorted(results)))
KINDS = st.sampled_from(("add", "add", "remove", "roles", "rename"))
STEPS = st.lists(st.tuples(KINDS, MACHINES, MACHINES, ROLES, st.integers(0, 2**20)), max_size=14)
Steps = list[tuple[str, int, int, tuple[Role, ...], int]]


def history(steps: Steps) -> list[Operation]:
    """Operations of honest and dishonest machines; removals keep some of what was before."""
    operations = [FIRST]
    for kind, signer, machine, chosen, pick in steps:
        if kind == "add":
            operations.append(add(signer, machine, chosen))
        elif kind == "roles":
            plain = tuple(role for role in chosen if role is not Role.ADMIN)
            operations.append(roles(signer, machine, 1 + pick % 4, plain))
        elif kind == "rename":
            operations.append(rename(signer, machine, 1 + pick % 4, f"name {pick % 3}"))
        else:
            kept = [op.id for n, op in enumerate(operations) if pick >> n & 1]
            operations.append(remove(signer, machine, kept))
    return operations


@given(STEPS, st.randoms(use_true_random=False))
def test_any_order_of_arrival_gives_the_same_members(steps: Steps, chance: random.Random) -> None:
    operations = history(steps)
    whole = merge(EMPTY, operations)
    shuffled = chance.sample(operations, len(operations))
    at_once = merge(EMPTY, shuffled)
    assert set(at_once.operations) == set(whole.operations)
    assert members(at_once) == members(whole)
    one_by_one, before = EMPTY, -1
    while before != len(one_by_one.operations):  # each connect exchanges the log again
        before = len(one_by_one.operations)
        for operation in shuffled:
            one_by_one = merge(one_by_one, [operation])
    assert members(one_by_one) == members(whole)
    # in its own order a log is taken in one go, whatever the sizes of the messages
    relayed = EMPTY
    for operation in at_once.operations:
        relayed = merge(relayed, [operation])
    assert relayed.operations == at_once.operations


@given(STEPS)
def test_no_removed_machine_is_a_member(steps: Steps) -> None:
    log = merge(EMPTY, history(steps))
    assert not removed_machines(log) & set(members(log))


@pytest.mark.long
@settings(max_examples=max(200, settings().max_examples))
@given(STEPS, STEPS, st.integers(1, 6))
def test_a_stolen_admin_brings_nobody_in_once_its_removal_is_known(before: Steps, after: Steps, thief: int) -> None:
    log = merge(EMPTY, [*history(before), add(0, thief, ADMIN), remove(0, thief)])
    known = members(log)
    own = [op for op in history(after) if op.signer == IDS[thief]]
    grown = members(merge(log, own))
    assert set(grown) <= set(known)
    assert all(grown[machine].roles <= known[machine].roles for machine in grown)
