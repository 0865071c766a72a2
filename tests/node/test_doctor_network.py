"""Tests of the doctor's findings about this computer's network."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from app.core.household.link import LinkKind
from app.core.ids import MachineId
from app.core.reasons import sentence_for
from app.machine.interfaces import Interface
from app.network.messages import PROTOCOL, Called
from app.network.sockets import Address
from app.node.doctor import (
    ipv6_check,
    known_inbound_check,
    network_location_checks,
    protocol_checks,
    reachability_checks,
    virtual_network_check,
    vpn_check,
)
from tests.findings import cause_of, cure_of

CABLE = Interface("eth0", LinkKind.ETHERNET, True, ("10.0.0.2", "fe80::2%eth0"))
FAR, AT = MachineId("far"), Address("10.0.0.9", 4242)
BRIDGE = Interface("docker0", LinkKind.VIRTUAL, True, ("172.17.0.1",))
DOWN = Interface("docker1", LinkKind.VIRTUAL, False, ("172.18.0.1",))
TUNNEL = Interface("tun0", LinkKind.VPN, True, ("10.8.0.2",))


def test_another_protocol_nearby_is_named_with_who_is_older() -> None:
    assert not protocol_checks([PROTOCOL, PROTOCOL, PROTOCOL + 1])  # neighbors can talk
    assert "Update Poolhouse on this machine." in cure_of(protocol_checks([1, 99])[0])
    assert "Update Poolhouse on that machine." in cure_of(protocol_checks([0])[0])


def test_a_machine_that_was_met_elsewhere() -> None:
    assert not network_location_checks([CABLE], {"attic-pc": ["10.0.0.9"]})
    assert not network_location_checks([CABLE], {"attic-pc": ["192.168.7.9", "10.0.0.9"]})
    assert not network_location_checks([CABLE], {"attic-pc": []})
    assert not network_location_checks([], {"attic-pc": ["192.168.7.9"]})  # on no network: said elsewhere
    checks = network_location_checks([CABLE], {"attic-pc": ["192.168.7.9"]})
    assert [(check.code, check.machine) for check in checks] == [("other_network", "attic-pc")]


def test_whether_others_get_in_is_known_only_when_one_did() -> None:
    assert not known_inbound_check([]).tested
    assert not known_inbound_check([True]).tested
    assert known_inbound_check([True, False]).ok


@dataclass
class Far:
    """A machine that was dialed, and what it says when it is asked to call back."""

    name: str
    says: bool | None
    dialed: bool = True
    hears: bool | None = None
    peer: MachineId = FAR
    address: Address = AT

    @property
    def reachability(self) -> Far:
        return self

    async def ask(self) -> Called | None:
        known = self.says is not None or self.hears is not None
        return Called(request=1, reached=self.says, hears=self.hears) if known else None


@pytest.mark.parametrize(
    ("fars", "ok", "code", "machine"),
    [
        ([], None, "port_untested", ""),
        ([Far("den", None), Far("attic", True)], True, "", "attic"),
        ([Far("den", False), Far("attic", True)], False, "port_closed", ""),
        ([Far("den", None)], None, "port_untested", ""),
        ([Far("den", False), Far("attic", False, dialed=False)], True, "", ""),  # one came in
    ],
)
async def test_where_nobody_came_in_others_are_asked_to(
    fars: list[Far], ok: bool | None, code: str, machine: str
) -> None:
    (check,) = await reachability_checks(fars, lambda _: True)
    assert (check.ok, check.code, check.machine) == (ok, code, machine)


@pytest.mark.parametrize(
    ("theirs", "ours", "expected"),
    [
        (True, True, [(True, "", "den", "")]),
        (False, True, [(None, "one_way_there", "den", "10.0.0.9:4242")]),
        (True, False, [(None, "one_way_here", "", "")]),  # the command is for this computer
        (False, False, [(None, "no_way_nearby", "den", "")]),
        (None, True, []),  # an older version, or its discovery is off
        (True, None, []),  # ours is
    ],
)
async def test_discovery_that_goes_one_way_is_named(
    theirs: bool | None, ours: bool | None, expected: list[tuple[bool | None, str, str, str]]
) -> None:
    checks = (await reachability_checks([Far("den", True, hears=theirs)], lambda _: ours))[1:]
    assert [(check.ok, check.code, check.machine, check.address) for check in checks] == expected
    assert all("den" in cause_of(check) for check in checks)


def test_a_vpn_is_a_note_unless_it_was_chosen() -> None:
    assert vpn_check([CABLE], frozenset())[0].ok
    assert vpn_check([CABLE, TUNNEL], frozenset())[0].code == "vpn_up"
    assert vpn_check([CABLE, TUNNEL], frozenset(["tun0"]))[0].ok


def test_networks_inside_this_computer_are_left_alone_unless_one_was_chosen() -> None:
    assert cause_of(virtual_network_check([CABLE], frozenset())) == sentence_for("check_no_virtual")
    inner = virtual_network_check([CABLE, BRIDGE, DOWN], frozenset())
    assert (inner.ok, cause_of(inner)) == (True, sentence_for("check_virtual", names="docker0"))
    chosen = virtual_network_check([CABLE, BRIDGE, DOWN], frozenset(["docker0", "docker1", "eth0"]))
    assert (chosen.ok, chosen.code) == (None, "virtual_chosen")
    assert "`--interface docker0`" in cure_of(chosen)


def test_ipv4_alone_is_enough() -> None:
    assert ipv6_check([CABLE]).ok
    assert ipv6_check([TUNNEL]).ok is None
