"""Tests of the memory of machines that became slow."""

from __future__ import annotations

from app.core.ids import MachineId
from app.core.planner.placement_change import SLOW_FOR_S
from app.node.placement.standby import SlowMachines

DEN, ATTIC = MachineId("den"), MachineId("attic")


def test_who_is_slow_is_known_until_it_is_quick_again() -> None:
    slow_machines = SlowMachines()
    slow_machines.update({DEN: 0.02, ATTIC: 0.02}, 0.0, 1.0)
    slow_machines.update({DEN: 0.02, ATTIC: 0.2}, 0.0, 2.0)
    assert slow_machines.slow == {ATTIC: 10.0}
    slow_machines.update({DEN: 0.02, ATTIC: 0.03}, 0.0, 3.0)
    assert slow_machines.slow == {}


def test_who_was_replaced_is_left_alone_for_a_while() -> None:
    slow_machines = SlowMachines()
    slow_machines.update({DEN: 0.02, ATTIC: 0.02}, 0.0, 1.0)
    slow_machines.update({DEN: 0.02, ATTIC: 0.2}, 0.0, 2.0)
    slow_machines.update({DEN: 0.02}, 5.0, 6.0)  # placed anew, without it
    assert slow_machines.slow == {ATTIC: 10.0}
    slow_machines.update({DEN: 0.02}, 5.0, 2.0 + SLOW_FOR_S)
    assert slow_machines.slow == {}


def test_layers_that_were_placed_anew_are_measured_anew() -> None:
    slow_machines = SlowMachines()
    slow_machines.update({DEN: 0.02, ATTIC: 0.01}, 0.0, 1.0)
    slow_machines.update({DEN: 0.02, ATTIC: 0.09}, 5.0, 6.0)  # it holds nine times as many now
    assert slow_machines.slow == {}
