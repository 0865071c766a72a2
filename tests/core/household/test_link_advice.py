"""Tests of the advice to use another interface for a link."""

from __future__ import annotations

import pytest

from app.core.household.link import CODES, LinkEnd, LinkKind, better_ends, wrong_interface
from app.core.reasons import said

CABLE = LinkEnd(LinkKind.ETHERNET, "eth0", 10**9)
FAST = LinkEnd(LinkKind.ETHERNET, "eth1", 10**10)
THUNDER = LinkEnd(LinkKind.THUNDERBOLT, "tb0")
WIFI = LinkEnd(LinkKind.WIFI, "wlan0", 866_000_000)
VPN = LinkEnd(LinkKind.VPN, "wg0")
BRIDGE = LinkEnd(LinkKind.VIRTUAL, "docker0")
ALL = (BRIDGE, VPN, WIFI, CABLE, FAST, THUNDER)


@pytest.mark.parametrize(
    ("used", "better"),
    [
        (WIFI, (THUNDER, FAST, CABLE)),
        (VPN, (THUNDER, FAST, CABLE, WIFI)),
        (BRIDGE, (THUNDER, FAST, CABLE, WIFI)),
        (CABLE, ()),
        (THUNDER, ()),
        (LinkEnd(), ()),
    ],
)
def test_only_a_wrong_kind_has_better_ones_the_best_first(used: LinkEnd, better: tuple[LinkEnd, ...]) -> None:
    assert better_ends(used, ALL) == better


def test_the_same_interface_is_not_its_own_cure() -> None:
    assert better_ends(WIFI, (WIFI, LinkEnd(LinkKind.ETHERNET, "wlan0"))) == ()


@pytest.mark.parametrize("used", [WIFI, VPN, BRIDGE])
def test_what_is_wrong_is_said_with_the_cure(used: LinkEnd) -> None:
    sentence = said(wrong_interface("attic", used, CABLE))
    assert used.interface in sentence
    assert sentence.endswith("Poolhouse can use eth0 instead.")
    assert set(CODES) == {WIFI.kind, VPN.kind, BRIDGE.kind}
