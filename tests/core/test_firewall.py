"""Commands for firewalls name the port and nothing else."""

from __future__ import annotations

import pytest

from app.core.diagnostics import Firewall, firewall_command


@pytest.mark.parametrize("wall", list(Firewall))
def test_the_port_is_in_it_and_that_of_discovery(wall: Firewall) -> None:
    said = firewall_command(wall, 4242)
    assert "4242" in said
    assert "5353" in said
    assert "\n" not in said


def test_on_windows_only_private_networks_are_opened() -> None:
    assert firewall_command(Firewall.WINDOWS, 4242).count("-Profile Private") == 2
