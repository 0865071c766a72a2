"""Commands for firewalls name the port and nothing else."""

from __future__ import annotations

import pytest

from app.core.diagnostics import Wall, command


@pytest.mark.parametrize("wall", list(Wall))
def test_the_port_is_in_it_and_that_of_discovery(wall: Wall) -> None:
    said = command(wall, 4242)
    assert "4242" in said
    assert "5353" in said
    assert "\n" not in said


def test_on_windows_only_private_networks_are_opened() -> None:
    assert command(Wall.WINDOWS, 4242).count("-Profile Private") == 2
