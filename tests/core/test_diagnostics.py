"""Of several findings the likeliest cause comes first."""

from __future__ import annotations

import pytest

from app.core.diagnostics import LIKELIEST, ORDER, Check, in_order, likeliest

FINE = Check("Listening", True, "Reached at 10.0.0.2:4242.")
NOTE = Check("IPv6", None, "IPv6 is off.", code="ipv6_off")
ALONE = Check("Discovery", None, "It hears no other one.", code="discovery_alone")
VPN = Check("VPN", None, "A VPN is connected.", code="vpn_up")
SILENT = Check("attic-pc", False, "It does not answer.", code="peer_silent", machine="attic-pc")
OFF = Check("study-pc", False, "It is off.", code="peer_offline", machine="study-pc")
DISK = Check("Disk", False, "1.0 GiB are free.")


@pytest.mark.parametrize(
    ("checks", "cause"),
    [
        ([], None),
        ([FINE, NOTE], None),
        ([FINE, ALONE, VPN], ALONE),
        ([VPN, OFF, SILENT], SILENT),
        ([DISK, OFF], OFF),
        ([ALONE, DISK], DISK),
        ([OFF, Check("other", False, code="peer_offline")], OFF),
    ],
)
def test_the_likeliest_cause(checks: list[Check], cause: Check | None) -> None:
    assert likeliest(checks) is cause


def test_they_are_told_as_a_person_would_ask() -> None:
    """A machine that is called as a check is one all the same; what nobody has placed comes last."""
    machine = Check("Disk", True, machine="Disk")
    odd = Check("odd", True)
    found = [odd, DISK, NOTE, VPN, SILENT, machine, ALONE, FINE]
    assert in_order(found) == [FINE, ALONE, SILENT, machine, VPN, NOTE, DISK, odd]
    assert len(set(ORDER)) == len(ORDER)


def test_every_code_is_named_once() -> None:
    assert len(set(LIKELIEST)) == len(LIKELIEST)
