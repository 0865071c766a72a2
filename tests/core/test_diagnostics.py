"""Tests of the order of several findings: the likeliest cause comes first."""

from __future__ import annotations

import pytest

from app.core.diagnostics import LIKELIEST, ORDER, Check, likeliest_cause, sorted_checks
from tests.findings import finding

FINE = finding("Listening", True, "Reached at 10.0.0.2:4242.")
NOTE = finding("IPv6", None, "IPv6 is off.", code="ipv6_off")
ALONE = finding("Discovery", None, "It hears no other one.", code="discovery_alone")
VPN = finding("VPN", None, "A VPN is connected.", code="vpn_up")
SILENT = finding("attic-pc", False, "It does not answer.", code="peer_silent", machine="attic-pc")
OFF = finding("study-pc", False, "It is off.", code="peer_offline", machine="study-pc")
DISK = finding("Disk", False, "1.0 GiB are free.")


@pytest.mark.parametrize(
    ("checks", "cause"),
    [
        ([], None),
        ([FINE, NOTE], None),
        ([FINE, ALONE, VPN], ALONE),
        ([VPN, OFF, SILENT], SILENT),
        ([DISK, OFF], OFF),
        ([ALONE, DISK], DISK),
        ([OFF, finding("other", False, code="peer_offline")], OFF),
    ],
)
def test_the_likeliest_cause(checks: list[Check], cause: Check | None) -> None:
    assert likeliest_cause(checks) is cause


def test_they_are_told_as_a_person_would_ask() -> None:
    """A machine that is called as a check is one all the same; what nobody has placed comes last."""
    machine = finding("Disk", True, machine="Disk")
    odd = finding("odd", True)
    checks = [odd, DISK, NOTE, VPN, SILENT, machine, ALONE, FINE]
    assert sorted_checks(checks) == [FINE, ALONE, SILENT, machine, VPN, NOTE, DISK, odd]
    assert len(set(ORDER)) == len(ORDER)


def test_every_code_is_named_once() -> None:
    assert len(set(LIKELIEST)) == len(LIKELIEST)
