"""Which interface a link should use instead."""

from __future__ import annotations

import pytest

from app.core.household.link import CODES, End, LinkKind, better_ends, wrong_interface
from app.core.reasons import said

CABLE = End(LinkKind.ETHERNET, "eth0", 10**9)
FAST = End(LinkKind.ETHERNET, "eth1", 10**10)
THUNDER = End(LinkKind.THUNDERBOLT, "tb0")
WIFI = End(LinkKind.WIFI, "wlan0", 866_000_000)
VPN = End(LinkKind.VPN, "wg0")
BRIDGE = End(LinkKind.VIRTUAL, "docker0")
ALL = (BRIDGE, VPN, WIFI, CABLE, FAST, THUNDER)


@pytest.mark.parametrize(
    ("used", "better"),
    [
        (WIFI, (THUNDER, FAST, CABLE)),
        (VPN, (THUNDER, FAST, CABLE, WIFI)),
        (BRIDGE, (THUNDER, FAST, CABLE, WIFI)),
        (CABLE, ()),
        (THUNDER, ()),
        (End(), ()),
    ],
)
def test_only_a_wrong_kind_has_better_ones_the_best_first(used: End, better: tuple[End, ...]) -> None:
    assert better_ends(used, ALL) == better


def test_the_same_interface_is_not_its_own_cure() -> None:
    assert better_ends(WIFI, (WIFI, End(LinkKind.ETHERNET, "wlan0"))) == ()


@pytest.mark.parametrize("used", [WIFI, VPN, BRIDGE])
def test_what_is_wrong_is_said_with_the_cure(used: End) -> None:
    sentence = said(wrong_interface("attic", used, CABLE))
    assert used.interface in sentence
    assert sentence.endswith("Poolhouse can use eth0 instead.")
    assert set(CODES) == {WIFI.kind, VPN.kind, BRIDGE.kind}
