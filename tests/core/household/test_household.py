"""Strangers in the household: bounded, never members, never more than hearsay."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.core.errors import Reason
from app.core.household.household import (
    MOST_FORMER,
    MOST_STRANGERS,
    Announced,
    AnnouncementEnded,
    Connected,
    Described,
    Disconnected,
    Household,
    Machine,
    Member,
    Removed,
    SilenceNoted,
    apply,
    with_unlinkable,
)
from app.core.ids import MachineId

DEN, ATTIC = MachineId("d" * 64), MachineId("a" * 64)
SEEN = Announced("a" * 16, ("10.0.0.2",), 4242, protocol=1)


def after(*events: object) -> Household:
    household = Household()
    for event in events:
        household = apply(household, event)  # type: ignore[arg-type]
    return household


def test_a_stranger_is_seen_changes_and_goes() -> None:
    named = replace(SEEN, name="attic-pc", pairing_port=4243)
    assert after(SEEN).strangers == {"a" * 16: SEEN}
    assert after(SEEN, named).strangers == {"a" * 16: named}
    assert after(SEEN, named, AnnouncementEnded("a" * 16)).strangers == {}
    assert after(AnnouncementEnded("a" * 16)).strangers == {}


def test_a_member_is_no_stranger() -> None:
    member = Member(ATTIC, "attic-pc", ())
    assert after(member, SEEN).strangers == {}
    joined = after(SEEN, member)
    assert (list(joined.machines), joined.strangers) == ([ATTIC], {})


def test_whoever_left_was_seen_last_when_its_link_ended() -> None:
    member = Member(ATTIC, "attic-pc", ())
    assert after(member).machines[ATTIC].seen_at is None
    left = after(member, Connected(ATTIC, "10.0.0.2"), Disconnected(ATTIC, None, 1.5)).machines[ATTIC]
    assert (left.online, left.seen_at) == (False, 1.5)


def test_an_announcement_changes_no_member() -> None:
    before = after(Member(ATTIC, "attic-pc", ("lender",)))
    forged = Announced("a" * 16, ("10.0.0.66",), 1, protocol=9, name="den-pc", pairing_port=2)
    assert apply(before, forged).machines == before.machines


def test_whoever_was_removed_is_a_stranger_when_it_is_seen_again() -> None:
    household = after(Member(ATTIC, "attic-pc", ()), SEEN, Removed(ATTIC), SEEN)
    assert (household.machines, list(household.strangers)) == ({}, ["a" * 16])


def test_strangers_are_bounded_and_whoever_was_heard_first_goes() -> None:
    many = [replace(SEEN, id16=f"{n:016x}") for n in range(3 * MOST_STRANGERS)]
    strangers = list(after(*many).strangers)
    assert strangers == [seen.id16 for seen in many[-MOST_STRANGERS:]]


def test_whoever_is_heard_again_stays() -> None:
    many = [replace(SEEN, id16=f"{n:016x}") for n in range(MOST_STRANGERS)]
    again = replace(many[0], port=5)
    late = replace(SEEN, id16="f" * 16)
    strangers = after(*many, again, late).strangers
    assert strangers[again.id16] == again
    assert many[1].id16 not in strangers


def test_the_household_before_stays_as_it_was() -> None:
    before = after(SEEN, Member(DEN, "den-pc", ()))
    copy = Household(dict(before.machines), dict(before.strangers))
    apply(before, AnnouncementEnded(SEEN.id16))
    apply(before, Described(DEN, "other", "CPU", 1, 1, 0))
    apply(before, Connected(DEN, None))
    assert before == copy


@pytest.mark.parametrize(
    ("roles", "lending", "state"),
    [
        (("guest",), "paused", "guest"),
        (("guest",), "off", "guest"),
        (("guest",), "draining", "draining"),  # its right was taken while somebody used it
        (("host",), "paused", "user"),
        (("guest", "host"), "paused", "user"),  # as the lines of two admins can add up
        (("host", "lender"), "paused", "paused"),
        (("guest", "lender"), "paused", "paused"),
        ((), "paused", "paused"),  # in no household
    ],
)
def test_who_may_not_lend_has_paused_nothing(roles: tuple[str, ...], lending: str, state: str) -> None:
    machine = Machine(ATTIC, "attic", online=True, roles=roles, lending=lending)
    assert machine.state == state
    assert replace(machine, online=False).state == "offline"


def named(name: str) -> Described:
    return Described(ATTIC, name, "", 1, 1, 0)


def test_a_reason_from_before_a_renaming_says_the_new_name() -> None:
    late = Reason("machine_heard_late", {"name": "attic", "seconds": 3})
    came = after(Member(ATTIC, "attic", ()), Member(DEN, "den", ()), SilenceNoted(ATTIC, late))
    assert came.with_current_names(late) is late
    household = apply(apply(came, named("loft")), named("barn"))
    for fact in ("attic", "loft"):
        now = household.with_current_names(Reason("left_out_same", {"machine": fact, "seconds": 3}))
        assert now.facts == {"machine": "barn", "seconds": 3}
    another = apply(household, Member(MachineId("b" * 64), "attic", ()))
    assert another.with_current_names(late) is late  # there is one that is called so
    assert apply(household, Removed(ATTIC)).former == {}


@pytest.mark.parametrize("name", ["den", "DEN", "ｄｅｎ", "d\u200ben\u3164", "the  den"])
def test_a_machine_that_calls_itself_as_another_keeps_its_name(name: str) -> None:
    den = replace(Machine(DEN, "the den"), log_name="den")
    before = Household({ATTIC: Machine(ATTIC, "attic"), DEN: den})
    household = apply(before, named(name))
    assert [machine.name for machine in household.machines.values()] == ["attic", "the den"]
    assert apply(before, named("loft")).machines[ATTIC].name == "loft"


def test_of_who_closed_it_is_not_said_that_its_connection_broke() -> None:
    broke = Reason("stage_unreachable", {"machine": "attic"})
    there = after(Member(ATTIC, "attic", ()), Member(DEN, "den", ()))
    assert there.with_current_names(broke) is broke
    closed = apply(there, Disconnected(ATTIC, Reason("shutting_down"), 1.0))
    assert closed.with_current_names(broke) == Reason("machine_closed", {"machine": "attic"})
    of_den = Reason("stage_unreachable", {"machine": "den"})
    assert closed.with_current_names(of_den) is of_den
    lost = apply(there, Disconnected(ATTIC, Reason("link_lost", {"name": "attic"}), 1.0))
    assert lost.with_current_names(broke) is broke


def test_of_who_answers_and_does_not_link_is_said_why_and_not_that_it_was_closed() -> None:
    differs = Reason("version_differs", {"older": "attic", "newer": "den"})
    there = after(Member(ATTIC, "attic", ()), Member(DEN, "den", ()))
    closed = apply(there, Disconnected(ATTIC, Reason("shutting_down"), 1.0))
    seen = with_unlinkable(closed, {ATTIC: differs}).machines
    assert (seen[ATTIC].reason, seen[DEN].reason) == (differs, None)
    assert with_unlinkable(closed, {}) == closed
    back = apply(closed, Connected(ATTIC, None))
    assert with_unlinkable(back, {ATTIC: differs}) == back  # it is linked by now


def test_former_names_are_bounded() -> None:
    household = after(Member(ATTIC, "attic", ()))
    for number in range(2 * MOST_FORMER):
        household = apply(household, named(f"name {number}"))
    assert len(household.former) == MOST_FORMER
